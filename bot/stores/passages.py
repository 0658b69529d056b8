"""The passages behind a claim: what "Why trust this?" shows of the lines that its verdict names."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice, zip_longest
from textwrap import dedent
from typing import Final, NamedTuple

from verification.evidence.passages import analyse
from verification.evidence.verbatim import (
    Span,
    find_quoted,
    is_quoted,
    shared_words,
    shorten_row,
    shorten_text,
    text_as_read,
    without_citations,
)
from verification.judgement import Line
from verification.markup.lines import at_section, is_delimiter, source_lines, split_cells, strip_marks
from verification.markup.scanner import segments
from verification.types import Claim, Source

MAX_PASSAGES: Final = 8
MAX_PASSAGE: Final = 1_500  # characters of a passage: some twenty lines in a dialog
_MAX_ROW: Final = 500  # a longer row of a table is reduced to the cells in question
_MAX_CUT_LINES: Final = 12  # of a passage that is too long, so that some words of each remain
_PAIRED: Final = re.compile(r"\*\*|(?<!\w)__(?=\w)|(?<=\S)__(?!\w)")
# The chunks of a table with long rows have each row as "column: cell; column: cell".
_FACT: Final = re.compile(r"(?:^|; )([^;:\n]{1,80}): (.*?)(?=; [^;:\n]{1,80}: |$)")
_BLANKS: Final = re.compile(r"(?<=\S)[ \t]{2,}")
_MAX_QUOTED_LINES: Final = 4  # a quotation may run over a few wrapped lines
_ITEM: Final = re.compile(r"([ \t]*)(?:[-*+•]|(\d{1,3})[.)])[ \t]+")
_ADDRESS: Final = re.compile(r"<(https?://[^|>\s]+)")
_COLON: Final = re.compile(r"[:：][\s*_]*\Z")
_LEAD: Final = re.compile(rf"\s*(\*\*|__).+\1\s*|#{{1,6}}\s.*|.*{_COLON.pattern}")
_MAX_ABOVE: Final = 4  # lists and tables inside each other
_MAX_BELOW: Final = 4  # lines of a list or table that are shown for the line above it


class NamedPassage(NamedTuple):
    """Lines of a source, with their section and the spans of words shared with the claim (``marks`` in records).

    ``is_cut``: there was no room for everything that the verdict names.
    """

    source: int
    text: str
    highlights: tuple[Span, ...]
    url: str = ""
    title: str = ""
    is_cut: bool = False


def passages_of(claim: Claim, sources: Sequence[Source]) -> list[NamedPassage]:
    """Return the passages behind a claim, at most ``MAX_PASSAGES``.

    A table row comes with the table's head, and rows and list items come with the line that introduces them.
    """
    pages = {source.id: source_lines(source) for source in sources}
    said = without_citations(claim.text)  # a part of the chunk that Slack gets
    words = text_as_read(" ".join(said.split()))
    named = _ADDRESS.findall(claim.text) if claim.settled_by == "judge" else ()
    lines: Iterable[Line] = claim.lines if claim.settled_by in {"judge", "quotation"} else ()
    if claim.settled_by == "quotation":
        most = max(_MAX_QUOTED_LINES, said.count("\n") + 1)
        lines = {(source, line) for source, line in claim.lines if line}  # a source's name proves no quotation
        for number in claim.cited:
            places = [{(number, line) for line in lines} for lines in _quoted_lines(words, pages.get(number, ()), most)]
            lines |= next((each for each in places if not each.isdisjoint(claim.lines)), places[0] if places else set())
    runs: list[tuple[int, int, list[int]]] = []  # each with its source and the line that introduces all of it
    for number, line in sorted(set(lines)):
        page = pages.get(number, ())
        if not 0 <= line < len(page) or is_delimiter(page[line]):
            continue
        first = (*_lines_above(page, line), line)[0]
        if runs and runs[-1][0] == number and (first == runs[-1][1] or _continues(page, runs[-1][2][-1], line)):
            runs[-1][2].append(line)
        else:
            runs.append((number, first, [line]))
    by_id = {source.id: source for source in sources}
    shown = [_passage(words, named, by_id[number], run) for number, _, run in runs[:MAX_PASSAGES]]
    return [*shown[:-1], shown[-1]._replace(is_cut=True)] if len(runs) > MAX_PASSAGES else shown


def _continues(page: Sequence[str], before: int, line: int) -> bool:
    return before == line - 1 > 0 and not (_head_of(page, before) or _head_of(page, line))


def _head_of(page: Sequence[str], line: int) -> int:
    """Return the number of the head of the table that a line is in, or 0. Parts of a long table follow each other."""
    if "|" in page[line] and any(map(is_delimiter, page[line + 1 : line + 2])):
        return line
    above = line
    while above > 1 and "|" in page[above] and not is_delimiter(page[above]):
        above -= 1
    return above - 1 if 1 < above < line and is_delimiter(page[above]) else 0


def _list_above(page: Sequence[str], line: int) -> tuple[int, list[int]]:
    """Return the line above a list that introduces it, or 0, and the list's items down to this one, if it is one."""
    if not (item := _ITEM.match(page[line])):
        return 0, []
    items = [line]
    for number in range(line - 1, 0, -1):
        other = _ITEM.match(above := page[number])
        indent, is_lead = len(above) - len(above.lstrip()), bool(_LEAD.fullmatch(above))
        if other and indent == len(item[1]) and (bool(other[2]) == bool(item[2]) or not is_lead):
            items.insert(0, number)
        elif indent <= len(item[1]):
            return (number if is_lead else 0), items
    return 0, items


