"""An index as some people may see it: documents that not all of them may see are in no result, list or count (I3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agent.knowledge.types import Document, KnowledgeReader, Passage
from agent.thread.audience import Viewers, may_see

_WIDER: Final = 4
_MOST: Final = 2_000
"""Passages looked through at most for one search: behind so many withheld ones nothing relevant is left."""


class SeenBy:
    """A ``KnowledgeReader`` for ``viewers``."""

    def __init__(self, index: KnowledgeReader, viewers: Viewers) -> None:
        self._index = index
        self._viewers = viewers

    def search(self, query: str, *, limit: int = 8) -> tuple[Passage, ...]:
        """The best passages that all viewers may see."""
        asked = limit
        while True:
            found = self._index.search(query, limit=asked)
            seen = tuple(passage for passage in found if may_see(passage.audience, self._viewers))
            if len(seen) >= limit or len(found) < asked or asked >= _MOST:
                return seen[:limit]
            asked *= _WIDER

    def rarity(self, query: str) -> Mapping[str, float]:
        """What each word says among all passages, withheld ones too: a number that tells of none of them."""
        return self._index.rarity(query)

    def part(self, document: str, first: int, last: int) -> tuple[Passage, ...]:
        """A part of a document that all viewers may see."""
        found = self._index.part(document, first, last)
        return tuple(passage for passage in found if may_see(passage.audience, self._viewers))

    def documents(self) -> tuple[Document, ...]:
        """The documents that all viewers may see."""
        return tuple(document for document in self._index.documents() if may_see(document.audience, self._viewers))

    def document(self, name_or_id: str) -> Document | None:
        """One of them. A title that a withheld document shares still finds the other."""
        found = self._index.document(name_or_id)
        if found is None or may_see(found.audience, self._viewers):
            return found
        wanted = name_or_id.strip().casefold()
        others = (d.id for d in self.documents() if wanted in {d.id.casefold(), d.title.casefold()})
        return next((self._index.document(other) for other in others), None)
