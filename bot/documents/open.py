"""Opens the documents and the index that the settings name, and brings the index up to date before it answers.

`orion index` and `orion docs` start with this, so it imports no language model.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.sources.git import GitSource
from agent.knowledge.sources.slack_export import SlackExport
from agent.knowledge.types import Document, IndexReport, KnowledgeAwayError, Source
from bot.documents.corpus import SYNC, Corpus, index_of
from bot.errors import WrongUse
from bot.settings import Settings, require_folders

log = structlog.get_logger()

SYNC_WAIT_S = 10.0  # for another process that reads the sources: more than folders take, less than web sites
_GIT_DOCS = re.compile(r"(?P<folder>[^@:]+)(?:@(?P<ref>[^@:]+))?(?::(?P<inside>[^:]*))?")


async def known_documents(index: KnowledgeIndex) -> tuple[Document, ...]:
    """What can be told of now: nothing while the index is away."""
    try:
        return await asyncio.to_thread(index.documents)
    except KnowledgeAwayError:
        return ()


def corpus_of(settings: Settings, docs: Sequence[Path] | None = None, docs_url: str | None = None) -> Corpus:
    """The configured folders, or others that a command names. Raises ``WrongUse`` for a folder that is not there.

    Named ones get an index of their own: trying a folder out must not empty the index a running Orion serves from.
    """
    roots = tuple(settings.docs if docs is None else docs)
    require_folders(roots)
    corpus = Corpus(
        roots=roots,
        index_path=settings.index_path,
        docs_url=settings.docs_url if docs_url is None else docs_url,
        semantic=settings.semantic,
    )
    if docs is None:
        return replace(corpus, database=settings.knowledge_url.get_secret_value(), sources=_sources(settings))
    identity = [str(docs_url or ""), *(str(root.resolve()) for root in roots)]
    digest = hashlib.sha256("\n".join(identity).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return replace(corpus, index_path=settings.index_path.with_name(f"knowledge-{digest}.sqlite3"))


def local_corpus(settings: Settings, port: int, folders: Sequence[Path] = ()) -> Corpus:
    """What the local workspace on this port knows: an index of its own. Without ``folders`` it is taken as it is."""
    corpus = corpus_of(settings, folders, docs_url=f"http://127.0.0.1:{port}/docs/")
    return replace(corpus, index_path=settings.home / f"knowledge-local-{port}.sqlite3")


def _sources(settings: Settings) -> tuple[Source, ...]:
    """Repositories, exports and web sites. Raises ``WrongUse``."""
    exports = [SlackExport(folder=folder, url=settings.slack_exports_url) for folder in settings.slack_exports]
    found: list[Source] = [*map(partial(_git_source, settings.git_docs_url), sorted(settings.git_docs)), *exports]
    if settings.web_docs:
        from bot.documents.web_sources import web_sources  # noqa: PLC0415 - loads an HTTP client

        found += web_sources(settings)
    return tuple(found)


def _git_source(url: str, entry: str) -> GitSource:
    parts = _GIT_DOCS.fullmatch(entry)
    if parts is None:
        message = f"ORION_GIT_DOCS: {entry} should be FOLDER, FOLDER@REF or FOLDER@REF:SUBFOLDER."
        raise WrongUse(message)
    folder = (parts["inside"] or "").strip("/")
    return GitSource(repository=Path(parts["folder"]).expanduser(), ref=parts["ref"] or "HEAD", folder=folder, url=url)


@asynccontextmanager
async def open_index(
    corpus: Corpus, progress: Callable[[str], None] | None = None, *, fetch: bool = False, wait_s: float = SYNC_WAIT_S
) -> AsyncIterator[tuple[KnowledgeIndex, IndexReport]]:
    """The index, brought up to date with its folders. Without folders it is taken as it is.

    ``fetch``: with its web sites too. While another process brings it up to date, that one is waited for up to
    ``wait_s`` seconds; then the index is taken as it is. Raises ``WrongUse`` when its file cannot be opened or written
    or the chosen search by meaning is not there, ``KnowledgeAwayError`` when its database is away.
    """
    async with AsyncExitStack() as stack:
        with _writable(corpus.index_path):
            index = await asyncio.to_thread(index_of, corpus)
            stack.push_async_callback(asyncio.to_thread, index.close)
            report = await asyncio.to_thread(_synced, index, corpus, progress, fetch=fetch, wait_s=wait_s)
        yield index, report


def _synced(
    index: KnowledgeIndex,
    corpus: Corpus,
    progress: Callable[[str], None] | None = None,
    *,
    fetch: bool = False,
    wait_s: float = SYNC_WAIT_S,
) -> IndexReport:
    if not corpus.names:
        index.ping()
        return IndexReport()
    for patience_s in dict.fromkeys((0.0, wait_s)):
        with index.alone(SYNC, patience_s) as alone:
            if alone:
                return index.index(corpus.read_by(fetch=fetch), docs_url=corpus.docs_url, progress=progress)
        if not patience_s:
            log.warning("index_brought_up_to_date_elsewhere", waited_for_at_most_s=wait_s)
    return IndexReport()


@asynccontextmanager
async def open_patiently(corpus: Corpus) -> AsyncIterator[tuple[KnowledgeIndex, IndexReport]]:
    """The index, also while its database is away: what needs it says so, and works when it is back."""
    if not corpus.database:
        async with open_index(corpus) as opened:
            yield opened
        return
    index = await asyncio.to_thread(index_of, corpus)
    try:
        try:
            report = await asyncio.to_thread(_synced, index, corpus)
        except KnowledgeAwayError as error:
            log.warning("knowledge_away", cause=str(error))
            report = IndexReport(failed=(("ORION_KNOWLEDGE_URL", "cannot be reached; nothing was brought up to date"),))
        yield index, report
    finally:
        await asyncio.to_thread(index.close)


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"The document index {path} cannot be written: {reason}. Name another folder in ORION_HOME."
        raise WrongUse(message) from None
