"""The index of one machine, in a SQLite file. A damaged file is set aside and rebuilt from the documents."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog

from agent.knowledge.index.index import REBUILT, KnowledgeIndex
from agent.knowledge.index.tables import SCHEMA, VERSION, IndexSession, make
from agent.knowledge.types import KnowledgeAwayError

log = structlog.get_logger()

_SCHEMA: Final = SCHEMA.format(key="INTEGER PRIMARY KEY", bytes="BLOB", word="text", postings="WITHOUT ROWID")
# One statement may block the event loop for so many steps of SQLite's machine, about 10 ms. An ordinary question over
# 10,000 passages takes fewer.
MAX_LOOP_STEPS: Final = 1_000_000
_WAIT_S: Final = 30.0  # wait until another process has written its batch: seconds on a busy disk
_AWAY: Final = tuple(f"SQLITE_{name}" for name in ("BUSY", "INTERRUPT", "CANTOPEN", "IOERR", "CORRUPT", "NOTADB"))


class _SqliteSession(sqlite3.Connection):
    path: Path
    opened: os.stat_result

    @property
    def is_usable(self) -> bool:
        """False if the file was deleted or set aside: SQLite would read the old one forever."""
        with suppress(FileNotFoundError):
            return os.path.samestat(self.opened, self.path.stat())
        return False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN IMMEDIATE")
        with self:
            yield


class SqliteIndex(KnowledgeIndex):
    """A ``KnowledgeIndex`` in one file. With ``max_steps`` it never waits, and ends longer statements."""

    failures = (sqlite3.DatabaseError,)

    def __init__(self, path: Path, *, max_steps: int = 0) -> None:
        super().__init__()
        self.path, self._max_steps = path, max_steps
        self._writing = threading.Lock()
        self.on_loop = None if max_steps else SqliteIndex(path, max_steps=MAX_LOOP_STEPS)

    def close(self) -> None:
        """Close all idle connections."""
        super().close()
        if self.on_loop:
            self.on_loop.close()

    @classmethod
    def open(cls, path: Path) -> SqliteIndex:
        """Open or create the index. Raises ``OSError`` or ``sqlite3.Error`` if it cannot be written there."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        index = cls(path)
        try:
            index._prepare()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            for file in (Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")):
                if file.exists():  # not deleted: it may be some other file
                    file.replace(f"{path}.damaged{file.name.removeprefix(path.name)}")
            log.warning("index_set_aside", path_length=len(str(path)))
            index._prepare()
        return index

    def _prepare(self) -> None:
        """Create the tables if needed. Raises ``sqlite3.DatabaseError`` if the file is damaged."""
        self.path.touch(mode=0o600)  # it contains documents that not everyone on this machine may read
        with closing(self._connect()) as session:
            # If two processes set the mode at once, SQLite refuses one without waiting.
            with self.alone("tables", _WAIT_S):
                session.execute("PRAGMA journal_mode = WAL")
                with session.transaction():
                    if not self._is_current(session):
                        make(session, _SCHEMA)
                        session.execute(f"PRAGMA user_version = {VERSION}")
            if (fault := session.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(fault)

    def _connect(self) -> _SqliteSession:
        # One thread at a time uses it, but not always the same one. We begin transactions ourselves.
        wait_s, address = 0.0 if self._max_steps else _WAIT_S, f"{self.path.absolute().as_uri()}?mode=rw"  # not created
        # A cached statement would add the steps of its earlier runs, and no statement takes long to prepare.
        session = sqlite3.connect(
            address, wait_s, isolation_level=None, check_same_thread=False, factory=_SqliteSession,
            cached_statements=0, uri=True,
        )  # fmt: skip
        session.set_progress_handler(lambda: 1, self._max_steps)
        try:
            session.path, session.opened = self.path, self.path.stat()
            # A power cut may lose the last batches, which are then read again, but never damages the file.
            session.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            session.close()  # Python 3.13 warns about an unclosed connection
            raise
        return session

    def _explain(self, error: Exception) -> Exception:
        if getattr(error, "sqlite_errorname", "").startswith(_AWAY):  # details may follow, as in SQLITE_IOERR_READ
            return KnowledgeAwayError(str(error))
        with closing(self._connect()) as session:  # another version may have replaced the tables
            return error if self._is_current(session) else KnowledgeAwayError(REBUILT)

    def _is_current(self, session: IndexSession) -> bool:
        return bool(session.execute("PRAGMA user_version").fetchone()[0] == VERSION)

    @contextmanager
    def _building(self) -> Iterator[IndexSession]:
        with self._writing, self.session() as session:
            yield session

    @contextmanager
    def _lock(self, name: str) -> Iterator[Callable[[], bool]]:
        lock = Path(f"{self.path}.{name}")
        lock.touch(mode=0o600)  # anyone who can open it can lock it
        with lock.open("ab") as file:

            def take() -> bool:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
                return True

            yield take
