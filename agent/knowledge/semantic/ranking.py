"""Ranks by words and meaning together: the words' score plus a share of the cosine.

Passages without a vector yet are found by their words. Nearness only brings a passage to be looked at. Everything here
blocks: keep it off the event loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple

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


class _Known(NamedTuple):
    """The vectors as they stood at ``stamp``: row *n* of ``vectors`` belongs to passage ``numbers[n]``, in order."""

    stamp: str
    numbers: NDArray[np.int64]
    rows: Mapping[bytes, int]
    vectors: Vectors


_NOTHING: Final = _Known("", np.empty(0, np.int64), {}, np.empty((0, 0), np.float32))


class SemanticRanks:
    """A ``Meaning`` over the vectors of one index."""

    def __init__(self, encoder: SentenceEncoder, tables: VectorTables) -> None:
        self._encoder = encoder
        self._tables = tables
        self._known = _NOTHING
        self._again = 0.0
        """Before this time of the monotonic clock the vectors are not read anew."""
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
        if not now and time.monotonic() < self._again:
            return self._known
        stamp = self._tables.stamp()
        if stamp == self._known.stamp or not self._reading.acquire(blocking=now or not self._known.stamp):
            return self._known
        try:
            if stamp != self._known.stamp:
                began = time.monotonic()
                self._known = self._read(self._known, stamp)
                self._again = time.monotonic() + _REST * (time.monotonic() - began)
            return self._known
        finally:
            self._reading.release()

    def _read(self, before: _Known, stamp: str) -> _Known:
        """Only vectors that this process does not have yet are read."""
        if model_of(stamp) != self._encoder.name:
            return _NOTHING._replace(stamp=stamp)
        places = self._tables.places()
        new = self._tables.held({digest for _, digest in places if digest not in before.rows})
        placed = [(number, digest) for number, digest in places if digest in before.rows or digest in new]
        vectors = np.empty((len(placed), self._encoder.dimensions), np.float32)
        for at, (_, digest) in enumerate(placed):
            row = before.rows.get(digest)
            vectors[at] = np.frombuffer(new[digest], _STORED) if row is None else before.vectors[row]
        numbers = np.array([number for number, _ in placed], np.int64)
        return _Known(stamp, numbers, {digest: at for at, (_, digest) in enumerate(placed)}, vectors)


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
