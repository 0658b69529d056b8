"""What of a passage becomes a vector, and where vectors are kept: by text, so that unchanged text keeps its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple
from uuid import uuid4

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.tables import Session, insert, marks, parts, put_setting

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
_TIDY: Final = (
    """
    DELETE FROM passage_vectors WHERE number IN (SELECT number FROM passage_vectors EXCEPT SELECT number FROM passages)
    """,
    "DELETE FROM vectors WHERE digest IN (SELECT digest FROM vectors EXCEPT SELECT digest FROM passage_vectors)",
)


class Unplaced(NamedTuple):
    """A passage that has no vector yet."""

    number: int
    title: str
    heading: str
    text: str

    @property
    def encoded(self) -> str:
        """What its vector is made of: the text under its title and heading, each said once."""
        said = self.text.lstrip("# \n")
        above = (name for name in dict.fromkeys((self.title, self.heading)) if name and not said.startswith(name))
        return "\n".join([*above, said])

    def digest(self, model: str) -> bytes:
        """What its vector is kept under: the same model makes the same of the same text."""
        return hashlib.sha256(f"{model}\n{self.encoded}".encode("utf-8", "surrogatepass")).digest()[:16]


def model_of(stamp: str) -> str:
    """The model that made the vectors of a stamp."""
    return stamp.partition(" ")[0]


class VectorTables:
    """The vectors of one index. Every method blocks; each that writes is one transaction."""

    def __init__(self, index: KnowledgeIndex) -> None:
        self._index = index

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._index.session() as session:
            return list(session.execute(statement, values))

    def alone(self) -> AbstractContextManager[bool]:
        """Whether this process may make vectors now: one does at a time, and lets go of it when it dies."""
        return self._index.alone("vectors")

    def begin(self, model: str) -> None:
        """What passages have of another model counts as nothing; its vectors go with ``tidy``."""
        if model_of(self.stamp()) not in {"", model}:
            with self._index.session(write=True) as session:
                session.execute("DELETE FROM passage_vectors")
                session.execute("DELETE FROM settings WHERE name = 'vectors'")

    def counts(self) -> tuple[int, int, int]:
        """How many passages have a vector, of how many, and how many had one with those that are gone."""
        ((having, every, ever),) = self._rows(_COUNTS)
        return int(having), int(every), int(ever)

    def missing(self) -> list[int]:
        """The numbers of the passages that have no vector."""
        return [number for (number,) in self._rows(_MISSING)]

    def texts(self, numbers: Sequence[int]) -> list[Unplaced]:
        """The passages of these numbers that are still there."""
        return [Unplaced(*row) for row in self._rows(_TEXTS.format(marks(numbers)), numbers)]

    def held(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """Vectors by digest, those that there are; 16-bit floats, lowest byte first."""
        return dict(row for some in parts(digests) for row in self._rows(_HELD.format(marks(some)), some))

    def put(self, places: Iterable[tuple[int, bytes]], vectors: Mapping[bytes, bytes], model: str) -> None:
        """Store vectors, and which passages have which."""
        with self._index.session(write=True) as session:
            insert(session, _PUT_VECTORS, vectors.items())
            insert(session, _PUT_PLACES, places)
            _put_stamp(session, model)

    def tidy(self, model: str) -> None:
        """Remove what belongs to no passage any more."""
        with self._index.session(write=True) as session:
            gone = [session.execute(statement).rowcount for statement in _TIDY]
            if gone[0]:
                _put_stamp(session, model)

    def stamp(self) -> str:
        """What changes with every change of the vectors; nothing where there never were any."""
        return "".join(stamp for (stamp,) in self._rows("SELECT value FROM settings WHERE name = 'vectors'"))

    def places(self) -> list[tuple[int, bytes]]:
        """Which passage has which vector, all of them, by number."""
        return self._rows("SELECT number, digest FROM passage_vectors ORDER BY number")


def _put_stamp(session: Session, model: str) -> None:
    """The model, and what tells these vectors from those at any other time."""
    put_setting(session, "vectors", f"{model} {uuid4().hex}")
