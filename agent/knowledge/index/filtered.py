"""An index filtered by audience: no result, list or count includes a document that not all viewers may see."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import Document, FoundPassage
from agent.thread.audience import Viewers, may_see

_WIDER: Final = 4
_MAX_LIMIT: Final = 2_000  # passages examined: after this many withheld ones nothing relevant is left


class SeenBy:
    """The part of an index that all ``viewers`` may see. ``prefixes`` of paths or sources narrow it further."""

    def __init__(self, index: KnowledgeReader, viewers: Viewers, prefixes: tuple[str, ...] = ()) -> None:
        self._index = index
        self._viewers = viewers
        self._prefixes = prefixes

    async def embed_question(self, query: str) -> Any:
        """Return the question's vector for ``search``."""
        return await self._index.embed_question(query)

    def search(self, query: str, *, limit: int = 8, vector: Any = None) -> tuple[FoundPassage, ...]:
        """Return the best passages that all viewers may see."""
        asked = limit
        while True:
            found = self._index.search(query, limit=asked, vector=vector)
            seen = self._of(found)
            if len(seen) >= limit or len(found) < asked or asked >= _MAX_LIMIT:
                return seen[:limit]
            asked *= _WIDER

    def _of(self, passages: tuple[FoundPassage, ...]) -> tuple[FoundPassage, ...]:
        seen = tuple(passage for passage in passages if may_see(passage.audience, self._viewers))
        return tuple(one for one in seen if one.document in self._named_ids) if self._prefixes else seen

    @cached_property
    def _named_ids(self) -> frozenset[str]:
        """Ids of the documents that the prefixes name."""
        return frozenset(document.id for document in self._index.documents() if self._is_named(document))

    def _is_named(self, document: Document) -> bool:
        return (
            not self._prefixes or document.id.startswith(self._prefixes) or document.source.startswith(self._prefixes)
        )

    def _is_seen(self, document: Document) -> bool:
        return may_see(document.audience, self._viewers) and self._is_named(document)

    def part(self, document: str, first: int, last: int) -> tuple[FoundPassage, ...]:
        """Return a part of a document that all viewers may see."""
        return self._of(self._index.part(document, first, last))

    def documents(self) -> tuple[Document, ...]:
        """Return the documents that all viewers may see."""
        return tuple(filter(self._is_seen, self._index.documents()))

    def document(self, name_or_id: str) -> Document | None:
        """Return one document. A title that a withheld document shares still finds the other."""
        found = self._index.document(name_or_id)
        if found is None or self._is_seen(found):
            return found
        wanted = name_or_id.strip().casefold()
        others = (d.id for d in self.documents() if wanted in {d.id.casefold(), d.title.casefold()})
        return next((self._index.document(other) for other in others), None)


KnowledgeReader = KnowledgeIndex | SeenBy
