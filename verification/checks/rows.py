"""The rows of a source's tables, and its labelled lines and sections: what a page says of several alike things."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from verification.evidence.passages import Passage
from verification.text.words import stem_list, written

Span = tuple[int, int]

_LINE: Final = re.compile(
    r"^(?:(?P<row>[ \t]*\|.*\|[ \t]*)|(?P<level>\#{1,6})[ \t]+(?P<heading>[^\n]*\d[^\n]*)"
    r"|(?P<mark>[ \t]*(?:[-*•+]|\d{1,2}[.)])[ \t]+)?[*_`]{0,2}(?P<label>[^\n:|*`#]{1,40}?)"
    r"[*_`]{0,2}[ \t]*:[*_]{0,2}[ \t]+\S[^\n]*)$",
    re.MULTILINE,
)
_RULE: Final = re.compile(r"[ \t|:-]+")
_CELL: Final = re.compile(r"[^|]+")
_ASIDE: Final = re.compile(r"\s*[(\[].*")
_NUMBERED: Final = re.compile(r"(?P<kind>.*\D)\d{1,4}")
_MOST: Final = 100
_FEWEST = 2
_SHORT: Final = 8


class Line(NamedTuple):
    """One of several alike things: the stems of its name in order, how it is written, and where it is spoken of.

    ``label`` is where its name stands.
    """

    stems: tuple[str, ...]
    name: str
    spans: tuple[Span, ...]
    label: Span


class Group(NamedTuple):
    """Things that a source speaks of alike. ``heads`` name what each span of a line says; without a table none do."""

    lines: tuple[Line, ...]
    heads: tuple[tuple[str, ...], ...]

    def named(self, stems: Sequence[str]) -> list[Line]:
        """The lines that these words in order name; of "Kafka" and "own Kafka" the longer name."""
        found = [line for line in self.lines if stands_in(line.stems, stems)]
        longer = [line.stems for line in found]
        return [
            line for line in found if not any(line.stems != other and stands_in(line.stems, other) for other in longer)
        ]


def stands_in(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether the words stand there one right after another."""
    size = len(part)
    return any(tuple(whole[at : at + size]) == tuple(part) for at in range(len(whole) - size + 1))


def groups(passage: Passage) -> tuple[Group, ...]:
    """All groups of a source; none for most."""
    return _groups(passage.text, passage.language)


@lru_cache(maxsize=512)
def _groups(text: str, language: str | None) -> tuple[Group, ...]:
    # Looked for first, for it is many times faster: what each table, heading and label has.
    if not ("\n|" in text or "\n#" in text or text.count(": ") >= _FEWEST):
        return ()
    found = list(_LINE.finditer(text))
    made = [*_tables(text, found, language), *_sections(text, found, language), *_labelled(found, language)]
    return tuple(group for group in made if len(group.lines) >= _FEWEST and _are_apart(group.lines))


def _are_apart(lines: Sequence[Line]) -> bool:
    """Whether each has a name of its own."""
    return len({line.stems for line in lines}) == len(lines)


def _line(text: str, label: Span, spans: Sequence[Span], language: str | None) -> Line | None:
    """A line by its name, what stands in brackets behind it left out; None for a number or no name at all."""
    bare = _ASIDE.sub("", text[slice(*label)]).strip(" `*_")
    stems = tuple(stem_list([word.casefold() for word in written(bare)], language))
    is_named = any(not stem.isdecimal() for stem in stems) or len(stems) > _FEWEST
    return Line(stems, bare, tuple(spans), label) if is_named else None


def _tables(text: str, found: Sequence[re.Match[str]], language: str | None) -> Iterator[Group]:
    rows = [match for match in found if match["row"]]
    blocks: list[list[re.Match[str]]] = []
    for row in rows[:_MOST]:
        if blocks and blocks[-1][-1].end() + 1 == row.start():
            blocks[-1].append(row)
        else:
            blocks.append([row])
    for block in blocks:
        table = [_cells(row) for row in block]
        if len(table) > _FEWEST and _RULE.fullmatch(block[1].group()) and len({len(row) for row in table}) == 1:
            yield _table(text, [table[0], *table[2:]], language)


def _cells(row: re.Match[str]) -> list[Span]:
    first, last = row.group().index("|"), row.group().rindex("|")
    return [(row.start() + m.start(), row.start() + m.end()) for m in _CELL.finditer(row.group(), first + 1, last)]


def _table(text: str, table: list[list[Span]], language: str | None) -> Group:
    """The rows, or the columns of a table whose first cell is empty."""
    if not text[slice(*table[0][0])].strip():
        table = [list(column) for column in zip(*table, strict=True)]
    lines = [_line(text, row[0], row[1:], language) for row in table[1:]]
    heads = [_line(text, cell, (), language) for cell in table[0][1:]]
    names = tuple(head.stems if head else () for head in heads)
    return Group(tuple(line for line in lines if line), names)


def _sections(text: str, found: Sequence[re.Match[str]], language: str | None) -> Iterator[Group]:
    """Sections of one level whose headings hold a number each."""
    headings = [match for match in found if match["level"]][:_MOST]
    for level in {match["level"] for match in headings}:
        alike = [match for match in headings if len(match["level"]) <= len(level)]
        ends = [*(following.start() for following in alike[1:]), len(text)]
        lines = [
            _line(text, match.span("heading"), ((match.start(), end),), language)
            for match, end in zip(alike, ends, strict=True)
            if match["level"] == level
        ]
        yield Group(tuple(line for line in lines if line), ())


def _labelled(found: Sequence[re.Match[str]], language: str | None) -> Iterator[Group]:
    """Lines such as "Severity 1: …", and lists of short items such as "- Europe: 160 euros"."""
    labels = [match for match in found if match["label"]][:_MOST]
    kinds = [(numbered["kind"], match) for match in labels if (numbered := _NUMBERED.fullmatch(match["label"]))]
    for _, alike in groupby(sorted(kinds, key=lambda pair: (pair[0], pair[1].start())), key=lambda pair: pair[0]):
        yield _labels([match for _, match in alike], language)
    run: list[re.Match[str]] = []
    for match in labels:
        if run and (run[-1].end() + 1 != match.start() or run[-1]["mark"] != match["mark"]):
            yield _labels(run, language)
            run = []
        if match["mark"] and len(match.group().split()) <= _SHORT and any(map(str.isdecimal, match.group())):
            run.append(match)
    yield _labels(run, language)


def _labels(alike: Sequence[re.Match[str]], language: str | None) -> Group:
    lines = [_line(match.string, match.span("label"), (match.span(),), language) for match in alike]
    return Group(tuple(line for line in lines if line), ())
