"""The index of one machine: SQLite with FTS5 (porter stems, title and heading weigh more).

Promises: any text is a valid query; readers never wait for the writer; being killed while indexing leaves the last
committed batch, and the next run goes on from there. The file holds nothing that indexing again would not bring back,
so a damaged one is set aside and started anew. Must never run on the event loop (every method blocks), and never log
a query or a text.
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

from agent.knowledge.found import (
    CANDIDATES,
    DOCUMENT_COLUMNS,
    HOLDINGS,
    PASSAGE_COLUMNS,
    document_of,
    holding_of,
    meant,
    passage_of,
    spread,
)
from agent.knowledge.fts_query import grams, match_expression
from agent.knowledge.index_run import MOST_PASSAGES, NOTE, IndexRun, Known, Parsed
from agent.knowledge.meaning import Meaning, Ranked, best_of
from agent.knowledge.passage import Document, Holding, IndexReport, Passage, Source

log = structlog.get_logger()

VERSION: Final = 4
"""Grows with the schema and with anything that changes what the same bytes become."""

_SCHEMA: Final = """
CREATE TABLE documents (
  number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, id TEXT NOT NULL, title TEXT NOT NULL,
  updated_at TEXT NOT NULL, digest TEXT NOT NULL, audience TEXT NOT NULL, source TEXT NOT NULL, url TEXT NOT NULL,
  place TEXT NOT NULL, chunks INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE passage_vectors (number INTEGER PRIMARY KEY, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (digest BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE passages USING fts5(
  title, heading, text, grams, name UNINDEXED, anchor UNINDEXED, line UNINDEXED, page UNINDEXED,
  tokenize = 'porter unicode61 remove_diacritics 2'
);
"""
_BY_WORDS: Final = """
SELECT rowid, -rank FROM passages
WHERE passages MATCH ? AND rank MATCH 'bm25(2.0, 2.0, 1.0, 1.0)' ORDER BY rank LIMIT ?
"""
"""Ranks without touching a text: only what is returned is read."""
_FOUND: Final = f"""
WITH found AS (
  SELECT key AS place, json_extract(value, '$[0]') AS number, json_extract(value, '$[1]') AS score FROM json_each(?)
)
SELECT {PASSAGE_COLUMNS}, (SELECT value FROM settings WHERE name = 'docs_url')
FROM found JOIN passages p ON p.rowid = found.number JOIN documents d ON d.number = found.number >> 20
ORDER BY found.place
"""  # noqa: S608 - the columns are a constant
_DOCUMENTS: Final = f"""
SELECT {DOCUMENT_COLUMNS}, {{text}}, (SELECT value FROM settings WHERE name = 'docs_url')
FROM documents {{where}} ORDER BY id
"""  # noqa: S608 - the columns are a constant
_NOTES: Final = "SELECT name, value FROM settings WHERE substr(name, 1, length(:prefix)) = :prefix ORDER BY name"
_WAIT_S: Final = 30.0
_AGAIN_S: Final = 0.02


class SqliteIndex:
    """A ``KnowledgeIndex`` in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.meaning: Meaning | None = None
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
            with _transaction(connection):
                connection.execute("REPLACE INTO settings VALUES ('docs_url', ?)", (docs_url,))
            return IndexRun(_Shelf(connection), progress).take_all(roots)

    def search(self, query: str, *, limit: int = 8) -> tuple[Passage, ...]:
        """The best passages for the words of ``query``, best first, none twice. With ``meaning``, for that as well."""
        return self.passages(best_of(self, query, CANDIDATES * limit), limit)

    def by_words(self, query: str, most: int) -> Sequence[Ranked]:
        """The numbers of the passages that have words of ``query``, best first."""
        expression = match_expression(query)
        if not expression or most < 1:
            return ()
        with self._connection() as connection:
            found = connection.execute(_BY_WORDS, (expression, most)).fetchall()
        return sorted(found, key=lambda ranked: (-ranked[1], ranked[0]))

    def passages(self, ranked: Sequence[Ranked], limit: int) -> tuple[Passage, ...]:
        """The first ``limit`` of these in their order, no text twice; numbers that are gone are left out."""
        if not ranked:
            return ()
        with self._connection() as connection:
            rows = connection.execute(_FOUND, (json.dumps(ranked),)).fetchall()
        return tuple(map(passage_of, spread(rows, limit)))

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
            return _Shelf(connection).notes(prefix)

    @contextmanager
    def beside(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection, for what else is kept beside the passages; to ``write`` it is one transaction."""
        with self._connection() as connection, _transaction(connection) if write else nullcontext():
            yield connection

    def _prepare(self) -> None:
        with self._connection() as connection:
            _write_ahead(connection)
            with _transaction(connection):
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version == VERSION:
                    return
                for name in ("documents", "settings", "passages", "passage_vectors"):
                    connection.execute(f"DROP TABLE IF EXISTS {name}")
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for one thread at a time; idle ones are used again."""
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA synchronous = NORMAL")
        healthy = False
        try:
            yield connection
            healthy = True
        finally:
            if healthy and not self._closed.is_set():
                self._idle.put(connection)
            else:
                connection.close()


class _Shelf:
    """The tables, over one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def known(self) -> dict[str, Known]:
        """What is there, by key."""
        rows = self._connection.execute("SELECT key, digest, id, audience, url FROM documents")
        return {key: (digest, shown, audience, url) for key, digest, shown, audience, url in rows}

    def notes(self, prefix: str) -> dict[str, str]:
        """What runs noted under names that begin so."""
        rows = self._connection.execute(_NOTES, {"prefix": f"{NOTE}{prefix}"})
        return {name.removeprefix(NOTE): value for name, value in rows}

    def note(self, notes: Mapping[str, str]) -> None:
        """Store these notes; an empty one is removed."""
        with _transaction(self._connection):
            for name, value in notes.items():
                self._connection.execute("DELETE FROM settings WHERE name = ?", (f"{NOTE}{name}",))
                if value:
                    self._connection.execute("INSERT INTO settings VALUES (?, ?)", (f"{NOTE}{name}", value))

    def put(self, batch: Sequence[Parsed]) -> None:
        """Store these in place of what has their keys."""
        with _transaction(self._connection):
            for parsed in batch:
                _store(self._connection, parsed)

    def drop(self, keys: Sequence[str]) -> None:
        """Remove these."""
        with _transaction(self._connection):
            for key in keys:
                _remove(self._connection, key)


def _store(connection: sqlite3.Connection, parsed: Parsed) -> None:
    _remove(connection, parsed.file.key)
    document = parsed.document
    cursor = connection.execute(
        "INSERT INTO documents (key, id, title, updated_at, digest, audience, source, url, place, chunks, text) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            parsed.file.key,
            parsed.file.id,
            document.title,
            document.updated_at,
            document.digest,
            parsed.file.audience,
            parsed.file.source,
            parsed.file.url,
            parsed.file.place,
            len(parsed.chunks),
            document.text,
        ),
    )
    first = (cursor.lastrowid or 0) << 20
    connection.executemany(
        "INSERT INTO passages (rowid, title, heading, text, grams, name, anchor, line, page) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (first + n, document.title, c.path, c.text, grams(c.path, c.text), c.heading, c.anchor, c.line, c.page)
            for n, c in enumerate(parsed.chunks)
        ),
    )


def _remove(connection: sqlite3.Connection, key: str) -> None:
    for (number,) in connection.execute("SELECT number FROM documents WHERE key = ?", (key,)).fetchall():
        first = number << 20
        connection.execute("DELETE FROM passages WHERE rowid BETWEEN ? AND ?", (first, first + MOST_PASSAGES - 1))
        connection.execute("DELETE FROM documents WHERE number = ?", (number,))


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


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    done = False
    try:
        yield
        done = True
    finally:
        if done:
            connection.commit()
        else:
            connection.rollback()


def _set_aside(path: Path) -> None:
    """The index is made of the documents and can be made again; whatever stands here instead is not deleted."""
    for suffix in ("", "-wal", "-shm"):
        file = Path(f"{path}{suffix}")
        if file.exists():
            file.replace(f"{path}.damaged{suffix}")
    log.warning("index_set_aside", path_length=len(str(path)))
