"""The index in a file of one machine: processes share it, and it is set aside when damaged."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.index.tables import PART, condition_of
from agent.knowledge.types import KnowledgeAwayError


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    opened = SqliteIndex.open(tmp_path / "home/knowledge.db")
    yield opened
    opened.close()


def test_two_processes_that_create_the_index_at_once_both_have_it(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite3"
    opened: list[SqliteIndex] = []
    second = threading.Thread(target=lambda: opened.append(SqliteIndex.open(path)))
    with SqliteIndex(path).alone("tables"):  # the first is at it
        second.start()
        second.join(0.3)
        waited = second.is_alive()
    second.join()
    assert waited
    assert [index.documents() for index in opened] == [()]
    opened[0].close()


def test_tables_of_another_version_under_a_running_process_are_reported(
    index: SqliteIndex, tmp_path: Path, docs: Path
) -> None:
    index.index([docs])
    with closing(sqlite3.connect(tmp_path / "home/knowledge.db")) as newer:
        newer.executescript("DROP TABLE postings; PRAGMA user_version = 999")
    for ask in (lambda: index.search("canteen"), lambda: index.index([])):
        with pytest.raises(KnowledgeAwayError, match="another version"):
            ask()


def test_a_fault_that_no_version_explains_is_not_reinterpreted(index: SqliteIndex) -> None:
    with pytest.raises(sqlite3.OperationalError), index.session() as connection:
        connection.execute("SELECT * FROM nothing")


@pytest.mark.parametrize("place", [0, 200, 4_096, 5_000, 12_288, -4_096, -2_000])
def test_an_index_damaged_anywhere_is_rebuilt(tmp_path: Path, docs: Path, place: int) -> None:
    path = tmp_path / "k.db"
    with closing(SqliteIndex.open(path)) as index:
        index.index([docs])
        documents = index.documents()
    data = bytearray(path.read_bytes())
    start = place % len(data)
    data[start : start + 1_500] = b"\xee" * min(1_500, len(data) - start)
    path.write_bytes(data)
    with closing(SqliteIndex.open(path)) as index:
        index.index([docs])
        assert index.documents() == documents


def test_a_damaged_index_is_set_aside(tmp_path: Path, docs: Path) -> None:
    path = tmp_path / "k.db"
    path.write_text("this is no database, and long enough not to be taken for an empty one" * 40)
    with closing(SqliteIndex.open(path)) as index:
        assert index.index([docs]).added == 2
    assert (tmp_path / "k.db.damaged").read_text().startswith("this is no database")


def test_a_place_that_cannot_be_written_is_an_error_not_a_rebuild(tmp_path: Path) -> None:
    (tmp_path / "k.db").mkdir()
    with pytest.raises(sqlite3.OperationalError):
        SqliteIndex.open(tmp_path / "k.db")


def test_closing_an_index_in_use_lets_the_reader_finish(index: SqliteIndex, docs: Path) -> None:
    index.index([docs])
    with index.session() as connection:
        index.close()
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (2,)
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")


def test_neighbouring_passages_are_read_without_scanning_other_documents(index: SqliteIndex) -> None:
    condition, audiences = condition_of(["public", "C0HR"], [])
    with index.session() as session:
        values = ("a.md", 0, 3, *audiences)
        plan = session.execute("EXPLAIN QUERY PLAN " + PART.format(condition), values).fetchall()
    assert any("documents_by_id" in step[-1] for step in plan), plan
    assert not any("SCAN" in step[-1] for step in plan), plan
