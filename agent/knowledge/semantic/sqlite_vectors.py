"""Vectors in two tables of their own in the file of one machine's index."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.semantic.vectors import Unplaced, model_of, new_stamp

_STAMP: Final = "SELECT value FROM settings WHERE name = 'vectors'"
_PUT_STAMP: Final = "REPLACE INTO settings VALUES ('vectors', ?)"
_COUNTS: Final = "SELECT (SELECT count(*) FROM passage_vectors), (SELECT coalesce(sum(chunks), 0) FROM documents)"
_MISSING: Final = """
WITH lacking AS MATERIALIZED (
  SELECT number << 20 AS first FROM documents d WHERE chunks >
    (SELECT count(*) FROM passage_vectors WHERE number BETWEEN d.number << 20 AND (d.number << 20) + d.chunks - 1)
  LIMIT :most
)
SELECT p.rowid, p.title, p.name, p.text FROM lacking
CROSS JOIN passages p ON p.rowid >= first AND p.rowid < first + (1 << 20)
WHERE NOT EXISTS (SELECT 1 FROM passage_vectors v WHERE v.number = p.rowid) LIMIT :most
"""
"""By documents: a run that changed nothing must not walk through all passages to see it."""
_TIDY: Final = (
    "DELETE FROM passage_vectors WHERE number >> 20 NOT IN (SELECT number FROM documents)",
    "DELETE FROM vectors WHERE digest NOT IN (SELECT digest FROM passage_vectors)",
)
_HELD: Final = "SELECT digest, vector FROM vectors WHERE digest IN"
_AT_ONCE: Final = 500


class SqliteVectors:
    """A ``VectorShelf`` in the index's own file."""

    def __init__(self, index: SqliteIndex) -> None:
        self._index = index

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """A lock on a file beside the index: the system lets go of it when this process dies."""
        with Path(f"{self._index.path}.vectors").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True

    def begin(self, model: str) -> None:
        """What passages have of another model counts as nothing; its vectors go with ``tidy``."""
        with self._index.beside(write=True) as connection:
            known = connection.execute(_STAMP).fetchone()
            if known and model_of(known[0]) != model:
                connection.execute("DELETE FROM passage_vectors")
                connection.execute("DELETE FROM settings WHERE name = 'vectors'")

    def counts(self) -> tuple[int, int]:
        """How many passages have a vector, of how many."""
        with self._index.beside() as connection:
            having, every = connection.execute(_COUNTS).fetchone()
        return int(having), int(every)

    def missing(self, most: int) -> Sequence[Unplaced]:
        """Passages that have no vector."""
        with self._index.beside() as connection:
            rows = connection.execute(_MISSING, {"most": most}).fetchall()
        return [Unplaced(number=number, title=title, heading=name, text=text) for number, title, name, text in rows]

    def held(self, digests: Iterable[bytes]) -> Mapping[bytes, bytes]:
        """Vectors by digest, those that there are."""
        wanted = list(digests)
        found: dict[bytes, bytes] = {}
        with self._index.beside() as connection:
            for first in range(0, len(wanted), _AT_ONCE):
                some = wanted[first : first + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = connection.execute(f"{_HELD} ({marks})", some)
                found.update(rows)
        return found

    def put(self, places: Iterable[tuple[int, bytes]], vectors: Mapping[bytes, bytes], model: str) -> None:
        """Store vectors, and which passages have which."""
        with self._index.beside(write=True) as connection:
            connection.executemany("REPLACE INTO vectors VALUES (?, ?)", vectors.items())
            connection.executemany("REPLACE INTO passage_vectors VALUES (?, ?)", places)
            connection.execute(_PUT_STAMP, (new_stamp(model),))

    def tidy(self, model: str) -> None:
        """Remove what belongs to no passage any more."""
        with self._index.beside(write=True) as connection:
            gone = [connection.execute(statement).rowcount for statement in _TIDY]
            if gone[0]:
                connection.execute(_PUT_STAMP, (new_stamp(model),))

    def stamp(self) -> str:
        """What changes with every change of the vectors; nothing where there never were any."""
        with self._index.beside() as connection:
            known = connection.execute(_STAMP).fetchone()
        return str(known[0]) if known else ""

    def places(self) -> Sequence[tuple[int, bytes]]:
        """Which passage has which vector, all of them, by number."""
        with self._index.beside() as connection:
            return list(connection.execute("SELECT number, digest FROM passage_vectors ORDER BY number"))
