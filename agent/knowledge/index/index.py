"""The index of documents, and the part of it that some viewers may see.

Connections and locks differ between SQLite and PostgreSQL and are in modules of their own.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, Self

from agent.knowledge.index import tables
from agent.knowledge.index.build import IndexBuilder
from agent.knowledge.index.tables import EVERY, Condition, IndexSession, condition_of
from agent.knowledge.search.full_text import words_of
from agent.knowledge.types import (
    DeferredSource,
    Document,
    DocumentSource,
    FoundPassage,
    Holding,
    IndexReport,
    KnowledgeAwayError,
    SourceState,
)
from agent.thread.conversation import Viewers, may_see

Ranked = tuple[int, float]  # the number of a passage, and a score that grows with relevance

REBUILT: Final = "rebuilt by another version"
COMPARED: Final = 80  # minimum from each ranking: the best passage by both is often not at the top of either
_AGAIN_S: Final = 0.05  # between tries for a lock: the database itself would wait for the whole statement time-out


class Meaning(Protocol):
    """Ranks by meaning as well as words."""

    async def embed_question(self, query: str) -> Any:
        """Return the question's vector, or None to search by words."""

    def rank(self, vector: Any, by_words: Sequence[Ranked], most: int, seen: Condition) -> Sequence[Ranked]:
        """Return the best passages first: those found by words, and others of the ``seen`` documents. Blocks."""


class KnowledgeIndex(ABC):
    """Stores documents and returns ranked passages. All methods but one block and may be called from any thread.

    An unreachable database raises ``KnowledgeAwayError``. With ``meaning`` a search ranks by meaning as well.
    """

    failures: ClassVar[tuple[type[Exception], ...]]  # of the driver, if the database cannot be reached

    def __init__(self) -> None:
        self.meaning: Meaning | None = None
        # The same index for the event loop. A call that would block it for long raises ``KnowledgeAwayError``.
        self.on_loop: KnowledgeIndex | None = None
        self._idle: list[IndexSession] = []
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all idle connections; one in use is closed when it is returned."""
        self._closed.set()
        while session := self._idle_one():
            session.close()

    def ping(self) -> None:
        """Raise ``KnowledgeAwayError`` if the index cannot be reached."""
        with self.session() as session:
            session.execute("SELECT 1")

    def index(
        self,
        roots: Sequence[Path | DocumentSource | DeferredSource],
        *,
        docs_url: str = "",
        progress: Callable[[str], None] | None = None,
    ) -> IndexReport:
        """Make the index contain exactly the documents under ``roots``; a missing root keeps its earlier documents."""
        with self._building() as session:
            tables.put_setting(session, "docs_url", docs_url)
            return IndexBuilder(session, progress).take_all(roots)

    async def embed_question(self, query: str) -> Any:
        """Return the question's vector for ``search``; None without search by meaning."""
        return await self.meaning.embed_question(query) if self.meaning else None

    def search(
        self, query: str, *, limit: int = 8, vector: Any = None, seen: Condition = EVERY
    ) -> tuple[FoundPassage, ...]:
        """Return the best passages of the ``seen`` documents, each once, best first; any text is a valid query."""
        if limit < 1:
            return ()
        most = tables.CANDIDATES * limit
        meaning, deep = (self.meaning, max(most, COMPARED)) if vector is not None else (None, most)
        for _ in range(2):  # the second time only if a document that was found is replaced meanwhile
            ranked = self.by_words(query, deep, seen)
            ranked = (meaning.rank(vector, ranked, deep, seen) if meaning else ranked)[:most]
            numbers = [number for number, _ in ranked]
            with self.session() as session:
                batches = (session.execute(tables.FOUND.format(tables.marks(s)), s) for s in tables.parts(numbers))
                rows = {row[0]: row for batch in batches for row in batch}
            if len(rows) == len(numbers):
                break
        return tables.spread((tables.passage_of(rows[number]) for number in numbers if number in rows), limit)

    def by_words(self, query: str, most: int, seen: Condition = EVERY) -> Sequence[Ranked]:
        """Return the numbers of the ``seen`` passages with words of ``query``, best first."""
        words = words_of(query)
        if not words:
            return ()
        with self.session() as session:
            return tables.rank_by_words(session, words, most, seen)

    def audiences(self) -> tuple[str, ...]:
        """Return the audiences of all documents, each once."""
        with self.session() as session:
            return tuple(audience for (audience,) in session.execute("SELECT audience FROM audiences"))

    def pgvector(self) -> str:
        """Return the database schema of pgvector if passages have a column for it, else an empty text."""
        return ""

    def part(self, document: str, first: int, last: int, seen: Condition = EVERY) -> tuple[FoundPassage, ...]:
        """Return a document's passages from one number to another, both included, in order."""
        condition, values = seen
        reach = (max(0, first), min(last, tables.MAX_PASSAGES - 1))
        with self.session() as session:
            rows = session.execute(tables.PART.format(condition), (document, *reach, *values))
            return tuple(map(tables.passage_of, rows))

    def documents(self, seen: Condition = EVERY) -> tuple[Document, ...]:
        """Return the ``seen`` documents without their texts, by id."""
        condition, values = seen
        with self.session() as session:
            found = map(tables.document_of, session.execute(tables.DOCUMENTS.format("''", condition), values))
            return tuple(sorted(found, key=lambda document: document.id))

    def has_documents(self, seen: Condition = EVERY) -> bool:
        """Return True if there are ``seen`` documents."""
        condition, values = seen
        with self.session() as session:
            return bool(session.execute(f"{tables.DOCUMENTS.format('1', condition)} LIMIT 1", values).fetchone())

    def document(self, name_or_id: str, seen: Condition = EVERY) -> Document | None:
        """Return one document with its text, by id, title or file name (case and suffix do not matter)."""
        condition, values = seen
        found = tables.resolve_document_name(self.documents(seen), name_or_id)
        if found is None:
            return None
        with self.session() as session:
            rows = session.execute(tables.DOCUMENTS.format("text", f"id = ? AND {condition}"), (found, *values))
            return next(map(tables.document_of, rows), None)

    def holdings(self) -> tuple[Holding, ...]:
        """Return the size of each source, in no particular order."""
        names = ("source", "documents", "passages", "oldest", "newest")
        with self.session() as session:
            return tuple(Holding(**dict(zip(names, row, strict=True))) for row in session.execute(tables.HOLDINGS))

    def states(self) -> dict[str, SourceState]:
        """Return the state of each source, by its name."""
        with self.session() as session:
            return tables.states(session)

    def documents_so_far(self) -> int | None:
        """Return the number of documents while a source is read for the first time; None when all have been read."""
        with self.session() as session:
            if not self._is_current(session):  # its tables may look the same, but be empty or have other words
                raise KnowledgeAwayError(REBUILT)
            if all(state.tried for state in tables.states(session).values()):
                return None
            return int(session.execute("SELECT count(*) FROM documents").fetchone()[0])

    @contextmanager
    def alone(self, name: str, wait_s: float = 0.0) -> Iterator[bool]:
        """Hold the lock of this name during the block; yield False if another keeps it for ``wait_s`` seconds."""
        deadline = time.monotonic() + wait_s
        with self._lock(name) as take:
            while not (mine := take()) and time.monotonic() < deadline:
                time.sleep(_AGAIN_S)
            yield mine

    @contextmanager
    def session(self, *, write: bool = False) -> Iterator[IndexSession]:
        """Lend a connection to one thread. With ``write`` the block is one transaction."""
        try:
            while (session := self._idle_one()) and not session.is_usable:
                session.close()
            session, healthy = session or self._connect(), False
            try:
                with session.transaction() if write else nullcontext():
                    yield session
                healthy = True
            finally:
                if healthy and not self._closed.is_set():
                    self._idle.append(session)
                else:
                    session.close()
        except self.failures as error:
            raise self._explain(error) from None

    def _idle_one(self) -> IndexSession | None:
        with suppress(IndexError):
            return self._idle.pop()
        return None

    @abstractmethod
    def _connect(self) -> IndexSession:
        """Open a connection, and create the tables if needed."""

    @abstractmethod
    def _is_current(self, session: Any) -> bool:
        """Return whether this version made the tables."""

    @abstractmethod
    def _explain(self, error: Exception) -> Exception:
        """Convert a driver's error about an unreachable database to ``KnowledgeAwayError``."""

    @abstractmethod
    def _building(self) -> AbstractContextManager[IndexSession]:
        """Lend a connection for writing; a second builder waits for the first."""

    @abstractmethod
    def _lock(self, name: str) -> AbstractContextManager[Callable[[], bool]]:
        """Return a function that tries once to take the lock of this name."""


