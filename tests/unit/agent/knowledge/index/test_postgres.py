"""The shared index alone: versions, and a database that is unreachable and comes back."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.types import KnowledgeAwayError


@pytest.fixture
def shared(postgres_url: str) -> Iterator[tuple[PostgresIndex, str]]:
    schema = f"test_{uuid4().hex[:12]}"
    with closing(PostgresIndex(postgres_url, schema=schema)) as opened:
        yield opened, schema
        with opened.session() as session:
            session.execute(f"DROP SCHEMA {schema} CASCADE")


def test_tables_of_another_version_under_a_running_process_are_reported(
    shared: tuple[PostgresIndex, str], postgres_url: str, docs: Path
) -> None:
    index, schema = shared
    index.index([docs])
    with psycopg.connect(postgres_url, autocommit=True) as connection:
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
