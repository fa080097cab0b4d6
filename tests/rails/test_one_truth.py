"""Page, MCP, HTTP and decide, asked about every code: they can't disagree."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import anyio
import httpx
import pytest
from mcp import Client

import paypilot_rails_mcp
from paypilot.tables import published_tables
from scripts.tables import pages as printed_pages
from support.slice import TOKEN, Host

RAILS = {rail.name: rail for rail in published_tables().rails}
BACS_TABLE, SEPA_TABLE = RAILS["bacs"], RAILS["sepa"]
ACH = [f"R{number:02}" for number in range(100)]
SEPA = [row["code"] for row in SEPA_TABLE.document["codes"]] + ["TECH", "ZZZZ", "0000"]
CODES = [("ach", code) for code in ACH] + [("sepa", code) for code in SEPA]

# What is compared: row, goes again, what has to change first, whether a person acts first.
Said = tuple[int, str, str, bool]


def printed(text: str, rows: list[list[str]]) -> dict[str, Said]:
    """What a page's table of dispositions says of each code, and under "" of every other one."""
    names = {words: name for name, words in printed_pages.WORDS.items()}
    said: dict[str, Said] = {}
    dispositions = [row for row in rows if len(row) == 5 and row[0].strip().isdigit()]
    assert [row[0].strip() for row in dispositions] == ["1", "2", "3", "4", "5"]
    for row in dispositions:
        number, again, first, person, codes = (cell.strip() for cell in row)
        said |= dict.fromkeys(re.findall(r"\w+", codes), (int(number), names[again], names[first], person == "yes"))
    [fall_through_row] = re.findall(r"not matched and falls through to row (\d)", " ".join(text.split()))
    [said[""]] = {each for each in said.values() if each[0] == int(fall_through_row)}
    return said


@pytest.fixture(scope="module")
def pages() -> dict[tuple[str, str], dict[str, Said]]:
    paths = [path for path in printed_pages.pages() if path.stem not in {"bacs", "cards"}]
    return {(path.stem, path.suffix): printed(path.read_text(), table_rows(path)) for path in paths}


def table_rows(path: Path) -> list[list[str]]:
    text = path.read_text()
    if path.suffix == ".html":
        tables = map(ElementTree.fromstring, re.findall("<table.*?</table>", text, re.S))
        return [["".join(cell.itertext()) for cell in row] for table in tables for row in table.iter("tr")]
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]


@pytest.fixture(scope="module")
def over_mcp() -> dict[tuple[str, str], Said]:
    async def ask() -> dict[tuple[str, str], Said]:
        async with Client(paypilot_rails_mcp.server) as client:
            answers = {}
            for rail, code in CODES:
                result = await client.call_tool("lookup_return_code", {"code": code, "rail": rail})
                assert result.structured_content
                answers[rail, code] = said_by(result.structured_content)
            return answers

    return anyio.run(ask)


@pytest.fixture(scope="module")
def client(host: Host) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=host.url, headers={"authorization": f"Bearer {TOKEN}"}) as client:
        yield client


def said_by(answer: dict[str, object]) -> Said:
    return answer["row"], answer["goes_again"], answer["changes_first"], answer["a_person_acts_first"]  # type: ignore[return-value]


def test_page_mcp_http_and_decide_say_the_same_of_every_code(
    pages: dict[tuple[str, str], dict[str, Said]], over_mcp: dict[tuple[str, str], Said], client: httpx.Client
) -> None:
    for rail, code in CODES:
        lookup = client.get(f"/rails/{rail}/codes/{code}").json()
        body = {"invoice_id": "in_truth", "failure_code": f"{rail}:{code}"}
        decided = client.post("/decide", json=body).json()
        said = said_by(lookup)
        assert over_mcp[rail, code] == said, (rail, code)
        assert said_by(decided["rail"]) == said, (rail, code)
        assert decided["rules_version"] == lookup["version"]
        policy = lookup["policy"]
        assert {name: decided[name] for name in policy} == policy, (rail, code)
        matched = decided["gates_checked"][2]["result"] == "matched"
        assert matched is lookup["matched"]
        assert matched is (code in pages[rail, ".html"]), (rail, code)
        for suffix in (".md", ".html"):
            page = pages[rail, suffix]
            assert page.get(code, page[""]) == said, (rail, code, suffix)


def test_all_four_refuse_bacs(client: httpx.Client) -> None:
    async def ask() -> str:
        async with Client(paypilot_rails_mcp.server) as mcp:
            result = await mcp.call_tool("lookup_return_code", {"code": "0", "rail": "bacs"})
            return result.content[0].text if result.is_error else ""  # type: ignore[union-attr]

    why = BACS_TABLE.document["refusal"]["why"]
    lookup = client.get("/rails/bacs/codes/0")
    decided = client.post("/decide", json={"invoice_id": "in_truth", "failure_code": "bacs:0"})
    assert (lookup.json()["code"], decided.json()["code"]) == ("rail_refused", "rail_refused")
    assert lookup.json()["refusal"] == decided.json()["refusal"]
    assert why == lookup.json()["refusal"]["why"]
    assert why in anyio.run(ask)
    for suffix in ("md", "html"):
        assert why in " ".join((printed_pages.DOCS / "rails" / f"bacs.{suffix}").read_text().split())


@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_the_page_of_the_card_table_says_what_decide_answers(client: httpx.Client, suffix: str) -> None:
    rows = table_rows(printed_pages.DOCS / f"cards{suffix}")
    cells = [[words[0] for cell in row if (words := re.search(r"\w[\w ]*", cell))] for row in rows]
    said = {row[0]: row[1:] for row in cells if row}
    for rule in [*published_tables().card.rules, "default"]:
        decided = client.post("/decide", json={"invoice_id": "in_truth", "failure_code": rule}).json()
        days = decided["retry_in_days"]
        again = f"in {days} day{'s' * (days > 1)}" if decided["retry"] else "no retry"
        assert said.pop(decided["rule"]) == [decided["action"], again, decided["tone"]]
