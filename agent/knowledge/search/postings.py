"""Which passages have a word and how much it says there, in blocks that any storage can keep, ranked by BM25.

Skipping is exact: no passage that is left out could have come among the best. Places only grow.
"""

from __future__ import annotations

import heapq
import math
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

BLOCK: Final = 2_048
"""Places in a block. A change rewrites a block of each of its words; a search reads all blocks of each of its words."""
MOST_IMPACT: Final = 255
_BYTES: Final = 3
_SURELY: Final = 1 - 1e-9
"""Sums of the same numbers in another order differ in their last bits: an equal must not be skipped for that."""
_LOOKED_UP: Final = 8
"""Finding one place in a block takes as long as reading so many of it."""

Posting = tuple[int, int]
"""A place inside a block, and the impact there, 1 to ``MOST_IMPACT``."""


class Changes:
    """What one transaction does to the blocks."""

    def __init__(self) -> None:
        self._come: dict[int, dict[str, list[Posting]]] = {}
        self._gone: dict[int, dict[str, list[int]]] = {}

    def come(self, place: int, impacts: Mapping[str, int]) -> None:
        """A passage with these words is written. Places come in rising order."""
        block, inside = divmod(place, BLOCK)
        words = self._come.setdefault(block, {})
        for word, impact in impacts.items():
            words.setdefault(word, []).append((inside, impact))

    def gone(self, place: int, words: Iterable[str]) -> None:
        """A passage that had these words is removed."""
        block, inside = divmod(place, BLOCK)
        places = self._gone.setdefault(block, {})
        for word in words:
            places.setdefault(word, []).append(inside)

    def blocks(self) -> Iterable[tuple[int, Sequence[str]]]:
        """Each block that changes, with the words that change in it, in order."""
        for block in sorted(self._come.keys() | self._gone.keys()):
            yield block, sorted(self._come.get(block, {}).keys() | self._gone.get(block, {}).keys())

    def revised(self, block: int, word: str, data: bytes) -> bytes:
        """What a word's block becomes; nothing where no passage of it has the word any more."""
        places, held = _unpacked(data)
        impacts = bytearray(held)
        for place in self._gone.get(block, {}).get(word, ()):
            at = bisect_left(places, place)
            # A newer stemmer may see other words in the same text: another passage's place must not go for that.
            if at < len(places) and places[at] == place:
                del places[at], impacts[at]
        for place, impact in self._come.get(block, {}).get(word, ()):
            places.append(place)
            impacts.append(impact)
        return _little(places).tobytes() + impacts


def _unpacked(data: bytes) -> tuple[array[int], bytes]:
    """The places in order, and the impact at each."""
    count = len(data) // _BYTES
    places = array("H")
    places.frombytes(data[: 2 * count])
    return _little(places), data[2 * count :]


def _little(places: array[int]) -> array[int]:
    """Lowest byte first on every machine: several may share the blocks."""
    if sys.byteorder == "big":  # pragma: no cover - no such machine runs the tests
        places = array("H", places)
        places.byteswap()
    return places


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """A word of the query: what one step of its impact is worth, and its blocks as first place, places, impacts."""

    worth: float
    blocks: Sequence[tuple[int, array[int], bytes]]

    def most(self) -> float:
        """The most that the word can add to any passage."""
        return self.worth * max(max(impacts) for _, _, impacts in self.blocks)


def best(found: Iterable[tuple[str, int, bytes]], *, passages: int, most: int) -> list[tuple[int, float]]:
    """The ``most`` best places with their scores, best first, out of word, block and data for the words of a query.

    ``passages`` is how many there are in all: the fewer of them have a word, the more it counts.
    """
    terms = _terms(found, passages)
    left = [0.0]
    for term in reversed(terms):
        left.append(left[-1] + term.most())
    left.reverse()
    scores: dict[int, float] = {}
    at, bar = 0, 0.0
    for at, term in enumerate(terms):
        bar = _bar(scores, most, left[at])
        if bar * _SURELY > left[at]:
            break
        _add_all(term, scores)
    else:
        at = len(terms)
    for number in range(at, len(terms)):
        scores = {place: score for place, score in scores.items() if score + left[number] >= bar * _SURELY}
        _add_to_known(terms[number], scores)
    ranked = heapq.nsmallest(most, ((-score, place) for place, score in scores.items()))
    return [(place, -score) for score, place in ranked]


def _terms(found: Iterable[tuple[str, int, bytes]], passages: int) -> list[_Term]:
    """The words that any passage has, rarest first."""
    held: dict[str, list[tuple[int, array[int], bytes]]] = {}
    for word, block, data in found:
        held.setdefault(word, []).append((block * BLOCK, *_unpacked(data)))
    counted = sorted((sum(len(places) for _, places, _ in blocks), word) for word, blocks in held.items())
    return [_Term(worth=_rarity(count, passages) / MOST_IMPACT, blocks=held[word]) for count, word in counted]


def rarities(found: Iterable[tuple[str, int, bytes]], words: Iterable[str], passages: int) -> dict[str, float]:
    """What each word says: the inverse document frequency over ``passages``, most for a word that none has."""
    counts = Counter[str]()
    for word, _, data in found:
        counts[word] += len(_unpacked(data)[0])
    return {word: _rarity(counts[word], passages) for word in words}


def _rarity(count: int, passages: int) -> float:
    return math.log(1 + (max(passages, count) - count + 0.5) / (count + 0.5))


def _add_all(term: _Term, scores: dict[int, float]) -> None:
    """Every passage that has the word."""
    worth = [term.worth * impact for impact in range(MOST_IMPACT + 1)]
    known = scores.get
    for first, places, impacts in term.blocks:
        for place, impact in zip(places, impacts, strict=True):
            scores[first + place] = known(first + place, 0.0) + worth[impact]


def _bar(scores: Mapping[int, float], most: int, left: float) -> float:
    """What the last of the ``most`` best has, or nothing where it cannot be more than is ``left`` to be added."""
    if len(scores) < most or max(scores.values()) <= left:
        return 0.0
    return heapq.nlargest(most, scores.values())[-1]


def _add_to_known(term: _Term, scores: dict[int, float]) -> None:
    """Only passages that are in already: what has none of the rarer words can no longer be among the best."""
    by_block: dict[int, list[int]] = {}
    for place in scores:
        by_block.setdefault(place - place % BLOCK, []).append(place)
    for first, places, impacts in term.blocks:
        here = by_block.get(first, [])
        if len(here) * _LOOKED_UP < len(places):
            held = {place - first: impacts[at] for place in here if (at := _at(places, place - first)) is not None}
        else:
            held = dict(zip(places, impacts, strict=True))
        for place in here:
            scores[place] += term.worth * held.get(place - first, 0)


def _at(places: array[int], place: int) -> int | None:
    at = bisect_left(places, place)
    return at if at < len(places) and places[at] == place else None
