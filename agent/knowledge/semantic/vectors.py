"""Vectors of passages: computed by an embedding server, stored by a digest of space and text.

The store blocks. In the database they are 16-bit floats. With pgvector PostgreSQL compares a copy of them, stored by
passage. Otherwise each process compares them in memory as 8-bit numbers with a scale, which moves a cosine by less than
.003: 100,000 passages of 512 numbers take 51 MB, and a search 10 ms of processor time.
"""

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.tables import Condition, IndexSession, insert, marks, parts, put_setting

Vectors = NDArray[np.float32]  # one row per text, each a vector of length one

_STORED: Final = np.dtype("<f2")
# rows compared at a time: their 32-bit copy fits into the processor's cache, and BLAS uses one thread
_ROWS: Final = 256
_MAX_INT8: Final = 127
_MIN_SCALE: Final = 1e-12  # for a vector of zeros
_REST: Final = 10  # vectors are read again only after this many times the duration of the last read
_STAMP: Final = "SELECT value FROM settings WHERE name = 'vectors'"
_COUNTS: Final = """
SELECT (SELECT count(v.{}) FROM passage_vectors v JOIN passages p ON p.number = v.number),
  (SELECT coalesce(sum(chunks), 0) FROM documents), (SELECT count(*) FROM passage_vectors)
"""
_MISSING: Final = """
SELECT number FROM passages EXCEPT SELECT number FROM passage_vectors WHERE {} IS NOT NULL ORDER BY number
"""
_TEXTS: Final = """
SELECT p.number, d.title, p.name, p.text FROM passages p JOIN documents d ON d.number = p.number >> 20
WHERE p.number IN ({})
"""
_HELD: Final = "SELECT digest, vector FROM vectors WHERE digest IN ({})"
_OF_PASSAGES: Final = """
SELECT p.number, v.vector FROM passage_vectors p JOIN vectors v ON v.digest = p.digest
WHERE length(v.vector) = ? AND p.number IN ({})
"""
_PUT_VECTORS: Final = "INSERT INTO vectors VALUES {} ON CONFLICT DO NOTHING"
_PUT_PLACES: Final = "INSERT INTO passage_vectors VALUES {} ON CONFLICT (number) DO UPDATE SET digest = excluded.digest"
_PUT_NEAR: Final = """
INSERT INTO passage_vectors (number, digest, near) VALUES {}
ON CONFLICT (number) DO UPDATE SET digest = excluded.digest, near = excluded.near
"""
# Vectors have length one, so the inner product is the cosine. Exact and without an index, because the mean needs all of
# them. OFFSET 0 keeps PostgreSQL from computing each product twice.
_COSINES: Final = """
SELECT v.number, -(v.near OPERATOR({0}.<#>) ?::{0}.halfvec) AS cosine
FROM passage_vectors v JOIN documents d ON d.number = v.number >> 20 WHERE {0}.vector_dims(v.near) = ? AND {1}
"""
_NEAREST: Final = "SELECT number, cosine, avg(cosine) OVER () FROM ({} OFFSET 0) AS seen ORDER BY cosine DESC LIMIT ?"
_MAX_HALFVEC: Final = (
    16_000  # maximum length of pgvector's type; only that many numbers of a longer vector are compared
)
# Use set operations: with NOT IN or NOT EXISTS one of the two databases compares every pair of rows.
_TIDY_PLACES: Final = """
DELETE FROM passage_vectors WHERE number IN (SELECT number FROM passage_vectors EXCEPT SELECT number FROM passages)
"""
_TIDY_VECTORS: Final = """
DELETE FROM vectors WHERE digest IN (SELECT digest FROM vectors EXCEPT SELECT digest FROM passage_vectors)
"""


class EmbedderError(Exception):
    """The embedding server is down or refuses. The text tells the admin why. ``is_unset``: no model is named."""

    def __init__(self, reason: str, *, is_unset: bool = False) -> None:
        super().__init__(reason)
        self.is_unset = is_unset


