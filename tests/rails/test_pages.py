"""The printed pages: whole by themselves, and readable by more than eyes."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from paypilot.tables import published_tables
from scripts.tables.pages import RailPage, pages

VOID = {"meta", "link", "br", "hr", "img", "input"}
HTML = [path for path in pages() if path.suffix == ".html"]


class Outline(HTMLParser):
    """What of a page the tests look at: its tags in order, and whether each is closed in turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_decl(self, decl: str) -> None:
        assert decl == "doctype html"


@pytest.mark.parametrize("path", HTML, ids=lambda path: path.name)
def test_a_page_needs_nothing_but_itself(path: Path) -> None:
    tags = Outline(path.read_text()).tags
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "form"}
    assert all("src" not in attrs for _, attrs in tags)
    assert "@import" not in path.read_text()
    assert "url(" not in path.read_text()


@pytest.mark.parametrize("path", HTML, ids=lambda path: path.name)
def test_a_page_has_a_language_a_title_one_first_heading_and_no_link_into_nothing(path: Path) -> None:
    outline = Outline(path.read_text())
    assert outline.open == []
    names = [tag for tag, _ in outline.tags]
    assert dict(outline.tags)["html"] == {"lang": "en"}
    assert (names.count("title"), names.count("main"), names.count("h1")) == (1, 1, 1)
    levels = [int(name[1]) for name in names if re.fullmatch("h[1-6]", name)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [attrs["id"] for _, attrs in outline.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [str(attrs["href"]) for tag, attrs in outline.tags if tag == "a"]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    files = [link.partition("#")[0] for link in links if not link.startswith(("#", "https://"))]
    assert "README.md" in {Path(file).name for file in files}
    assert all((path.parent / file).is_file() for file in files)


@pytest.mark.parametrize("path", HTML, ids=lambda path: path.name)
def test_every_table_has_a_caption_and_headers_with_a_scope(path: Path) -> None:
    tags = Outline(path.read_text()).tags
    names = [tag for tag, _ in tags]
    assert names.count("table") == names.count("caption") > 0
    assert all(attrs.get("scope") in {"col", "row"} for tag, attrs in tags if tag == "th")


def test_a_source_goes_by_a_name_of_its_own_from_its_title() -> None:
    for rail in published_tables().rails:
        names, sources = RailPage(rail).names, rail.document["sources"]
        assert len(set(names.values())) == len(sources)
        assert all(source["title"].startswith(names[source["id"]].split(" #")[0]) for source in sources)
        assert names.get("gal2", "Galileo #2") == "Galileo #2"
