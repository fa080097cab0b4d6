"""The rails over HTTP, on the local host and on a real Postgres."""

import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from paypilot import wire
from paypilot.core.rails import Rail
from paypilot.record.database import Database
from paypilot.rails import PublishedRails, load_registry
from paypilot.rules import current_ruleset
from paypilot.service import Service, answer
from paypilot.settings import read_settings
from support.slice import TOKEN, TOKENS, Host, TestDatabase

REGISTRY = load_registry()


@pytest.fixture(scope="module")
def client(host: Host) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=host.url) as client:
        yield client


def decide(client: httpx.Client, code: str, invoice_id: str = "in_rail", **fields: Any) -> httpx.Response:
    body = {"invoice_id": invoice_id, "failure_code": code, **fields}
    return client.post("/decide", json=body, headers={"authorization": f"Bearer {TOKEN}"})


def test_the_rails_are_listed_to_anyone_with_the_version_of_each(client: httpx.Client) -> None:
    listed = client.get("/rails").json()["rails"]
    assert {rail["rail"]: rail["version"] for rail in listed} == {r.name: r.version for r in REGISTRY.rails.values()}
    assert [rail["rail"] for rail in listed if rail["refuses"]] == ["bacs"]


@pytest.mark.parametrize("rail", REGISTRY.rails.values(), ids=lambda rail: rail.name)
def test_a_table_is_served_in_the_bytes_that_its_etag_is_the_digest_of(client: httpx.Client, rail: Rail) -> None:
    response = client.get(f"/rails/{rail.name}")
    assert response.status_code == 200
    assert response.headers["etag"] == f'"sha256:{hashlib.sha256(response.content).hexdigest()}"'
    assert json.loads(response.content) == rail.document


