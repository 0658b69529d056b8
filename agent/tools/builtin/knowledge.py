"""The knowledge tools (D2): ``search``, ``list_documents``, ``get_document``.

Promises: what they bring are sources with the exact text, a title that says where, a link and an age (D6); nothing
found is a result too. The index blocks, so every call runs in a thread. Must never log a query or a text.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog

from agent.knowledge.index.filtered import SeenBy
from agent.knowledge.search.recency import asks_for_newest, freshest_first
from agent.knowledge.types import Document, KnowledgeAwayError, KnowledgeReader, Passage
from agent.thread.audience import Viewers
from agent.tools.tool import Tool, ToolResult, ToolSpec
from verification.types import Source

log = structlog.get_logger()

SEARCH: Final = "search"
LIST_DOCUMENTS: Final = "list_documents"
GET_DOCUMENT: Final = "get_document"
LIST_TITLE: Final = "List of documents"
AWAY: Final = "The index of the documents cannot be reached at the moment."
MOST_TEXT: Final = 15_000
"""Characters of one document, or of the list of them, that a model is given at once: what a turn would cut off of it
nobody could tell it of."""
MOST_LISTED: Final = 400


def knowledge_tools(index: KnowledgeReader) -> tuple[Tool, ...]:
    """The three tools over one index."""
    return (SearchTool(index), ListDocumentsTool(index), GetDocumentTool(index))


def for_viewers(tools: Mapping[str, Tool], viewers: Viewers) -> dict[str, Tool]:
    """The same tools for one place: the index shows what everybody there may see (I3)."""
    return {
        name: type(tool)(SeenBy(tool.index, viewers)) if isinstance(tool, _KnowledgeTool) else tool
        for name, tool in tools.items()
    }


class _KnowledgeTool(ABC):
    """Stands over one index. One that is away is a result: the turn decides what becomes of the question."""

    spec: ToolSpec

    def __init__(self, index: KnowledgeReader) -> None:
        self.index = index

    async def run(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:
        """What the index says to it."""
        try:
            return await self._ask(call_id, arguments)
        except KnowledgeAwayError as error:
            log.warning("knowledge_away", cause=str(error))
            hints = ("Say that the documents cannot be searched just now.",)
            return ToolResult(call_id=call_id, tool=self.spec.name, ok=False, error=AWAY, hints=hints)

    @abstractmethod
    async def _ask(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult: ...


class SearchTool(_KnowledgeTool):
    """Ranked passages for words."""

    spec = ToolSpec(
        name=SEARCH,
        description=(
            "Searches the team's documents and returns the best passages. Use the words that the document would use; "
            "search again with other words when the passages do not answer the question."
        ),
        parameters={
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "description": "A few words of the subject."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 8, "description": "How many."},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    )

    async def _ask(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Search; one source a passage."""
        limit = int(arguments.get("limit", 8))
        query = str(arguments["query"])
        found = await asyncio.to_thread(self.index.search, query, limit=limit)
        found = freshest_first(found) if asks_for_newest(query) else found
        lines = [f"{p.label} ({p.document}, {_place(p)}, updated {p.updated_at})" for p in found]
        return ToolResult(
            call_id=call_id,
            tool=SEARCH,
            ok=True,
            content="\n".join(lines) or "No passage has any of these words.",
            sources=tuple(map(_source, found)),
            hints=() if found else ("Try other words for the same thing, or list_documents.",),
        )


class ListDocumentsTool(_KnowledgeTool):
    """What there is."""

    spec = ToolSpec(
        name=LIST_DOCUMENTS,
        description="Lists all documents with title, path and date of the last change.",
        parameters={"type": "object", "properties": {}, "additionalProperties": False},
    )

    async def _ask(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG002 - takes none
        """List; one source, whose text is the list."""
        documents = await asyncio.to_thread(self.index.documents)
        text = "\n".join(_within_limits([_listed(document) for document in documents]))
        return ToolResult(
            call_id=call_id,
            tool=LIST_DOCUMENTS,
            ok=True,
            content=f"{len(documents)} documents:\n{text}" if documents else "There are no documents yet.",
            sources=(Source(id=0, title=LIST_TITLE, text=text),) if documents else (),
        )


class GetDocumentTool(_KnowledgeTool):
    """One document in full."""

    spec = ToolSpec(
        name=GET_DOCUMENT,
        description="Reads one whole document. Name it by its path or its title, as list_documents and search show it.",
        parameters={
            "type": "object",
            "properties": {"document": {"type": "string", "minLength": 1, "description": "Path or title."}},
            "required": ["document"],
            "additionalProperties": False,
        },
    )

    async def _ask(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Read; one source with the text up to ``MOST_TEXT`` characters."""
        document = await asyncio.to_thread(self.index.document, str(arguments["document"]))
        if document is None:
            return ToolResult(
                call_id=call_id,
                tool=GET_DOCUMENT,
                ok=False,
                error="There is no document of that name.",
                hints=("list_documents shows the names.", "search finds passages by their words."),
            )
        cut = len(document.text) > MOST_TEXT
        text = document.text[:MOST_TEXT]
        note = f" (the first {MOST_TEXT} of {len(document.text)} characters; search finds the rest)" if cut else ""
        source = Source(
            id=0,
            title=document.title,
            url=document.url,
            text=text,
            updated_at=document.updated_at,
            audience=document.audience,
        )
        content = f"{document.title} ({document.id}){note}"
        return ToolResult(call_id=call_id, tool=GET_DOCUMENT, ok=True, content=content, sources=(source,))


def _source(passage: Passage) -> Source:
    return Source(
        id=0,
        title=passage.label,
        url=passage.url,
        text=passage.text,
        updated_at=passage.updated_at,
        audience=passage.audience,
    )


def _place(passage: Passage) -> str:
    return f"page {passage.page}" if passage.page else f"line {passage.line}"


def _within_limits(lines: Sequence[str]) -> list[str]:
    """The first lines, and how many more there are."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if number == MOST_LISTED or size > MOST_TEXT:
            return [*lines[:number], f"- and {len(lines) - number} more"]
    return list(lines)


def _listed(document: Document) -> str:
    return f"- {document.title} ({document.id}), updated {document.updated_at}"
