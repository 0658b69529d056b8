"""The embedding server as search by meaning sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agent.knowledge.semantic.vectors import Vectors


class EmbedderError(Exception):
    """The embedding server is away or refuses. The text says why, for the admin.

    ``is_unset``: nobody named a model, and the server lists none.
    """

    def __init__(self, reason: str, *, is_unset: bool = False) -> None:
        super().__init__(reason)
        self.is_unset = is_unset


class Embedder(Protocol):
    """Turns texts into vectors of length one. Vectors of two models must not be compared."""

    name: str
    """The model, empty until it was found."""

    @property
    def tokens(self) -> Mapping[str, int]:
        """Tokens that were embedded, by model."""

    async def find_model(self) -> str:
        """Return the model that was named, or one from the server's list. Raises ``EmbedderError``."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text, one a row. Raises ``EmbedderError``."""
