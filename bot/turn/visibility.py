"""Filters the content of an earlier turn by the present audience of its sources.

A source is stored with the audience that it had when it was found. The document may have been closed to some people
since.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import Document, KnowledgeAwayError
from agent.payload import objects
from agent.thread.audience import Viewers, may_see
from agent.thread.state import ThreadState
from bot.stores.turn_records import sources_of
from verification.types import Source

_PATH: Final = " › "  # between a document's title and its headings
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Visibility:
    """Knows the audiences of one index. While it cannot be read, no document is visible."""

    index: KnowledgeIndex

    async def visible_sources(self, sources: Sequence[Source], viewers: Viewers) -> tuple[Source, ...]:
        """Return the sources that all viewers may see now."""
        documents: Iterable[Document] = ()
        if any(source.origin == "document" for source in sources):
            try:
                documents = await asyncio.to_thread(self.index.documents)
            except KnowledgeAwayError as error:
                log.warning("audiences_not_read", cause=str(error))
        return tuple(source for source in sources if _is_visible(source, documents, viewers))

    async def visible_record(self, record: Mapping[str, Any], viewers: Viewers) -> dict[str, Any]:
        """Return a turn's record without the sources and passages that a viewer may not see now.

        If a source is removed, so are the sentences left out of the answer: they may quote it, and were
        not checked.
        """
        sources = sources_of(record)
        visible = {source.id for source in await self.visible_sources(sources, viewers)}
        hidden: dict[str, Any] = {} if len(visible) == len(sources) else {"objected": []}
        return {
            **record,
            "attempts": [{**attempt, **hidden} for attempt in objects(record, "attempts")],
            "sources": [source for source in objects(record, "sources") if source.get("id") in visible],
            "claims": [
                {**claim, "passages": [one for one in objects(claim, "passages") if one.get("source") in visible]}
                for claim in objects(record, "claims")
            ],
        }

    async def visible_state(self, state: ThreadState, viewers: Viewers) -> ThreadState:
        """Return a thread's state without content that its viewers may no longer see."""
        if state.found is None or not state.found.sources:
            return state
        findings = replace(state.found, sources=await self.visible_sources(state.found.sources, viewers))
        if len(findings.sources) == len(state.found.sources):
            return state
        log.info("findings_hidden", count=len(state.found.sources) - len(findings.sources))
        return replace(state, found=findings)


def _is_visible(source: Source, documents: Iterable[Document], viewers: Viewers) -> bool:
    if source.origin != "document":
        return may_see(source.audience, viewers)
    same = [one for one in documents if _is_of(source, one)]
    return bool(same) and all(may_see(one.audience, viewers) for one in same)


def _is_of(source: Source, document: Document) -> bool:
    if source.url and document.url and source.url.partition("#")[0] != document.url.partition("#")[0]:
        return False
    return source.title == document.title or source.title.startswith(document.title + _PATH)