@dataclass(frozen=True)  # no slots, because of the cached property
class SeenBy:
    """The part of an index that all ``viewers`` may see. ``prefixes`` of paths or sources narrow it further.

    It serves one turn, and does not see audiences added after its first call.
    """

    _index: KnowledgeIndex
    _viewers: Viewers
    _prefixes: tuple[str, ...] = ()

    @cached_property
    def _seen(self) -> Condition:
        audiences = [audience for audience in self._index.audiences() if may_see(audience, self._viewers)]
        return condition_of(audiences, self._prefixes)

    async def embed_question(self, query: str) -> Any:
        """Return the question's vector for ``search``."""
        return await self._index.embed_question(query)

    def documents_so_far(self) -> int | None:
        """Return the number of all documents while a source is read for the first time."""
        return self._index.documents_so_far()

    @property
    def on_loop(self) -> SeenBy | None:
        """The same part of the index for the event loop."""
        return SeenBy(self._index.on_loop, self._viewers, self._prefixes) if self._index.on_loop else None

    def search(self, query: str, *, limit: int = 8, vector: Any = None) -> tuple[FoundPassage, ...]:
        """Return the best passages that all viewers may see."""
        return self._index.search(query, limit=limit, vector=vector, seen=self._seen)

    def part(self, document: str, first: int, last: int) -> tuple[FoundPassage, ...]:
        """Return a part of a document that all viewers may see."""
        return self._index.part(document, first, last, self._seen)

    def documents(self) -> tuple[Document, ...]:
        """Return the documents that all viewers may see."""
        return self._index.documents(self._seen)

    def has_documents(self) -> bool:
        """Return True if there are documents that all viewers may see."""
        return self._index.has_documents(self._seen)

    def document(self, name_or_id: str) -> Document | None:
        """Return one document that all viewers may see."""
        return self._index.document(name_or_id, self._seen)


KnowledgeReader = KnowledgeIndex | SeenBy
