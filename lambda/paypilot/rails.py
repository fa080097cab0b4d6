"""The published rail tables, for anybody to read and to look a return code up."""

from paypilot.call import Call
from paypilot.core.canonical import canonical_json, digest
from paypilot.core.rail_table import PERSON_RULE, RailTable
from paypilot.core.rule import NotACode, TableRefuses
from paypilot.core.tables import NoTable
from paypilot.http.problems import NotARailCode, NotFound, RailRefused, Refusal, problem_response
from paypilot.http.response import Response, cacheable_response

# A cache may answer for five minutes after a table is replaced, and asks again by ETag then.
CACHE_SECONDS = 300


def list_rails(call: Call) -> Response:
    """`GET /rails`."""
    rails = [
        {
            "rail": rail.name,
            "name": rail.document["name"],
            "scope": rail.document["scope"],
            "published": rail.published,
            "version": rail.version,
            "codes": len(rail.document["codes"]),
            "refuses": rail.refusal is not None,
        }
        for rail in call.published.tables.rails
    ]
    body = canonical_json({"rails": rails, "person_rule": PERSON_RULE})
    return cacheable_response(call.request, body, digest(body), CACHE_SECONDS)


def show_rail(call: Call) -> Response:
    """`GET /rails/{rail}`: the table, in the canonical bytes that its version is the digest of."""
    rail = _rail(call)
    return cacheable_response(call.request, rail.canonical, rail.version, CACHE_SECONDS)


def look_up_code(call: Call) -> Response:
    """`GET /rails/{rail}/codes/{code}`."""
    answer = _rail(call).look_up(call.parameters["code"])
    if isinstance(answer, NotACode):
        return _refused(NotARailCode(answer.detail))
    if isinstance(answer, TableRefuses):
        return _refused(RailRefused(answer.detail, refusal=answer.why))
    return cacheable_response(call.request, canonical_json(answer), answer["version"], CACHE_SECONDS)


def _rail(call: Call) -> RailTable:
    rail = call.published.tables.rail(call.parameters["rail"])
    if isinstance(rail, NoTable):
        raise NotFound(rail.detail)
    return rail


def _refused(refusal: Refusal) -> Response:
    # Logged apart from the refusals of a client's request: anybody may ask here, and no row is left.
    return problem_response(refusal)._replace(facts={"lookup_refused": refusal.code}, metric=None)
