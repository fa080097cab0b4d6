"""The shapes on the wire: the core's own types, and below them what only an answer has.

`model` reads a shape into pydantic, each field described by its name in FIELDS unless the shape says more itself.
The function imports none of this: pydantic costs too much at a cold start.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, TypedDict, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, create_model

from paypilot.core import card_table, rail_table, rail_types
from paypilot.core.decide import HIGH, LOW, MEDIUM, FailedPayment
from paypilot.decisions import COUNT_MAX, FAILURE_CODE, UNKNOWN
from paypilot.http import problems
from paypilot.http.body import PRINTABLE_KEY
from paypilot.invoices import SUMMARY_ID
from paypilot.outcomes import OUTCOMES, REPORTED_FOR_A_RATE_MIN, StoredOutcome
from paypilot.refusals import LISTING, RefusalEntry
from paypilot.routes import ROUTES
from paypilot.tables import published_tables

TABLES = published_tables()

CHARACTERS = "A-Za-z0-9._:-"
# Segments between slashes, none of them empty, "." or "..": https://datatracker.ietf.org/doc/html/rfc3986#section-3.3
INVOICE_ID = rf"^[A-Za-z0-9][{CHARACTERS}]*(/(\.{{0,2}}[A-Za-z0-9_:-]|\.{{3}})[{CHARACTERS}]*)*$"
# A header's value has no space at its ends: HTTP takes it away before anybody reads it. A comma separates two headers.
HEADER_KEY = r"^[!-+\--~]([ -+\--~]{0,253}[!-+\--~])?$"
UUID7 = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
TIMESTAMP = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"
CURSOR = r"^[A-Za-z0-9_-]{23}$"
DIGEST = r"^sha256:[0-9a-f]{64}$"
KINDS = [kind for kind in LISTING if kind]


def one_of(values: Iterable[str], description: str | None = None) -> Any:
    """The description of a field that has one of these values."""
    return Field(json_schema_extra={"enum": [*sorted(values)]}, description=description)


def whole(pattern: re.Pattern[str], **described: Any) -> Any:
    """The description of a field that `pattern` matches from end to end."""
    return Field(pattern=f"^{pattern.pattern}$", **described)


COUNT = Field(ge=0)
ROW = Field(ge=1, le=len(rail_table.CHANGES_FIRST))
REFUSALS = [problem for problem in problems.ALL if issubclass(problem, problems.Refusal)]

FIELDS: Mapping[str, Any] = {
    "invoice_id": Field(
        pattern=INVOICE_ID,
        max_length=255,
        description="No empty, `.` or `..` segment between slashes. Nothing is trimmed or normalised.",
        json_schema_extra={"not": {"const": SUMMARY_ID}},
        examples=["in_1001"],
    ),
    "failure_code": whole(
        FAILURE_CODE,
        description="Matched exactly, case and all: a rule of the table, or a rail's code as in `ach:R01`.",
        examples=["insufficient_funds"],
    ),
    "attempt": Field(
        ge=1,
        le=COUNT_MAX,
        description="Which failed charge of this invoice it is; 1 is the first. Digits only: `1.0`, `1e0`, `true`, "
        '`"1"` and `null` are no integers here.',
    ),
    "prior_failures": Field(
        ge=0, le=COUNT_MAX, description="Earlier failed charges of the customer, on other invoices; digits only."
    ),
    "rule": Field(description="The rule that answered: the failure code, `default` or `<rail>:default`."),
    "action": one_of(card_table.ACTIONS | rail_table.ACTIONS),
    "tone": one_of(card_table.TONES | rail_table.TONES),
    "retry_in_days": Field(ge=1),
    "next_retry_at": Field(description="`decided_at` and `retry_in_days` times 24 hours; null for never."),
    "churn_risk": one_of(
        (LOW, MEDIUM, HIGH),
        "high: attempt >= 3 or attempt + prior_failures >= 4; else medium: attempt >= 2 or "
        "attempt + prior_failures >= 2; else low.",
    ),
    "escalated": Field(description="True where the risk is high: a retry comes one day sooner, never below one day."),
    "gates_checked": Field(
        min_length=4,
        max_length=4,
        description="authentication, body, rules_table (`matched`, or `fell_through` to the default), audit.",
    ),
    "rules_version": Field(pattern=DIGEST, description="The digest of the table that decided, in its canonical form."),
    "outcome": one_of(OUTCOMES, "`unknown` is the absence of a report and can't be one."),
    "report_key": whole(
        PRINTABLE_KEY,
        description="The caller's own key of this report, for one client: printable ASCII.",
        examples=["report-1"],
    ),
    "invoices": COUNT,
    "paid": COUNT,
    "not_paid": COUNT,
    "unknown": Field(ge=0, description="Invoices that nobody reported on: not the same as not paid."),
    "recovery_rate": Field(ge=0, le=1, description="paid / (paid + not_paid); null while it is withheld."),
    "recovery_rate_withheld": Field(
        description=f"Why there is no rate: fewer than {REPORTED_FOR_A_RATE_MIN} invoices have a report. Else null."
    ),
    "by_rule": Field(description="By rule of the invoice's newest decision, by name; no rule of no invoice."),
    "next": Field(pattern=CURSOR, description="The `cursor` of the page that follows, or null on the last page."),
    "kind": one_of(KINDS),
    "route": one_of(route.name for route in ROUTES if route.body_bytes_max),
    "gate": one_of({refusal.gate for refusal in REFUSALS}),
    "rail": one_of(TABLES.rail_names, "A registered rail."),
    "row": ROW,
    "fall_through_row": ROW,
    "goes_again": one_of(rail_table.CHANGES_FIRST),
    "changes_first": one_of(rail_table.CHANGES_FIRST.values()),
    "a_person_acts_first": Field(description="Derived from the row: exactly where `goes_again` is `no`."),
    "family": Field(description="Only where a source states it."),
    "suggested_action": Field(description="The sources' advice, in our own words."),
    "sides": Field(min_length=2),
    "published": Field(pattern=r"^\d{4}-\d\d-\d\d$"),
    "version": Field(pattern=DIGEST, description="The digest of the rail's table in its canonical form."),
    "field": Field(
        max_length=64,
        description="The field or query parameter at fault; an unknown one's name is escaped and cut to 64.",
    ),
    "refusal_id": Field(description="The refusal's row, as `GET /refusals` lists it."),
    "request_id": Field(description="Of an `internal` problem: its log line's."),
    "person_rule": Field(description="The rule by which `a_person_acts_first` is derived."),
}


class Gate(TypedDict):
    """What one gate said."""

    gate: Literal["authentication", "body", "rules_table", "audit"]
    result: Literal["passed", "matched", "fell_through", "recorded"]


class Decision(TypedDict):
    """What happens next with the same payment instrument, and why. Canonical JSON (RFC 8785)."""

    decision_id: UUID
    invoice_id: str
    failure_code: str
    attempt: int
    prior_failures: int
    rule: str
    action: str
    tone: str
    retry: bool
    retry_in_days: int | None
    next_retry_at: datetime | None
    churn_risk: str
    escalated: bool
    gates_checked: list[Gate]
    rail: NotRequired[
        Annotated[
            rail_types.RailDecision,
            Field(description="What the rail's table says, where `failure_code` is `<rail>:<code>`; else absent."),
        ]
    ]
    rules_version: str
    decided_at: datetime


class History(TypedDict):
    """What was decided for an invoice, newest first, each decision as it was answered."""

    invoice_id: str
    outcome: Annotated[str, one_of((*OUTCOMES, UNKNOWN), "The newest report's; unknown where there is none.")]
    decisions: list[Decision]
    next: str | None


class Counts(TypedDict):
    """How many invoices, and how many of them with each outcome."""

    invoices: int
    paid: int
    not_paid: int
    unknown: int


class RuleCounts(Counts):
    """Invoices whose newest decision fired this rule."""

    rule: str


class Summary(Counts):
    """What became of this client's invoices."""

    recovery_rate: float | None
    recovery_rate_withheld: str | None
    by_rule: list[RuleCounts]


