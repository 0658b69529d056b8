"""Expands a hit to its section or its short page, merged with small siblings, as a basis for an answer.

Texts stay as in the document; headings that the passages lack are put back.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from agent.knowledge.types import FoundPassage, format_label

MERGED_CHARS: Final = 1_200  # a section shorter than this is merged with its neighbours under the same heading
PAGE_CHARS: Final = 3_000  # a page up to this length is used whole; a section does not grow beyond it
REACH: Final = 8  # passages before and after a hit to consider
_BYTES_A_TOKEN: Final = 4  # of English on average; other scripts have fewer letters in a token, but as many bytes

Read = Callable[[str, int, int], Sequence[FoundPassage]]
"""Reads the passages of a document from one number to another, both included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Neighbouring passages of one document, in order; ``hit`` is the one that was found."""

    passages: tuple[FoundPassage, ...]
    hit: FoundPassage

    @property
    def above(self) -> tuple[str, ...]:
        """Headings above all of it, from the top."""
        levels = zip(*(passage.path for passage in self.passages), strict=False)
        return tuple(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels))

    @property
    def title(self) -> str:
        """Title of the document with the headings above all of it."""
        return format_label(self.hit.title, self.above, self.hit.page)

    @property
    def text(self) -> str:
        """Passages, each under the headings that the previous one lacks."""
        return "\n\n".join(self._texts())

    def _texts(self) -> Iterator[str]:
        before = self.above
        for passage in self.passages:
            first, path = passage.text.partition("\n")[0], passage.path
            known = len([*takewhile(lambda pair: pair[0] == pair[1], zip(path, before, strict=False))])
            for depth, heading in enumerate(path[known:], start=known + 1):
                if heading not in first:
                    yield f"{'#' * depth} {heading}"
            yield passage.text
            before = path


def expand_hits(
    found: Sequence[FoundPassage], read: Read, *, tokens: int
) -> tuple[tuple[Stretch, ...], tuple[FoundPassage, ...]]:
    """Return stretches in the order of their hits, up to ``tokens`` in all, and the hits that do not fit."""
    stretches: list[Stretch] = []
    left_out: list[FoundPassage] = []
    taken: set[tuple[str, int]] = set()
    room = tokens * _BYTES_A_TOKEN
    for hit in found:
        if (hit.document, hit.number) in taken:
            continue
        near = read(hit.document, hit.number - REACH, hit.number + REACH)
        whole = _grow(hit, [each for each in near if (each.document, each.number) not in taken])
        sized = ((each, len(each.text.encode())) for each in (whole, Stretch(passages=(hit,), hit=hit)))
        fitting, size = next(((each, size) for each, size in sized if size <= room), (None, 0))
        if fitting is None:
            left_out.append(hit)
            continue
        stretches.append(fitting)
        taken.update((each.document, each.number) for each in fitting.passages)
        room -= size
    return tuple(stretches), tuple(left_out)


def _grow(hit: FoundPassage, near: Sequence[FoundPassage]) -> Stretch:
    """Return the whole page if it is short, else the hit's section, with its neighbours if that is short."""
    at = next((place for place, each in enumerate(near) if each.number == hit.number), None)
    if at is None:  # the document changed since it was found
        return Stretch(passages=(hit,), hit=hit)
    if len(near) == hit.of and _extend(near, (at, at), PAGE_CHARS, lambda _: True) == (0, len(near) - 1):
        return Stretch(passages=tuple(near), hit=hit)
    depth = len(hit.path)
    low, high = _extend(near, (at, at), PAGE_CHARS, lambda each: each.path[:depth] == hit.path)
    if depth:
        parent = hit.path[:-1]
        low, high = _extend(near, (low, high), MERGED_CHARS, lambda each: each.path[: depth - 1] == parent, depth)
    return Stretch(passages=tuple(near[low : high + 1]), hit=hit)


def _extend(
    near: Sequence[FoundPassage],
    reach: tuple[int, int],
    max_chars: int,
    belongs: Callable[[FoundPassage], bool],
    depth: int = 0,
) -> tuple[int, int]:
    """Add related neighbours, following ones first, within ``max_chars`` characters in total.

    With ``depth``, add whole sections of that depth: a sub-section without its section's introduction misleads.
    """
    low, high = reach
    while True:
        for place, beside in ((high + 1, high), (low - 1, low)):
            if not (0 <= place < len(near) and _adjoin(near[place], near[beside]) and belongs(near[place])):
                continue
            # Without it a model thought that the table of the section above was missing.
            first, last = _section(near, place, depth) if depth else (place, place)
            wider = (min(low, first), max(high, last))
            size = sum(len(each.text) for each in near[wider[0] : wider[1] + 1])
            if size <= max_chars and (first or not depth or near[0].number <= 1):
                low, high = wider
                break
        else:
            return low, high


def _section(near: Sequence[FoundPassage], place: int, depth: int) -> tuple[int, int]:
    path = near[place].path[:depth]
    before = takewhile(lambda at: near[at].path[:depth] == path, range(place, -1, -1))
    behind = takewhile(lambda at: near[at].path[:depth] == path, range(place, len(near)))
    return min(before), max(behind)


def _adjoin(one: FoundPassage, other: FoundPassage) -> bool:
    return abs(one.number - other.number) == 1 and one.page == other.page
