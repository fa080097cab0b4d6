"""Generate docs/rails: one Markdown and one self-contained HTML page for each rail."""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from paypilot.core.rail_table import PERSON_RULE, RailTable
from paypilot.core.rail_types import Answer, Disagreement, Disposition, Limit, Source
from paypilot.tables import published_tables
from scripts.local import command

PAGES = Path(__file__).parents[2] / "docs" / "rails"

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


@dataclass(frozen=True)
class Heading:
    level: int
    text: str
    id: str = ""


@dataclass(frozen=True)
class Facts:
    """Names and what they are."""

    pairs: list[tuple[str, str]]


@dataclass(frozen=True)
class Items:
    """A list; `ids` are its items' anchors, where they have some."""

    texts: list[str]
    ids: list[str]


@dataclass(frozen=True)
class Table:
    caption: str
    head: list[str]
    rows: list[list[str]]


# A text is plain, but for `code` and [words](address), as Markdown has them.
Block = Heading | str | Facts | Items | Table


def page(rail: RailTable) -> Iterator[Block]:
    """What a rail's page says, in order."""
    document = rail.document
    yield Heading(1, f"{document['name']}: what may happen next to a failed debit")
    yield f"{document['scope']} The question it answers: {document['question'][0].lower()}{document['question'][1:]}"
    yield Facts([("Published", document["published"]), ("Version", f"`{rail.version}`")])
    yield from _refusal(rail)
    if decisions := rail.dispositions():
        yield Heading(2, "The decisions", "decisions")
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
                for row in decisions
            ],
        )
        yield (
            f"Any other code of this rail ({document['code_form']}) is not matched and falls through to row "
            f"{document['fall_through_row']}. Whether a person acts first is derived from the row by one rule, "
            f"`{PERSON_RULE}`, and from no column."
        )
        for row in decisions:
            yield from _decision(rail, row)
    if document["unlisted"]:
        yield Heading(2, "Known, and not listed", "unlisted")
        yield "These fall through as well: sources name them, and this table does not classify them."
        rows = [[f"`{row['code']}`", row["title"], row["why"]] for row in document["unlisted"]]
        yield Table("Codes that fall through", ["Code", "Name", "Why it is not listed"], rows)
    if document["facts"]:
        yield Heading(2, "What else the sources say", "facts")
        facts = [(fact["about"], f"{fact['says']} {_cite(fact['sources'])}") for fact in document["facts"]]
        yield Facts(facts)
    yield Heading(2, "Sources", "sources")
    yield "Facts are carried over in our own words. Actions, tones and days are PayPilot's own policy."
    yield Items(
        [f"**{source['id']}** {_linked(source)} Read: {source['read']}." for source in document["sources"]],
        [source["id"] for source in document["sources"]],
    )


def _refusal(rail: RailTable) -> Iterator[Block]:
    if rail.refusal is None:
        return
    yield Heading(2, "Every lookup is refused", "refusal")
    yield rail.refusal["why"]
    until_then = rail.refusal["until_then"]
    yield Facts([("What would change it", rail.refusal["what_would_change_it"]), ("Until then", until_then)])
    yield Heading(2, "What may be cited at second hand", "second-hand")
    yield "None of this is the scheme's own published word, and no lookup answers by it."
    yield Table(
        "Second-hand statements",
        ["About", "What is said", "Sources"],
        [
            [
                each["about"],
                " ".join([each["says"], *map(_disagreement, each["disagreements"])]),
                _links(each["sources"]),
            ]
            for each in rail.refusal["may_be_cited"]
        ],
    )


def _decision(rail: RailTable, row: Disposition) -> Iterator[Block]:
    yield Heading(2, f"Row {row['row']}: {row['summary'].rstrip('.')}", f"row-{row['row']}")
    yield f"{row['why']} {_cite(source['id'] for source in row['sources'])}"
    days = row["policy"]["retry_in_days"]
    again = f"again in {days} days" if days else "no retry"
    policy = f"`{row['policy']['action']}`, tone `{row['policy']['tone']}`, {again}"
    yield Facts([*_limit(row["limit"]), ("PayPilot's policy", policy)])
    answers = [rail.answer(code) for code in row["codes"]]
    timed = any(answer["return_window"] for answer in answers)
    yield Table(
        f"The codes of row {row['row']}",
        ["Code", "Meaning", "Suggested next step", "Returned within" if timed else "R-transactions", "Sources"],
        [_code(answer) for answer in answers],
    )
    if disputed := [(answer["code"], each) for answer in answers for each in answer["disagreements"]]:
        yield Facts([(f"On `{code}`", _disagreement(each)) for code, each in disputed])


def _code(answer: Answer) -> list[str]:
    meaning = [f"{answer['title']}."]
    if answer["family"]:
        meaning.append(f"Family: {answer['family']}.")
    if answer["refund_window"]:
        meaning.append(f"Refund window: {answer['refund_window']}.")
    if answer["note"]:
        meaning.append(answer["note"])
    when = answer["return_window"] or ", ".join(answer["r_types"]) or "not stated"
    sources = _links(source["id"] for source in answer["sources"])
    return [f"`{answer['code']}`", " ".join(meaning), answer["suggested_action"] or "none stated", when, sources]


def _limit(limit: Limit | None) -> list[tuple[str, str]]:
    if limit is None:
        return []
    most = (
        f"At most {limit['reinitiations']} reinitiations within {limit['within_days']} days of "
        f"{limit['counted_from']}, counting {limit['counts']}; the same {', '.join(limit['must_match'])}; "
        f"described `{limit['entry_description']}`."
    )
    text = " ".join([most, *map(_disagreement, limit["disagreements"]), _cite(limit["sources"])])
    return [("Limit", text), ("When it is used up", f"`{limit['when_used_up']['action']}`, no retry")]


