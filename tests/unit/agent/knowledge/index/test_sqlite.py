"""What only the file of one machine does: it is shared by processes, set aside when damaged, and survives kills."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.types import IndexReport, KnowledgeAwayError
from tests.support.paths import ROOT


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


_VERSION_2 = """
CREATE TABLE documents (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, id TEXT NOT NULL, title TEXT NOT NULL,
  updated_at TEXT NOT NULL, digest TEXT NOT NULL, audience TEXT NOT NULL, source TEXT NOT NULL, url TEXT NOT NULL,
  place TEXT NOT NULL, chunks INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE VIRTUAL TABLE passages USING fts5(
  title, heading, text, grams, name UNINDEXED, anchor UNINDEXED, line UNINDEXED, page UNINDEXED,
  tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO documents VALUES (1, 'k', 'a.md', 'Alpha', '', 'd', 'public', 's', '', '', 1, 'The canteen');
INSERT INTO passages (rowid, title, text) VALUES (1 << 20, 'Alpha', 'The canteen');
PRAGMA user_version = 2;
"""
"""The tables of the first release, which ranked by FTS5."""


def test_d2_an_index_of_the_first_release_is_made_anew(tmp_path: Path, docs: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "k.db")) as connection:
        connection.executescript(_VERSION_2)
    index = SqliteIndex.open(tmp_path / "k.db")
    assert index.documents() == ()
    assert index.index([docs]).added == 2
    assert [passage.document for passage in index.search("canteen")] == ["a.md"]


def test_h3_tables_of_another_version_beneath_a_process_are_told(
    index: SqliteIndex, tmp_path: Path, docs: Path
) -> None:
    index.index([docs])
    with closing(sqlite3.connect(tmp_path / "home/knowledge.db")) as newer:
        newer.executescript("DROP TABLE postings; PRAGMA user_version = 999")
    for ask in (lambda: index.search("canteen"), lambda: index.index([])):
        with pytest.raises(KnowledgeAwayError, match="another version"):
            ask()


def test_d2_a_fault_that_no_version_explains_stays_what_it_is(index: SqliteIndex) -> None:
    with pytest.raises(sqlite3.OperationalError), index.session() as connection:
        connection.execute("SELECT * FROM nothing")


def test_d2_a_number_is_never_given_again(index: SqliteIndex, docs: Path) -> None:
    index.index([docs])
    before = {number for number, _ in index.by_words("canteen opens deploys", 9)}
    (docs / "sub/b.md").write_text("# Beta\n\nDeploys open again.\n")
    (docs / "a.md").unlink()
    index.index([docs])
    assert before.isdisjoint(number for number, _ in index.by_words("canteen opens deploys", 9))


def test_d2_what_is_removed_leaves_no_word_behind(index: SqliteIndex, docs: Path) -> None:
    def stored() -> tuple[list[tuple[str, bytes]], int]:
        with index.session() as connection:
            rows = connection.execute("SELECT word, data FROM postings ORDER BY word").fetchall()
            return rows, connection.execute("SELECT passages FROM totals").fetchone()[0]

    index.index([docs / "sub"])
    before = stored()
    index.index([docs / "sub", docs])
    assert stored()[1] > before[1]
    index.index([docs / "sub"])
    assert stored() == before


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
    with pytest.raises(KeyboardInterrupt), index.session(write=True) as session:  # noqa: PT012 - the two lines are one story
        session.execute("DELETE FROM documents")
        raise KeyboardInterrupt
    assert len(index.documents()) == 2


def test_d2_closing_while_in_use_lets_the_reader_finish(index: SqliteIndex, docs: Path) -> None:
    index.index([docs])
    with index.session() as connection:
        index.close()
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (2,)
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")


_KILLED = """
import sys
from pathlib import Path
from agent.knowledge.index.sqlite import SqliteIndex
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
    root = str(ROOT)
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
    root = str(ROOT)
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=root) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    index = SqliteIndex.open(tmp_path / "k.db")
    assert len(index.documents()) == 82
    assert len(index.search("canteen")) == 1
