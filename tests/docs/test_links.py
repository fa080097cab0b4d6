"""The documents link to what exists, can be reached from the README, and fit a screen."""

import re
from pathlib import Path

import pytest

from support.slice import ROOT

FOLDERS = ("bootstrap", "docs", "infra", "lambda", "scripts", "tests")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
FENCED = re.compile(r"^ *```.*?^ *```", re.M | re.S)
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in ROOT.glob(f"{folder}/**/*.md"))})
WIDTH = 120

documents = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def linked(document: Path) -> set[Path]:
    """The documents that `document` links to."""
    return {(document.parent / link).resolve() for link, _ in LINK.findall(document.read_text()) if link}


def anchors(document: Path) -> set[str]:
    """The anchors of a document: its headings', as GitHub makes them, and its own."""
    text = FENCED.sub("", document.read_text())
    headings = {re.sub(r"[^\w -]", "", heading.lower()) for heading in re.findall(r"^#+ (.*)$", text, re.M)}
    return {heading.replace(" ", "-") for heading in headings} | set(re.findall(r'<a id="([^"]+)">', text))


@documents
def test_a_document_links_to_files_and_headings_that_exist(document: Path) -> None:
    for link, anchor in LINK.findall(document.read_text()):
        target = document.parent / link if link else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached, following = set(), {ROOT / "README.md"}
    while following:
        reached |= following
        following = {path for document in following for path in linked(document) if path.suffix == ".md"} - reached
    assert sorted(set(DOCUMENTS) - reached) == []


@documents
def test_a_document_s_make_targets_exist(document: Path) -> None:
    text = document.read_text()
    code = "\n".join([*FENCED.findall(text), *re.findall(r"`[^`\n]+`|^ {4}.*", FENCED.sub("", text), re.M)])
    assert set(re.findall(r"(?:^ *|`)make ([a-z][a-z0-9-]*)", code, re.M)) <= TARGETS


# A table's row, a command and a link cannot be broken.
@documents
def test_a_line_of_a_document_fits_the_width(document: Path) -> None:
    prose = FENCED.sub("", document.read_text()).splitlines()
    assert [line for line in prose if len(line) > WIDTH and line[0] != "|" and " " in line.strip()] == []


def test_a_decision_has_a_number_of_its_own_and_says_it() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    numbers = [path.name[:4] for path in records]
    assert len(set(numbers)) == len(numbers) > 0
    for number, path in zip(numbers, records, strict=True):
        assert path.read_text().startswith(f"# {number} "), path.name


def test_the_tests_readme_has_a_row_for_each_folder_of_tests() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "tests" / "README.md").read_text(), re.M))
    assert rows == {
        path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")
    }


def test_the_scripts_readme_has_a_row_for_each_program_and_room() -> None:
    rows = set(re.findall(r"^\| `([\w.]+)/?` \|", (ROOT / "scripts" / "README.md").read_text(), re.M))
    tracked = {path.name for path in (ROOT / "scripts").iterdir() if path.name[0] not in "_."}
    assert rows == tracked - {"README.md"}
