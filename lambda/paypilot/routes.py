"""Every route, and which one a method and a path are."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from paypilot import about, decisions, outcomes, rails, refusals
from paypilot.call import Access, Route
from paypilot.http.problems import MethodNotAllowed, NotFound

KIB = 1024

# In the order in which they are tried: where two paths match, the first answers.
ROUTES = (
    Route("GET", "/health", about.health, Access.PUBLIC),
    Route("GET", "/openapi.json", about.openapi, Access.PUBLIC),
    Route("POST", "/decide", decisions.decide_payment, Access.CLIENT, body_bytes_max=16 * KIB),
    Route("GET", "/decisions/outcomes/summary", outcomes.show_summary, Access.CLIENT),
    Route("GET", "/decisions/{invoice_id:path}", decisions.show_history, Access.CLIENT),
    Route(
        "POST", "/decisions/{invoice_id:path}/outcome", outcomes.report_outcome, Access.CLIENT, body_bytes_max=16 * KIB
    ),
    Route("GET", "/refusals", refusals.show_refusals, Access.CLIENT),
    Route("GET", "/rails", rails.list_rails, Access.PUBLIC),
    Route("GET", "/rails/{rail}", rails.show_rail, Access.PUBLIC),
    Route("GET", "/rails/{rail}/codes/{code}", rails.look_up_code, Access.PUBLIC),
)


class Match(NamedTuple):
    """A route, and what the path names there."""

    route: Route
    parameters: Mapping[str, str]


def match_route(method: str, path: str) -> Match:
    """The route of a method and a percent-decoded path. HEAD is answered as GET.

    Raises `NotFound` and `MethodNotAllowed`.
    """
    method = "GET" if method == "HEAD" else method
    methods = set()
    for route, pattern in PATTERNS:
        if match := pattern.fullmatch(path):
            if route.method == method:
                return Match(route, match.groupdict())
            methods.add(route.method)
    if not methods:
        raise NotFound("No such path.")
    raise MethodNotAllowed(", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])})))


def _pattern(path: str) -> re.Pattern[str]:
    text = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
    return re.compile(re.sub(r"\{(\w+):path\}", r"(?P<\1>.+)", text), re.DOTALL)


PATTERNS = [(route, _pattern(route.path)) for route in ROUTES]
