"""A rail's table: what may happen next to a failed bank debit, by the return code that it came back with.

Like the card table it answers for the same instrument, later. What is wrong with a document is an `InvalidTable` when
it is loaded, never an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from paypilot.core.canonical import canonical_json, digest
from paypilot.core.rule import InvalidTable, NotACode, Rule, TableRefuses

if TYPE_CHECKING:
    from paypilot.core.rail_types import Answer, Disposition, Policy, RailDecision, RailRefusal, Source

# The five dispositions, by what has to change before this debit can exist again.
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


def a_person_acts_first(goes_again: str) -> bool:
    """`PERSON_RULE`: exactly where nothing that we change lets the debit go again, whatever a column says."""
    return goes_again == "no"


class RailTable:
    """A checked table. `version` is the digest of the whole document's canonical form.

    Raises `InvalidTable` if a row has no source, can't be reached or contradicts itself, if a code is listed twice, or
    if what falls through could go again.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        # Half a millisecond of a cold start, and a card's decision reads no rail's table.
        from paypilot.core.rail_types import RailDocument

        if document.keys() != RailDocument.__required_keys__:
            raise InvalidTable(f"a rail's table has exactly the keys {sorted(RailDocument.__required_keys__)}")
        self.document = document
        self.canonical = canonical_json(document)
        self.version = digest(self.canonical)
        self.name: str = document["rail"]
        self.published: str = document["published"]
        self.refusal: RailRefusal | None = document["refusal"]
        self._sources = {source["id"]: source for source in document["sources"]}
        self._rows = {row["row"]: row for row in document["decisions"]}
        self._codes = {row["code"]: row for row in document["codes"]}
        self._unlisted = {row["code"]: row for row in document["unlisted"]}
        self._check()

    def rule(self, failure_code: str, attempt: int) -> Rule | NotACode | TableRefuses:
        """The rule for a failure code such as `ach:R01` after `attempt` failed debits of one entry."""
        answer = self.look_up(failure_code.removeprefix(f"{self.name}:"))
        if not isinstance(answer, dict):
            return answer
        policy = policy_at(answer, attempt)
        return Rule(
            rule=failure_code if answer["matched"] else f"{self.name}:default",
            matched=answer["matched"],
            action=policy["action"],
            tone=policy["tone"],
            retry_in_days=policy["retry_in_days"],
            rules_version=self.version,
            rail=_rail_fields(answer, used_up=policy != answer["policy"]),
        )

    def look_up(self, code: str) -> Answer | NotACode | TableRefuses:
        """The table's answer for `code`; the fall-through row's, with `matched` false, where it is not listed."""
        name = self.document["name"]
        if self.refusal is not None:
            return TableRefuses(f"{name} refuses every lookup. {self.refusal['why']}", self.refusal)
        if not re.fullmatch(self.document["code_pattern"], code):
            return NotACode(f"A code of {name} is {self.document['code_form']}.")
        return self.answer(code)

    def answer(self, code: str) -> Answer:
        """The answer for a code of this rail's form, on a rail that answers."""
        listed = self._codes.get(code)
        known = listed or self._unlisted.get(code)
        row = self._rows[listed["row"] if listed else self.document["fall_through_row"]]
        reason = f"{code} is listed."
        if listed is None:
            called = f" (known as {known['title']})" if known else ""
            reason = f"{code}{called} is not one of the {len(self._codes)} codes listed, and fell through."
        facts = listed or {}
        cited = _cited(facts.get("disagreements", [])) + (row["limit"]["sources"] if row["limit"] else [])
        return {
            "rail": self.name,
            "code": code,
            "matched": listed is not None,
            "reason": f"{reason} {row['summary']}",
            "title": known["title"] if known else None,
            "row": row["row"],
            "goes_again": row["goes_again"],
            "changes_first": row["changes_first"],
            "a_person_acts_first": a_person_acts_first(row["goes_again"]),
            "family": facts.get("family"),
            "limit": row["limit"],
            "return_window": facts.get("return_window"),
            "refund_window": facts.get("refund_window"),
            "r_types": facts.get("r_types", []),
            "suggested_action": facts.get("suggested_action"),
            "note": facts.get("note"),
            "policy": row["policy"],
            "disagreements": facts.get("disagreements", []),
            "sources": self.cite([*(known["sources"] if known else []), *cited]),
            "version": self.version,
        }

    def dispositions(self) -> list[Disposition]:
        """The rail's five rows in order, each with the codes that reach it. None where the rail refuses."""
        return [
            {
                "row": row["row"],
                "goes_again": row["goes_again"],
                "changes_first": row["changes_first"],
                "a_person_acts_first": a_person_acts_first(row["goes_again"]),
                "summary": row["summary"],
                "why": row["why"],
                "codes": [code for code, facts in self._codes.items() if facts["row"] == row["row"]],
                "limit": row["limit"],
                "policy": row["policy"],
                "sources": self.cite(row["sources"]),
            }
            for row in self._rows.values()
        ]

    def cite(self, ids: Iterable[str]) -> list[Source]:
        """The sources of these ids, each once, in the order of the document."""
        wanted = set(ids)
        return [source for source in self.document["sources"] if source["id"] in wanted]

    def _check(self) -> None:
        if self.refusal is not None:
            if self._rows or self._codes:
                raise InvalidTable(f"{self.name} refuses, and yet has rows")
            return
        last = self._rows.get(self.document["fall_through_row"])
        if last is None or last["goes_again"] != "no":
            raise InvalidTable(f"{self.name}: what falls through must land on a row that never goes again")
        for row in self._rows.values():
            self._check_disposition(row)
        codes = [row["code"] for row in [*self.document["codes"], *self.document["unlisted"]]]
        if len(codes) != len(set(codes)) or len(self._rows) != len(self.document["decisions"]):
            raise InvalidTable(f"{self.name}: a code or a row is listed twice: the second could never be reached")
        for row in self.document["codes"]:
            self._check_code(row)
        if unreached := self._rows.keys() - {row["row"] for row in self._codes.values()}:
            raise InvalidTable(f"{self.name}: no code reaches rows {sorted(unreached)}")

    def _check_disposition(self, decision: Mapping[str, Any]) -> None:
        where = f"{self.name} row {decision['row']}"
        again, policy, limit = decision["goes_again"] == "yes", decision["policy"], decision["limit"]
        if CHANGES_FIRST.get(decision["goes_again"]) != decision["changes_first"]:
            raise InvalidTable(f"{where}: goes_again and changes_first are not one decision")
        policies = [policy, *([limit["when_used_up"]] if limit else [])]
        if any(each["action"] not in ACTIONS or each["tone"] not in TONES for each in policies):
            raise InvalidTable(f"{where}: unknown action or tone")
        days = policy["retry_in_days"]
        whole_days = type(days) is int and days >= 1 if again else days is None
        if not whole_days or (policy["action"] == "wait_and_retry") is not again:
            raise InvalidTable(f"{where}: a debit is retried exactly where it goes again as it is")
        if limit and (not again or limit["when_used_up"]["retry_in_days"] is not None):
            raise InvalidTable(f"{where}: a limit ends a retry, and starts none")
        self._check_sources(where, decision["sources"])

    def _check_code(self, row: Mapping[str, Any]) -> None:
        where = f"{self.name} code {row['code']}"
        if not re.fullmatch(self.document["code_pattern"], row["code"]):
            raise InvalidTable(f"{where}: not a code of this rail")
        if row["row"] not in self._rows:
            raise InvalidTable(f"{where}: there is no row {row['row']}")
        derived = a_person_acts_first(self._rows[row["row"]]["goes_again"])
        if row["source_says_person_first"] not in (None, derived):
            raise InvalidTable(f"{where}: a source contradicts {PERSON_RULE}")
        self._check_sources(where, row["sources"])
        self._check_sources(where, [*row["sources"], *_cited(row["disagreements"])])

    def _check_sources(self, where: str, ids: list[str]) -> None:
        if not ids or not self._sources.keys() >= set(ids):
            raise InvalidTable(f"{where}: no source, or one that the document doesn't name")


