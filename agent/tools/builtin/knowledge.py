"""The knowledge tools ``search``, ``list_documents``, ``get_document``, and sources of Slack's own search.

They return sources: the document's text, a title with all headings above it, a link and an age. Calls to the index
block, so they run in a thread, except a short search. Queries and texts are never logged. Of messages that
``slack_search`` found, only the links are stored.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, cast

import structlog

from agent.knowledge.index.index import KnowledgeIndex, KnowledgeReader, SeenBy
from agent.knowledge.search.full_text import Stretch, expand_hits
from agent.knowledge.types import Document, FoundPassage, KnowledgeAwayError
from agent.thread.conversation import Viewers
from agent.tools.tool import Tool, ToolFailed, ToolResult, parameter, spec_of
from verification.types import Source

log = structlog.get_logger()

SEARCH: Final = "search"
LIST_DOCUMENTS: Final = "list_documents"
GET_DOCUMENT: Final = "get_document"
LIST_TITLE: Final = "List of documents"
_UNKNOWN: Final = (
    "There is no document of that name.", "list_documents shows the names.", "search finds passages by their words."
)  # fmt: skip
DOCUMENTS: Final = "documents"  # the place of these tools
NO_DOCUMENTS: Final = "There are no documents yet."  # none at all, or none that the readers of the answer may see
MAX_TEXT_CHARS: Final = 15_000  # in one result: ``call_tool`` would cut off more without a note
MAX_LISTED: Final = 400
_MAX_LIMIT: Final = parameter(SEARCH, "limit")["maximum"]
_LIMIT: Final = parameter(SEARCH, "limit")["default"]
SOURCE_TOKENS: Final = 6_000  # tokens of one search, estimated from bytes; 0: only the passages that were found


class DocumentsAway(ToolFailed):
    """The index cannot be reached."""

    hints = ("Say that the documents cannot be searched just now.",)
    away = True


def knowledge_tools(index: KnowledgeIndex, *, source_tokens: int = SOURCE_TOKENS) -> tuple[Tool, ...]:
    """Return the three tools over one index. ``source_tokens`` is the maximum that one search returns."""
    return (SearchTool(index, source_tokens), ListDocumentsTool(index), GetDocumentTool(index))


def for_viewers(tools: Mapping[str, Tool], viewers: Viewers, prefixes: tuple[str, ...] = ()) -> dict[str, Tool]:
    """Return the same tools for one place: the whole index becomes the part that everyone there may see."""
    return {
        name: replace(tool, index=SeenBy(cast("KnowledgeIndex", tool.index), viewers, prefixes))
        if isinstance(tool, _KnowledgeTool)
        else tool
        for name, tool in tools.items()
    }


@dataclass(frozen=True)
class _KnowledgeTool:
    index: KnowledgeReader
    source_tokens: int = SOURCE_TOKENS


class SearchTool(_KnowledgeTool):
    """Searches for ranked passages."""

    spec = spec_of(SEARCH)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Search, and return one source for each stretch of a document, and the names of those that do not fit."""
        limit, query = int(arguments.get("limit", _LIMIT)), str(arguments["query"])
        with _away_as_failure():
            vector = await self.index.embed_question(query)
            # SQLite releases the interpreter at every row. In a thread a short search would take turns with all other
            # work that often and slow it down (docs/measurements/speed.md).
            if vector is None and (on_loop := self.index.on_loop):
                with suppress(KnowledgeAwayError):
                    return self._search(on_loop, query, limit, None)
            return await asyncio.to_thread(self._search, self.index, query, limit, vector)

    def _search(self, index: KnowledgeReader, query: str, limit: int, vector: Any) -> ToolResult:
        # Ask before the search: what is read in between is then reported as missing, not the other way round.
        so_far = index.documents_so_far()
        hits = index.search(query, limit=limit + 1, vector=vector)
        if not hits and not index.has_documents():
            return ToolResult(content=NO_DOCUMENTS, documents_so_far=so_far)
        stretches, left_out = expand_hits(hits[:limit], index.part, tokens=self.source_tokens)
        lines = []
        for each in stretches:
            hit = each.hit
            place = f"page {hit.page}" if hit.page else f"line {hit.line}"
            lines.append(f"{each.title} ({hit.document}, {place}{_age_of(hit)})")
        if len(hits) > limit:
            lines.append(
                f"More passages fit this query. Narrower words, or a limit of up to {_MAX_LIMIT}, bring others."
            )
        if left_out:
            titles = ((Stretch(passages=(each,), hit=each).title, each.document) for each in left_out)
            names = "; ".join(dict.fromkeys(f"{title} ({document})" for title, document in titles))
            lines.append(f"Found as well, but too long to bring: {names}. get_document reads one of them.")
        return ToolResult(
            content="\n".join(lines) or "No passage has any of these words.",
            sources=tuple(
                replace(_source(each.title, each.text, each.hit), sections=each.sections) for each in stretches
            ),
            hints=() if stretches else ("Try other words for the same thing, or list_documents.",),
            documents_so_far=so_far,
        )


