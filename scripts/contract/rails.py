"""The rails on the wire as strict pydantic models, as models.py has the rest."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from scripts.contract.wire import DIGEST, Wire

RailName = Annotated[Literal["ach", "bacs", "sepa"], Field(description="A registered rail.")]
Version = Annotated[str, Field(pattern=DIGEST, description="The digest of the rail's table in its canonical form.")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
SourceIds = list[str]
GoesAgain = Literal["yes", "not_on_this_entry", "not_until_they_ask", "corrected_only", "no"]
ChangesFirst = Literal["nothing", "account_details", "their_instruction", "our_own_entry", "nothing_will"]
PersonFirst = Annotated[bool, Field(description="Derived from the row: exactly where `goes_again` is `no`.")]
Row = Annotated[int, Field(ge=1, le=5)]
Family = Annotated[str | None, Field(description="Only where a source states it.")]


class RailSource(Wire):
    """Where a statement was read."""

    id: str
    title: str
    address: Annotated[str | None, Field(description="Null where no public address is known.")]
    read: Annotated[str, Field(description="How it was read.")]


class RailSide(Wire):
    """One side of a disagreement."""

    says: str
    sources: SourceIds


class RailDisagreement(Wire):
    """What sources disagree about, and the cautious choice that was taken."""

    about: str
    sides: Annotated[list[RailSide], Field(min_length=2)]
    taken: str


class RailPolicy(Wire):
    """PayPilot's own choice, and no source's."""

    action: str
    tone: str
    retry_in_days: Annotated[int, Field(ge=1)] | None


class RailLimit(Wire):
    """How often and how long an entry may be presented again."""

    reinitiations: int
    within_days: int
    counted_from: str
    counts: str
    must_match: list[str]
    entry_description: str
    sources: SourceIds
    disagreements: list[RailDisagreement]
    when_used_up: RailPolicy


class RailAnswer(Wire):
    """What a rail says of one code: what may happen next with the same bank debit, later."""

    rail: RailName
    code: str
    matched: Annotated[bool, Field(description="False where the code fell through: then it never goes again.")]
    reason: str
    title: str | None
    row: Row
    goes_again: GoesAgain
    changes_first: ChangesFirst
    a_person_acts_first: PersonFirst
    family: Family
    limit: RailLimit | None
    return_window: str | None
    refund_window: str | None
    r_types: list[str]
    suggested_action: Annotated[str | None, Field(description="The sources' advice, in our own words.")]
    note: str | None
    policy: RailPolicy
    disagreements: list[RailDisagreement]
    sources: list[RailSource]
    version: Version


class RailDecision(Wire):
    """What the rail's table says of the code at any attempt; `retry` beside it is the decision."""

    rail: RailName
    code: str
    row: Row
    goes_again: GoesAgain
    changes_first: ChangesFirst
    a_person_acts_first: PersonFirst
    family: Family
    limit: "RailDecisionLimit | None"
    limit_used_up: Annotated[bool, Field(description="True from the third failed debit on: no retry any more.")]
    reason: str


class RailDecisionLimit(Wire):
    """The limit in short. The days can't be checked here: a request carries no settlement date."""

    reinitiations: int
    within_days: int
    counted_from: str


class RailCitation(Wire):
    """What may be said of a refusing rail at second hand."""

    about: str
    says: str
    sources: SourceIds
    second_hand: Literal[True]
    disagreements: list[RailDisagreement]


class RailRefusal(Wire):
    """Why a rail refuses every lookup."""

    why: str
    what_would_change_it: str
    until_then: str
    may_be_cited: list[RailCitation]


class RailSummary(Wire):
    """One rail of the list."""

    rail: RailName
    name: str
    scope: str
    published: Day
    version: Version
    codes: Annotated[int, Field(ge=0, description="How many codes it lists.")]
    refuses: bool


class Rails(Wire):
    """The registered rails."""

    rails: list[RailSummary]
    person_rule: Annotated[str, Field(description="The rule by which `a_person_acts_first` is derived.")]


class RailTable(Wire):
    """A published table in its canonical bytes (RFC 8785): the ETag is their SHA-256."""

    model_config = ConfigDict(extra="allow")

    rail: RailName
    name: str
    published: Day
    question: str
    scope: str
    code_pattern: str | None
    code_form: str
    fall_through_row: Row | None
    sources: list[RailSource]
    decisions: list[dict[str, object]]
    codes: list[dict[str, object]]
    unlisted: list[dict[str, object]]
    facts: list[dict[str, object]]
    refusal: RailRefusal | None
