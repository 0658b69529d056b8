"""Which documents belong to the index, and how the index is opened and brought up to date.

The background sync starts a process with little more than this module: import no model, Slack or Redis here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.semantic.extra import SemanticUnavailableError, give_meaning
from agent.knowledge.types import IndexReport, PutOff, Source, due_at
from bot.errors import WrongUse

SYNC: Final = "lock"  # the lock of whoever brings an index up to date; beside SQLite it is the end of a file's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Which documents: the folders, the index they go into, the prefix that turns a path into a link.

    ``database`` is the address of a PostgreSQL that several machines share; without one it is the file ``index_path``.
    ``sources`` are repositories, exports and web sites. ``semantic`` is the model for search by meaning: a folder,
    ``on`` for the installed one, or nothing.
    """

    roots: tuple[Path, ...]
    index_path: Path
    docs_url: str = ""
    database: str = ""
    sources: tuple[Source, ...] = ()
    semantic: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What the folders and sources are called where their states are kept."""
        return (*(str(root.expanduser().resolve()) for root in self.roots), *(source.key for source in self.sources))

    def read_by(self, *, fetch: bool) -> list[Path | Source | PutOff]:
        """What a run reads; what lies in the web stays as it is unless the run may ``fetch``."""
        if fetch or not self.sources:
            return [*self.roots, *self.sources]
        from agent.knowledge.sources.web import WebSource  # noqa: PLC0415 - loads an HTTP client: only who has sources

        web = [source for source in self.sources if isinstance(source, WebSource)]
        later = {site.key: PutOff(key=site.key, part=site.part, audience=site.audience) for site in web}
        return [*self.roots, *(later.get(source.key, source) for source in self.sources)]


def bring_up_to_date(corpus: Corpus, *, every_s: float) -> IndexReport | None:
    """Everything there is, web sites too; None where another process does it, or did within ``every_s`` seconds.

    What ranks by meaning is not needed to read: it stays unloaded. Blocks. Raises ``WrongUse``,
    ``KnowledgeAwayError``, ``OSError`` and ``sqlite3.Error``.
    """
    with index_of(replace(corpus, semantic="")) as index, index.alone(SYNC) as alone:
        if not alone or due_at(index.states(), corpus.names, every_s) > time.time():
            return None
        return index.index(corpus.read_by(fetch=True), docs_url=corpus.docs_url)


def index_of(corpus: Corpus) -> KnowledgeIndex:
    """The index of this corpus, opened. Raises ``WrongUse``, ``OSError`` and ``sqlite3.Error``."""
    index: KnowledgeIndex = _shared(corpus.database) if corpus.database else SqliteIndex.open(corpus.index_path)
    if corpus.semantic:
        try:
            give_meaning(index, corpus.semantic)
        except SemanticUnavailableError as error:
            index.close()
            raise WrongUse(str(error)) from None
    return index


def _shared(address: str) -> KnowledgeIndex:
    from agent.knowledge.index.postgres import PostgresIndex  # noqa: PLC0415 - most installations have no PostgreSQL

    try:
        return PostgresIndex(address)
    except ValueError:
        message = (
            "ORION_KNOWLEDGE_URL is no address of a PostgreSQL. One looks like postgresql://user:password@host/name."
        )
        raise WrongUse(message) from None