class ListDocumentsTool(_KnowledgeTool):
    """Lists the documents."""

    spec = spec_of(LIST_DOCUMENTS)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG002 - takes none
        """Return one source, whose text is the list."""
        with _away_as_failure():
            documents = await asyncio.to_thread(self.index.documents)
        if not documents:
            return ToolResult(content=NO_DOCUMENTS)
        lines = [f"- {each.title} ({each.id}){_age_of(each)}" for each in documents]
        sizes = accumulate(len(line) + 1 for line in lines)
        shown = [line for line, size in zip(lines, sizes, strict=True) if size <= MAX_TEXT_CHARS][:MAX_LISTED]
        text = "\n".join([*shown, *([f"- and {len(lines) - len(shown)} more"] if len(shown) < len(lines) else [])])
        source = Source(id=0, title=LIST_TITLE, text=text)
        return ToolResult(content=f"{len(documents)} documents:\n{text}", sources=(source,))


class GetDocumentTool(_KnowledgeTool):
    """One document in full."""

    spec = spec_of(GET_DOCUMENT)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Return one source with the text up to ``MAX_TEXT_CHARS`` characters."""
        with _away_as_failure():
            document = await asyncio.to_thread(self.index.document, str(arguments["document"]))
        if document is None:
            raise ToolFailed(*_UNKNOWN)
        cut = len(document.text) > MAX_TEXT_CHARS
        note = f" (the first {MAX_TEXT_CHARS} of {len(document.text)} characters; search finds the rest)" if cut else ""
        return ToolResult(
            content=f"{document.title} ({document.id}){note}",
            sources=(_source(document.title, document.text[:MAX_TEXT_CHARS], document),),
            hints=(f"Only the document's beginning is shown{note}.",) if cut else (),
        )


@contextmanager
def _away_as_failure() -> Iterator[None]:
    """Turn an unreachable index into a failed tool: the turn decides what to do."""
    try:
        yield
    except KnowledgeAwayError as error:
        log.warning("knowledge_away", cause=str(error))
        raise DocumentsAway(why="The index of the documents cannot be reached at the moment.") from error


def _source(title: str, text: str, found: FoundPassage | Document) -> Source:
    return Source(id=0, title=title, url=found.url, text=text, updated_at=found.updated_at, audience=found.audience)


def _age_of(found: FoundPassage | Document) -> str:
    return f", updated {found.updated_at}" if found.updated_at else ""


SLACK_SEARCH: Final = "slack_search"
SLACK_SEARCH_ORIGIN: Final = f"tool:{SLACK_SEARCH}"


class SlackSearchFailed(ToolFailed):
    """Slack's search failed."""

    hints = ("Go on without it.",)
    away = True


def permalinks_only(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return the sources as a thread may store them: results of Slack's search without text and title."""
    # Slack's terms forbid storing search results.
    stored = ((one, replace(one, title="A message in Slack", text="")) for one in sources)
    return tuple(bare if one.origin == SLACK_SEARCH_ORIGIN else one for one, bare in stored)


def without_slack_text(source: Source) -> Source:
    """Return the source without its text if it comes from Slack's search: such text may not be stored."""
    return replace(source, text="") if source.origin == SLACK_SEARCH_ORIGIN else source
