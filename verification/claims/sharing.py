"""Which citations belong to a sentence that has none of its own: those of its paragraph, list item, list or table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

Kind = Literal["text", "intro", "heading", "item", "lead", "row", "head"]
"""Where a sentence stands: in prose, at its end before a colon, in a heading, in a list item, in one that introduces
others, in a row or the head of a table."""

LISTED: frozenset[Kind] = frozenset({"item", "lead", "row", "head"})
_NO_GROUP = -1
LONGEST_SECTION = 60  # sentences: a longer section would make this quadratic
_VALUE = re.compile(r"[\d`\"“”„«»「」『』]|://")


class Sentence(NamedTuple):
    """A sentence with the citations that stand in it."""

    start: int
    end: int
    kind: Kind
    group: int  # the same for all of a paragraph, list item or row
    indent: int  # how far its line is set in
    cited: tuple[int, ...]
    states: bool
    refers: bool  # it holds nothing but a citation or a link, and belongs to what stands before it


def shared(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Each sentence with what it is to be checked against; a heading or an introduction gets what is cited below it."""
    blocks = [[*block] for _, block in groupby(_within_groups(sentences), key=_block)]
    for index, block in enumerate(blocks):
        before = blocks[index - 1] if index else []
        after = blocks[index + 1] if index + 1 < len(blocks) else []
        if block[0].kind in LISTED:
            blocks[index] = [*_listed(block, before, after)]
        elif _is_reference(after):
            blocks[index] = [_citing(each, union(after)) for each in block]
    _introduce(blocks)
    return [sentence for block in blocks for sentence in block]


def union(sentences: Iterable[Sentence]) -> tuple[int, ...]:
    """All numbers that the sentences cite, each once, in order."""
    return tuple(dict.fromkeys(number for sentence in sentences for number in sentence.cited))


def at_the_edges(sentences: Sequence[Sentence], text: str) -> list[Sentence]:
    """The sentences, those of an uncited first or last paragraph with all that the answer cites.

    An opening or a closing may state nothing; whether it does is for a judge to say. One with a number, a quotation,
    code or a link does state something, and is left without a citation.
    """
    everything = union(sentences)
    plain = [each for each in sentences if each.kind != "heading"]
    edges = {plain[0].group, plain[-1].group} if plain else set[int]()
    edges -= {each.group for each in plain if each.kind != "text" or _VALUE.search(text, each.start, each.end)}
    return [_citing(each, everything) if each.group in edges else each for each in sentences]


def _block(sentence: Sentence) -> int:
    """A key that is the same for all of a list or table, and for all of a paragraph."""
    return _NO_GROUP if sentence.kind in LISTED else sentence.group


def _is_reference(block: Sequence[Sentence]) -> bool:
    """Whether it is a line like "Source: [7]", which closes what stands above it."""
    return bool(block) and all(each.refers or (each.cited and not each.states) for each in block)


def _citing(sentence: Sentence, cited: tuple[int, ...]) -> Sentence:
    """The sentence; with these citations if it has none."""
    return sentence if sentence.cited or not cited else sentence._replace(cited=cited)


def _within_groups(sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    for _, group in groupby(sentences, key=lambda each: each.group):
        together = [*group]
        cited = union(together)
        yield from (_citing(each, cited) for each in together)


def _listed(block: Sequence[Sentence], before: Sequence[Sentence], after: Sequence[Sentence]) -> Iterator[Sentence]:
    """The items or rows with what the item above them cites, else the head, else the lines round the list."""
    introduction = union(before) if before and before[-1].kind != "heading" else ()
    closing = union(after) if after and after[0].kind != "heading" else ()
    round_it = (closing if _is_reference(after) else ()) or introduction or closing
    above: list[Sentence] = []
    head: tuple[int, ...] = ()
    for index, sentence in enumerate(block):
        above = [each for each in above if each.indent < sentence.indent]
        whole = _citing(sentence, union(above[-1:]) or head or (() if sentence.kind == "head" else round_it))
        head = whole.cited if whole.kind == "head" else head
        above.append(whole)
        yield _citing(whole, union(_below(block, index))) if whole.kind in {"lead", "head"} else whole


def _below(block: Sequence[Sentence], index: int) -> Iterator[Sentence]:
    """The rows below a head, or the items that are set in deeper than this one, up to the next one that is not."""
    first = block[index]
    for each in block[index + 1 : index + 1 + LONGEST_SECTION]:
        if first.kind == "lead" and each.indent <= first.indent and each.group != first.group:
            return
        yield each


def _introduce(blocks: list[list[Sentence]]) -> None:
    """Gives headings what their section cites, and paragraphs before a list, a table or code what that cites."""
    section: list[Sentence] = []
    for index in range(len(blocks) - 1, -1, -1):
        block, below = blocks[index], blocks[index + 1] if index + 1 < len(blocks) else []
        if block[0].kind == "heading":
            blocks[index] = [_citing(each, union(section)) for each in block]
            section = []
        elif below and (below[0].kind in LISTED or block[-1].kind == "intro"):
            blocks[index] = [_citing(each, union(below)) for each in block]
        section = [*blocks[index][:LONGEST_SECTION], *section][:LONGEST_SECTION]
