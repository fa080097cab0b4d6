"""The rails: what may happen next to a failed bank debit, by the return code that it came back with.

A caller asks the `Registry` and never imports a rail: each one is a published document, checked here. Like
the rules table it answers for the same instrument, later. What is wrong with a document is an `InvalidRail`
at loading, never an answer.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paypilot.core.canonical import canonical_json, digest
from paypilot.core.errors import NotARailCode, NotFound, RailRefused

# The five decisions, by what has to change before this debit can exist again.
CHANGES_FIRST = {
    "yes": "nothing",
    "not_on_this_entry": "account_details",
    "not_until_they_ask": "their_instruction",
    "corrected_only": "our_own_entry",
    "no": "nothing_will",
}
# Two of the card table's actions, and four that only a bank debit needs.
ACTIONS = frozenset(
    {
        "wait_and_retry",
        "request_manual_payment",
        "request_bank_details_update",
        "request_customer_instruction",
        "correct_and_resubmit",
        "refer_to_person",
    }
)
TONES = frozenset({"plain_no_blame", "soft_no_pressure"})
PERSON_RULE = "a_person_acts_first_where_it_never_goes_again"

_DOCUMENT_KEYS = {
    "rail",
    "name",
    "published",
    "question",
    "scope",
    "code_pattern",
    "code_form",
    "sources",
    "facts",
    "decisions",
    "fall_through_row",
    "codes",
    "unlisted",
    "refusal",
}


class InvalidRail(ValueError):
    """A document that must not answer: the message names the row and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a statement was read. `address` is null where none is known; `read` says how it was read."""

    id: str
    title: str
    address: str | None
    read: str


@dataclass(frozen=True, slots=True)
class Side:
    says: str
    sources: list[str]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """What sources disagree about, each side with its sources, and the cautious choice taken."""

    about: str
    sides: list[Side]
    taken: str


@dataclass(frozen=True, slots=True)
class Policy:
    """PayPilot's own choice, no source's. `retry_in_days` is whole days of 24 hours, or null for never."""

    action: str
    tone: str
    retry_in_days: int | None


@dataclass(frozen=True, slots=True)
class Limit:
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


@dataclass(frozen=True)
class Answer:
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


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One of a rail's decisions, with the codes that reach it."""

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


@dataclass(frozen=True, slots=True)
class Citation:
    """What may be said of a refusing rail, at second hand only."""

    about: str
    says: str
    sources: list[str]
    second_hand: bool
    disagreements: list[Disagreement]


@dataclass(frozen=True, slots=True)
class WhyRefused:
    why: str
    what_would_change_it: str
    until_then: str
    may_be_cited: list[Citation]


def a_person_acts_first(goes_again: str) -> bool:
    """`PERSON_RULE`: exactly where nothing that we change lets the debit go again, whatever a column says."""
    return goes_again == "no"


