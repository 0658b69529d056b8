"""What only the file of one machine does: it is shared by processes, set aside when damaged, and survives kills."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.knowledge import index_sqlite
from agent.knowledge.index_sqlite import SqliteIndex
from agent.knowledge.passage import IndexReport


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# Alpha\n\nLast updated: 2026-01-02\n\n## Lunch\n\nThe canteen opens at noon.\n")
    (folder / "sub/b.md").write_text("# Beta\n\nDeploys are frozen with `--no-deploy` in week 51.\n")
    return folder


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    opened = SqliteIndex.open(tmp_path / "home/knowledge.db")
    yield opened
    opened.close()


def test_h1_two_that_open_a_new_index_at_once_both_have_it(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite3"
    first = sqlite3.connect(path, isolation_level=None)
    first.execute("BEGIN IMMEDIATE")  # now a switch to write-ahead logging is refused without any waiting
    opened: list[SqliteIndex] = []
    second = threading.Thread(target=lambda: opened.append(SqliteIndex.open(path)))
    second.start()
    second.join(0.3)
    waited = second.is_alive()
    first.execute("COMMIT")
    first.close()
    second.join()
    assert waited
    assert [index.documents() for index in opened] == [()]
    opened[0].close()


def test_d2_a_new_schema_starts_anew(tmp_path: Path, docs: Path) -> None:
    path = tmp_path / "k.db"
    index = SqliteIndex.open(path)
    index.index([docs])
    index.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    again = SqliteIndex.open(path)
    assert again.documents() == ()
    assert again.index([docs]).added == 2


def test_d2_a_damaged_index_is_set_aside(tmp_path: Path, docs: Path) -> None:
    path = tmp_path / "k.db"
    path.write_text("this is no database, and long enough not to be taken for an empty one" * 40)
    index = SqliteIndex.open(path)
    assert index.index([docs]).added == 2
    assert (tmp_path / "k.db.damaged").read_text().startswith("this is no database")


def test_d2_a_place_that_cannot_be_written_is_an_error_not_a_rebuild(tmp_path: Path) -> None:
    (tmp_path / "k.db").mkdir()
    with pytest.raises(sqlite3.OperationalError):
        SqliteIndex.open(tmp_path / "k.db")


def test_d2_an_interrupted_transaction_is_undone(index: SqliteIndex, docs: Path) -> None:
    index.index([docs])
    with index._connection() as connection:

        def interrupted() -> None:
            with index_sqlite._transaction(connection):
                connection.execute("DELETE FROM documents")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert not connection.in_transaction
    assert len(index.documents()) == 2


def test_d2_closing_while_in_use_lets_the_reader_finish(index: SqliteIndex, docs: Path) -> None:
    index.index([docs])
    with index._connection() as connection:
        index.close()
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (2,)
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")


_KILLED = """
import sys
from pathlib import Path
from agent.knowledge.index_sqlite import SqliteIndex
def progress(name):
    if name == sys.argv[3]:
        print("here", flush=True)
        sys.stdin.read()
SqliteIndex.open(Path(sys.argv[1])).index([Path(sys.argv[2])], progress=progress)
"""


def test_d2_being_killed_while_indexing_loses_only_the_open_batch(tmp_path: Path, docs: Path) -> None:
    for n in range(100, 200):
        (docs / f"n{n}.md").write_text(f"# Note {n}\n\nNumber {n}.")
    command = [sys.executable, "-c", _KILLED, str(tmp_path / "k.db"), str(docs), "n190.md"]
    root = str(Path(__file__).parent.parent)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdout is not None
        while b"here" not in process.stdout.readline():
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
    index = SqliteIndex.open(tmp_path / "k.db")
    assert len(index.documents()) == 64
    assert index.index([docs]) == IndexReport(added=38, unchanged=64)
    assert index.search("Number 199")[0].document == "n199.md"


def test_d2_two_processes_may_index_at_once(tmp_path: Path, docs: Path) -> None:
    for n in range(80):
        (docs / f"n{n}.md").write_text(f"# Note {n}\n\nNumber {n}.")
    command = [sys.executable, "-c", _KILLED, str(tmp_path / "k.db"), str(docs), ""]
    root = str(Path(__file__).parent.parent)
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=root) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    index = SqliteIndex.open(tmp_path / "k.db")
    assert len(index.documents()) == 82
    assert len(index.search("canteen")) == 1
