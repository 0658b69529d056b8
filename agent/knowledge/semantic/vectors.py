"""What of a passage becomes a vector, and how vectors are stored.

By text, so that an unchanged passage keeps its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
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


def new_stamp(model: str) -> str:
    """What tells the vectors as they stand now from those at any other time."""
    return f"{model} {uuid4().hex}"


def model_of(stamp: str) -> str:
    """The model that made the vectors of a stamp."""
    return stamp.partition(" ")[0]


class VectorShelf(Protocol):
    """The vectors of one index. Every method blocks; each that writes is one transaction."""

    def alone(self) -> AbstractContextManager[bool]:
        """Whether this process may make vectors now: one does at a time, and lets go of it when it dies."""
        ...

    def begin(self, model: str) -> None:
        """Get ready for vectors of ``model``; what passages have of another one counts as nothing."""
        ...

    def counts(self) -> tuple[int, int]:
        """How many passages have a vector, of how many."""
        ...

    def missing(self, most: int) -> Sequence[Unplaced]:
        """Passages that have no vector."""
        ...

    def held(self, digests: Iterable[bytes]) -> Mapping[bytes, bytes]:
        """Vectors by digest, those that there are; 16-bit floats, lowest byte first."""
        ...

    def put(self, places: Iterable[tuple[int, bytes]], vectors: Mapping[bytes, bytes], model: str) -> None:
        """Store vectors, and which passages have which."""
        ...

    def tidy(self, model: str) -> None:
        """Remove what belongs to no passage any more."""
        ...

    def stamp(self) -> str:
        """What changes with every change of the vectors (``new_stamp``); nothing where there never were any."""
        ...

    def places(self) -> Sequence[tuple[int, bytes]]:
        """Which passage has which vector, all of them, by number."""
        ...
