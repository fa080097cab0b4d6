"""Generate the printed tables: docs/cards and a page for each rail in docs/rails, as Markdown and as HTML."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from paypilot.core.card_table import DEFAULT_RULE, CardTable
from paypilot.core.rail_table import PERSON_RULE, RailTable
from paypilot.core.rail_types import Answer, Disagreement, Disposition, Limit, Source
from paypilot.tables import published_tables
from scripts.local import command
from scripts.tables.printing import Block, Facts, Heading, Items, Links, Table, contents, html_page, markdown

DOCS = Path(__file__).parents[2] / "docs"
KINDS: dict[str, Callable[[Iterable[Block]], str]] = {"md": markdown, "html": html_page}

WORDS = {
    "yes": "yes",
    "not_on_this_entry": "not on this entry",
    "not_until_they_ask": "not until they ask",
    "corrected_only": "corrected only",
    "no": "no",
    "nothing": "nothing",
    "account_details": "account details",
    "their_instruction": "their instruction",
    "our_own_entry": "our own entry",
    "nothing_will": "nothing will",
}


def cards_page(table: CardTable) -> Iterator[Block]:
    yield Heading(1, "Card codes: what each one does")
    yield Links("PayPilot", [("PayPilot", "../README.md"), ("Which code to send", "api.md#which-code-to-send")])
    yield _question(table)
    yield Facts(_edition(table))
    yield Heading(2, "The codes", "codes")
    yield (
        "A code of this list, sent as `failure_code`, is answered by the rule of its name, and any other code by "
        f"`{DEFAULT_RULE}`. The table assigns no code to a provider; it names providers only in its sources."
    )
    yield Table(
        "By failure code",
        ["Code", "Action", "Retry", "Tone"],
        [
            [f"[`{name}`](#{name})", f"`{row['action']}`", _again(row["retry_in_days"]), f"`{row['tone']}`"]
            for name, row in table.rows.items()
        ],
    )
    for name, row in table.rows.items():
        yield Heading(2, f"`{name}`", name)
        yield row["why"]
        yield Facts([("Source", row["source"])])


def _question(table: CardTable | RailTable) -> str:
    question: str = table.document["question"]
    return f"The question it answers: {question[0].lower()}{question[1:]}"


def _edition(table: CardTable | RailTable) -> list[tuple[str, str]]:
    return [("Published", table.published), ("Version", f"`{table.version}`")]


def _again(days: int | None) -> str:
    return "no retry" if days is None else f"in {days} day{'s' * (days > 1)}"


class RailPage:
    """The page of a rail's table. It names a source by who says it, and not by the table's id."""

    def __init__(self, rail: RailTable) -> None:
        self.rail = rail
        self.names: dict[str, str] = {}
        for source in rail.document["sources"]:
            self.names[source["id"]] = self._name(source)

    def _name(self, source: Source) -> str:
        """The beginning of the title, such as "Galileo", and "Galileo #2" for its second document."""
        name = re.split("[,:(]", source["title"])[0].strip()
        earlier = sum(each.split(" #")[0] == name for each in self.names.values())
        return f"{name} #{earlier + 1}" if earlier else name

    def blocks(self) -> Iterator[Block]:
        document = self.rail.document
        yield Heading(1, f"{document['name']}: what may happen next to a failed debit")
        yield Links("PayPilot", [("PayPilot", "../../README.md"), ("The rails", "../rails.md")])
        yield f"{document['scope']} {_question(self.rail)}"
        yield Facts(_edition(self.rail))
        yield from self._refusal()
        if dispositions := self.rail.dispositions():
            yield Heading(2, "The dispositions", "dispositions")
            yield Table(
                "By what has to change before this debit can exist again",
                ["Row", "Goes again", "What has to change first", "A person acts first", "Codes"],
                [
                    [
                        str(row["row"]),
                        WORDS[row["goes_again"]],
                        WORDS[row["changes_first"]],
                        "yes" if row["a_person_acts_first"] else "no",
                        " ".join(f"`{code}`" for code in row["codes"]),
                    ]
                    for row in dispositions
                ],
            )
            yield (
                f"Any other code of this rail ({document['code_form']}) is not matched and falls through to row "
                f"{document['fall_through_row']}. Whether a person acts first is derived from the row, by the rule "
                f"`{PERSON_RULE}`."
            )
            for row in dispositions:
                yield from self._disposition(row)
        if document["unlisted"]:
            yield Heading(2, "Known, and not listed", "unlisted")
            yield "These fall through as well: sources name them, and this table does not classify them."
            rows = [[f"`{row['code']}`", row["title"], row["why"]] for row in document["unlisted"]]
            yield Table("Codes that fall through", ["Code", "Name", "Why it is not listed"], rows)
        if document["facts"]:
            yield Heading(2, "What else the sources say", "facts")
            facts = [(fact["about"], f"{fact['says']} {self._cite(fact['sources'])}") for fact in document["facts"]]
            yield Facts(facts)
        yield Heading(2, "Sources", "sources")
        yield "Facts are carried over in our own words. Actions, tones and days are PayPilot's own policy."
        yield Items(
            [
                f"**{self.names[source['id']]}:** {self._linked(source)} Read: {source['read']}."
                for source in document["sources"]
            ],
            [source["id"] for source in document["sources"]],
        )

    def _refusal(self) -> Iterator[Block]:
        if self.rail.refusal is None:
            return
        yield Heading(2, "Every lookup is refused", "refusal")
        yield self.rail.refusal["why"]
        until_then = self.rail.refusal["until_then"]
        yield Facts([("What would change it", self.rail.refusal["what_would_change_it"]), ("Until then", until_then)])
        yield Heading(2, "What may be cited at second hand", "second-hand")
        yield "None of this is the scheme's own published word, and no lookup answers by it."
        yield Table(
            "Second-hand statements",
            ["About", "What is said", "Sources"],
            [
                [
                    each["about"],
                    " ".join([each["says"], *map(self._disagreement, each["disagreements"])]),
                    self._links(each["sources"]),
                ]
                for each in self.rail.refusal["may_be_cited"]
            ],
        )

    def _disposition(self, row: Disposition) -> Iterator[Block]:
        yield Heading(2, f"Row {row['row']}: {row['summary'].rstrip('.')}", f"row-{row['row']}", f"Row {row['row']}")
        yield f"{row['why']} {self._cite(source['id'] for source in row['sources'])}"
        policy = row["policy"]
        again = "no retry" if policy["retry_in_days"] is None else f"again {_again(policy['retry_in_days'])}"
        ours = f"`{policy['action']}`, tone `{policy['tone']}`, {again}"
        yield Facts([*self._limit(row["limit"]), ("PayPilot's policy", ours)])
        answers = [self.rail.answer(code) for code in row["codes"]]
        timed = any(answer["return_window"] for answer in answers)
        yield Table(
            f"The codes of row {row['row']}",
            ["Code", "Meaning", "Suggested next step", "Returned within" if timed else "R-transactions", "Sources"],
            [self._code(answer) for answer in answers],
        )
        if disputed := [(answer["code"], each) for answer in answers for each in answer["disagreements"]]:
            yield Facts([(f"On `{code}`", self._disagreement(each)) for code, each in disputed])

    def _code(self, answer: Answer) -> list[str]:
        meaning = [f"{answer['title']}."]
        if answer["family"]:
            meaning.append(f"Family: {answer['family']}.")
        if answer["refund_window"]:
            meaning.append(f"Refund window: {answer['refund_window']}.")
        if answer["note"]:
            meaning.append(answer["note"])
        when = answer["return_window"] or ", ".join(answer["r_types"]) or "not stated"
        sources = self._links(source["id"] for source in answer["sources"])
        return [f"`{answer['code']}`", " ".join(meaning), answer["suggested_action"] or "none stated", when, sources]

    def _limit(self, limit: Limit | None) -> list[tuple[str, str]]:
        if limit is None:
            return []
        most = (
            f"At most {limit['reinitiations']} reinitiations within {limit['within_days']} days of "
            f"{limit['counted_from']}, counting {limit['counts']}; the same {', '.join(limit['must_match'])}; "
            f"described `{limit['entry_description']}`."
        )
        text = " ".join([most, *map(self._disagreement, limit["disagreements"]), self._cite(limit["sources"])])
        return [("Limit", text), ("When it is used up", f"`{limit['when_used_up']['action']}`, no retry")]

    def _disagreement(self, each: Disagreement) -> str:
        sides = "; ".join(f"{side['says']} {self._cite(side['sources'])}" for side in each["sides"])
        return f"Sources disagree about {each['about']}: {sides}. Taken: {each['taken']}"

    def _cite(self, ids: Iterable[str]) -> str:
        return f"({self._links(ids)})"

    def _links(self, ids: Iterable[str]) -> str:
        return ", ".join(f"[{self.names[each]}](#{each})" for each in ids)

    def _linked(self, source: Source) -> str:
        return f"[{source['title']}]({source['address']})." if source["address"] else f"{source['title']}."


def pages() -> dict[Path, str]:
    tables = published_tables()
    documents = {DOCS / "cards": cards_page(tables.card)}
    documents |= {DOCS / "rails" / rail.name: RailPage(rail).blocks() for rail in tables.rails}
    printed: dict[Path, str] = {}
    for path, document in documents.items():
        title, home, *rest = document
        blocks = [title, home, contents(rest), *rest]
        printed |= {path.with_suffix(f".{kind}"): make(blocks) for kind, make in KINDS.items()}
    return printed


def main() -> None:
    command.parser(__doc__).parse_args()
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
