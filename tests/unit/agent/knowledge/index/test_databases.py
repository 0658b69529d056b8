"""The two databases of the index: how each opens, and what its rows become."""

import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.index.tables import PART, condition_of, passage_of
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
        newer.execute("PRAGMA user_version = 999")
        with pytest.raises(KnowledgeAwayError, match="another version"):  # before tables that look the same are read
            index.documents_so_far()
        newer.execute("DROP TABLE postings")
    for ask in (lambda: index.search("canteen"), lambda: index.index([])):
        with pytest.raises(KnowledgeAwayError, match="another version"):
            ask()


def test_a_fault_that_no_version_explains_is_not_reinterpreted(index: SqliteIndex) -> None:
    with pytest.raises(sqlite3.OperationalError), index.session() as connection:
        connection.execute("SELECT * FROM nothing")


@pytest.mark.parametrize("fault", ["deleted", "damaged"])
def test_a_lost_index_is_away_until_another_process_has_rebuilt_it(tmp_path: Path, docs: Path, fault: str) -> None:
    path = tmp_path / "k.db"
    with closing(SqliteIndex.open(path)) as index:
        index.index([docs])
    with closing(SqliteIndex(path)) as index:
        if fault == "deleted":
            assert index.search("canteen")
            path.unlink()
        else:
            path.write_bytes(b"\xee" * 20_000)
        with pytest.raises(KnowledgeAwayError):
            index.search("canteen")
        (docs / "a.md").write_text("# Alpha\n\nThe canteen opens at one.\n")
        with closing(SqliteIndex.open(path)) as other:
            other.index([docs])
        assert "at one" in index.search("canteen")[0].text


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
    assert path.stat().st_mode & 0o077 == 0, "as little as the first one may others read it"


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


@pytest.fixture
def shared(postgres_url: str) -> Iterator[tuple[PostgresIndex, str]]:
    schema = f"test_{uuid4().hex[:12]}"
    with closing(PostgresIndex(postgres_url, schema=schema)) as opened:
        yield opened, schema
        with opened.session() as session:
            session.execute(f"DROP SCHEMA {schema} CASCADE")


def test_tables_of_another_version_in_postgresql_are_reported(
    shared: tuple[PostgresIndex, str], postgres_url: str, docs: Path
) -> None:
    index, schema = shared
    index.index([docs])
    assert index.search("canteen")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("UPDATE {}.settings SET value = '999'").format(sql.Identifier(schema)))
        with pytest.raises(KnowledgeAwayError, match="another version"):
            index.documents_so_far()
        connection.execute(sql.SQL("DROP TABLE {}.postings").format(sql.Identifier(schema)))
    with pytest.raises(KnowledgeAwayError, match="UndefinedTable"):
        index.search("canteen")


def test_an_older_version_is_rebuilt(shared: tuple[PostgresIndex, str], postgres_url: str, docs: Path) -> None:
    index, schema = shared
    index.index([docs])
    with psycopg.connect(postgres_url) as connection:
        statement = sql.SQL("UPDATE {}.settings SET value = '0' WHERE name = 'version'")
        connection.execute(statement.format(sql.Identifier(schema)))
    with closing(PostgresIndex(postgres_url, schema=schema)) as again:
        assert again.documents() == ()
        assert again.index([docs]).added == 2


def test_both_indexes_give_the_same_passages_the_same_scores(
    shared: tuple[PostgresIndex, str], tmp_path: Path, docs: Path
) -> None:
    (docs / "b.md").write_text("# Beta\n\n## Lunch\n\nThe canteen of FH-2002 opens.\n\n## Noon\n\nNobody is there.\n")
    (docs / "c.md").write_text("# 休暇\n\n有給休暇 at noon, noon and noon.\n")
    with closing(SqliteIndex.open(tmp_path / "k.db")) as alone:
        for index in (alone, shared[0]):
            for when in ("at noon", "late", "at noon"):
                (docs / "a.md").write_text(f"# Alpha\n\nThe canteen opens {when}.\n")
                index.index([docs])
        for query in ("canteen at noon", "FH-2002", "有給休暇", "nobody opens"):
            assert alone.by_words(query, 9) == shared[0].by_words(query, 9) != []


def test_an_unreachable_database_is_reported_and_recovers() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        address = f"postgresql://orion:secret@127.0.0.1:{port}/orion"
        with closing(PostgresIndex(address)) as index:
            for ask in (index.ping, index.documents, lambda: index.search("canteen"), lambda: index.index([])):
                with pytest.raises(KnowledgeAwayError) as raised:
                    ask()
                assert "secret" not in str(raised.value)


def test_a_connection_that_was_cut_is_replaced(
    shared: tuple[PostgresIndex, str], postgres_url: str, docs: Path
) -> None:
    index, _ = shared
    index.index([docs])
    assert index.search("canteen")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'orion'")
    assert index.search("canteen")


def test_an_invalid_address_is_refused_without_showing_it() -> None:
    with pytest.raises(ValueError, match="no address") as raised:
        PostgresIndex("postgresql://user:secret@[half/name")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("prefix", "url", "place", "page", "link"),
    [
        ("https://d", "", "anchor", 0, "https://d/a%20b.md#lunch"),
        ("https://d/", "", "anchor", 3, "https://d/a%20b.md#page=3"),
        ("/f?p=", "https://git/a.py", "line", 0, "https://git/a.py#L5"),
        ("/f?p=", "", "", 0, "/f?p=a%20b.md"),
        ("", "https://chat/p1", "", 0, "https://chat/p1"),
        ("", "", "anchor", 0, ""),
    ],
)
def test_the_link_leads_to_the_place_that_its_host_understands(
    prefix: str, url: str, place: str, page: int, link: str
) -> None:
    link_parts = (7 << 20, "lunch", url, place, prefix)
    row = (*link_parts, "a b.md", "Alpha", "Lunch", "At noon.", 5, page, "2026-01-02", "public", 1)
    assert passage_of(row).url == link
