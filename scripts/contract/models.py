"""The wire as strict pydantic models: the OpenAPI document is made of them, and the contract suite checks every answer
by that document. The function doesn't import them: pydantic costs too much at a cold start.

A field's description says what the contract says, and what was chosen where the contract is silent.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from scripts.contract.rails import RailDecision, RailRefusal
from scripts.contract.wire import DIGEST, Wire, absent_not_null

CHARACTERS = "A-Za-z0-9._:-"
# Segments between slashes, none of them empty, "." or "..": https://datatracker.ietf.org/doc/html/rfc3986#section-3.3
INVOICE_ID = rf"^[A-Za-z0-9][{CHARACTERS}]*(/(\.{{0,2}}[A-Za-z0-9_:-]|\.{{3}})[{CHARACTERS}]*)*$"
FAILURE_CODE = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$"
PRINTABLE_KEY = r"^[ -~]{1,255}$"
# A header's value has no space at its ends: HTTP takes it away before anybody reads it. A comma separates two headers.
HEADER_KEY = r"^[!-+\--~]([ -+\--~]{0,253}[!-+\--~])?$"
UUID7 = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
TIMESTAMP = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"
CURSOR = r"^[A-Za-z0-9_-]{23}$"
URN = "urn:paypilot:problem:"


PROBLEM: JsonDict = {
    "type": URN + "missing_field",
    "title": "Missing field",
    "status": 422,
    "detail": "failure_code is required: 1-100 of A-Z a-z 0-9 . _ : / -, the first a letter or digit.",
    "code": "missing_field",
    "field": "failure_code",
    "refusal_id": "019ad3c1-77aa-7d02-a1f0-3b9c2e5d8f44",
}


InvoiceId = Annotated[
    str,
    Field(
        pattern=INVOICE_ID,
        max_length=255,
        description="No empty, `.` or `..` segment between slashes. Nothing is trimmed or normalised.",
        json_schema_extra={"not": {"const": "outcomes/summary"}},
        examples=["in_1001"],
    ),
]
FailureCode = Annotated[
    str,
    Field(
        pattern=FAILURE_CODE,
        description="Matched exactly, case and all: a rule of the table, or a rail's code as in `ach:R01`.",
        examples=["card_expired"],
    ),
]
Attempt = Annotated[
    int,
    Field(
        ge=1,
        le=1000,
        description="Which failed charge of this invoice it is; 1 is the first. Digits only: `1.0`, `1e0`, `true`, "
        '`"1"` and `null` are no integers here.',
    ),
]
PriorFailures = Annotated[
    int,
    Field(ge=0, le=1000, description="Earlier failed charges of the customer, on other invoices; digits only."),
]
Uuid7 = Annotated[str, Field(pattern=UUID7)]
Timestamp = Annotated[str, Field(pattern=TIMESTAMP, description="UTC, the database's clock, always six decimals.")]
Count = Annotated[int, Field(ge=0)]
Cursor = Annotated[str, Field(pattern=CURSOR)]
Next = Annotated[Cursor | None, Field(description="The `cursor` of the page that follows, or null on the last page.")]
RuleName = Annotated[str, Field(description="The rule that answered: the failure code, `default` or `<rail>:default`.")]
ReportedOutcome = Literal["paid", "not_paid"]
Route = Literal["POST /decide", "POST /decisions/{invoice_id}/outcome"]


class DecideRequest(Wire):
    """One failed charge. Fields are checked in this order, then any that are not listed, in the order sent."""

    invoice_id: InvoiceId
    failure_code: FailureCode
    attempt: Attempt = 1
    prior_failures: PriorFailures = 0


class Gate(Wire):
    """What one gate said."""

    gate: Literal["authentication", "body", "rules_table", "audit"]
    result: Literal["passed", "matched", "fell_through", "recorded"]


class Decision(Wire):
    """What happens next with the same payment instrument, and why. Canonical JSON (RFC 8785)."""

    decision_id: Annotated[Uuid7, Field(description="UUIDv7.")]
    invoice_id: InvoiceId
    failure_code: FailureCode
    attempt: Attempt
    prior_failures: PriorFailures
    rule: RuleName
    action: Literal[
        "correct_and_resubmit",
        "refer_to_person",
        "request_bank_details_update",
        "request_card_update",
        "request_customer_instruction",
        "request_manual_payment",
        "request_new_payment_method",
        "retry_and_verify",
        "wait_and_retry",
    ]
    tone: Literal["calm_helpful", "friendly_routine", "plain_no_blame", "soft_no_pressure"]
    retry: bool
    retry_in_days: Annotated[int, Field(ge=1)] | None
    next_retry_at: Annotated[
        Timestamp | None, Field(description="`decided_at` and `retry_in_days` times 24 hours; null for never.")
    ]
    churn_risk: Annotated[
        Literal["low", "medium", "high"],
        Field(
            description="high: attempt >= 3 or attempt + prior_failures >= 4; else medium: attempt >= 2 or "
            "attempt + prior_failures >= 2; else low."
        ),
    ]
    escalated: Annotated[
        bool, Field(description="True where the risk is high: a retry comes one day sooner, never sooner than one day.")
    ]
    gates_checked: Annotated[
        list[Gate],
        Field(
            min_length=4,
            max_length=4,
            description="authentication, body, rules_table (`matched`, or `fell_through` to the default), audit.",
        ),
    ]
    rail: Annotated[
        RailDecision,
        Field(
            json_schema_extra=absent_not_null,
            description="What the rail's table says, where `failure_code` is `<rail>:<code>`; else absent.",
        ),
    ] = None  # type: ignore[assignment]
    rules_version: Annotated[
        str, Field(pattern=DIGEST, description="The digest of the table that decided, in its canonical form.")
    ]
    decided_at: Timestamp


class History(Wire):
    """What was decided for an invoice, newest first, each decision as it was answered."""

    invoice_id: InvoiceId
    outcome: Annotated[
        Literal["paid", "not_paid", "unknown"], Field(description="The newest report's; unknown where there is none.")
    ]
    decisions: list[Decision]
    next: Next


class OutcomeReport(Wire):
    """What became of an invoice. Checked in this order, then any field that is not listed."""

    outcome: Annotated[ReportedOutcome, Field(description="`unknown` is the absence of a report and can't be one.")]
    report_key: Annotated[
        str,
        Field(
            pattern=PRINTABLE_KEY,
            description="The caller's own key of this report, for one client: printable ASCII.",
            examples=["report-1"],
        ),
    ]


class Outcome(Wire):
    """A report as it was recorded. Canonical JSON (RFC 8785): the same bytes each time."""

    outcome_id: Uuid7
    invoice_id: InvoiceId
    outcome: ReportedOutcome
    report_key: Annotated[str, Field(pattern=PRINTABLE_KEY)]
    reported_at: Timestamp


class RuleCounts(Wire):
    """Invoices whose newest decision fired this rule."""

    rule: RuleName
    invoices: Count
    paid: Count
    not_paid: Count
    unknown: Count


class Summary(Wire):
    """What became of this client's invoices."""

    invoices: Count
    paid: Count
    not_paid: Count
    unknown: Annotated[Count, Field(description="Invoices that nobody reported on: not the same as not paid.")]
    recovery_rate: Annotated[
        Annotated[float, Field(ge=0, le=1)] | None,
        Field(description="paid / (paid + not_paid); null while it is withheld."),
    ]
    recovery_rate_withheld: Annotated[
        str | None, Field(description="Why there is no rate: fewer than 30 invoices have a report. Else null.")
    ]
    by_rule: Annotated[
        list[RuleCounts], Field(description="By rule of the invoice's newest decision, by name; no rule of no invoice.")
    ]