class Refusals(TypedDict):
    """A page of this client's refusals and fall-throughs, newest first."""

    refusals: list[RefusalEntry]
    next: str | None


class RailSummary(TypedDict):
    """One rail of the list."""

    rail: str
    name: str
    scope: str
    published: str
    version: str
    codes: Annotated[int, Field(ge=0, description="How many codes it lists.")]
    refuses: bool


class Rails(TypedDict):
    """The registered rails."""

    rails: list[RailSummary]
    person_rule: str


class Health(TypedDict):
    """The function runs. The database is not touched."""

    status: Literal["ok"]
    version: Annotated[str, Field(description="The release that runs.")]
    commit: Annotated[str, Field(description="The build's commit, or `unknown`.")]


class Problem(TypedDict):
    """Problem details (RFC 9457). `detail` says what is allowed; nothing of the input is in it.

    `refusal` comes with `rail_refused`: what the rail's table says of that.
    """

    type: Annotated[str, Field(pattern="^urn:paypilot:problem:[a-z_]+$", description="A stable urn, one a code.")]
    title: str
    status: int
    detail: str
    code: Annotated[str, Field(pattern="^[a-z_]+$", description="For machines.")]
    field: NotRequired[str]
    refusal_id: NotRequired[UUID]
    request_id: NotRequired[str]
    refusal: NotRequired[rail_types.RailRefusal]


