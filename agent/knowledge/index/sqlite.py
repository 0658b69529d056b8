"""The index of one machine, in a SQLite file. A damaged file is set aside and built anew from the documents.

Every method blocks: keep it off the event loop.
"""

from __future__ import annotations

import json
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

import structlog

from agent.knowledge.index.build import MOST_PASSAGES, IndexRun
from agent.knowledge.index.results import (
    CANDIDATES,
    DOCUMENT_COLUMNS,
    HOLDINGS,
    PASSAGE_COLUMNS,
    document_of,
    holding_of,
    in_turn,
    meant,
    passage_of,
    spread,
)
from agent.knowledge.index.semantic_hook import Meaning, Ranked, best_of
from agent.knowledge.index.sqlite_tables import SqliteShelf, by_words, is_current, prepare, rarity, transaction
from agent.knowledge.search.index_terms import words_of
from agent.knowledge.search.postings import Ranking, best
from agent.knowledge.types import Document, Holding, IndexReport, KnowledgeAwayError, Passage, Source

log = structlog.get_logger()

_FOUND: Final = f"""
WITH found AS (
  SELECT key AS place, json_extract(value, '$[0]') AS number, json_extract(value, '$[1]') AS score FROM json_each(?)
)
SELECT {PASSAGE_COLUMNS}, found.score, (SELECT value FROM settings WHERE name = 'docs_url')
FROM found JOIN passages p ON p.number = found.number JOIN documents d ON d.number = found.number >> 20
ORDER BY found.place
"""  # noqa: S608 - the columns are a constant
_PART: Final = f"""
SELECT {PASSAGE_COLUMNS}, 0.0, (SELECT value FROM settings WHERE name = 'docs_url')
FROM documents d JOIN passages p ON p.number BETWEEN (d.number << 20) + ? AND (d.number << 20) + ?
WHERE d.id = ? ORDER BY p.number
"""  # noqa: S608 - the columns are a constant
_DOCUMENTS: Final = f"""
SELECT {DOCUMENT_COLUMNS}, {{text}}, (SELECT value FROM settings WHERE name = 'docs_url')
FROM documents {{where}} ORDER BY id
"""  # noqa: S608 - the columns are a constant
_WAIT_S: Final = 30.0
_AGAIN_S: Final = 0.02
_REMADE: Final = "made anew by another version"


class SqliteIndex:
    """A ``KnowledgeIndex`` in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.meaning: Meaning | None = None
        self.ranking: Ranking = best
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._closed = threading.Event()
        self._writing = threading.Lock()

    @classmethod
    def open(cls, path: Path) -> SqliteIndex:
        """Open or create the index. Raises ``OSError`` or ``sqlite3.Error`` when the place cannot be written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        index = cls(path)
        try:
            index._prepare()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            _set_aside(path)
            index._prepare()
        return index

    def close(self) -> None:
        """Let go of every connection; one still in use is closed when it comes back."""
        self._closed.set()
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def ping(self) -> None:
        """A file is never away."""

    def index(
        self, roots: Sequence[Path | Source], *, docs_url: str = "", progress: Callable[[str], None] | None = None
    ) -> IndexReport:
        """Make the index hold exactly the documents under ``roots``; a root that is not there keeps what it had."""
        with self._writing, self._connection() as connection:
            with transaction(connection):
                connection.execute("REPLACE INTO settings VALUES ('docs_url', ?)", (docs_url,))
            return IndexRun(SqliteShelf(connection), progress).take_all(roots)

    def search(self, query: str, *, limit: int = 8) -> tuple[Passage, ...]:
        """The best passages for the words of ``query``, best first, none twice. With ``meaning``, for that as well."""
        return self.passages(best_of(self, query, CANDIDATES * limit), limit)

    def by_words(self, query: str, most: int) -> Sequence[Ranked]:
        """The numbers of the passages that have words of ``query``, best first."""
        words = words_of(query)
        if not words or most < 1:
            return ()
        with self._connection() as connection:
            return by_words(connection, words, most, self.ranking)

    def passages(self, ranked: Sequence[Ranked], limit: int) -> tuple[Passage, ...]:
        """The first ``limit`` of these in their order, no text twice; numbers that are gone are left out."""
        if not ranked or limit < 1:
            return ()
        with self._connection() as connection:
            rows = in_turn(ranked, limit, lambda part: connection.execute(_FOUND, (json.dumps(part),)).fetchall())
            return tuple(map(passage_of, spread(rows, limit)))

    def rarity(self, query: str) -> Mapping[str, float]:
        """What each word of ``query`` says among all passages."""
        with self._connection() as connection:
            return rarity(connection, words_of(query))

    def part(self, document: str, first: int, last: int) -> tuple[Passage, ...]:
        """The passages of one document from one number to another, both included, in order."""
        reach = (max(0, first), min(last, MOST_PASSAGES - 1))
        with self._connection() as connection:
            return tuple(map(passage_of, connection.execute(_PART, (*reach, document))))

    def documents(self) -> tuple[Document, ...]:
        """All documents without their texts, by id."""
        with self._connection() as connection:
            return tuple(map(document_of, connection.execute(_DOCUMENTS.format(text="''", where=""))))

    def document(self, name_or_id: str) -> Document | None:
        """One document with its text, by id, title or file name (case and suffix do not matter)."""
        found = meant(self.documents(), name_or_id)
        if found is None:
            return None
        with self._connection() as connection:
            rows = connection.execute(_DOCUMENTS.format(text="text", where="WHERE id = ?"), (found,))
            return next(map(document_of, rows), None)

    def holdings(self) -> tuple[Holding, ...]:
        """What there is of each source, in any order."""
        with self._connection() as connection:
            return tuple(map(holding_of, connection.execute(HOLDINGS)))

    def notes(self, prefix: str) -> dict[str, str]:
        """What runs noted under names that begin so."""
        with self._connection() as connection:
            return SqliteShelf(connection).notes(prefix)

    @contextmanager
    def beside(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection, for what else is kept beside the passages; to ``write`` it is one transaction."""
        with self._connection() as connection, transaction(connection) if write else nullcontext():
            yield connection

    def _prepare(self) -> None:
        with self._connection() as connection:
            _write_ahead(connection)
            prepare(connection)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for one thread at a time; idle ones are used again.

        Raises ``KnowledgeAwayError`` where another version of Orion has made the tables anew beneath this one.
        """
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA synchronous = NORMAL")
        healthy = False
        try:
            yield connection
            healthy = True
        except sqlite3.OperationalError:
            if is_current(connection):
                raise
            raise KnowledgeAwayError(_REMADE) from None
        finally:
            if healthy and not self._closed.is_set():
                self._idle.put(connection)
            else:
                connection.close()


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Readers that never wait. Two processes that do this at once: SQLite refuses one, whatever its time-out is."""
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_AGAIN_S)
        else:
            return


def _set_aside(path: Path) -> None:
    """The index is made of the documents and can be made again; whatever stands here instead is not deleted."""
    for suffix in ("", "-wal", "-shm"):
        file = Path(f"{path}{suffix}")
        if file.exists():
            file.replace(f"{path}.damaged{suffix}")
    log.warning("index_set_aside", path_length=len(str(path)))
