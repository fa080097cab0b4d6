"""The public routes over the rail tables. They are given the registry alone, so that no lookup can reach the record."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from paypilot import wire
from paypilot.core import errors
from paypilot.core.canonical import canonical_json, digest

if TYPE_CHECKING:
    from paypilot.core.rails import Registry

# A cache may answer for five minutes after a table is replaced, and asks again by ETag then.
CACHE_CONTROL = "public, max-age=300"

INDEX = "GET /rails"
TABLE = "GET /rails/{rail}"
CODE = "GET /rails/{rail}/codes/{code}"
RAIL_PATH = re.compile(r"/rails/[^/]+(/codes/(?P<code>[^/]+))?")


def list_rails(registry: "Registry", request: wire.Request, _named: str) -> wire.Response:
    rails = [
        {
            "rail": rail.name,
            "name": rail.document["name"],
            "scope": rail.document["scope"],
            "published": rail.document["published"],
            "version": rail.version,
            "codes": len(rail.document["codes"]),
            "refuses": rail.refusal is not None,
        }
        for rail in registry.rails.values()
    ]
    body = canonical_json({"rails": rails, "person_rule": registry.person_rule})
    return _cacheable(request, body, digest(body))


def show_rail(registry: "Registry", request: wire.Request, named: str) -> wire.Response:
    """The table itself, in the canonical bytes that its version is the digest of."""
    rail = registry.rail(named)
    return _cacheable(request, rail.canonical, rail.version)


def look_up_code(registry: "Registry", request: wire.Request, named: str) -> wire.Response:
    rail, _, code = named.partition("/codes/")
    try:
        answer = registry.lookup(rail, code)
    except errors.Refusal as refusal:
        # Counted apart from the refusals of a client's request: anyone may ask here, and no row is left.
        problem = wire.problem_response(refusal, request.request_id)
        return problem._replace(facts={"lookup_refused": refusal.code})
    return _cacheable(request, canonical_json(asdict(answer)), answer.version)


def find_rail_route(path: str) -> str | None:
    """The route of a path below /rails, or None."""
    match = RAIL_PATH.fullmatch(path)
    return match and (CODE if match["code"] else TABLE)


def _cacheable(request: wire.Request, body: bytes, version: str) -> wire.Response:
    etag = f'"{version}"'
    headers = {"etag": etag, "cache-control": CACHE_CONTROL}
    asked = request.headers.get("if-none-match", "")
    if asked.strip() == "*" or etag in (tag.strip().removeprefix("W/") for tag in asked.split(",")):
        return wire.Response(304, b"", headers=headers)
    return wire.Response(200, body, headers=headers)


RAIL_ROUTES: Mapping[str, Callable[["Registry", wire.Request, str], wire.Response]] = {
    INDEX: list_rails,
    TABLE: show_rail,
    CODE: look_up_code,
}