def _lines_above(page: Sequence[str], line: int) -> tuple[int, ...]:
    """Return the lines without which a row or an item says little: what introduces it, and the head of its table."""
    above: tuple[int, ...] = ()
    while len(above) < _MAX_ABOVE:
        head = _head_of(page, line)
        if head == line > 0:
            line = head - 1 if head > 1 and _LEAD.fullmatch(page[head - 1]) else 0
        else:
            line = head or _list_above(page, line)[0]
        if not line:
            break
        above = (line, *above)
    return above


def _lines_below(page: Sequence[str], line: int) -> Iterator[int]:
    """Yield the rows and items that a line introduces."""
    for number in range(line + 1, min(len(page), line + _MAX_CUT_LINES)):
        if line in _lines_above(page, number):
            yield number
        elif not (is_delimiter(page[number]) or (page[number][0].isspace() and not _ITEM.match(page[number]))):
            return


def _with_context(page: Sequence[str], run: Sequence[int]) -> tuple[list[int], bool]:
    """Return the lines to show for a run, and whether the last is followed by more of its list.

    Of a line that introduces a list, the first items are shown, and for a single sentence the line above, too.
    """
    shown = {*run, *chain.from_iterable(_lines_above(page, line) for line in run)}
    below = [*islice(_lines_below(page, run[-1]), _MAX_BELOW + 1)] if _COLON.search(page[run[-1]]) else []
    above = run[0] - 1
    if below and len(shown) == 1 and above > 0 and len(analyse(page[run[0]]).spans) == 1:
        shown |= {above} if not (page[above].startswith("#") or "|" in page[above]) else set()
    return sorted({*shown, *below[:_MAX_BELOW]}), len(below) > _MAX_BELOW


