"""The configured documents and index, which is synced before it answers, and search by meaning over it.

`orion index` and `orion docs` start with this, so it imports no language model. A passage without a vector is found by
its words.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shlex
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

import structlog

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.sources.answers import AnswerFolder
from agent.knowledge.sources.feed import FeedSource
from agent.knowledge.sources.git import GitSource
from agent.knowledge.sources.slack_export import SlackExport
from agent.knowledge.types import Document, DocumentSource, IndexReport, KnowledgeAwayError
from agent.tasks import background_tasks
from agent.thread.conversation import PUBLIC, parse_audience
from bot.documents.corpus import SYNC_LOCK, SYNC_WAIT_S, Corpus, index_for
from bot.errors import WrongUse
from bot.settings import Settings, embedding_address, feed_environment, require_folders

if TYPE_CHECKING:  # these load numpy, the Redis client and an HTTP client
    from agent.knowledge.semantic.ranking import SemanticRanker
    from agent.knowledge.sources.web import WebSource
    from observability.stats import Stats

log = structlog.get_logger()

LOOK_AGAIN_S: Final = 30.0  # for passages without a vector
_GIT_DOCS = re.compile(r"(?P<folder>[^@:]+)(?:@(?P<ref>[^@:]+))?(?::(?P<inside>[^:]*))?")
_WRONG_ADDRESS = (
    "ORION_WEB_DOCS: {entry} should be the address of a page or a sitemap, such as https://docs.acme.com/sitemap.xml, "
    "without a name or a password."
)
_WRONG_AUDIENCE = (
    "ORION_WEB_DOCS_AUDIENCE should be public, or ids of channels, people or workspaces with commas between, such as "
    "C0123ABCD."
)


async def available_documents(index: KnowledgeIndex) -> tuple[Document, ...]:
    """Return all documents without text, or none if the index cannot be reached."""
    try:
        return await asyncio.to_thread(index.documents)
    except KnowledgeAwayError:
        return ()


def corpus_of(settings: Settings, docs: Sequence[Path] | None = None, docs_url: str | None = None) -> Corpus:
    """Return the configured folders, or those that a command names. Raises ``WrongUse`` for a missing folder.

    Named folders get their own index, so that trying one out does not empty the index of a running Orion.
    """
    roots = tuple(settings.docs if docs is None else docs)
    require_folders(roots)
    url = settings.docs_url if docs_url is None else docs_url
    corpus = Corpus(roots=roots, index_path=settings.index_path, docs_url=url)
    if docs is None:
        return replace(corpus, database=settings.knowledge_url.get_secret_value(), sources=_sources(settings))
    identity = [str(docs_url or ""), *(str(root.resolve()) for root in roots)]
    digest = hashlib.sha256("\n".join(identity).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return replace(corpus, index_path=settings.index_path.with_name(f"knowledge-{digest}.sqlite3"))


def local_corpus(settings: Settings, port: int, folders: Sequence[Path] = ()) -> Corpus:
    """Return the corpus of the local workspace on this port. Without ``folders`` its index is used as it is."""
    corpus = corpus_of(settings, folders, docs_url=f"http://127.0.0.1:{port}/docs/")
    saved = (AnswerFolder(folder=settings.answers),) if settings.answers else ()
    return replace(corpus, index_path=settings.home / f"knowledge-local-{port}.sqlite3", sources=saved)


def _sources(settings: Settings) -> tuple[DocumentSource, ...]:
    """Return the configured repositories, exports, saved answers, feeds and web sites. Raises ``WrongUse``."""
    exports = [SlackExport(folder=folder, url=settings.slack_exports_url) for folder in settings.slack_exports]
    git_sources = map(partial(_git_source, settings.git_docs_url), sorted(settings.git_docs))
    sources: list[DocumentSource] = [*git_sources, *exports]
    if settings.answers:
        sources.append(AnswerFolder(folder=settings.answers))
    if settings.feeds:
        environment = tuple(feed_environment().items())
        sources += [FeedSource(command=tuple(shlex.split(entry)), environment=environment) for entry in settings.feeds]
    if settings.web_docs:
        sources += web_sources(settings)
    return tuple(sources)


def _git_source(url: str, entry: str) -> GitSource:
    parts = _GIT_DOCS.fullmatch(entry)
    if parts is None:
        shown = re.sub(r"^(\w+://)?[^/@]+@", r"\1[redacted]@", entry)  # a token may be all of the user's name
        raise WrongUse(why=f"ORION_GIT_DOCS: {shown} should be FOLDER, FOLDER@REF or FOLDER@REF:SUBFOLDER.")
    folder = (parts["inside"] or "").strip("/")
    return GitSource(repository=Path(parts["folder"]).expanduser(), ref=parts["ref"] or "HEAD", folder=folder, url=url)


@asynccontextmanager
async def open_index(
    corpus: Corpus,
    progress: Callable[[str], None] | None = None,
    *,
    fetch: bool = False,
    wait_s: float = SYNC_WAIT_S,
    may_be_away: bool = False,
) -> AsyncIterator[tuple[KnowledgeIndex, IndexReport]]:
    """Open the index and sync it with its folders. Without folders, use it as it is.

    ``fetch`` syncs web sites too. If another process is syncing, wait up to ``wait_s`` seconds for it, then use the
    index as it is. Raises ``WrongUse`` if its file cannot be written and ``KnowledgeAwayError`` if its database
    cannot be reached; if it ``may_be_away``, searches report that instead, and work once it is back.
    """
    async with AsyncExitStack() as stack:
        try:
            index = await asyncio.to_thread(index_for, corpus)
            stack.push_async_callback(asyncio.to_thread, index.close)
            report = await asyncio.to_thread(_sync_unless_busy, index, corpus, progress, fetch=fetch, wait_s=wait_s)
        except KnowledgeAwayError as error:
            if not may_be_away:
                raise
            log.warning("knowledge_away", cause=str(error))
            report = IndexReport(failed=(("ORION_KNOWLEDGE_URL", "cannot be reached; nothing was synced"),))
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            message = f"The document index {corpus.index_path} cannot be written: {reason}."
            raise WrongUse(why=f"{message} Name another folder in ORION_HOME.") from None
        yield index, report


def _sync_unless_busy(
    index: KnowledgeIndex, corpus: Corpus, progress: Callable[[str], None] | None, *, fetch: bool, wait_s: float
) -> IndexReport:
    if not corpus.names:
        index.ping()
        return IndexReport()
    for lock_wait_s in dict.fromkeys((0.0, wait_s)):
        with index.alone(SYNC_LOCK, lock_wait_s) as alone:
            if alone:
                return index.index(corpus.sources_to_read(fetch=fetch), docs_url=corpus.docs_url, progress=progress)
        if not lock_wait_s:
            log.warning("index_synced_elsewhere", waited_for_at_most_s=wait_s)
    return IndexReport()


def web_sources(settings: Settings) -> tuple[WebSource, ...]:
    """Return one source for each site in ``ORION_WEB_DOCS``; only its hosts are ever contacted. Raises ``WrongUse``."""
    from agent.knowledge.sources.web import WebSource  # noqa: PLC0415 - only installations with web sites load it

    seen_by = sorted(settings.web_docs_audience)
    audience = PUBLIC if seen_by in ([], [PUBLIC]) else parse_audience(seen_by)
    if audience is None:
        raise WrongUse(_WRONG_AUDIENCE)
    sites: dict[str, list[str]] = {}
    hosts: set[str] = set()
    for entry in sorted(settings.web_docs):
        parts = _parse_address(entry)
        sites.setdefault(f"{parts.scheme}://{parts.netloc}".lower(), []).append(entry.partition("#")[0])
        bare = (parts.hostname or "").removeprefix("www.")
        hosts |= {bare, f"www.{bare}"}  # each host with and without www
    private = frozenset(host.lower() for host in settings.web_docs_hosts)
    return tuple(
        WebSource(
            site=site,
            entries=tuple(entries),
            hosts=frozenset(hosts | private),
            private_hosts=private,
            audience=audience,
            max_pages=settings.web_docs_pages,
        )
        for site, entries in sites.items()
    )


def _parse_address(entry: str) -> SplitResult:
    try:
        parts = urlsplit(entry)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        usable = ""
    if not usable:
        raise WrongUse(_WRONG_ADDRESS.format(entry=entry.rpartition("@")[2]))
    return parts


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
    """Compute the missing vectors now. Return the number of passages with a vector, and of all."""
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