def policy_at(answer: Answer, attempt: int) -> Policy:
    """What PayPilot does after `attempt` failed debits of one entry, the original being the first.

    The original and its reinitiations are the attempts: with two reinitiations allowed, the third failure has
    used them up, and nothing retries any more.
    """
    limit = answer["limit"]
    return limit["when_used_up"] if limit and attempt > limit["reinitiations"] else answer["policy"]


def _rail_fields(answer: Answer, *, used_up: bool) -> RailDecision:
    """What the table says of the code, whatever the attempt; `limit_used_up` is what the attempt makes of it."""
    limit = answer["limit"]
    return {
        "rail": answer["rail"],
        "code": answer["code"],
        "row": answer["row"],
        "goes_again": answer["goes_again"],
        "changes_first": answer["changes_first"],
        "a_person_acts_first": answer["a_person_acts_first"],
        "family": answer["family"],
        "limit": None
        if limit is None
        else {
            "reinitiations": limit["reinitiations"],
            "within_days": limit["within_days"],
            "counted_from": limit["counted_from"],
        },
        "limit_used_up": used_up,
        "reason": answer["reason"],
    }


def _cited(disagreements: Iterable[Mapping[str, Any]]) -> list[str]:
    return [source for each in disagreements for side in each["sides"] for source in side["sources"]]