class RefusalEntry(Wire):
    """A refusal, or a decision whose code fell through. Names of our own, never any part of the input."""

    id: Annotated[Uuid7, Field(description="The `refusal_id` that was answered, or the `decision_id`.")]
    kind: Literal["refusal", "fell_through"]
    route: Route
    gate: Literal["idempotency_key", "body", "report_key", "rules_table"]
    reason: Annotated[str, Field(description="The problem's `code`, or `fell_through`.")]
    at: Timestamp


class Refusals(Wire):
    """A page of this client's refusals and fall-throughs, newest first."""

    refusals: list[RefusalEntry]
    next: Next


class Health(Wire):
    """The function runs. The database is not touched."""

    status: Literal["ok"]
    version: Annotated[str, Field(description="The release that runs.")]
    commit: Annotated[str, Field(description="The build's commit, or `unknown`.")]


class Problem(Wire):
    """Problem details (RFC 9457). `detail` says what is allowed; nothing of the input is in it."""

    model_config = ConfigDict(json_schema_extra={"example": PROBLEM})

    type: Annotated[str, Field(pattern=f"^{URN}[a-z_]+$", description="A stable urn, one for each code.")]
    title: str
    status: int
    detail: str
    code: Annotated[str, Field(pattern="^[a-z_]+$", description="For machines.")]
    field: Annotated[
        str,
        Field(
            max_length=64,
            json_schema_extra=absent_not_null,
            description="The field or query parameter at fault; an unknown one's name is escaped and cut to 64.",
        ),
    ] = ""
    refusal_id: Annotated[
        Uuid7,
        Field(json_schema_extra=absent_not_null, description="The refusal's row, as `GET /refusals` lists it."),
    ] = ""
    request_id: Annotated[
        str, Field(json_schema_extra=absent_not_null, description="Of an `internal` problem: its log line's.")
    ] = ""
    refusal: Annotated[
        RailRefusal,
        Field(json_schema_extra=absent_not_null, description="Why a rail refuses every lookup, with `rail_refused`."),
    ] = None  # type: ignore[assignment]
