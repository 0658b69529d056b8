"""The index of one machine: SQLite with FTS5 (porter stems, title and heading weigh more).

Promises: any text is a valid query; readers never wait for the writer; being killed while indexing leaves the last
committed batch, and the next run goes on from there. The file holds nothing that indexing again would not bring back,
so a damaged one is set aside and started anew. Must never run on the event loop (every method blocks), and never log
a query or a text.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import structlog

from agent.knowledge.chunking import Chunk, chunk_document
from agent.knowledge.folders import DocumentFile, Walk
from agent.knowledge.fts_query import grams, match_expression
from agent.knowledge.passage import Document, IndexReport, Passage
from agent.knowledge.reading import ReadDocument, ReadError, digest_of, parse_document, read_bytes

log = structlog.get_logger()

VERSION: Final = 1
"""Grows with the schema and with anything that changes what the same bytes become."""

_SCHEMA: Final = """
CREATE TABLE documents (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, id TEXT NOT NULL, title TEXT NOT NULL,
  updated_at TEXT NOT NULL, digest TEXT NOT NULL, audience TEXT NOT NULL, chunks INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE VIRTUAL TABLE passages USING fts5(
  title, heading, text, grams, name UNINDEXED, anchor UNINDEXED, line UNINDEXED, page UNINDEXED,
  tokenize = 'porter unicode61 remove_diacritics 2'
);
"""
_SEARCH: Final = """
WITH found AS (
  SELECT rowid AS number, -rank AS score FROM passages
  WHERE passages MATCH ? AND rank MATCH 'bm25(2.0, 2.0, 1.0, 1.0)' ORDER BY rank LIMIT ?
)
SELECT d.id, d.title, p.name, p.text, p.anchor, p.line, p.page, d.updated_at, d.audience, found.score,
       (SELECT value FROM settings WHERE name = 'docs_url')
FROM found JOIN passages p ON p.rowid = found.number JOIN documents d ON d.number = found.number >> 20
ORDER BY found.score DESC, found.number
"""
"""The inner part ranks without touching a text: only what is returned is read."""
_DOCUMENTS: Final = """
SELECT id, title, updated_at, audience, chunks, {text}, (SELECT value FROM settings WHERE name = 'docs_url')
FROM documents {where} ORDER BY id
"""
_CANDIDATES: Final = 4
"""How many times the asked number are looked at, so that other documents and other texts can be preferred."""

_MOST_PASSAGES: Final = 1 << 20
_BATCH_DOCUMENTS: Final = 64
_BATCH_CHARS: Final = 2_000_000
_WAIT_S: Final = 30.0
_AGAIN_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parsed:
    """A document ready to be stored."""

    file: DocumentFile
    document: ReadDocument
    chunks: tuple[Chunk, ...]


class SqliteIndex:
    """A ``KnowledgeIndex`` in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
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

    def index(
        self, roots: Sequence[Path], *, docs_url: str = "", progress: Callable[[str], None] | None = None
    ) -> IndexReport:
        """Make the index hold exactly the documents under ``roots``; a root that is not there keeps what it had."""
        with self._writing, self._connection() as connection:
            with _transaction(connection):
                connection.execute("REPLACE INTO settings VALUES ('docs_url', ?)", (docs_url,))
            run = _IndexRun(connection, progress)
            walk = Walk()
            for file in walk.files(roots):
                run.take(file)
            return run.finish(walk)

    def search(self, query: str, *, limit: int = 8) -> tuple[Passage, ...]:
        """The best passages for the words of ``query``, best first, none twice."""
        expression = match_expression(query)
        if not expression or limit < 1:
            return ()
        with self._connection() as connection:
            rows = connection.execute(_SEARCH, (expression, _CANDIDATES * limit)).fetchall()
        return tuple(map(_passage, _spread(rows, limit)))

    def documents(self) -> tuple[Document, ...]:
        """All documents without their texts, by id."""
        with self._connection() as connection:
            return tuple(map(_document, connection.execute(_DOCUMENTS.format(text="''", where=""))))

    def document(self, name_or_id: str) -> Document | None:
        """One document with its text, by id, title or file name (case and suffix do not matter)."""
        wanted = name_or_id.strip().casefold()
        ranked = [(rank, d.id) for d in self.documents() if (rank := _likeness(d, wanted)) is not None]
        if not ranked:
            return None
        with self._connection() as connection:
            rows = connection.execute(_DOCUMENTS.format(text="text", where="WHERE id = ?"), (min(ranked)[1],))
            return next(map(_document, rows), None)

    def _prepare(self) -> None:
        with self._connection() as connection:
            _write_ahead(connection)
            with _transaction(connection):
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                if version == VERSION:
                    return
                for name in ("documents", "settings", "passages"):
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
            connection = sqlite3.connect(self._path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
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


class _IndexRun:
    """One pass over the folders: reads outside of transactions, writes in batches."""

    def __init__(self, connection: sqlite3.Connection, progress: Callable[[str], None] | None) -> None:
        self._connection = connection
        self._progress = progress
        rows = connection.execute("SELECT key, digest, id, audience FROM documents")
        self._known: dict[str, tuple[str, str, str]] = {key: (digest, shown, seen) for key, digest, shown, seen in rows}
        self._kept: set[str] = set()
        self._failed: list[tuple[str, str]] = []
        self._batch: list[_Parsed] = []
        self._counts = {"added": 0, "changed": 0, "unchanged": 0}

    def take(self, file: DocumentFile) -> None:
        """Read one file and store it if its content, or its id, is not what the index has."""
        if self._progress:
            self._progress(file.id)
        try:
            data, changed_at = read_bytes(file.path)
            if self._known.get(file.key) == (digest_of(data), file.id, file.audience):
                self._counts["unchanged"] += 1
            else:
                document = parse_document(file.path.name, data, changed=changed_at)
                self._add(_Parsed(file=file, document=document, chunks=chunk_document(document)[:_MOST_PASSAGES]))
            self._kept.add(file.key)
        except ReadError as error:
            self._failed.append((file.id, error.reason))

    def _add(self, parsed: _Parsed) -> None:
        self._counts["changed" if parsed.file.key in self._known else "added"] += 1
        self._batch.append(parsed)
        chars = sum(len(part.text) for held in self._batch for part in held.document.parts)
        if len(self._batch) >= _BATCH_DOCUMENTS or chars >= _BATCH_CHARS:
            self._write_batch()

    def _write_batch(self) -> None:
        with _transaction(self._connection):
            for parsed in self._batch:
                _store(self._connection, parsed)
        self._batch.clear()

    def finish(self, walk: Walk) -> IndexReport:
        """Write what is left and drop what is gone; what stood under a missing root stays."""
        self._write_batch()
        below_missing = tuple(f"{root}/" for root in walk.missing)
        unreadable = {shown for shown, _ in self._failed}
        gone = [key for key in self._known if key not in self._kept and not key.startswith(below_missing or ("\0",))]
        with _transaction(self._connection):
            for key in gone:
                _remove(self._connection, key)
        removed = sum(self._known[key][1] not in unreadable for key in gone)
        report = IndexReport(**self._counts, removed=removed, failed=(*walk.failed, *self._failed))
        log.info("knowledge_indexed", **self._counts, removed=removed, failed=len(report.failed))
        return report


def _store(connection: sqlite3.Connection, parsed: _Parsed) -> None:
    _remove(connection, parsed.file.key)
    document = parsed.document
    cursor = connection.execute(
        "INSERT INTO documents (key, id, title, updated_at, digest, audience, chunks, text) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            parsed.file.key,
            parsed.file.id,
            document.title,
            document.updated_at,
            document.digest,
            parsed.file.audience,
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
        connection.execute("DELETE FROM passages WHERE rowid BETWEEN ? AND ?", (first, first + _MOST_PASSAGES - 1))
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


def _spread(rows: Sequence[Sequence[Any]], limit: int) -> list[Sequence[Any]]:
    """The best ``limit`` rows, no text twice; one document takes at most half the places while others have any."""
    first: list[Sequence[Any]] = []
    later: list[Sequence[Any]] = []
    taken: Counter[str] = Counter()
    texts: set[str] = set()
    for row in rows:
        document, text = row[0], row[3]
        if text in texts:
            continue
        texts.add(text)
        taken[document] += 1
        (first if taken[document] <= max(1, limit // 2) else later).append(row)
    return [*first, *later][:limit]


def _passage(row: Sequence[Any]) -> Passage:
    document, title, name, text, anchor, line, page, updated_at, audience, score, docs_url = row
    fragment = f"page={page}" if page else quote(anchor)
    link = document_url(docs_url or "", document)
    return Passage(
        document=document,
        title=title,
        heading=name,
        text=text,
        url=f"{link}#{fragment}" if link and fragment else link,
        line=line,
        page=page,
        updated_at=updated_at,
        audience=audience,
        score=score,
    )


def _document(row: Sequence[Any]) -> Document:
    shown, title, updated_at, audience, passages, text, docs_url = row
    return Document(
        id=shown,
        title=title,
        url=document_url(docs_url or "", shown),
        updated_at=updated_at,
        audience=audience,
        passages=passages,
        text=text,
    )


def document_url(docs_url: str, document: str) -> str:
    """The link to a document; nothing where no prefix is configured."""
    if not docs_url:
        return ""
    return f"{docs_url}{'' if docs_url.endswith(('/', '=')) else '/'}{quote(document)}"


def _likeness(document: Document, wanted: str) -> int | None:
    """How directly a name means a document: 0 its id, then its title, file name, file name without suffix."""
    shown = document.id.casefold()
    file_name = shown.rpartition("/")[2]
    names = (shown, document.title.casefold(), file_name, file_name.rpartition(".")[0])
    return names.index(wanted) if wanted in names else None
