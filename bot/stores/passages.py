"""The passages behind a claim: what "Why trust this?" shows of the lines that its verdict names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Final, NamedTuple

from verification.evidence.verbatim import (
    Span,
    is_quoted,
    shared_words,
    shorten_row,
    shorten_text,
    text_as_read,
    without_citations,
)
from verification.judgement import Line
from verification.markup.lines import is_delimiter, source_lines, split_cells, strip_marks
from verification.markup.scanner import segments
from verification.types import Claim, Source

MAX_PASSAGES: Final = 8
MAX_PASSAGE: Final = 1_500  # characters of a passage: some twenty lines in a dialog
_MAX_ROW: Final = 500  # a longer row of a table is reduced to the cells in question
_MAX_CUT_LINES: Final = 12  # of a passage that is too long, so that something can be read of each line
_PAIRED: Final = re.compile(r"\*\*|(?<!\w)__(?=\w)|(?<=\S)__(?!\w)")
# The chunks of a table with long rows have each row as "column: cell; column: cell".
_FACT: Final = re.compile(r"(?:^|; )([^;:\n]{1,80}): (.*?)(?=; [^;:\n]{1,80}: |$)")
_BLANKS: Final = re.compile(r"(?<=\S)[ \t]{2,}")
_MAX_QUOTED_LINES: Final = 4  # a quotation may run over a few wrapped lines
_ITEM: Final = re.compile(r"([ \t]*)(?:[-*+•]|\d{1,3}[.)])[ \t]")
_ADDRESS: Final = re.compile(r"<(https?://[^|>\s]+)")
_LEAD: Final = re.compile(r"\s*(\*\*|__).+\1\s*|.*[:：][\s*_]*")


class NamedPassage(NamedTuple):
    """Lines of a source, the spans of words that they share with the claim (``marks`` in records), and their link.

    ``is_cut``: there was no room for everything that the verdict names.
    """

    source: int
    text: str
    highlights: tuple[Span, ...]
    url: str = ""
    is_cut: bool = False


def passages_of(claim: Claim, sources: Sequence[Source]) -> list[NamedPassage]:
    """Return the passages behind a claim, at most ``MAX_PASSAGES``.

    A table row comes with the table's head, and a list item with the line that introduces the list.
    """
    pages = {source.id: source_lines(source) for source in sources}
    said = without_citations(claim.text)  # a part of the chunk that Slack gets
    words = text_as_read(" ".join(said.split()))
    named = _ADDRESS.findall(claim.text) if claim.settled_by == "judge" else ()
    lines: Iterable[Line] = claim.lines if claim.settled_by in {"judge", "quotation"} else ()
    if claim.settled_by == "quotation":
        most = max(_MAX_QUOTED_LINES, said.count("\n") + 1)
        lines = set(claim.lines)
        for number in claim.cited:
            places = [{(number, line) for line in lines} for lines in _quoted_lines(words, pages.get(number, ()), most)]
            lines |= next((each for each in places if not each.isdisjoint(claim.lines)), places[0] if places else set())
    known = sorted({(source, line) for source, line in lines if 0 <= line < len(pages.get(source, ()))})
    heads = {(source, line): _head_of(pages[source], line) or _lead_of(pages[source], line) for source, line in known}
    shown_above = {(source, head) for (source, _), head in heads.items() if head}
    runs: list[list[Line]] = []
    for source, line in known:
        text, head = pages[source][line], heads[source, line]
        if is_delimiter(text) or not shown_above.isdisjoint({(source, text), (source, line)}):
            continue
        before = runs[-1][-1] if runs else (-1, 0)
        above = heads.get(before, 0)
        is_next = before[1] == line - 1 and line > 1 and not isinstance(head or above, str)
        if source == before[0] and ((head and head == above) or is_next):
            runs[-1].append((source, line))
        else:
            runs.append([(source, line)])
    by_id = {source.id: source for source in sources}
    shown = [
        _passage(words, named, run, pages[run[0][0]], heads[run[0]])._replace(url=_link_to(by_id[run[0][0]], run[0][1]))
        for run in runs[:MAX_PASSAGES]
    ]
    return [*shown[:-1], shown[-1]._replace(is_cut=True)] if len(runs) > MAX_PASSAGES else shown


def _link_to(source: Source, line: int) -> str:
    """Return the link to the section that a line is in."""
    before = (replace(source, text=source.text[:offset]) for offset, _ in source.sections)
    links = [url for part, (_, url) in zip(before, source.sections, strict=True) if len(source_lines(part)) <= line]
    return links[-1] if links else source.url


def _head_of(page: Sequence[str], line: int) -> str:
    """Return the head of the table that a line is a row of, or "". Parts of a long table follow each other."""
    above = line
    while above > 1 and "|" in page[above] and not is_delimiter(page[above]):
        above -= 1
    is_row = 1 < above < line and is_delimiter(page[above]) and not any(map(is_delimiter, page[line + 1 : line + 2]))
    return page[above - 1] if is_row else ""


def _lead_of(page: Sequence[str], line: int) -> int:
    """Return the number of the line, bold or ending with a colon, above the list that a line is an item of, or 0."""
    if not (item := _ITEM.match(page[line])):
        return 0
    for number in range(line - 1, 0, -1):
        above = page[number]
        if len(above) - len(above.lstrip()) >= len(item[1]) + (not _ITEM.match(above)):  # of the same list
            continue
        return number if _LEAD.fullmatch(above) else 0
    return 0


def _passage(
    words: str, named: Sequence[str], run: Sequence[Line], page: Sequence[str], head: str | int
) -> NamedPassage:
    """Return the lines as a page shows them, rows with their head; a long row has its columns' names in it instead.

    A list item comes after the line whose number is ``head``. A link that the claim names is shown with its address.
    """
    lead = [page[head]] if isinstance(head, int) and head else []
    text = "\n".join((*lead, *(page[line] for _, line in run)))
    for address in named:
        text = text.replace(f"]({address})", f"]({address}) ({address})")
    lines = text.split("\n")
    if isinstance(head, str):
        columns, *rows = ([_cell_as_read(cell) for cell in split_cells(line)] for line in (head, *lines))
        text = "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, *rows))
        facts = [list(zip_longest(columns, cells, fillvalue="")) for cells in rows]
    else:
        text = _as_read(text)
        facts = [[(name, _cell_as_read(cell)) for name, cell in _FACT.findall(line)] for line in lines]
    has_columns = all(len(row) > 1 for row in facts)
    limit = min(_MAX_ROW * len(facts), MAX_PASSAGE) if has_columns else MAX_PASSAGE
    if is_cut := len(text) > limit:
        parts = text.split("\n")
        room = limit // min(len(facts if has_columns else parts), _MAX_CUT_LINES)
        shorter = (
            (shorten_row(words, row, room) for row in facts)
            if has_columns
            else (shorten_text(words, part, room) for part in parts)
        )
        text = "\n".join(islice(shorter, _MAX_CUT_LINES))
    return NamedPassage(run[0][0], text, shared_words(words, text), is_cut=is_cut)


def _as_read(text: str) -> str:
    """Return the text as a page shows it, without marks of emphasis and of code."""
    text = text_as_read(text)
    parts = ((kind, text[start:end].replace("`", "")) for kind, start, end in segments(text))
    shown = (strip_marks(_PAIRED.sub("", part)) if kind == "text" else part for kind, part in parts)
    return _BLANKS.sub(" ", "".join(shown))


def _cell_as_read(text: str) -> str:
    return _as_read(f"|{text}").replace("\n", " ").removeprefix("|")  # a ">" or "#" at its beginning is no mark


def _quoted_lines(words: str, page: Sequence[str], most: int) -> list[range]:
    """Return each place of the quoted words: the numbers of its lines. Whole lines come first, then parts of lines.

    Words that run over several lines, at most ``most``, are looked for if no line has them all. A row of a table
    matches by its cells, or by its cells after their columns' names.
    """
    words = words.replace("?", " ").replace("？", " ")  # a question can be quoted, too
    parts = [cell for cell in split_cells(words) if cell] if "|" in words else [words]
    shown = [text_as_read(_ITEM.sub("", line, count=1)) for line in page]

    def lines_with(*, exactly: bool) -> set[int]:
        within = enumerate(shown[1:], start=1)
        return {number for number, line in within if all(is_quoted(part, [line], exactly=exactly) for part in parts)}

    whole = lines_with(exactly=True)
    places = [range(line, line + 1) for line in (*sorted(whole), *sorted(lines_with(exactly=False) - whole))]
    return (places or _wrapped_places(parts, page, most)) + [
        range(line, line + 1) for line in range(len(page)) if _is_row_in_words(words, page, line)
    ]


def _wrapped_places(parts: Sequence[str], page: Sequence[str], most: int) -> list[range]:
    """Return the shortest runs of two to ``most`` lines that have all parts."""
    places: list[range] = []
    for count in range(2, most + 1):
        for first in range(1, len(page) - count + 1):
            place = text_as_read(_ITEM.sub("", " ".join(page[first : first + count]), count=1))
            is_new = not any(first <= each.start and each.stop <= first + count for each in places)
            if is_new and all(is_quoted(part, [place], exactly=False) for part in parts):
                places.append(range(first, first + count))
    return places


def _is_row_in_words(words: str, page: Sequence[str], line: int) -> bool:
    if "|" not in page[line] or not (head := _head_of(page, line)):
        return False
    pairs = zip(split_cells(head), split_cells(page[line]), strict=False)
    facts = text_as_read("; ".join(f"{name}: {cell}" for name, cell in pairs if cell))
    return is_quoted(words, [facts], exactly=False)
