"""Chunks: by heading, with true positions, nothing cut that belongs together, nothing lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.readers.chunking import CHUNK_CHARS, Chunk, chunk_document, slug
from agent.knowledge.readers.document import DocumentPart, ReadDocument
from agent.knowledge.readers.reading import parse_document


def chunks(text: str, *, form: str = "markdown") -> tuple[Chunk, ...]:
    kind = "text" if form == "text" else "markdown"
    return chunk_document(ReadDocument(title="T", form=kind, parts=(DocumentPart(text=text),), updated_at=""))  # type: ignore[arg-type]  # narrowed above


def test_headings_separate_chunks_and_give_their_place_and_line() -> None:
    found = chunks("# Top\n\nIntro.\n\n## *One* two\n\nText.\n\n### Deep\n\nx\n\n## One two\n\nAgain.\n")
    assert [(c.path, c.anchor, c.line) for c in found] == [
        ("Top", "top", 1),
        ("Top › One two", "one-two", 5),
        ("Top › One two › Deep", "deep", 9),
        ("Top › One two", "one-two-1", 13),
    ]
    assert found[1].text == "## *One* two\n\nText."
    marked = chunks("# Row 1 <br>Row 2 `<b>`\n\nText.")[0]
    assert (marked.path, marked.anchor) == ("Row 1 Row 2 <b>", "row-1-row-2-b")


def test_headings_without_text_comments_and_scripts_are_left_out() -> None:
    assert [c.heading for c in chunks("# A\n\n## B\n\ntext\n\n## C\n")] == ["B"]
    found = chunks("# A\n\n<!-- note to assistant -->\n\nbody\n\n<script>\nx()\n</script>\n")
    assert found[0].text == "# A\n\nbody"
    assert chunks("plain\n")[0] == Chunk(text="plain")


def test_long_lists_are_split_between_items() -> None:
    items = [f"- item {n} {'word ' * 30}\n  more of {n}" for n in range(30)]
    found = chunks("## L\n\n" + "\n".join(items))
    assert len(found) > 2
    for chunk in found:
        assert len(chunk.text) <= CHUNK_CHARS + 10
        assert chunk.text.count("- item") == chunk.text.count("more of")


def test_long_tables_are_split_between_rows_and_repeat_their_header() -> None:
    rows = "\n".join(f"| {n} | {'x' * 50} |" for n in range(60))
    found = chunks(f"## T\n\n| A | B |\n|---|---|\n{rows}\n")
    assert len(found) > 2
    assert all("| A | B |\n|---|---|\n" in chunk.text for chunk in found)
    assert sum(chunk.text.count("xxx |") for chunk in found) == 60
    assert found[1].line > found[0].line


def test_a_row_longer_than_a_chunk_is_split_into_cells_with_their_headers() -> None:
    name = f"[Price](https://a.example/{'path/' * 30})"
    found = chunks(f"| Plan | Notes | {name} |\n|---|---|---|\n| Team | {'One fact. ' * 200} | 9 |\n| Big | x | 20 |\n")
    assert found[0].text.startswith("Plan: Team\nNotes: One fact.")
    assert "\nPrice: 9" in "".join(chunk.text for chunk in found[:-1])
    assert [chunk.line for chunk in found] == [3] * (len(found) - 1) + [4]
    assert found[-1].text.endswith("| Big | x | 20 |")


def test_a_long_header_is_not_repeated() -> None:
    found = chunks(f"| {'x' * 9_000} |\n|---|\n" + "| a |\n" * 500)
    assert sum(len(chunk.text) for chunk in found) < 70_000
    assert found[-1].text.endswith(f"{'x' * 99}…: a")


def test_no_address_link_or_code_is_cut() -> None:
    whole = [f"https://a.example/{'path/' * 60}{n}" for n in range(9)]
    whole += [f"[label {n}](https://b.example/{'q' * 300})" for n in range(9)] + [
        f"`code {'x ' * 100}{n}`" for n in range(9)
    ]
    found = chunks(" and ".join(whole))
    assert len(found) > 4
    assert all(any(piece in chunk.text for chunk in found) for piece in whole)


def test_a_long_paragraph_is_split_between_sentences() -> None:
    lines = "\n".join(f"This is the sentence of number {n}, which\ngoes on over the line." for n in range(60))
    for chunk in chunks(lines) + chunks(lines.replace("\n", " ")) + chunks(lines, form="text"):
        assert chunk.text.startswith("This is")
        assert chunk.text.endswith("line.")


def test_an_item_or_line_longer_than_a_chunk_still_fits() -> None:
    found = chunks("- " + "A sentence here. " * 200 + "\n- " + "x" * 3_000)
    assert max(len(chunk.text) for chunk in found) <= CHUNK_CHARS
    assert "".join(chunk.text for chunk in found).count("x") == 3_000


def test_plain_text_is_split_at_blank_lines() -> None:
    paragraph = "word " * 200
    found = chunks(f"{paragraph}\n\n# {paragraph}\n\n{paragraph}", form="text")
    assert [c.line for c in found] == [1, 3, 5]
    assert all(c.heading == "" for c in found)


ASCIIDOC = """// SECRET
= Guide
:toc:

