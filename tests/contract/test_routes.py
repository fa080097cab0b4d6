"""Which paths and methods there are, and how the query is read."""

import pytest

from contract.caller import Caller, new_invoice, not_covered, read, refused

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "REPORT")
ALLOWED = {
    "/health": "GET, HEAD",
    "/openapi.json": "GET, HEAD",
    "/decide": "POST",
    "/decisions/in_1": "GET, HEAD",
    "/decisions/a/b/c": "GET, HEAD",
    "/decisions/in_1/outcome": "GET, HEAD, POST",
    "/decisions/outcomes/summary": "GET, HEAD",
    "/decisions/outcomes": "GET, HEAD",
    "/decisions/outcome": "GET, HEAD",
    "/refusals": "GET, HEAD",
    "/rails": "GET, HEAD",
    "/rails/ach": "GET, HEAD",
    "/rails/none": "GET, HEAD",
    "/rails/ach/codes/R01": "GET, HEAD",
}
NO_ROUTE = (
    *("/", "//", "/Health", "/health/", "/health.json", "//health", "/health%20", "/health%00"),
    *("/openapi.json/", "/openapi", "/decide/", "/DECIDE", "/decide/in_1", "/decision", "/decisions", "/decisions/"),
    *("/refusals/", "/refusals/x", "/v1/decide", "/$default/health", "/.env", "/x%ff", "/caf%C3%A9"),
    *("/rails/", "/rails/ach/", "/rails/ach/R01", "/rails/ach/codes", "/rails/ach/codes/", "/rails/ach/codes/R01/"),
)


def test_no_route_is_missing_here(client: Caller) -> None:
    allowed = [(method, path) for path, methods in ALLOWED.items() for method in methods.split(", ")]
    assert not_covered(client.routes(), allowed) == []


@pytest.mark.parametrize("path", NO_ROUTE)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_path_that_is_no_route_is_not_found_with_or_without_a_token(client: Caller, method: str, path: str) -> None:
    for auth in (True, False):
        refused(client.send(method, path, auth=auth), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    [(method, path) for path, allowed in ALLOWED.items() for method in METHODS if method not in allowed.split(", ")],
)
def test_another_method_is_told_which_are_allowed_before_any_token_is_asked_for(
    client: Caller, method: str, path: str
) -> None:
    for auth in (True, False):
        response = client.send(method, path, auth=auth)
        assert (response.status_code, response.headers["allow"]) == (405, ALLOWED[path])
        if method != "HEAD":
            refused(response, 405, "method_not_allowed")


def test_head_answers_as_get_does_without_a_body(client: Caller) -> None:
    invoice = new_invoice()
    client.decide(invoice)
    paths = ("/health", "/openapi.json", "/refusals", "/decisions/outcomes/summary", f"/decisions/{invoice}")
    for path in (*paths, f"/decisions/{new_invoice()}", "/refusals?limit=0", "/nowhere"):
        got, head = client.get(path), client.send("HEAD", path)
        assert head.status_code == got.status_code
        assert head.headers["content-type"] == got.headers["content-type"]
        assert head.headers.get("content-length") in {None, got.headers["content-length"]}


def test_health_is_the_same_for_everybody(client: Caller) -> None:
    health = read(client.get("/health"), "Health")
    assert health.commit
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "nonsense"}):
        assert read(client.get("/health", auth=False, headers=headers), "Health") == health


def test_only_the_listings_read_their_query(client: Caller) -> None:
    query = "?limit=no&cursor=no&x=1&x=2&%00"
    invoice = new_invoice()
    read(client.get("/health" + query), "Health")
    assert client.get("/openapi.json" + query).status_code == 200
    read(client.get("/decisions/outcomes/summary" + query), "Summary")
    assert client.post("/decide" + query, {"invoice_id": invoice, "failure_code": "x"}).status_code == 200
    body = {"outcome": "paid", "report_key": invoice}
    assert client.post(f"/decisions/{invoice}/outcome{query}", body).status_code == 201


