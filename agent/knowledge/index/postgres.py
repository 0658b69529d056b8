"""The index that several machines share, in PostgreSQL, ranked with the same code as SQLite's.

Every method blocks: keep it off the event loop. A database that is away raises ``KnowledgeAwayError`` within seconds.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict

from agent.knowledge.index.build import MOST_PASSAGES, IndexRun
from agent.knowledge.index.postgres_tables import PostgresShelf, by_words, prepare, rarity
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
from agent.knowledge.search.index_terms import words_of
from agent.knowledge.search.postings import Ranking, best
from agent.knowledge.types import Document, Holding, IndexReport, KnowledgeAwayError, Passage, Source

log = structlog.get_logger()

SCHEMA: Final = "orion"
_CONNECT_S: Final = 5
_STATEMENT_MS: Final = 15_000
_OPTIONS: Final[dict[str, Any]] = {
    "autocommit": True,
    "connect_timeout": _CONNECT_S,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "orion",
}
_AWAY: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    # another version of Orion has made the tables anew beneath this one
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
)

_FOUND: Final = f"""
SELECT {PASSAGE_COLUMNS}, found.score, (SELECT value FROM settings WHERE name = 'docs_url')
FROM unnest(%s::bigint[], %s::float8[]) WITH ORDINALITY AS found (number, score, place)
JOIN passages p ON p.number = found.number JOIN documents d ON d.number = p.document
ORDER BY found.place
"""  # noqa: S608 - the columns are a constant
_PART: Final = f"""
SELECT {PASSAGE_COLUMNS}, 0.0::float8, (SELECT value FROM settings WHERE name = 'docs_url')
FROM documents d JOIN passages p ON p.number BETWEEN (d.number << 20) + %s AND (d.number << 20) + %s
WHERE d.id = %s ORDER BY p.number
"""  # noqa: S608 - the columns are a constant
_DOCUMENTS: Final = f"""
SELECT {DOCUMENT_COLUMNS}, {{text}}, (SELECT value FROM settings WHERE name = 'docs_url')
FROM documents {{where}} ORDER BY id COLLATE "C"
"""  # noqa: S608 - the columns are a constant


class PostgresIndex:
    """A ``KnowledgeIndex`` in one schema of a database. Contacts nobody yet. Raises ``ValueError`` for no address."""

    def __init__(self, url: str, *, schema: str = SCHEMA) -> None:
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            message = "no address of a PostgreSQL"
            raise ValueError(message) from None
        self._url = url
        self._schema = schema
        self._prepared = False
        self.meaning: Meaning | None = None
        self.ranking: Ranking = best
        self._idle: queue.LifoQueue[Connection[Any]] = queue.LifoQueue()
        self._closed = threading.Event()

    def close(self) -> None:
        """Let go of every connection; one still in use is closed when it comes back."""
        self._closed.set()
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def erase(self) -> None:
        """Remove everything that this index ever stored. Raises ``KnowledgeAwayError``."""
        with self._building() as connection:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(self._schema)))

    def ping(self) -> None:
        """Ask for nothing. Raises ``KnowledgeAwayError``."""
        with self._connection() as connection:
            connection.execute("SELECT 1")

    def index(
        self, roots: Sequence[Path | Source], *, docs_url: str = "", progress: Callable[[str], None] | None = None
    ) -> IndexReport:
        """Make the index hold exactly the documents under ``roots``; a root that is not there keeps what it had.

        Waits while another process does. Raises ``KnowledgeAwayError``.
        """
        with self._building() as connection:
            connection.execute(
                "INSERT INTO settings VALUES ('docs_url', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (docs_url,),
            )
            shelf = PostgresShelf(connection)
            report = IndexRun(shelf, progress).take_all(roots)
            shelf.settle()
            return report

    def search(self, query: str, *, limit: int = 8) -> tuple[Passage, ...]:
        """The best passages for the words of ``query``, best first, none twice. With ``meaning``, for that as well.

        Raises ``KnowledgeAwayError``.
        """
        return self.passages(best_of(self, query, CANDIDATES * limit), limit)

    def by_words(self, query: str, most: int) -> Sequence[Ranked]:
        """The numbers of the passages that have words of ``query``, best first. Raises ``KnowledgeAwayError``."""
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

            def read(part: Sequence[Ranked]) -> Sequence[Sequence[Any]]:
                return connection.execute(_FOUND, tuple(map(list, zip(*part, strict=True)))).fetchall()

            return tuple(map(passage_of, spread(in_turn(ranked, limit, read), limit)))

    def rarity(self, query: str) -> Mapping[str, float]:
        """What each word of ``query`` says among all passages. Raises ``KnowledgeAwayError``."""
        with self._connection() as connection:
            return rarity(connection, words_of(query))

    def part(self, document: str, first: int, last: int) -> tuple[Passage, ...]:
        """The passages of one document from one number to another, in order. Raises ``KnowledgeAwayError``."""
        reach = (max(0, first), min(last, MOST_PASSAGES - 1))
        with self._connection() as connection:
            return tuple(map(passage_of, connection.execute(_PART, (*reach, document))))

    def documents(self) -> tuple[Document, ...]:
        """All documents without their texts, by id. Raises ``KnowledgeAwayError``."""
        with self._connection() as connection:
            return tuple(map(document_of, connection.execute(_documents("''"))))

    def document(self, name_or_id: str) -> Document | None:
        """One document with its text, by id, title or file name (case and suffix do not matter)."""
        found = meant(self.documents(), name_or_id)
        if found is None:
            return None
        with self._connection() as connection:
            rows = connection.execute(_documents("text", "WHERE id = %s"), (found,))
            return next(map(document_of, rows), None)

    def holdings(self) -> tuple[Holding, ...]:
        """What there is of each source, in any order. Raises ``KnowledgeAwayError``."""
        with self._connection() as connection:
            return tuple(map(holding_of, connection.execute(HOLDINGS)))

    def notes(self, prefix: str) -> dict[str, str]:
        """What runs noted under names that begin so. Raises ``KnowledgeAwayError``."""
        with self._connection() as connection:
            return PostgresShelf(connection).notes(prefix)

    @contextmanager
    def beside(self, *, write: bool = False) -> Iterator[Connection[Any]]:
        """A connection, for what else is kept beside the passages; to ``write`` it is one transaction.

        Raises ``KnowledgeAwayError``.
        """
        with self._connection() as connection, connection.transaction() if write else nullcontext():
            yield connection

    def _configure(self, connection: Connection[Any]) -> None:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self._schema)))
        connection.execute(sql.SQL("SET statement_timeout TO {}").format(sql.Literal(_STATEMENT_MS)))
        connection.execute("SET jit TO off")

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        """A connection for one thread at a time; idle ones are used again, unless the server has cut them."""
        with _telling():
            connection = self._take()
            healthy = False
            try:
                yield connection
                healthy = True
            finally:
                if healthy and not self._closed.is_set():
                    self._idle.put(connection)
                else:
                    connection.close()

    def _take(self) -> Connection[Any]:
        while True:
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                return self._connect()
            try:
                connection.execute("")
            except psycopg.Error:
                connection.close()
            else:
                return connection

    def _connect(self) -> Connection[Any]:
        with ExitStack() as stack:
            connection: Connection[Any] = psycopg.connect(self._url, **_OPTIONS)
            stack.callback(connection.close)
            self._configure(connection)
            if not self._prepared:
                prepare(connection, self._schema)
                self._prepared = True
            stack.pop_all()
            return connection

    @contextmanager
    def _building(self) -> Iterator[Connection[Any]]:
        """A connection of its own that holds the lock: the server lets go of it when this process dies."""
        with _telling(), psycopg.connect(self._url, **_OPTIONS) as connection:
            self._configure(connection)
            connection.execute("SET statement_timeout TO 0")
            prepare(connection, self._schema)
            connection.execute("SELECT pg_advisory_lock(hashtext('orion knowledge'), hashtext(%s))", (self._schema,))
            yield connection


@contextmanager
def _telling() -> Iterator[None]:
    """The driver's text may hold the address and more: only the kind of failure goes on."""
    try:
        yield
    except _AWAY as error:
        raise KnowledgeAwayError(type(error).__name__) from None


def _documents(text: str, where: str = "") -> sql.SQL:
    return sql.SQL(_DOCUMENTS.format(text=text, where=where))
