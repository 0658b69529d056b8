"""Ranks by words and meaning together: the words' score plus a share of the cosine.

Vectors are kept by text, so that unchanged text keeps its own. Passages without one yet are found by their words.
Nearness only brings a passage to be looked at. Everything here blocks: keep it off the event loop.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple
from uuid import uuid4

import numpy as np
import structlog
from numpy.typing import NDArray

from agent.knowledge.index.index import KnowledgeIndex, Ranked
from agent.knowledge.index.tables import Session, insert, marks, parts, put_setting
from agent.knowledge.semantic.encoder import SentenceEncoder, Vectors

log = structlog.get_logger()

UNRELATED: Final = 0.2  # a cosine up to this says nothing: any two texts of one language have as much
MEANING_SHARE: Final = 0.6
"""The rest is the words' share. Chosen on the first half of SciFact's questions (docs/measurements/answers.md)."""
_MADE_AT_ONCE: Final = 32  # passages, some three seconds of a core: what a kill loses, and how soon it stops
_REST: Final = 10  # so many times as long as reading all vectors took passes before they are read again
_STORED: Final = np.dtype("<f2")
_STAMP: Final = "SELECT value FROM settings WHERE name = 'vectors'"
_COUNTS: Final = """
SELECT (SELECT count(*) FROM passage_vectors v JOIN passages p ON p.number = v.number),
  (SELECT coalesce(sum(chunks), 0) FROM documents), (SELECT count(*) FROM passage_vectors)
