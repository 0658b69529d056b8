"""Lets one process at a time bring an index up to date: a file lock beside SQLite, an advisory lock in PostgreSQL.

The kernel or the database server releases it however the holder dies. Reading needs no lock.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from agent.knowledge.index.postgres import SCHEMA
from agent.knowledge.types import KnowledgeAwayError

_AGAIN_S: Final = 0.05
_CONNECT_S: Final = 5
_LONGEST_S: Final = 86_400.0
_LOCK: Final = "hashtext('orion sync'), hashtext(%s)"


@contextmanager
def only_one_syncs(index_path: Path, database: str, *, wait_s: float) -> Iterator[bool]:
    """Whether this process may, inside the block; others are waited for up to ``wait_s`` seconds.

    Raises ``OSError`` where the file cannot be made, ``KnowledgeAwayError`` where the database is away.
    """
    with _in_database(database, wait_s) if database else _beside(index_path, wait_s) as alone:
        yield alone


@contextmanager
def _beside(index_path: Path, wait_s: float) -> Iterator[bool]:
    index_path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_s
    with Path(f"{index_path}.lock").open("ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    yield False
                    return
                time.sleep(_AGAIN_S)
            else:
                break
        yield True


@contextmanager
def _in_database(url: str, wait_s: float) -> Iterator[bool]:
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_S, application_name="orion sync")
    except psycopg.OperationalError as error:
        raise KnowledgeAwayError(type(error).__name__) from None
    with connection:
        alone = _locked(connection, min(wait_s, _LONGEST_S))
        try:
            yield alone
        finally:
            if alone:
                _unlock(connection)


def _unlock(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """At once: a session that is closed holds its lock until the server has seen that."""
    with suppress(psycopg.OperationalError):  # a session that is gone holds no lock
        connection.execute(f"SELECT pg_advisory_unlock({_LOCK})", (SCHEMA,))


def _locked(connection: psycopg.Connection[tuple[object, ...]], wait_s: float) -> bool:
    milliseconds = max(1, int(wait_s * 1000))
    try:
        connection.execute(sql.SQL("SET lock_timeout TO {}").format(sql.Literal(milliseconds)))
        connection.execute(f"SELECT pg_advisory_lock({_LOCK})", (SCHEMA,))
    except psycopg.errors.LockNotAvailable:
        return False
    except psycopg.OperationalError as error:
        raise KnowledgeAwayError(type(error).__name__) from None
    return True
