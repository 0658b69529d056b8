"""Ranks by words and meaning together: the words' score plus a share of the cosine.

Passages without a vector yet are found by their words. Nearness only brings a passage to be looked at. Everything here
blocks: keep it off the event loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Final

import numpy as np
import structlog
from numpy.typing import NDArray

from agent.knowledge.index.index import Ranked
from agent.knowledge.index.tables import parts
from agent.knowledge.semantic.encoder import SentenceEncoder, Vectors
from agent.knowledge.semantic.vectors import Unplaced, VectorTables, model_of

log = structlog.get_logger()

UNRELATED: Final = 0.2
"""A cosine up to this says nothing: any two texts of one language have as much."""
_MADE_AT_ONCE: Final = 32
"""Passages between two commits, some three seconds of a core: what being killed loses, and how soon it stops."""
_REST: Final = 10
"""So many times as long as reading all vectors took passes before they are read again."""
_STORED: Final = np.dtype("<f2")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The vectors as they stood at ``stamp``: row *n* of ``vectors`` belongs to passage ``numbers[n]``, in order.

    Before ``again`` (of the monotonic clock) they are not read anew.
    """

    stamp: str = ""
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    rows: dict[bytes, int] = field(default_factory=dict)
    vectors: Vectors = field(default_factory=lambda: np.empty((0, 0), np.float32))
    again: float = 0.0


class SemanticRanks:
    """A ``Meaning`` over the vectors of one index."""

    def __init__(self, encoder: SentenceEncoder, tables: VectorTables) -> None:
        self._encoder = encoder
        self._tables = tables
        self._known = _Known()
        self._reading = threading.Lock()

    def ranked(self, query: str, by_words: Sequence[Ranked], most: int) -> Sequence[Ranked]:
        """The best ``most`` of what the words found and what is near in meaning, by both scores together."""
        known = self._current()
        if not len(known.numbers) or not query.strip():
            return by_words
        cosines = known.vectors @ self._encoder.question(query)
        near = dict(_nearest(known, cosines, most))
        found = np.array([number for number, _ in by_words], np.int64)
        rows = np.searchsorted(known.numbers, found).clip(max=len(known.numbers) - 1)
        placed = known.numbers[rows] == found
        near.update(zip(found[placed].tolist(), cosines[rows[placed]].tolist(), strict=True))
        return fused(by_words, near)[:most]

    def make(self, *, progress: Callable[[int, int], None] | None = None, stop: threading.Event | None = None) -> int:
        """Make the vectors that are missing; how many passages got one. Nothing while another process is at it.

        ``progress`` is told how many passages have one, of how many; a set ``stop`` ends it after the open batch.
        """
        began, made = time.monotonic(), 0
        having, every, ever = self._tables.counts()
        if having == every == ever and model_of(self._tables.stamp()) == self._encoder.name:
            self._current(now=True)
            return 0
        with self._tables.alone() as mine:
            if not mine:
                log.info("vectors_made_elsewhere")
                return 0
            self._tables.begin(self._encoder.name)
            for numbers in parts(self._tables.missing(), _MADE_AT_ONCE):
                if stop and stop.is_set():
                    break
                batch = self._tables.texts(numbers)
                self._place(batch)
                made += len(batch)
                if progress:
                    progress(*self.counts())
            if not (stop and stop.is_set()):
                self._tables.tidy(self._encoder.name)
        self._current(now=True)
        if made:
            log.info("vectors_made", passages=made, seconds=round(time.monotonic() - began, 1))
        return made

    def counts(self) -> tuple[int, int]:
        """How many passages have a vector, of how many."""
        having, every, _ = self._tables.counts()
        return having, every

    def _place(self, batch: Sequence[Unplaced]) -> None:
        name = self._encoder.name
        texts = {passage.digest(name): passage.encoded for passage in batch}
        held = self._tables.held(texts)
        new = {digest: text for digest, text in texts.items() if digest not in held}
        made = self._encoder.encode(list(new.values())).astype(_STORED)
        vectors = {digest: row.tobytes() for digest, row in zip(new, made, strict=True)}
        self._tables.put([(passage.number, passage.digest(name)) for passage in batch], vectors, name)

    def _current(self, *, now: bool = False) -> _Known:
        """The vectors as they stand; a thread that finds them being read goes on with what it had before.

        While many are made they change every few seconds: no more than a tenth of the time goes into reading them.
        """
        if not now and time.monotonic() < self._known.again:
            return self._known
        stamp = self._tables.stamp()
        if stamp == self._known.stamp or not self._reading.acquire(blocking=now or not self._known.stamp):
            return self._known
        try:
            if stamp != self._known.stamp:
                began = time.monotonic()
                known = self._read(self._known, stamp)
                self._known = replace(known, again=time.monotonic() + _REST * (time.monotonic() - began))
            return self._known
        finally:
            self._reading.release()

    def _read(self, before: _Known, stamp: str) -> _Known:
        """Only vectors that this process does not have yet are read."""
        if model_of(stamp) != self._encoder.name:
            return _Known(stamp=stamp)
        places = self._tables.places()
        vectors = np.empty((len(places), self._encoder.dimensions), np.float32)
        there = np.ones(len(places), np.bool_)
        lacking: dict[bytes, list[int]] = {}
        for at, (_, digest) in enumerate(places):
            if (row := before.rows.get(digest)) is not None:
                vectors[at] = before.vectors[row]
            else:
                lacking.setdefault(digest, []).append(at)
        for digest, stored in self._tables.held(list(lacking)).items():
            vectors[lacking.pop(digest)] = np.frombuffer(stored, _STORED)
        for rows in lacking.values():
            there[rows] = False
        numbers = np.array([number for number, _ in places], np.int64)[there]
        digests = [digest for (_, digest), here in zip(places, there, strict=True) if here]
        rows_of = {digest: at for at, digest in enumerate(digests)}
        return _Known(stamp=stamp, numbers=numbers, rows=rows_of, vectors=vectors[there])


def _nearest(known: _Known, cosines: Vectors, most: int) -> list[Ranked]:
    best = np.argpartition(-cosines, min(most, len(cosines) - 1))[:most]
    best = best[cosines[best] > UNRELATED]
    best = best[np.lexsort((known.numbers[best], -cosines[best]))]
    return list(zip(known.numbers[best].tolist(), cosines[best].tolist(), strict=True))


MEANING_SHARE: Final = 0.6
"""The rest is the words' share. Chosen on the first half of SciFact's questions (docs/measurements/answers.md)."""


def fused(by_words: Sequence[Ranked], cosines: Mapping[int, float]) -> list[Ranked]:
    """All passages of both, best first, ties by number: a share of the best score by words, and one of the cosine.

    A passage without a cosine (its vector is still to be made) gets what those that the words found have on average:
    it stands where its words put it among them.
    """
    best = max((score for _, score in by_words), default=0.0)
    words = {number: score / best for number, score in by_words} if best > 0 else {}
    known = [cosines[number] for number in words if number in cosines]
    usual = fmean(known) if known else 0.0
    scores = {
        number: (1 - MEANING_SHARE) * words.get(number, 0.0) + MEANING_SHARE * cosines.get(number, usual)
        for number in {*words, *cosines}
    }
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
