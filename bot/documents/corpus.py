"""The documents of the index, functions that open and sync it, and its figures by source.

The background sync loads little more than this module, so do not import a model, Slack or Redis here.
"""

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.readers.reading import advice_for
from agent.knowledge.sources.feed import FeedSource
from agent.knowledge.types import (
    DeferredSource,
    DocumentSource,
    Holding,
    IndexReport,
    KnowledgeAwayError,
    SourceState,
    due_at,
)
from bot.errors import WrongUse
from observability.redaction import redact

log = structlog.get_logger()

ONE_SOURCE_WAIT_S: Final = 30.0
SYNC_WAIT_S: Final = 10.0  # wait for a sync by this or another process: enough for folders, not for web sites
SYNC_LOCK: Final = "lock"  # name of the lock for syncing an index; with SQLite also a file suffix
_KINDS: Final = ("answers", "feed", "git", "slack", "web")


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Folders and sources of documents, and the index for them: in the PostgreSQL ``database`` if there is one."""

    roots: tuple[Path, ...]
    index_path: Path
    docs_url: str = ""
    database: str = ""
    sources: tuple[DocumentSource, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names under which the states of folders and sources are stored."""
        return (*(str(root.expanduser().resolve()) for root in self.roots), *(source.key for source in self.sources))

    def sources_to_read(self, *, fetch: bool) -> list[Path | DocumentSource | DeferredSource]:
        """Return the sources for a run. Web sites and feeds are deferred unless the run may ``fetch``."""
        if fetch or not self.sources:
            return [*self.roots, *self.sources]
        from agent.knowledge.sources.web import WebSource  # noqa: PLC0415 - loads an HTTP client: only who has sources

        web = [source for source in self.sources if isinstance(source, WebSource)]
        later = {site.key: DeferredSource(key=site.key, part=site.part, audience=site.audience) for site in web}
        later |= {feed.key: DeferredSource(key=feed.key) for feed in self.sources if isinstance(feed, FeedSource)}
        return [*self.roots, *(later.get(source.key, source) for source in self.sources)]


def sync_index(corpus: Corpus, *, every_s: float, fetch: bool = True, wait_s: float = 0.0) -> IndexReport | None:
    """Sync all sources. Return None if another process is syncing, or did so in the last ``every_s`` seconds.

    ``fetch`` includes web sites. ``wait_s`` is how long to wait for another process. Blocks. Raises ``WrongUse``,
    ``KnowledgeAwayError``, ``OSError`` and ``sqlite3.Error``.
    """
    with index_for(corpus) as index, index.alone(SYNC_LOCK, wait_s) as alone:
        if not alone or due_at(index.states(), corpus.names, every_s) > time.time():
            return None
        return index.index(corpus.sources_to_read(fetch=fetch), docs_url=corpus.docs_url)


def sync_now(corpus: Corpus, key: str) -> None:
    """Sync one source and leave the others as they are. A failure is only logged: the next sync retries. Blocks."""
    sources: list[Path | DocumentSource | DeferredSource] = [DeferredSource(key=name) for name in corpus.names]
    for at, source in enumerate(corpus.sources, len(corpus.roots)):
        sources[at] = source if source.key == key else DeferredSource(key=source.key, part=source.part)
    try:
        with index_for(corpus) as index, index.alone(SYNC_LOCK, ONE_SOURCE_WAIT_S) as alone:
            if alone:
                index.index(sources, docs_url=corpus.docs_url)
            else:
                log.warning("source_not_synced", source=key, reason="another process syncs")
    except (KnowledgeAwayError, OSError, sqlite3.Error) as error:
        log.warning("source_not_synced", source=key, reason=type(error).__name__)


def index_for(corpus: Corpus) -> KnowledgeIndex:
    """Open the index of a corpus. Raises ``WrongUse``, ``OSError`` and ``sqlite3.Error``."""
    if not corpus.database:
        return SqliteIndex.open(corpus.index_path)
    from agent.knowledge.index.postgres import PostgresIndex  # noqa: PLC0415 - most installations have no PostgreSQL

    try:
        return PostgresIndex(corpus.database)
    except ValueError:
        message = "ORION_KNOWLEDGE_URL is not the address of a PostgreSQL database. An example: postgresql://host/name."
        raise WrongUse(message) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFigures:
    """One source. ``kind`` is ``folder`` or the part of its name before the colon, ``where`` its path or address."""

    kind: str
    where: str
    held: Holding
    state: SourceState

    @property
    def unread_lines(self) -> tuple[str, ...]:
        """Describe what was not read: documents with reasons, then files by suffix, those with advice first."""
        state = self.state
        more = state.failures - len(state.failed)
        skipped = sorted(state.skipped, key=lambda files: (not advice_for(files[0]), -files[1]))
        return (
            *(f"{name}: {reason}" for name, reason in state.failed),
            *([f"{more:,} more of {self.where}"] if more else []),
            *(
                f"{number:,} file{'' if number == 1 else 's'} {suffix or 'without a suffix'} in {self.where}: "
                f"{advice_for(suffix) or 'a format that is not read'}"
                for suffix, number in skipped
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeFigures:
    """All sources and their totals. ``synced`` is the oldest last sync in seconds since 1970; None if one never was."""

    sources: tuple[SourceFigures, ...]
    documents: int
    passages: int
    size: int
    failures: int
    synced: float | None


def figures_of(index: KnowledgeIndex, names: Sequence[str] = ()) -> KnowledgeFigures:
    """Return the figures of the index, including empty sources of these ``names``. Raises ``KnowledgeAwayError``."""
    holdings = {holding.source: holding for holding in index.holdings()}
    states = index.states()
    sources = []
    for name in {*holdings, *states, *names}:
        prefix, _, rest = name.partition(":")
        kind, where = (prefix, rest) if prefix in _KINDS else ("folder", name)
        held, state = holdings.get(name) or Holding(source=name), states.get(name) or SourceState(tried=0.0)
        # A feed's command may contain a secret.
        sources.append(SourceFigures(kind=kind, where=redact(where), held=held, state=state))
    return KnowledgeFigures(
        sources=tuple(sorted(sources, key=lambda source: (source.kind, source.where))),
        documents=sum(source.held.documents for source in sources),
        passages=sum(source.held.passages for source in sources),
        size=sum(source.state.size for source in sources),
        failures=sum(source.state.failures for source in sources),
        synced=min((source.state.synced for source in sources), default=0.0) or None,
    )


async def available_figures(index: KnowledgeIndex) -> KnowledgeFigures | None:
    """Return the figures without blocking the event loop; None if the index cannot be reached."""
    try:
        return await asyncio.to_thread(figures_of, index)
    except KnowledgeAwayError:
        return None
