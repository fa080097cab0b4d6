"""The printed pages: whole by themselves, and readable by more than eyes."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from paypilot.tables import published_tables
from scripts.tables.pages import RailPage, pages

HTML = [path for path in pages() if path.suffix == ".html"]

html_page = pytest.mark.parametrize("path", HTML, ids=lambda path: path.name)


def elements(path: Path) -> list[ElementTree.Element]:
    """The elements of a page, in order. Raises `ParseError` unless each is closed in its turn."""
    doctype, _, page = path.read_text().partition("\n")
    assert doctype == "<!doctype html>"
    # The head's elements of this kind are never closed.
    return [*ElementTree.fromstring(re.sub("(<meta [^>]*)>", r"\1/>", page)).iter()]


@html_page
def test_a_page_needs_nothing_but_itself(path: Path) -> None:
    found = elements(path)
    assert not {each.tag for each in found} & {"script", "link", "img", "iframe", "form"}
    assert all("src" not in each.attrib for each in found)
    assert "@import" not in path.read_text()
    assert "url(" not in path.read_text()


@html_page
def test_a_page_has_a_language_a_title_one_first_heading_and_no_link_into_nothing(path: Path) -> None:
    found = elements(path)
    names = [each.tag for each in found]
    assert (found[0].tag, found[0].attrib) == ("html", {"lang": "en"})
    assert (names.count("title"), names.count("main"), names.count("h1")) == (1, 1, 1)
    levels = [int(name[1]) for name in names if re.fullmatch("h[1-6]", name)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [each.attrib["id"] for each in found if "id" in each.attrib]
    assert len(ids) == len(set(ids))
    links = [each.attrib["href"] for each in found if each.tag == "a"]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    files = [link.partition("#")[0] for link in links if not link.startswith(("#", "https://"))]
    assert "README.md" in {Path(file).name for file in files}
    assert all((path.parent / file).is_file() for file in files)


@html_page
def test_every_table_has_a_caption_and_headers_with_a_scope(path: Path) -> None:
    found = elements(path)
    assert all(table.find("caption") is not None for table in found if table.tag == "table")
    assert {each.attrib.get("scope") for each in found if each.tag == "th"} == {"col", "row"}


def test_a_source_goes_by_a_name_of_its_own_from_its_title() -> None:
    for rail in published_tables().rails:
        names, sources = RailPage(rail).names, rail.document["sources"]
        assert len(set(names.values())) == len(sources)
        assert all(source["title"].startswith(names[source["id"]].split(" #")[0]) for source in sources)
        assert names.get("gal2", "Galileo #2") == "Galileo #2"