@pytest.mark.parametrize("path", ["/rails", "/rails/ach", "/rails/ach/codes/R01", "/rails/sepa/codes/ZZZZ"])
def test_an_answer_is_cacheable_and_is_not_sent_twice(client: httpx.Client, path: str) -> None:
    first = client.get(path)
    etag = first.headers["etag"]
    assert first.headers["cache-control"] == "public, max-age=300"
    for asked in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = client.get(path, headers={"if-none-match": asked})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag), asked
    for asked in ('"other"', etag.strip('"'), ""):
        assert client.get(path, headers={"if-none-match": asked}).content == first.content, asked
    head = client.head(path)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", etag)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/rails/ach/codes/R1", 422, "not_a_rail_code"),
        ("/rails/ach/codes/r01", 422, "not_a_rail_code"),
        ("/rails/ach/codes/X01", 422, "not_a_rail_code"),
        ("/rails/ach/codes/R100", 422, "not_a_rail_code"),
        ("/rails/ach/codes/R01%0A", 422, "not_a_rail_code"),
        ("/rails/ach/codes/R01%00", 422, "not_a_rail_code"),
        ("/rails/ach/codes/R01%27%20OR%201=1--", 422, "not_a_rail_code"),
        ("/rails/bacs/codes/0", 422, "rail_refused"),
        ("/rails/ACH/codes/R01", 404, "not_found"),
        ("/rails/fedwire/codes/R01", 404, "not_found"),
        ("/rails/fedwire", 404, "not_found"),
        ("/rails/", 404, "not_found"),
        ("/rails/ach/", 404, "not_found"),
        ("/rails/ach/codes", 404, "not_found"),
        ("/rails/ach/codes/", 404, "not_found"),
        ("/rails/ach/codes/R01/", 404, "not_found"),
        ("/rails/ach/codes/R01%2F..", 404, "not_found"),
    ],
)
def test_what_is_no_rail_or_no_code_is_refused_by_name(client: httpx.Client, path: str, status: int, code: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["cache-control"] == "no-store"
    assert "OR 1=1" not in response.text
    assert "etag" not in response.headers


@pytest.mark.parametrize("path", ["/rails", "/rails/ach", "/rails/ach/codes/R01"])
def test_the_tables_can_only_be_read(client: httpx.Client, path: str) -> None:
    response = client.post(path)
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


def test_bacs_says_why_it_refuses_what_would_change_it_and_what_is_only_second_hand(client: httpx.Client) -> None:
    refusal = client.get("/rails/bacs/codes/0").json()["refusal"]
    assert refusal["why"] and refusal["what_would_change_it"]
    assert all(each["second_hand"] for each in refusal["may_be_cited"])


def test_a_rail_code_is_decided_recorded_and_shown_again_as_it_was_answered(client: httpx.Client) -> None:
    response = decide(client, "ach:R01", "in_recorded", attempt=2)
    body = response.json()
    assert (response.status_code, body["rule"], body["retry"], body["retry_in_days"]) == (200, "ach:R01", True, 3)
    assert body["rules_version"] == REGISTRY.rails["ach"].version
    assert body["gates_checked"][2] == {"gate": "rules_table", "result": "matched"}
    assert (body["rail"]["limit"]["within_days"], body["rail"]["limit_used_up"]) == (180, False)
    shown = client.get("/decisions/in_recorded", headers={"authorization": f"Bearer {TOKEN}"}).json()
    assert shown["decisions"] == [body]


def test_an_unlisted_code_falls_through_visibly(client: httpx.Client) -> None:
    body = decide(client, "ach:R99", "in_unlisted").json()
    assert (body["rule"], body["retry"], body["action"]) == ("ach:default", False, "refer_to_person")
    assert body["gates_checked"][2] == {"gate": "rules_table", "result": "fell_through"}
    refusals = client.get("/refusals?kind=fell_through&limit=1", headers={"authorization": f"Bearer {TOKEN}"})
    assert refusals.json()["refusals"][0]["id"] == body["decision_id"]


def test_another_code_s_body_has_no_rail(client: httpx.Client) -> None:
    assert "rail" not in decide(client, "card_expired").json()


@pytest.mark.parametrize(("code", "reason"), [("bacs:0", "rail_refused"), ("ach:xyz", "not_a_rail_code")])
def test_a_refused_rail_code_leaves_a_row_and_no_decision(client: httpx.Client, code: str, reason: str) -> None:
    response = decide(client, code, f"in_{reason}")
    problem = response.json()
    assert (response.status_code, problem["code"], problem["field"]) == (422, reason, "failure_code")
    newest = client.get("/refusals?kind=refusal&limit=1", headers={"authorization": f"Bearer {TOKEN}"}).json()
    [row] = newest["refusals"]
    assert (row["id"], row["gate"], row["reason"]) == (problem["refusal_id"], "rules_table", reason)
    history = client.get(f"/decisions/in_{reason}", headers={"authorization": f"Bearer {TOKEN}"})
    assert history.status_code == 404


def test_a_lookup_costs_no_database_connection(database: TestDatabase) -> None:
    settings = read_settings({"DECISION_API_TOKEN": TOKENS})
    service = Service(settings, current_ruleset(), PublishedRails(), Database(iam_login=False), "unknown", b"{}")

    def ask(method: str, path: str, body: str = "") -> wire.Response:
        headers = {"authorization": f"Bearer {TOKEN}"}
        return answer(service, wire.Request(method, path, "", headers, body, False, "id"), seconds_left=5)

    def connections() -> int:
        with database.superuser() as connection:
            query = "SELECT FROM pg_stat_activity WHERE usename = 'paypilot_service'"
            return len(connection.execute(query).fetchall())

    for path in ("/rails", "/rails/ach", "/rails/sepa/codes/AM04", "/rails/ach/codes/R99", "/rails/bacs/codes/0"):
        assert ask("GET", path).status in {200, 422}
    assert connections() == 0
    # The control: the same service does connect, and is seen doing so, where a route needs the record.
    assert ask("POST", "/decide", '{"invoice_id": "in_1", "failure_code": "ach:R01"}').status == 200
    assert connections() == 1
    service.database.drop()


def ask_without_a_database(monkeypatch: pytest.MonkeyPatch, path: str, **headers: str) -> wire.Response:
    """The service's own answer, with the database where nothing listens and no token configured."""
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    monkeypatch.setenv("PGPORT", "1")
    service = Service(
        read_settings({}), current_ruleset(), PublishedRails(), Database(iam_login=False), "unknown", b"{}"
    )
    return answer(service, wire.Request("GET", path, "", headers, "", False, "id"), seconds_left=5)


def test_a_lookup_answers_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    started = time.monotonic()
    assert ask_without_a_database(monkeypatch, "/rails/ach/codes/R01").status == 200
    assert time.monotonic() - started < 1


def test_what_is_not_modified_carries_no_body(monkeypatch: pytest.MonkeyPatch) -> None:
    response = ask_without_a_database(monkeypatch, "/rails/ach", **{"if-none-match": "*"})
    assert (response.status, response.body) == (304, b"")


@pytest.mark.parametrize("path", ["/rails/bacs/codes/0", "/rails/ach/codes/R1"])
def test_a_refused_lookup_is_not_counted_among_the_clients_refusals(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    assert "code" not in ask_without_a_database(monkeypatch, path).facts
