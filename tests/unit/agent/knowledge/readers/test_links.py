"""Links of documents as people can follow them, none of which can be taken for a citation."""

from __future__ import annotations

import pytest

from agent.knowledge.readers.document import DocumentPart, ReadDocument
from agent.knowledge.readers.text import resolve_links

BASE = "https://docs.example/guide/intro.md"


def resolve(text: str, url: str = BASE) -> str:
    document = ReadDocument(title="T", form="markdown", parts=(DocumentPart(text=text),), updated_at="")
    return resolve_links(document, url).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](b.md)", "[a](https://docs.example/guide/b.md)"),
        ("[a](../x/b.md#top)", "[a](https://docs.example/x/b.md#top)"),
        ('[a](/b "Title")', "[a](https://docs.example/b)"),
        ("[a](https://other.example/a_(b))", "[a](https://other.example/a_(b))"),
        ("See [the guide][g] and [g].\n\n[g]: guide.md 'G'\n", None),
        ("![A diagram](img/d.png) shows it", "A diagram shows it"),
        ("[run](javascript:alert(1))", "run"),
        ("[the card]() has a template's tag as its target", "the card has a template's tag as its target"),
        ("`[a](b.md)` is code", "`[a](b.md)` is code"),
        ("As in [2](https://x.example/) and [3].", "As in [(2)](https://x.example/) and (3)."),
        ("- [ ] open\n- [x] done [^1]", "- [ ] open\n- [x] done [^1]"),
    ],
)
def test_links_work_or_are_text(text: str, expected: str | None) -> None:
    if expected is None:
        expected = (
            "See [the guide](https://docs.example/guide/guide.md) and [g](https://docs.example/guide/guide.md).\n\n\n"
        )
    assert resolve(text) == expected


def test_without_an_address_of_its_own_a_document_shows_no_paths() -> None:
    assert resolve("Read [the guide](../guide.md) and [mail](mailto:a@b.example).", "") == (
        "Read the guide and [mail](mailto:a@b.example)."
    )