class Embedder(Protocol):
    """Turns texts into vectors of length one."""

    @property
    def space(self) -> str:
        """The model and everything else that affects a passage's vector. Only vectors of one space can be compared."""

    @property
    def tokens(self) -> Mapping[str, int]:
        """Tokens that were embedded, by model."""

    async def find_model(self) -> str:
        """Return the configured model, or one from the server's list. Raises ``EmbedderError``."""

    async def embed_question(self, question: str) -> Vectors:
        """Return the vector of a question. Raises ``EmbedderError``."""

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text, one per row. Raises ``EmbedderError``."""


class _Loaded(NamedTuple):
    """The vectors as of ``stamp``: row *n* times its scale is the vector of passage ``numbers[n]``."""

    stamp: str
    numbers: NDArray[np.int64]
    vectors: NDArray[np.int8]
    scales: NDArray[np.float32]

    def cosines(self, vector: Vectors) -> NDArray[np.float32]:
        """Return the cosine of each vector with this one."""
        cosines = np.empty(len(self.numbers), np.float32)
        block = np.empty((_ROWS, len(vector)), np.float32)
        for first in range(0, len(cosines), _ROWS):
            part = block[: len(cosines) - first]
            np.copyto(part, self.vectors[first : first + _ROWS])
            np.dot(part, vector, out=cosines[first : first + _ROWS])
        cosines *= self.scales
        return cosines


_NOTHING: Final = _Loaded("", np.empty(0, np.int64), np.empty((0, 0), np.int8), np.empty(0, np.float32))


class VectorStore:
    """The vectors of one index. Any thread may use it."""

    def __init__(self, index: KnowledgeIndex) -> None:
        self._index = index
        self._loaded = _NOTHING
        self._reload_at = 0.0  # of the monotonic clock
        self._reading = threading.Lock()

    def space(self) -> str:
        """Return the space of the vectors, empty without vectors."""
        return self._stamp().rpartition(" ")[0]

    def nearness(
        self, vector: Vectors, numbers: Sequence[int], most: int, seen: Condition
    ) -> tuple[dict[int, float], float]:
        """Return the cosines of the ``most`` closest ``seen`` passages and of ``numbers``, and the mean of all seen."""
        if schema := self._index.pgvector():
            self._loaded, self._reload_at = _NOTHING, 0.0
            return self._nearness_by_pgvector(schema, vector[:_MAX_HALFVEC], numbers, most, seen)
        loaded = self._current(len(vector))
        documents = self._rows(f"SELECT d.number FROM documents d WHERE {seen[0]}", seen[1])  # noqa: S608 - our text
        rows = np.flatnonzero(np.isin(loaded.numbers >> 20, [number for (number,) in documents]))
        if not len(rows):
            return {}, 0.0
        passages, cosines = loaded.numbers[rows], loaded.cosines(vector)[rows]
        best = np.argpartition(-cosines, min(most, len(cosines) - 1))[:most]
        near = np.union1d(best, np.flatnonzero(np.isin(passages, numbers)))
        return dict(zip(passages[near].tolist(), cosines[near].tolist(), strict=True)), float(cosines.mean())

    def _nearness_by_pgvector(
        self, schema: str, vector: Vectors, numbers: Sequence[int], most: int, seen: Condition
    ) -> tuple[dict[int, float], float]:
        cosines = _COSINES.format(schema, seen[0])
        values = (str(vector.tolist()), len(vector), *seen[1])
        closest = self._rows(_NEAREST.format(cosines), (*values, most))
        these = self._rows(f"{cosines} AND v.number IN (NULL{', ?' * len(numbers)})", (*values, *numbers))
        near = dict(these) | {number: cosine for number, cosine, _ in closest}
        return near, closest[0][2] if closest else 0.0

    def counts(self) -> tuple[int, int]:
        """Return the number of passages with a vector, and of all."""
        ((having, every, _),) = self._rows(_COUNTS.format(self._column()))
        return int(having), int(every)

    def is_complete(self, space: str) -> bool:
        """Return True if every passage has a vector of this space and no deleted passage has one."""
        ((having, every, stored),) = self._rows(_COUNTS.format(self._column()))
        return bool(having == every == stored and (self.space() == space or not every))

    def begin(self, space: str) -> list[int]:
        """Detach passages from the vectors of another space, and return those without a vector."""
        if self.space() != space:
            with self._index.session(write=True) as session:
                session.execute("DELETE FROM passage_vectors")
                session.execute("DELETE FROM settings WHERE name = 'vectors'")
        return [number for (number,) in self._rows(_MISSING.format(self._column()))]

    def _column(self) -> str:
        """Return the column that has a value if a passage's vector can be compared."""
        return "near" if self._index.pgvector() else "digest"

    def texts(self, space: str, numbers: Sequence[int]) -> tuple[dict[int, bytes], dict[bytes, str]]:
        """Return the digests of the passages that still exist, and by digest the texts without a stored vector."""
        rows = self._rows(_TEXTS.format(marks(numbers)), numbers)
        texts = {number: text_to_embed(*rest) for number, *rest in rows}
        places = {number: _digest(space, text) for number, text in texts.items()}
        held = dict(self._rows(_HELD.format(marks(places)), [*places.values()])) if places else {}
        return places, {places[number]: text for number, text in texts.items() if places[number] not in held}

    def put(self, space: str, places: Mapping[int, bytes], vectors: Mapping[bytes, Vectors]) -> None:
        """Store new ``vectors`` by digest and assign each passage its vector."""
        by_pgvector = self._index.pgvector()
        with self._index.session(write=True) as session:
            insert(session, _PUT_VECTORS, ((d, row.astype(_STORED).tobytes()) for d, row in vectors.items()))
            if by_pgvector and places:
                held = dict(session.execute(_HELD.format(marks(places)), [*places.values()]))
                insert(session, _PUT_NEAR, ((number, d, _halfvec(held[d])) for number, d in places.items()))
            else:
                insert(session, _PUT_PLACES, places.items())
            _put_stamp(session, space)

    def tidy(self, space: str) -> None:
        """Delete vectors that no passage uses."""
        with self._index.session(write=True) as session:
            if session.execute(_TIDY_PLACES).rowcount:
                _put_stamp(session, space)
            session.execute(_TIDY_VECTORS)

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._index.session() as session:
            return list(session.execute(statement, values))

    def _stamp(self) -> str:
        """Return the space and a stamp that changes with the vectors; empty without vectors."""
        return "".join(stamp for (stamp,) in self._rows(_STAMP))

    def _current(self, size: int) -> _Loaded:
        """Return the vectors of this size. At most a tenth of the time is spent on reading new ones."""
        with self._reading:
            began, held_size = time.monotonic(), self._loaded.vectors.shape[1]
            if began < self._reload_at and held_size == size:
                return self._loaded
            if (stamp := self._stamp()) != self._loaded.stamp or held_size != size:
                self._loaded = self._read(self._loaded, stamp, size)
                self._reload_at = time.monotonic() + _REST * (time.monotonic() - began)
            return self._loaded

    def _read(self, before: _Loaded, stamp: str, size: int) -> _Loaded:
        """Read the vectors of this size that this process does not have yet."""
        if before.vectors.shape[1] != size or before.stamp.rpartition(" ")[0] != stamp.rpartition(" ")[0]:
            before = _NOTHING._replace(vectors=np.empty((0, size), np.int8))
        numbers = np.array([number for (number,) in self._rows("SELECT number FROM passage_vectors")], np.int64)
        still = np.isin(before.numbers, numbers)
        blocks = [(before.numbers[still], before.vectors[still], before.scales[still])]
        for some in parts(np.setdiff1d(numbers, before.numbers).tolist()):
            rows = self._rows(_OF_PASSAGES.format(marks(some)), (size * _STORED.itemsize, *some))
            exact = np.array([np.frombuffer(vector, _STORED) for _, vector in rows], np.float32).reshape(-1, size)
            scales = np.abs(exact).max(axis=1).clip(min=_MIN_SCALE) / _MAX_INT8
            rounded = np.rint(exact / scales[:, np.newaxis]).astype(np.int8)
            blocks.append((np.array([number for number, _ in rows], np.int64), rounded, scales))
        return _Loaded(stamp, *map(np.concatenate, zip(*blocks, strict=True)))


def text_to_embed(title: str, heading: str, text: str) -> str:
    """Return a passage's text under its title and heading."""
    body = text.lstrip("# \n")
    above = (name for name in dict.fromkeys((title, heading)) if name and not body.startswith(name))
    return "\n".join([*above, body])


def _put_stamp(session: IndexSession, space: str) -> None:
    put_setting(session, "vectors", f"{space} {uuid4().hex}")


def _halfvec(stored: bytes) -> str:
    return str(np.frombuffer(stored, _STORED)[:_MAX_HALFVEC].tolist())


def _digest(space: str, text: str) -> bytes:
    """Return the key of a vector."""
    return hashlib.sha256(f"{space}\n{text}".encode("utf-8", "surrogatepass")).digest()[:16]