"""
_MISSING: Final = "SELECT number FROM passages EXCEPT SELECT number FROM passage_vectors ORDER BY number"
_TEXTS: Final = """
SELECT p.number, d.title, p.name, p.text FROM passages p JOIN documents d ON d.number = p.number >> 20
WHERE p.number IN ({})
"""
_HELD: Final = "SELECT digest, vector FROM vectors WHERE digest IN ({})"
_PUT_VECTORS: Final = "INSERT INTO vectors VALUES {} ON CONFLICT DO NOTHING"
_PUT_PLACES: Final = "INSERT INTO passage_vectors VALUES {} ON CONFLICT (number) DO UPDATE SET digest = excluded.digest"
# As sets: with NOT IN or NOT EXISTS one of the two databases compares each row with each other.
_TIDY_PLACES: Final = """
DELETE FROM passage_vectors WHERE number IN (SELECT number FROM passage_vectors EXCEPT SELECT number FROM passages)
"""
_TIDY_VECTORS: Final = """
DELETE FROM vectors WHERE digest IN (SELECT digest FROM vectors EXCEPT SELECT digest FROM passage_vectors)
"""


class _Known(NamedTuple):
    """The vectors as they stood at ``stamp``: row *n* of ``vectors`` belongs to passage ``numbers[n]``, in order."""

    stamp: str
    numbers: NDArray[np.int64]
    rows: Mapping[bytes, int]
    vectors: Vectors


_NOTHING: Final = _Known("", np.empty(0, np.int64), {}, np.empty((0, 0), np.float32))


class SemanticRanks:
    """A ``Meaning`` over the vectors of one index."""

    def __init__(self, encoder: SentenceEncoder, index: KnowledgeIndex) -> None:
        self._encoder = encoder
        self._index = index
        self._known = _NOTHING
        self._again = 0.0  # before this time of the monotonic clock the vectors are not read anew
        self._reading = threading.Lock()

    def ranked(self, query: str, by_words: Sequence[Ranked], most: int) -> Sequence[Ranked]:
        """The best ``most`` of what the words found and what is near in meaning, by both scores together."""
        known = self._current()
        if not len(known.numbers) or not query.strip():
            return by_words
        # Exact: an index of vectors would save milliseconds and cost a dependency (decision 14).
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
        ((having, every, ever),) = self._rows(_COUNTS)
        if having == every == ever and self._is_of_this_model(self._stamp()):
            self._current(now=True)
            return 0
        with self._index.alone("vectors") as mine:
            if not mine:
                log.info("vectors_made_elsewhere")
                return 0
            self._begin()
            for numbers in parts((number for (number,) in self._rows(_MISSING)), _MADE_AT_ONCE):
                if stop and stop.is_set():
                    break
                made += self._make_some(numbers)
                if progress:
                    progress(*self.counts())
            if not (stop and stop.is_set()):
                self._tidy()
        self._current(now=True)
        if made:
            log.info("vectors_made", passages=made, seconds=round(time.monotonic() - began, 1))
        return made

    def counts(self) -> tuple[int, int]:
        """How many passages have a vector, of how many."""
        ((having, every, _),) = self._rows(_COUNTS)
        return int(having), int(every)

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._index.session() as session:
            return list(session.execute(statement, values))

    def _stamp(self) -> str:
        """The model and what changes with every change of the vectors; nothing where there never were any."""
        return "".join(stamp for (stamp,) in self._rows(_STAMP))

    def _is_of_this_model(self, stamp: str) -> bool:
        return stamp.partition(" ")[0] == self._encoder.name

    def _put_stamp(self, session: Session) -> None:
        put_setting(session, "vectors", f"{self._encoder.name} {uuid4().hex}")

    def _begin(self) -> None:
        """What passages have of another model counts as nothing; its vectors go when all are made."""
        if not self._is_of_this_model(self._stamp()):
            with self._index.session(write=True) as session:
                session.execute("DELETE FROM passage_vectors")
                session.execute("DELETE FROM settings WHERE name = 'vectors'")

    def _make_some(self, numbers: Sequence[int]) -> int:
        """Store vectors for these passages, as far as they are still there; how many."""
        texts = {number: encoded(*above) for number, *above in self._rows(_TEXTS.format(marks(numbers)), numbers)}
        places = {number: _digest(self._encoder.name, text) for number, text in texts.items()}
        held = self._held(places.values())
        new = {places[number]: text for number, text in texts.items() if places[number] not in held}
        made = self._encoder.encode(list(new.values())).astype(_STORED)
        with self._index.session(write=True) as session:
            insert(session, _PUT_VECTORS, ((digest, row.tobytes()) for digest, row in zip(new, made, strict=True)))
            insert(session, _PUT_PLACES, places.items())
            self._put_stamp(session)
        return len(texts)

    def _held(self, digests: Collection[bytes]) -> dict[bytes, bytes]:
        """Vectors by digest, those that there are; 16-bit floats, lowest byte first."""
        return dict(row for some in parts(digests) for row in self._rows(_HELD.format(marks(some)), some))

    def _tidy(self) -> None:
        with self._index.session(write=True) as session:
            if session.execute(_TIDY_PLACES).rowcount:
                self._put_stamp(session)
            session.execute(_TIDY_VECTORS)

    def _current(self, *, now: bool = False) -> _Known:
        """The vectors as they stand; a thread that finds them being read goes on with what it had before.

        While many are made they change every few seconds: no more than a tenth of the time goes into reading them.
        """
        if not now and time.monotonic() < self._again:
            return self._known
        stamp = self._stamp()
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
        if not self._is_of_this_model(stamp):
            return _NOTHING._replace(stamp=stamp)
        places = self._rows("SELECT number, digest FROM passage_vectors ORDER BY number")
        new = self._held({digest for _, digest in places if digest not in before.rows})
        placed = [(number, digest) for number, digest in places if digest in before.rows or digest in new]
        vectors = np.empty((len(placed), self._encoder.dimensions), np.float32)
        for at, (_, digest) in enumerate(placed):
            row = before.rows.get(digest)
            vectors[at] = np.frombuffer(new[digest], _STORED) if row is None else before.vectors[row]
        numbers = np.array([number for number, _ in placed], np.int64)
        return _Known(stamp, numbers, {digest: at for at, (_, digest) in enumerate(placed)}, vectors)


def encoded(title: str, heading: str, text: str) -> str:
    """What a passage's vector is made of: the text under its title and heading, each said once."""
    said = text.lstrip("# \n")
    above = (name for name in dict.fromkeys((title, heading)) if name and not said.startswith(name))
    return "\n".join([*above, said])


def _digest(model: str, text: str) -> bytes:
    """What a vector is kept under: the same model makes the same of the same text."""
    return hashlib.sha256(f"{model}\n{text}".encode("utf-8", "surrogatepass")).digest()[:16]


def _nearest(known: _Known, cosines: Vectors, most: int) -> list[Ranked]:
    best = np.argpartition(-cosines, min(most, len(cosines) - 1))[:most]
    best = best[cosines[best] > UNRELATED]
    best = best[np.lexsort((known.numbers[best], -cosines[best]))]
    return list(zip(known.numbers[best].tolist(), cosines[best].tolist(), strict=True))


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
        # Scores, no ranks: nDCG@10 on SciFact .741 for the .726 of ranks (decision 14).
        number: (1 - MEANING_SHARE) * words.get(number, 0.0) + MEANING_SHARE * cosines.get(number, usual)
        for number in {*words, *cosines}
    }
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
