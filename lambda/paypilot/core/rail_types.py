"""The shapes that a rail's table and its answers have: mappings, as the published document has them."""

from typing import Any, Literal, TypedDict


class Source(TypedDict):
    """Where a statement was read. `address` is null where none is known; `read` says how it was read."""

    id: str
    title: str
    address: str | None
    read: str


class Side(TypedDict):
    """One side of a disagreement."""

    says: str
    sources: list[str]


class Disagreement(TypedDict):
    """What sources disagree about, each side with its sources, and the cautious choice taken."""

    about: str
    sides: list[Side]
    taken: str


class Policy(TypedDict):
    """PayPilot's own choice, no source's. `retry_in_days` is whole days of 24 hours, or null for never."""

    action: str
    tone: str
    retry_in_days: int | None


class Limit(TypedDict):
    """How often and how long an entry may be presented again, and what follows when that is used up."""

    reinitiations: int
    within_days: int
    counted_from: str
    counts: str
    must_match: list[str]
    entry_description: str
    sources: list[str]
    disagreements: list[Disagreement]
    when_used_up: Policy


class Answer(TypedDict):
    """What a rail says of one code. `matched` is false where the code fell through; it then never goes again.

    `family` is given only where a source states it. `policy` is what PayPilot does at the first failure.
    `sources` are those of the code, none where it fell through. `version` is the table's digest.
    """

    rail: str
    code: str
    matched: bool
    reason: str
    title: str | None
    row: int
    goes_again: str
    changes_first: str
    a_person_acts_first: bool
    family: str | None
    limit: Limit | None
    return_window: str | None
    refund_window: str | None
    r_types: list[str]
    suggested_action: str | None
    note: str | None
    policy: Policy
    disagreements: list[Disagreement]
    sources: list[Source]
    version: str


class Disposition(TypedDict):
    """One of a rail's five rows, with the codes that reach it."""

    row: int
    goes_again: str
    changes_first: str
    a_person_acts_first: bool
    summary: str
    why: str
    codes: list[str]
    limit: Limit | None
    policy: Policy
    sources: list[Source]


class Citation(TypedDict):
    """What may be said of a refusing rail, at second hand only."""

    about: str
    says: str
    sources: list[str]
    second_hand: Literal[True]
    disagreements: list[Disagreement]


class RailRefusal(TypedDict):
    """Why a rail refuses every lookup, as its table publishes it."""

    why: str
    what_would_change_it: str
    until_then: str
    may_be_cited: list[Citation]


class RailDocument(TypedDict):
    """A published table. The digest of its canonical bytes (RFC 8785) is its version."""

    rail: str
    name: str
    published: str
    question: str
    scope: str
    code_pattern: str | None
    code_form: str
    sources: list[Source]
    facts: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    fall_through_row: int | None
    codes: list[dict[str, Any]]
    unlisted: list[dict[str, Any]]
    refusal: RailRefusal | None


class DecisionLimit(TypedDict):
    """The limit in short. The days can't be checked here: a request carries no settlement date."""

    reinitiations: int
    within_days: int
    counted_from: str


class RailDecision(TypedDict):
    """What the rail's table says of the code at any attempt, as a decision shows it.

    `limit_used_up` is true from the failed debit on after which the limit allows no retry.
    """

    rail: str
    code: str
    row: int
    goes_again: str
    changes_first: str
    a_person_acts_first: bool
    family: str | None
    limit: DecisionLimit | None
    limit_used_up: bool
    reason: str
