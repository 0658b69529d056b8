"""Search by meaning over an index: the embedding server, and vectors computed in the background.

A passage without a vector is found by its words. Without a model server these modules are not imported.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Final

import structlog

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import KnowledgeAwayError
from agent.tasks import background_tasks
from bot.settings import Settings, embedding_address

if TYPE_CHECKING:  # numpy is loaded only with a server; the Redis client takes a tenth of a second to import
    from agent.knowledge.semantic.ranking import SemanticRanker
    from observability.stats import Stats

log = structlog.get_logger()

LOOK_AGAIN_S: Final = 30.0


@asynccontextmanager
async def open_meaning(settings: Settings, index: KnowledgeIndex) -> AsyncIterator[SemanticRanker | None]:
    """Let the index rank by meaning too, if an embedding server is configured."""
    found = embedding_address(settings)
    if found is None:
        yield None
        return
    from agent.knowledge.semantic.ranking import SemanticRanker  # noqa: PLC0415 - loads numpy, only with a server
    from agent.model.embeddings import ServerEmbedder  # noqa: PLC0415 - likewise

    async with aclosing(ServerEmbedder(*found)) as embedder:
        index.meaning = ranker = SemanticRanker(embedder, index)
        try:
            yield ranker
        finally:
            index.meaning = None


async def make_vectors(
    meaning: SemanticRanker | None, progress: Callable[[int, int], None] | None = None
) -> tuple[int, int]:
    """Compute the missing vectors now. Return how many passages have one, and how many there are."""
    if meaning is None:
        return 0, 0
    await _make(meaning, progress)
    return await asyncio.to_thread(meaning.store.counts)


@asynccontextmanager
async def keep_vectors_current(
    meaning: SemanticRanker | None, stats: Stats | None = None, *, again_s: float = LOOK_AGAIN_S
) -> AsyncIterator[None]:
    """Compute missing vectors during the block, and look for more every ``again_s`` seconds."""
    if meaning is None:
        yield
        return

    async def keep_making() -> None:
        counted: Counter[str] = Counter()
        while True:
            await _make(meaning, None)
            if stats:
                new = Counter(meaning.embedder.tokens) - counted
                counted += new
                for model, tokens in new.items():
                    stats.count({f"tokens_in:{model}": tokens, "usage:prompt_tokens": tokens})
            await asyncio.sleep(again_s)

    async with background_tasks() as tasks:
        task = tasks.create_task(keep_making(), name="vectors")
        try:
            yield
        finally:
            task.cancel()


async def _make(meaning: SemanticRanker, progress: Callable[[int, int], None] | None) -> None:
    from agent.knowledge.semantic.vectors import EmbedderError  # noqa: PLC0415 - loads numpy, only with a server

    try:
        await meaning.make(progress=progress)
    except EmbedderError:  # the ranker logs it once
        return
    except (KnowledgeAwayError, sqlite3.Error, OSError) as error:
        log.warning("vectors_not_made", error_type=type(error).__name__)
