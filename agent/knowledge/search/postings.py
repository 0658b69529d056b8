"""Postings: the passages that contain a word, with its weight, in blocks for any storage, ranked by BM25."""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

BLOCK: Final = 2_048  # places; with larger ones an update wrote twice as much, and no search was faster
MAX_IMPACT: Final = 255
_BYTES: Final = 3  # of a posting: two for its place (little-endian, as on all of Orion's machines), one for its impact

Found = tuple[str, int, bytes]  # a word, a block, and the word's stored bytes there
Changes = defaultdict[int, defaultdict[str, list[tuple[int, int]]]]
"""Changes of one transaction, by block and word: places inside the block, each with its impact, 0 to remove it."""


def no_changes() -> Changes:
    """Return an empty set of changes."""
    return defaultdict(lambda: defaultdict(list))


def change(changes: Changes, place: int, impacts: Mapping[str, int]) -> None:
    """Add a passage with these words, or remove it. Removals come first; places come in rising order and only grow."""
    block, inside = divmod(place, BLOCK)
    words = changes[block]
    for word, impact in impacts.items():
        words[word].append((inside, impact))


def revise(data: bytes, changed: Iterable[tuple[int, int]]) -> bytes:
    """Return a word's block after these changes, empty if none of its passages has the word any more."""
    places, held = _unpack(data)
    impacts = bytearray(held)
    for place, impact in changed:
        if impact:
            places.append(place)
            impacts.append(impact)
            continue
        at = bisect_left(places, place)
        # A newer stemmer may find other words in the same text: that must not remove another passage's place.
        if at < len(places) and places[at] == place:
            del places[at], impacts[at]
    return places.tobytes() + impacts


def _unpack(data: bytes) -> tuple[array[int], bytes]:
    count = len(data) // _BYTES
    places = array("H")
    places.frombytes(data[: 2 * count])
    return places, data[2 * count :]


def best(found: Iterable[Found], *, passages: int, most: int) -> list[tuple[int, float]]:
    """Return the ``most`` best places with their scores, best first, from the blocks of a query's words.

    ``passages`` is the total number of passages: the fewer contain a word, the more it counts.
    """
    words: dict[str, list[tuple[int, array[int], bytes]]] = {}
    for word, block, data in found:
        words.setdefault(word, []).append((block * BLOCK, *_unpack(data)))
    scores: dict[int, float] = {}
    known = scores.get
    # In a fixed order: sums in another order differ in their last bits, and equal scores must be equal.
    for _, blocks in sorted(words.items()):
        worth = _rarity(sum(len(places) for _, places, _ in blocks), passages) / MAX_IMPACT
        worths = [worth * impact for impact in range(MAX_IMPACT + 1)]
        for first, places, impacts in blocks:  # all: skipping gained nothing below 100,000 passages (decision 12)
            for place, impact in zip(places, impacts, strict=True):
                scores[first + place] = known(first + place, 0.0) + worths[impact]
    ranked = heapq.nsmallest(most, ((-score, place) for place, score in scores.items()))
    return [(place, -score) for score, place in ranked]


def _rarity(count: int, passages: int) -> float:
    return math.log(1 + (max(passages, count) - count + 0.5) / (count + 0.5))
