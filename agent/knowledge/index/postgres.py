"""The shared index, in PostgreSQL. Only this module loads the driver."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, Final

import psycopg
import structlog
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.tables import SCHEMA, VERSION, make, put_setting
from agent.knowledge.types import KnowledgeAwayError

log = structlog.get_logger()

_NAME: Final = "orion"
_SCHEMA: Final = SCHEMA.format(
    key="bigint PRIMARY KEY",
    bytes="bytea",
    word='text COLLATE "C"',  # compared by their bytes, as in SQLite
    postings="",
)
_COLUMN: Final = """
SELECT quote_ident(n.nspname) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_namespace n ON n.oid = t.typnamespace WHERE a.attrelid = to_regclass('passage_vectors') AND a.attname = 'near'
"""
_HALFVEC: Final = """
SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_type t ON t.typnamespace = e.extnamespace
JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector' AND t.typname = 'halfvec'
"""
# In the table's own pages. Out of line, the default, each vector of 1,024 numbers would cost another look-up.
_ADD_COLUMN: Final = """
ALTER TABLE passage_vectors ADD COLUMN near {}.halfvec, ALTER COLUMN near SET STORAGE MAIN
"""
_STATEMENT_MS: Final = 15_000  # less than a tool's time-out in a turn, so that a hanging database is reported as such
_OPTIONS: Final[dict[str, Any]] = {
    "autocommit": True, "application_name": "orion", "connect_timeout": 5, "tcp_user_timeout": 20_000,
    "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
}  # fmt: skip


class _PostgresSession:
    """An ``IndexSession`` over psycopg, which writes ``%s`` for a value and returns bytes as text unless asked."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        return self.connection.execute(statement.replace("?", "%s").encode(), values, binary=True)

    def transaction(self) -> AbstractContextManager[Any]:
        return self.connection.transaction()

    @property
    def is_usable(self) -> bool:
        """False if the server has closed the connection."""
        try:
            self.connection.execute("")
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        self.connection.close()


class PostgresIndex(KnowledgeIndex):
    """A ``KnowledgeIndex`` in a schema of a database. It connects later. Raises ``ValueError`` without an address."""

    failures = (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        psycopg.errors.UndefinedTable,  # another version of Orion has replaced the tables
        psycopg.errors.UndefinedColumn,
    )

    def __init__(self, url: str, *, schema: str = _NAME) -> None:
        super().__init__()
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            message = "no address of a PostgreSQL"
            raise ValueError(message) from None
        self._url = url
        self._schema = schema
        self._prepared = False

    def _prepare(self, session: _PostgresSession) -> None:
        with session.transaction():
            session.execute("SELECT pg_advisory_xact_lock(hashtext('orion tables'), hashtext(?))", (self._schema,))
            session.connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self._schema)))
            exists = session.execute("SELECT to_regclass('settings')").fetchone() != (None,)
            if not exists or not self._is_current(session):
                make(session, _SCHEMA)
                put_setting(session, "version", str(VERSION))
            if not session.execute(_COLUMN).fetchone():
                _add_vector_column(session)

    def pgvector(self) -> str:
        """Return the schema of pgvector, empty without it. It is looked up each time: an admin may drop it."""
        with self.session() as session:
            return "".join(schema for (schema,) in session.execute(_COLUMN))

    def _connect(self) -> _PostgresSession:
        with ExitStack() as stack:
            session = self._open_session(stack)
            if not self._prepared:
                self._prepare(session)
                self._prepared = True
            session.connection.execute(f"SET statement_timeout TO {_STATEMENT_MS}")
            stack.pop_all()
            return session

    def _open_session(self, stack: ExitStack) -> _PostgresSession:
        session = _PostgresSession(psycopg.connect(self._url, **_OPTIONS))
        stack.callback(session.close)
        session.connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self._schema)))
        # Compiling these statements takes longer than running them.
        session.execute("SET jit TO off")
        return session

    def _is_current(self, session: _PostgresSession) -> bool:
        version = session.execute("SELECT value FROM settings WHERE name = 'version'")
        return bool(version.fetchone() == (str(VERSION),))

    def _explain(self, error: Exception) -> Exception:
        return KnowledgeAwayError(type(error).__name__)  # the driver's text may contain the address

    @contextmanager
    def _building(self) -> Iterator[_PostgresSession]:
        """A separate connection that holds the lock: the server releases it when this process dies."""
        try:
            with ExitStack() as stack:
                session = self._open_session(stack)
                self._prepare(session)
                # A lock in Redis would expire while its builder is frozen, and that builder would then go on writing
                # (decision 9).
                session.execute("SELECT pg_advisory_lock(hashtext('orion knowledge'), hashtext(?))", (self._schema,))
                yield session
        except self.failures as error:
            raise self._explain(error) from None

    @contextmanager
    def _lock(self, name: str) -> Iterator[Callable[[], bool]]:
        values = (f"orion {name}", self._schema)
        with self.session() as session:

            def take() -> bool:
                asked = session.execute("SELECT pg_try_advisory_lock(hashtext(?), hashtext(?))", values)
                return bool(asked.fetchone() == (True,))

            try:
                yield take
            finally:
                # Unlock explicitly: a closed session keeps its lock until the server notices.
                with suppress(psycopg.Error):  # a lost session has no lock
                    session.execute("SELECT pg_advisory_unlock(hashtext(?), hashtext(?))", values)


def _add_vector_column(session: _PostgresSession) -> None:
    """Let pgvector compare the vectors, if it is installed or this role may install it."""
    tried = session.execute("SELECT 1 FROM settings WHERE name = 'pgvector'").fetchone()
    try:
        with session.transaction():
            if not tried:  # once: a refusal is an error in the server's log, and an admin may drop it
                session.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            if found := session.execute(_HALFVEC).fetchone():
                session.execute(_ADD_COLUMN.format(*found))
        reason = "" if found else "older than 0.7"
    except psycopg.Error as error:
        reason = type(error).__name__
    if reason and not tried:
        log.info("pgvector_not_used", reason=reason)
    put_setting(session, "pgvector", "tried")