class Rail:
    """A checked table. `version` is the digest of the whole document's canonical form.

    Raises `InvalidRail` if a row has no source, can't be reached or contradicts itself, if a code stands
    twice, or if what falls through could go again.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        if document.keys() != _DOCUMENT_KEYS:
            raise InvalidRail(f"a rail has exactly the keys {sorted(_DOCUMENT_KEYS)}")
        self.document = document
        self.canonical = canonical_json(document)
        self.version = digest(self.canonical)
        self.name: str = document["rail"]
        self.refusal = _why_refused(document["refusal"])
        self._sources = {source["id"]: source for source in document["sources"]}
        self._decisions = {decision["row"]: decision for decision in document["decisions"]}
        self._codes = {row["code"]: row for row in document["codes"]}
        self._unlisted = {row["code"]: row for row in document["unlisted"]}
        self._check()

    def lookup(self, code: str) -> Answer:
        """The table's answer for `code`; the last row's, with `matched` false, where it is not listed.

        Raises `RailRefused` on a rail that refuses, else `NotARailCode` for what is no code of this rail.
        """
        name = self.document["name"]
        if self.refusal is not None:
            raise RailRefused(f"{name} refuses every lookup. {self.refusal.why}", why=self.refusal)
        if not re.fullmatch(self.document["code_pattern"], code):
            raise NotARailCode(f"A code of {name} is {self.document['code_form']}.")
        listed = self._codes.get(code)
        known = listed or self._unlisted.get(code)
        decision = self._decisions[listed["row"] if listed else self.document["fall_through_row"]]
        reason = f"{code} is listed."
        if listed is None:
            called = f" (known as {known['title']})" if known else ""
            reason = f"{code}{called} is not one of the {len(self._codes)} codes listed, and fell through."
        row = listed or {}
        limit = decision["limit"]
        cited = _cited(row.get("disagreements", [])) + (limit["sources"] if limit else [])
        return Answer(
            rail=self.name,
            code=code,
            matched=listed is not None,
            reason=f"{reason} {decision['summary']}",
            title=known["title"] if known else None,
            row=decision["row"],
            goes_again=decision["goes_again"],
            changes_first=decision["changes_first"],
            a_person_acts_first=a_person_acts_first(decision["goes_again"]),
            family=row.get("family"),
            limit=_limit(limit),
            return_window=row.get("return_window"),
            refund_window=row.get("refund_window"),
            r_types=row.get("r_types", []),
            suggested_action=row.get("suggested_action"),
            note=row.get("note"),
            policy=Policy(**decision["policy"]),
            disagreements=_disagreements(row.get("disagreements", [])),
            sources=self.cite([*(known["sources"] if known else []), *cited]),
            version=self.version,
        )

    def decisions(self) -> list[DecisionRow]:
        """Every decision of this rail in order, with the codes that reach it. None where the rail refuses."""
        return [
            DecisionRow(
                row=decision["row"],
                goes_again=decision["goes_again"],
                changes_first=decision["changes_first"],
                a_person_acts_first=a_person_acts_first(decision["goes_again"]),
                summary=decision["summary"],
                why=decision["why"],
                codes=[code for code, row in self._codes.items() if row["row"] == decision["row"]],
                limit=_limit(decision["limit"]),
                policy=Policy(**decision["policy"]),
                sources=self.cite(decision["sources"]),
            )
            for decision in self._decisions.values()
        ]

    def cite(self, ids: Iterable[str]) -> list[Source]:
        """The sources of these ids, each once, in the order of the document."""
        wanted = set(ids)
        return [Source(**source) for source in self.document["sources"] if source["id"] in wanted]

    def _check(self) -> None:
        if self.refusal is not None:
            if self._decisions or self._codes:
                raise InvalidRail(f"{self.name} refuses, and yet has rows")
            return
        last = self._decisions.get(self.document["fall_through_row"])
        if last is None or last["goes_again"] != "no":
            raise InvalidRail(f"{self.name}: what falls through must land on a row that never goes again")
        for decision in self._decisions.values():
            self._check_decision(decision)
        codes = [row["code"] for row in [*self.document["codes"], *self.document["unlisted"]]]
        if len(codes) != len(set(codes)) or len(self._decisions) != len(self.document["decisions"]):
            raise InvalidRail(f"{self.name}: a code or a row stands twice: its second could never be reached")
        for row in self.document["codes"]:
            self._check_code(row)
        if unreached := self._decisions.keys() - {row["row"] for row in self._codes.values()}:
            raise InvalidRail(f"{self.name}: no code reaches rows {sorted(unreached)}")

    def _check_decision(self, decision: Mapping[str, Any]) -> None:
        where = f"{self.name} row {decision['row']}"
        again, policy, limit = decision["goes_again"] == "yes", decision["policy"], decision["limit"]
        if CHANGES_FIRST.get(decision["goes_again"]) != decision["changes_first"]:
            raise InvalidRail(f"{where}: goes_again and changes_first are not one decision")
        policies = [policy, *([limit["when_used_up"]] if limit else [])]
        if any(each["action"] not in ACTIONS or each["tone"] not in TONES for each in policies):
            raise InvalidRail(f"{where}: unknown action or tone")
        days = policy["retry_in_days"]
        whole_days = type(days) is int and days >= 1 if again else days is None
        if not whole_days or (policy["action"] == "wait_and_retry") is not again:
            raise InvalidRail(f"{where}: a debit is retried exactly where it goes again as it is")
        if limit and (not again or limit["when_used_up"]["retry_in_days"] is not None):
            raise InvalidRail(f"{where}: a limit ends a retry, and starts none")
        self._check_sources(where, decision["sources"])

    def _check_code(self, row: Mapping[str, Any]) -> None:
        where = f"{self.name} code {row['code']}"
        if not re.fullmatch(self.document["code_pattern"], row["code"]):
            raise InvalidRail(f"{where}: not a code of this rail")
        if row["row"] not in self._decisions:
            raise InvalidRail(f"{where}: there is no row {row['row']}")
        derived = a_person_acts_first(self._decisions[row["row"]]["goes_again"])
        if row["source_says_person_first"] not in (None, derived):
            raise InvalidRail(f"{where}: a source contradicts {PERSON_RULE}")
        self._check_sources(where, row["sources"])
        self._check_sources(where, [*row["sources"], *_cited(row["disagreements"])])

    def _check_sources(self, where: str, ids: list[str]) -> None:
        if not ids or not self._sources.keys() >= set(ids):
            raise InvalidRail(f"{where}: no source, or one that the document doesn't name")


def policy_at(answer: Answer, attempt: int) -> Policy:
    """What PayPilot does after `attempt` failed debits of one entry, the original being the first.

    The original and its reinitiations are the attempts: with two reinitiations allowed, the third failure has
    used them up, and nothing retries any more.
    """
    limit = answer.limit
    return limit.when_used_up if limit and attempt > limit.reinitiations else answer.policy


class Registry:
    """Every rail by its name, as it answers now, and every table that ever did by its version."""

    person_rule = PERSON_RULE

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        rails = sorted((Rail(document) for document in documents), key=lambda rail: rail.document["published"])
        self.rails: dict[str, Rail] = {rail.name: rail for rail in rails}
        self.versions: dict[str, Rail] = {rail.version: rail for rail in rails}
        if len({(rail.name, rail.document["published"]) for rail in rails}) != len(rails):
            raise InvalidRail("a rail has two tables of one day: which one answers now?")

    def rail(self, name: str) -> Rail:
        """Raises `NotFound` for a name that is not registered."""
        if name not in self.rails:
            raise NotFound(f"The rails are {', '.join(sorted(self.rails))}.")
        return self.rails[name]

    def lookup(self, rail: str, code: str) -> Answer:
        """Raises `NotFound`, `RailRefused` or `NotARailCode`; else the answer of `rail` for `code`."""
        return self.rail(rail).lookup(code)

    def answer_for(self, failure_code: str) -> Answer | None:
        """The answer for a failure code such as `ach:R01`; None for one that names no rail.

        Raises `RailRefused` or `NotARailCode`. A rail's name in other letters (`ACH:R01`) is refused as well: it is
        meant for the rail, and the card table's default would retry it.
        """
        name, colon, code = failure_code.partition(":")
        if not colon or name.lower() not in self.rails:
            return None
        if name not in self.rails:
            raise NotARailCode(f"A rail is named in lower case: {', '.join(sorted(self.rails))}.", field="failure_code")
        try:
            return self.rails[name].lookup(code)
        except (NotARailCode, RailRefused) as refusal:
            refusal.field = "failure_code"
            raise


def _cited(disagreements: Iterable[Mapping[str, Any]]) -> list[str]:
    return [source for each in disagreements for side in each["sides"] for source in side["sources"]]


def _disagreements(rows: Iterable[Mapping[str, Any]]) -> list[Disagreement]:
    return [Disagreement(row["about"], [Side(**side) for side in row["sides"]], row["taken"]) for row in rows]


def _limit(row: Mapping[str, Any] | None) -> Limit | None:
    if row is None:
        return None
    used_up, disagreements = Policy(**row["when_used_up"]), _disagreements(row["disagreements"])
    return Limit(**{**row, "when_used_up": used_up, "disagreements": disagreements})


def _why_refused(row: Mapping[str, Any] | None) -> WhyRefused | None:
    if row is None:
        return None
    citations = [
        Citation(**{**each, "disagreements": _disagreements(each["disagreements"])}) for each in row["may_be_cited"]
    ]
    return WhyRefused(**{**row, "may_be_cited": citations})
