"""A route, and what its handler is given."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from paypilot.core.tables import Tables
from paypilot.http.request import Request
from paypilot.http.response import Response
from paypilot.record.rows import Record


class Access(Enum):
    """Who may call a route: anybody, or a client with its token."""

    PUBLIC = "public"
    CLIENT = "client"


class Published(NamedTuple):
    """What the service answers everybody alike from. `commit` is the build's; `openapi` the document's bytes."""

    tables: Tables
    commit: str
    openapi: bytes


class Call(NamedTuple):
    """One request at its route. `parameters` are the path's, unchecked.

    `record` is that of the token's client; a public route has no client, and using its record raises.
    """

    route: "Route"
    request: Request
    parameters: Mapping[str, str]
    published: Published
    record: Record


class Route(NamedTuple):
    """A method and a path, and what answers there.

    `{name}` in the path is one segment, `{name:path}` any text. `body_bytes_max` is 0 where no body is read.
    """

    method: str
    path: str
    handler: Callable[[Call], Response]
    access: Access
    body_bytes_max: int = 0

    @property
    def name(self) -> str:
        """As in the log and the record: it holds no part of a path that a caller chose."""
        return f"{self.method} {self.path.replace(':path', '')}"
