"""Find the passages that the verdict on a claim rests on: the lines the judge named, or the place of a quotation. Pure.

A claim that only rules checked has none, since its meaning was not judged.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from verification.evidence.verbatim import Span, is_quoted, mark_shared_words, without_citations
from verification.judgement import Line, source_lines
from verification.markup.reading import text_as_read
from verification.markup.tables import is_delimiter, split_cells
from verification.types import Claim, Source

MAX_PASSAGES: Final = 4
_MAX_HEAD_LENGTH: Final = 200
_MAX_QUOTED_LINES: Final = 4  # a quotation may run over a few wrapped lines


class NamedPassage(NamedTuple):
    """Lines of a source, and the spans of the words in them that the claim shares."""

    source: int
    text: str
    marks: tuple[Span, ...]


def passages_of(claim: Claim, sources: Sequence[Source]) -> list[NamedPassage]:
    """Return the passages behind a claim, at most ``MAX_PASSAGES``; a table row comes with the table's head."""
    pages = {source.id: source_lines(source) for source in sources}
    words = without_citations(claim.text)
    lines: Iterable[Line] = claim.lines if claim.settled_by == "judge" else ()
    if claim.settled_by == "quotation":
        lines = [(number, line) for number in claim.cited for line in _quoted_lines(words, pages.get(number, ()))]
    known = sorted({(source, line) for source, line in lines if 0 <= line < len(pages.get(source, ()))})
    runs: list[list[Line]] = []
    for source, line in known:
        if runs and runs[-1][-1] == (source, line - 1) and line > 1:
            runs[-1].append((source, line))
        else:
            runs.append([(source, line)])
    return [_passage(words, run, pages[run[0][0]]) for run in runs[:MAX_PASSAGES]]


def _passage(words: str, run: Sequence[Line], page: Sequence[str]) -> NamedPassage:
    source, first = run[0]
    head = _table_head(page, first)
    marked = mark_shared_words(words, _as_read("\n".join(page[line] for _, line in run)))
    marks = tuple((start + len(head), end + len(head)) for start, end in marked.spans)
    return NamedPassage(source, head + marked.text, marks)


def _as_read(text: str) -> str:
    """Return the text as a page shows it, without the marks of bold and code."""
    return text_as_read(text).replace("**", "").replace("`", "")


def _table_head(page: Sequence[str], row: int) -> str:
    """Return the header of a row's table as a separate line; empty outside a table's body."""
    above = row
    while above > 1 and "|" in page[above] and not is_delimiter(page[above]):
        above -= 1
    return f"{page[above - 1][:_MAX_HEAD_LENGTH]}\n" if 1 < above < row and is_delimiter(page[above]) else ""


def _quoted_lines(words: str, page: Sequence[str]) -> range:
    """Return the numbers of the lines that contain the quoted words; a row of a drawn table matches by its cells."""
    parts = [cell for cell in split_cells(words) if cell] if "|" in words else [words]
    for count in range(1, _MAX_QUOTED_LINES + 1):
        for first in range(1, len(page) - count + 1):
            place = text_as_read(" ".join(page[first : first + count]))
            if all(is_quoted(part, [place], whole=False) for part in parts):
                return range(first, first + count)
    return range(0)
