"""The interface through which ranking by meaning joins an index. Without it an index ranks by words alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

Ranked = tuple[int, float]
"""The number of a passage, and a score that grows with relevance."""

COMPARED: Final = 80
"""How many passages of each ranking are compared at least: the best by both is often not among the first by one."""


class Meaning(Protocol):
    """What ranks by more than words. Every method blocks and may be called from any thread."""

    def ranked(self, query: str, by_words: Sequence[Ranked], most: int) -> Sequence[Ranked]:
        """The best passages, best first: those that the words found, and others."""
        ...

    def make(self, *, progress: Callable[[int, int], None] | None = None, stop: threading.Event | None = None) -> int:
        """Make what is missing; how many passages that were. Nothing while another process is at it.

        ``progress`` is told how many passages have it, of how many; a set ``stop`` ends it soon.
        """
        ...

    def counts(self) -> tuple[int, int]:
        """How many passages can be found by meaning, of how many."""
        ...


class RankedByWords(Protocol):
    """An index as ``best_of`` needs it."""

    meaning: Meaning | None

    def by_words(self, query: str, most: int) -> Sequence[Ranked]:
        """The numbers of the passages that have words of ``query``, best first."""
        ...


def best_of(index: RankedByWords, query: str, most: int) -> Sequence[Ranked]:
    """The numbers of the best passages by words, and by meaning where the index has it."""
    if index.meaning is None or most < 1:
        return index.by_words(query, most)
    deep = max(most, COMPARED)
    return index.meaning.ranked(query, index.by_words(query, deep), deep)[:most]