== Install
Run it.

----
== code
// code
----
////
SECRET
////
=== Linux

```sh
== code
```
"""
ORG = """#+TITLE: Guide
# SECRET
* Install :ops:
Run it.
#+begin_src sh
* code
# code
#+end_src
#+BEGIN_COMMENT
SECRET
#+END_COMMENT
** Linux
Now.
* End
x"""
RST = """.. SECRET
   SECRET

   SECRET

=====
Guide
=====

.. note:: Ask.

Install_it
=============

Run::

    Code
    ====

Linux
-----
Now.

..

   Quoted.

End
===

=====  =====
A      B
=====  =====
1      2
=====  =====
"""


@pytest.mark.parametrize(
    ("name", "text", "title", "places"),
    [
        ("a.adoc", ASCIIDOC, "Guide", [("Guide", 2), ("Guide › Install", 5), ("Guide › Install › Linux", 15)]),
        ("a.adoc", "= A\n\n== B\nx\n\n==== C\ny\n\n== D\nz", "A", [("A › B", 3), ("A › B › C", 6), ("A › D", 9)]),
        ("a.org", ORG, "Guide", [("", 1), ("Install", 3), ("Install › Linux", 12), ("End", 14)]),
        ("a.rst", RST, "Guide", [
            ("Guide", 6), ("Guide › Install_it", 12), ("Guide › Install_it › Linux", 20), ("Guide › End", 28)
        ]),
        ("a.rst", "..\n   SECRET\n\n.. _target:\n\nA\n***\n\nText.", "A", [("", 4), ("A", 6)]),
    ],
    ids=range(5),
)  # fmt: skip
def test_asciidoc_org_and_rst_have_their_headings_and_no_comments(
    name: str, text: str, title: str, places: list[tuple[str, int]]
) -> None:
    document = parse_document(name, text.encode())
    found = chunk_document(document)
    assert (document.title, [(c.path, c.line) for c in found], "SECRET" in document.text) == (title, places, False)
    assert text.count("ode") == document.text.count("ode")
    assert document.text.count("\n") == text.count("\n")


def test_pages_keep_their_number_and_line() -> None:
    parts = (DocumentPart(text="one", page=1, line=1), DocumentPart(text="two\n\nthree", page=2, line=3))
    found = chunk_document(ReadDocument(title="T", form="text", parts=parts, updated_at=""))
    assert [(c.page, c.line, c.text) for c in found] == [(1, 1, "one"), (2, 3, "two\n\nthree")]


def test_heading_slugs_match_those_of_repository_hosts() -> None:
    assert slug("Public API: limits & errors (v2)") == "public-api-limits--errors-v2"
    assert slug("日本語 見出し") == "日本語-見出し"


_LINE = st.text(alphabet="ab #+|`.1\n*> \t", max_size=60)


@given(st.lists(_LINE, max_size=12).map("\n".join))
def test_no_word_is_lost(text: str) -> None:
    """Letters are what is said; marks such as empty headings may go."""
    kept = "\n".join(chunk.text for chunk in chunks(text))
    headings = {c for line in text.split("\n") if line.lstrip().startswith("#") for c in line}
    for letter in "ab":
        if letter not in headings:
            assert kept.count(letter) == text.count(letter)


@given(st.text(max_size=300))
def test_plain_text_is_kept_unchanged(text: str) -> None:
    kept = "".join("".join(chunk.text.split()) for chunk in chunks(text, form="text"))
    assert kept == "".join(text.split())