@pytest.mark.parametrize("listing", ["/refusals", "/decisions/{invoice}"])
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=-1", "limit"),
        ("limit=%2B1", "limit"),
        ("limit=+1", "limit"),
        ("limit=1.0", "limit"),
        ("limit=1e1", "limit"),
        ("limit=0x1", "limit"),
        ("limit=", "limit"),
        ("limit", "limit"),
        ("limit=%D9%A1", "limit"),  # an Arabic-Indic one
        ("limit=%EF%BC%91", "limit"),  # a fullwidth one
        ("limit=1%0A", "limit"),
        ("limit=1_0", "limit"),
        ("limit=" + "9" * 5000, "limit"),
        ("limit=1&limit=1", "limit"),
        ("limit=1&cursor=&cursor=", "cursor"),
        ("Limit=1", "Limit"),
        ("limit%20=1", "limit "),
        ("page=2", "page"),
        ("=1", ""),
        ("a%22%00%C3%A9=1", 'a\\"\\u0000\\u00e9'),
        ("n" * 500 + "=1", "n" * 64),
        ("cursor=", "cursor"),
        ("cursor=x", "cursor"),
        ("cursor=%00", "cursor"),
        ("cursor=%C3%A9", "cursor"),
        ("cursor=AAAAAAAAAAAAAAAAAAAAAA", "cursor"),
        ("cursor=AAAAAAAAAAAAAAAAAAAAAA%3D%3D", "cursor"),
        ("cursor=AAAAAAAAAAAAAAAAAAAAAB", "cursor"),  # bits beyond the id
        ("cursor=" + "A" * 5000, "cursor"),
        ("cursor=019ad3c0-8f0e-7cc2-b9a5-0c3f5d9e2a11", "cursor"),
        ("cursor=' OR 1=1 --", "cursor"),
    ],
)
def test_a_listing_refuses_a_query_that_it_does_not_know(client: Caller, listing: str, query: str, field: str) -> None:
    invoice = new_invoice()
    client.decide(invoice)
    refused(client.get(f"{listing.format(invoice=invoice)}?{query}"), 422, "invalid_query", field)


def test_kind_belongs_to_the_refusals_only(client: Caller) -> None:
    invoice = new_invoice()
    client.decide(invoice)
    refused(client.get(f"/decisions/{invoice}?kind=refusal"), 422, "invalid_query", "kind")
    for query in ("kind=", "kind=Refusal", "kind=refusal,fell_through", "kind=refusal&kind=refusal"):
        refused(client.get(f"/refusals?{query}"), 422, "invalid_query", "kind")


@pytest.mark.parametrize("query", ["limit=1", "limit=200", "limit=050", "&limit=1&", "%6Cimit=1", "limit=%31"])
def test_a_listing_takes_a_limit_of_1_to_200_in_ascii_digits(client: Caller, query: str) -> None:
    invoice = new_invoice()
    client.decide(invoice)
    read(client.get(f"/refusals?{query}"), "Refusals")
    read(client.get(f"/decisions/{invoice}?{query}"), "History")


@pytest.mark.parametrize("invoice_id", ["a:b._-", "a/b/c", "{}/outcome", "outcomes/summary/x", "a/.../b", "a/.b/..c"])
def test_an_invoice_id_is_everything_between_decisions_and_the_end(client: Caller, invoice_id: str) -> None:
    invoice = f"{invoice_id}/{new_invoice()}" if "{}" not in invoice_id else invoice_id.format(new_invoice())
    decision = client.decide(invoice)
    encoded = invoice.replace("/", "%2F").replace(":", "%3a")
    for path in (invoice, encoded):
        assert client.history(path).decisions == [decision]
    assert client.report(encoded, "paid").invoice_id == invoice
    assert client.history(invoice).outcome == "paid"


@pytest.mark.parametrize(
    "invoice_id",
    ["%2E", "a%2F..%2Fb", "a//b", "a/", "/a", "a%20b", "a%00", "%C3%AF", "a" * 256, "-a", "outcomes/summary/", "%252F"],
)
def test_a_path_with_an_id_outside_the_pattern_does_not_exist(client: Caller, invoice_id: str) -> None:
    for response in (client.get(f"/decisions/{invoice_id}"), client.try_report(invoice_id, "paid", new_invoice())):
        assert refused(response, 404, "not_found").detail == "No such path."


def test_the_summary_is_no_invoice(client: Caller) -> None:
    refused(client.try_report("outcomes/summary", "paid", new_invoice()), 404, "not_found")
    refused(client.try_decide("outcomes/summary"), 422, "invalid_value", "invoice_id")
