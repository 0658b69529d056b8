"""Vectors in the shared index as plain columns of bytes, without an extension of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.semantic.vectors import Unplaced, model_of, new_stamp

_KEYS: Final = "(hashtext('orion vectors'), hashtext(current_schema()))"
_STAMP: Final = "SELECT value FROM settings WHERE name = 'vectors'"
_COUNTS: Final = "SELECT (SELECT count(*) FROM passage_vectors), (SELECT coalesce(sum(chunks), 0) FROM documents)"
_MISSING: Final = """
SELECT p.number, d.title, p.name, p.text FROM passages p JOIN documents d ON d.number = p.document
WHERE NOT EXISTS (SELECT 1 FROM passage_vectors v WHERE v.number = p.number) ORDER BY p.number LIMIT %s
"""
_HELD: Final = "SELECT digest, vector FROM vectors WHERE digest = ANY(%b)"
_PLACES: Final = "SELECT number, digest FROM passage_vectors ORDER BY number"
_PUT_VECTOR: Final = "INSERT INTO vectors VALUES (%s, %s) ON CONFLICT DO NOTHING"
_PUT_PLACE: Final = (
    "INSERT INTO passage_vectors VALUES (%s, %s) ON CONFLICT (number) DO UPDATE SET digest = excluded.digest"
)
_PUT_STAMP: Final = (
    "INSERT INTO settings VALUES ('vectors', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_TIDY: Final = (
    "DELETE FROM passage_vectors v WHERE NOT EXISTS (SELECT 1 FROM passages p WHERE p.number = v.number)",
    "DELETE FROM vectors v WHERE NOT EXISTS (SELECT 1 FROM passage_vectors p WHERE p.digest = v.digest)",
)


class PostgresVectors:
    """A ``VectorShelf`` in the schema of the shared index. Contacts nobody yet."""

    def __init__(self, index: PostgresIndex) -> None:
        self._index = index

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """A lock of one session of the database."""
        with self._index.beside() as connection:
            found = connection.execute(f"SELECT pg_try_advisory_lock{_KEYS}").fetchone()
            if found != (True,):
                yield False
                return
            try:
                yield True
            finally:
                connection.execute(f"SELECT pg_advisory_unlock{_KEYS}")

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
            having, every = connection.execute(_COUNTS).fetchone() or (0, 0)
        return int(having), int(every)

    def missing(self, most: int) -> Sequence[Unplaced]:
        """Passages that have no vector."""
        with self._index.beside() as connection:
            rows = connection.execute(_MISSING, (most,)).fetchall()
        return [Unplaced(number=number, title=title, heading=name, text=text) for number, title, name, text in rows]

    def held(self, digests: Iterable[bytes]) -> Mapping[bytes, bytes]:
        """Vectors by digest, those that there are."""
        with self._index.beside() as connection:
            return dict(connection.execute(_HELD, (list(digests),), binary=True).fetchall())

    def put(self, places: Iterable[tuple[int, bytes]], vectors: Mapping[bytes, bytes], model: str) -> None:
        """Store vectors, and which passages have which."""
        with self._index.beside(write=True) as connection, connection.cursor() as cursor:
            cursor.executemany(_PUT_VECTOR, vectors.items())
            cursor.executemany(_PUT_PLACE, places)
            cursor.execute(_PUT_STAMP, (new_stamp(model),))

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
            return connection.execute(_PLACES, binary=True).fetchall()