# Their schema's name and description, where those of the type are for readers of the code.
PUBLIC = {
    FailedPayment: ("DecideRequest", "One failed charge."),
    StoredOutcome: ("Outcome", "A report as it was recorded. Canonical JSON (RFC 8785): the same bytes each time."),
    RefusalEntry: (
        "RefusalEntry",
        "A refusal, or a decision whose code fell through. Names of our own, never any part of the input. `id` is the "
        "`refusal_id` that was answered, or the `decision_id`; `reason` is the problem's `code`, or `fell_through`.",
    ),
    rail_types.RailDocument: (
        "RailTable",
        "A published table in its canonical bytes (RFC 8785): the ETag is their SHA-256.",
    ),
}
ON_THE_WIRE: Mapping[Any, Any] = {
    UUID: Annotated[str, Field(pattern=UUID7)],
    datetime: Annotated[str, Field(pattern=TIMESTAMP, description="UTC, the database's clock, always six decimals.")],
}


def schema_name(shape: type) -> str:
    """The name of a shape's schema. A rail's shapes are named for it."""
    name = PUBLIC[shape][0] if shape in PUBLIC else shape.__name__
    return f"Rail{name.removeprefix('Rail')}" if shape.__module__ == rail_types.__name__ else name


@cache
def model(shape: type) -> type[BaseModel]:
    """The model of a shape, a TypedDict or a named tuple: its fields, all of its nested shapes, and no other field."""
    defaults = getattr(shape, "_field_defaults", {})
    fields: dict[str, Any] = {}
    for name, kind in get_type_hints(shape, include_extras=True).items():
        default = defaults.get(name, ...)
        if get_origin(kind) is NotRequired:
            # A factory, because a schema would show a default: the field is absent, and never null.
            [kind], default = get_args(kind), Field(default_factory=dict)
        described = name in FIELDS and get_origin(kind) not in {Annotated, Literal}
        fields[name] = (Annotated[_read(kind), FIELDS[name]] if described else _read(kind), default)
    doc = PUBLIC[shape][1] if shape in PUBLIC else shape.__doc__
    return create_model(schema_name(shape), __config__=ConfigDict(extra="forbid"), __doc__=doc, **fields)


def _read(kind: Any) -> Any:
    """A type with a model for each shape in it, and a string for each type that JSON doesn't have."""
    if kind in ON_THE_WIRE:
        return ON_THE_WIRE[kind]
    if is_typeddict(kind) or hasattr(kind, "_fields"):
        return model(kind)
    inner = tuple(map(_read, get_args(kind)))
    if isinstance(kind, UnionType):
        return reduce(or_, inner)
    return get_origin(kind)[inner] if inner else kind
