"""What every index makes of its rows."""

from __future__ import annotations

import pytest

from agent.knowledge.index.tables import document_url, passage_of, resolve_document_name, spread
from agent.knowledge.types import Document, FoundPassage


@pytest.mark.parametrize(
    ("url", "place", "page", "link"),
    [
        ("", "anchor", 0, "https://d/a%20b.md#lunch"),
        ("", "anchor", 3, "https://d/a%20b.md#page=3"),
        ("https://git/a.py", "line", 0, "https://git/a.py#L5"),
        ("https://chat/p1", "", 0, "https://chat/p1"),
    ],
)
def test_the_link_leads_to_the_place_that_its_host_understands(url: str, place: str, page: int, link: str) -> None:
    link_parts = (7 << 20, "lunch", url, place, "https://d")
    row = (*link_parts, "a b.md", "Alpha", "Lunch", "At noon.", 5, page, "2026-01-02", "public", 1)
    assert passage_of(row).url == link


def passage(document: str, text: str) -> FoundPassage:
    return FoundPassage(document=document, title="", heading="", text=text)


def test_no_text_comes_twice_and_one_document_leaves_room_and_no_more_is_read() -> None:
    found = iter([*(passage("a", text) for text in "11234"), passage("b", "5"), passage("c", "6"), passage("d", "7")])
    assert [each.text for each in spread(found, 4)] == ["1", "2", "5", "6"]
    assert [each.text for each in found] == ["7"]
    assert [each.text for each in spread([passage("a", text) for text in "123"], 4)] == ["1", "2", "3"]


def test_the_most_direct_name_wins() -> None:
    documents = [Document(id="x/b.md", title="a.md"), Document(id="a.md", title="Other")]
    assert resolve_document_name(documents, " A.MD ") == "a.md"
    assert resolve_document_name(documents, "b") == "x/b.md"
    assert resolve_document_name(documents, "c") is None


@pytest.mark.parametrize(
    ("prefix", "link"),
    [("", ""), ("https://d", "https://d/a%20b.md"), ("https://d/", "https://d/a%20b.md"), ("/f?p=", "/f?p=a%20b.md")],
)
def test_links_have_the_configured_prefix(prefix: str, link: str) -> None:
    assert document_url(prefix, "a b.md") == link