def _passage(words: str, named: Sequence[str], source: Source, run: Sequence[int]) -> NamedPassage:
    """Return the lines as a page shows them, rows with their head; a long row has its columns' names in it instead.

    A link that the claim names is shown with its address.
    """
    page = source_lines(source)
    for address in named:
        page = tuple(line.replace(f"]({address})", f"]({address}) ({address})") for line in page)
    lines, has_more = _with_context(page, run)
    parts: list[str] = []
    is_cut = False
    for head, numbers in groupby(lines, lambda line: _head_of(page, line)):
        if head:
            columns, *rows = ([_cell_as_read(cell) for cell in split_cells(page[line])] for line in numbers)
            text = "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, *rows))
            facts = [list(zip_longest(columns, cells, fillvalue="")) for cells in rows or [columns]]
        else:
            text = dedent("\n".join(_text_lines(page, [*numbers], lines)))
            facts = [[(name, _cell_as_read(cell)) for name, cell in _FACT.findall(line)] for line in text.split("\n")]
            text = _as_read(text)
        shorter = _shorten(words, text, facts)
        is_cut |= shorter != text
        parts.append(shorter)
    text = "\n".join([*parts, *(["…"] if has_more else [])])
    section = at_section(source, run[0])
    return NamedPassage(source.id, text, shared_words(words, text), section.url, section.title, is_cut=is_cut)


def _text_lines(page: Sequence[str], numbers: Sequence[int], shown: Sequence[int]) -> Iterator[str]:
    """Yield lines with list items numbered as Markdown renders them. "…" replaces steps that are left out."""
    for line in numbers:
        item, items = _ITEM.match(page[line]), _list_above(page, line)[1]
        if not item:
            yield page[line].rstrip()
        elif not item[2]:
            yield page[line] if len(shown) > 1 else page[line][item.end() :]
        else:
            if line > shown[0] and len(items) > 1 and items[-2] not in shown:
                yield "…"
            first = _ITEM.match(page[items[0]])
            is_counted = first and all(page[each].startswith(first[0]) for each in items)
            number = int(item[2]) + len(items) - 1 if is_counted else int(item[2])
            yield f"{item[1]}{number}{page[line][item.end(2) :]}"


def _shorten(words: str, text: str, facts: Sequence[Sequence[tuple[str, str]]]) -> str:
    has_columns = all(len(row) > 1 for row in facts)
    limit = min(_MAX_ROW * len(facts), MAX_PASSAGE) if has_columns else MAX_PASSAGE
    if len(text) <= limit:
        return text
    parts = text.split("\n")
    room = limit // min(len(facts if has_columns else parts), _MAX_CUT_LINES)
    shorter = (
        (shorten_row(words, row, room) for row in facts)
        if has_columns
        else (shorten_text(words, part, room) for part in parts)
    )
    return "\n".join(islice(shorter, _MAX_CUT_LINES))


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
    parts = [cell for cell in split_cells(words) if cell] or [words] if "|" in words else [words]
    shown = ["", *(text_as_read(_ITEM.sub("", line, count=1)) for line in page[1:])]  # a source's name proves nothing
    found = [{number: is_whole for is_whole, number in find_quoted(part, shown)} for part in parts]
    lines = sorted(set.intersection(*map(set, found)), key=lambda n: (not all(each[n] for each in found), n))
    places = [range(line, line + 1) for line in lines]
    return (places or _wrapped_places(parts, page, most)) + [
        range(line, line + 1) for line in range(len(page)) if _is_row_in_words(words, page, line)
    ]


def _wrapped_places(parts: Sequence[str], page: Sequence[str], most: int) -> list[range]:
    """Return the shortest runs of two to ``most`` lines that have all parts."""
    places: list[range] = []
    if not all(is_quoted(part, [text_as_read(" ".join(page))], exactly=False) for part in parts):
        return places  # one comparison in place of one for each line
    for count in range(2, most + 1):
        for first in range(1, len(page) - count + 1):
            place = text_as_read(_ITEM.sub("", " ".join(page[first : first + count]), count=1))
            is_new = not any(first <= each.start and each.stop <= first + count for each in places)
            if is_new and all(is_quoted(part, [place], exactly=False) for part in parts):
                places.append(range(first, first + count))
    return places


def _is_row_in_words(words: str, page: Sequence[str], line: int) -> bool:
    if "|" not in page[line] or not 0 < (head := _head_of(page, line)) < line:
        return False
    pairs = zip(split_cells(page[head]), split_cells(page[line]), strict=False)
    facts = text_as_read("; ".join(f"{name}: {cell}" for name, cell in pairs if cell))
    return is_quoted(words, [facts], exactly=False)
