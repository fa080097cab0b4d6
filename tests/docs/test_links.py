"""What the documents link to is there."""

import re
from pathlib import Path

import pytest

from support.slice import ROOT

LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
DOCUMENTS = sorted({ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")})


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_links_to_files_that_are_there(document: Path) -> None:
    missing = [link for link in LINK.findall(document.read_text()) if not (document.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_s_make_targets_are_there(document: Path) -> None:
    named = set(re.findall(r"(?:^ *|`)make ([a-z][a-z0-9-]*)", document.read_text(), re.M))
    assert named <= TARGETS


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