def _disagreement(each: Disagreement) -> str:
    sides = "; ".join(f"{side['says']} {_cite(side['sources'])}" for side in each["sides"])
    return f"Sources disagree about {each['about']}: {sides}. Taken: {each['taken']}"


def _cite(ids: Iterable[str]) -> str:
    return f"({_links(ids)})"


def _links(ids: Iterable[str]) -> str:
    return ", ".join(f"[{each}](#{each})" for each in ids)


def _linked(source: Source) -> str:
    return f"[{source['title']}]({source['address']})." if source["address"] else f"{source['title']}."


def markdown(rail: RailTable) -> str:
    lines = ["<!-- Made by scripts/rails/pages.py from the published table: change the table, not this page. -->"]
    for block in page(rail):
        lines.append("")
        match block:
            case Heading(level, text):
                lines.append(f"{'#' * level} {text}")
            case str():
                lines.append(block)
            case Facts(pairs):
                lines += [f"- **{name}:** {text}" for name, text in pairs]
            case Items(texts, ids):
                lines += [f'- <a id="{each}"></a>{text}' for text, each in zip(texts, ids, strict=True)]
            case Table(_, head, rows):
                lines += [_row(head), _row(["---"] * len(head)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def html_page(rail: RailTable) -> str:
    body: list[str] = []
    title = ""
    for block in page(rail):
        match block:
            case Heading(level, text, anchor):
                title = title or text
                anchor = anchor and f' id="{anchor}"'
                body.append(f"<h{level}{anchor}>{_inline(text)}</h{level}>")
            case str():
                body.append(f"<p>{_inline(block)}</p>")
            case Facts(pairs):
                entries = [f"<div><dt>{_inline(name)}</dt><dd>{_inline(text)}</dd></div>" for name, text in pairs]
                body.append(f"<dl>{''.join(entries)}</dl>")
            case Items(texts, ids):
                entries = [f'<li id="{each}">{_inline(text)}</li>' for text, each in zip(texts, ids, strict=True)]
                body.append(f"<ul>{''.join(entries)}</ul>")
            case Table():
                body.append(_html_table(block))
    links = "".join(
        f'<li><a href="#{block.id}">{_inline(block.text)}</a></li>'
        for block in page(rail)
        if isinstance(block, Heading) and block.id
    )
    body.insert(1, f'<nav aria-label="On this page"><ul>{links}</ul></nav>')
    return PAGE.format(title=html.escape(title), style=STYLE, body="\n".join(body))


def _html_table(table: Table) -> str:
    # The roles keep it a table for assistive technology where the narrow layout sets its parts as blocks.
    head = "".join(f'<th role="columnheader" scope="col">{_inline(text)}</th>' for text in table.head)
    rows = []
    for first, *rest in table.rows:
        cells = "".join(
            f'<td role="cell" data-head="{html.escape(name)}">{_inline(text)}</td>'
            for name, text in zip(table.head[1:], rest, strict=True)
        )
        named = f'<th role="rowheader" scope="row" data-head="{html.escape(table.head[0])}">{_inline(first)}</th>'
        rows.append(f'<tr role="row">{named}{cells}</tr>')
    return (
        f'<table role="table"><caption>{_inline(table.caption)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def _inline(text: str) -> str:
    escaped = html.escape(text)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    escaped = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", escaped)
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', escaped)


STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --paper: #fff; --quiet: #545d66; --line: #c8ced4; --tint: #f2f5f7;
  --link: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebee; --paper: #15181b; --quiet: #a9b2ba; --line: #3c444b;
  --tint: #1e2327; --link: #8ec3ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; line-height: 1.35; margin: 2.5rem 0 .5rem; }
p, li, dd { max-width: 48rem; }
a { color: var(--link); }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: .35rem 1.25rem; padding: 0; margin: 0 0 1.25rem; list-style: none; }
dl { margin: .75rem 0; }
dl > div { display: grid; grid-template-columns: 12rem 1fr; gap: 0 1rem; padding: .3rem 0; }
dt { color: var(--quiet); }
dd { margin: 0; min-width: 0; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
caption { text-align: left; color: var(--quiet); padding: 0 0 .4rem; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem; border-bottom: 1px solid var(--line); }
thead th { background: var(--tint); white-space: nowrap; }
td:nth-child(n + 4) { min-width: 9rem; }
td code { margin-right: .4em; }
:target { background: var(--tint); outline: 2px solid var(--link); }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--paper); padding: .5rem; }
@media (max-width: 54rem) {
  dl > div { display: block; }
  table, tbody, tr, th, td, caption { display: block; width: 100%; }
  thead { position: absolute; left: -99rem; }
  tr { border: 1px solid var(--line); border-radius: .4rem; margin: 0 0 .75rem; padding: .25rem 0; }
  th, td { border: 0; padding: .2rem .75rem; }
  th::before { content: attr(data-head) " "; }
  td::before { content: attr(data-head); display: block; color: var(--quiet); font-size: .85rem; }
}
@media print { nav, .skip { display: none; } main { max-width: none; padding: 0; } tr { break-inside: avoid; }
  a { color: inherit; } }
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<main id="content">
{body}
</main>
</body>
</html>
"""

KINDS: dict[str, Callable[[RailTable], str]] = {"md": markdown, "html": html_page}


def pages() -> dict[Path, str]:
    """Every page by its path."""
    rails = published_tables().rails
    return {PAGES / f"{rail.name}.{kind}": make(rail) for rail in rails for kind, make in KINDS.items()}


def main() -> None:
    command.parser(__doc__).parse_args()
    PAGES.mkdir(parents=True, exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
