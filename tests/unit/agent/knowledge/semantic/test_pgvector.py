"""Vectors are compared by pgvector if PostgreSQL has it, else in memory, with the same results."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agent.knowledge.index.index import KnowledgeIndex, SeenBy
from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.tables import EVERY, condition_of
from agent.knowledge.semantic.vectors import Vectors, VectorStore
from agent.thread.conversation import Viewers, may_see
from tests.support.openai_server import ScriptedOpenAI, word_vector
from tests.support.postgres_server import Database, database_in
from tests.unit.agent.knowledge.semantic.test_search_by_meaning import ranker_of, search

SIZE = 24
PAGES = 12
AUDIENCES = ("public", "C0HR", "C0OPS,C0HR", "nobody")
VIEWERS = (Viewers(team="T", channel="C0HR"), Viewers(team="T", channel="C0OPS"), Viewers(team="T", channel="C0HELP"))
ROUNDING = 0.01  # of 8-bit numbers in memory


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    with database_in(postgres_url) as database:
        yield database


@pytest.fixture
def plain_url(database: Database) -> Iterator[str]:
    with database.without_extensions() as url:
        yield url


def write_pages(folder: Path, count: int) -> Path:
    """Write documents of one passage."""
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:02}.md").write_text(f"# Page {number}\n\nIt is page {number}.\n")
    return folder


def store_vectors(index: KnowledgeIndex, vectors: Vectors) -> VectorStore:
    """Give each passage, in order, one of these vectors."""
    store = VectorStore(index)
    with index.session(write=True) as session:
        session.execute("DELETE FROM passage_vectors")
        session.execute("DELETE FROM vectors")
    digests = {number: number.to_bytes(16, "big") for number in store.begin("space")}
    store.put("space", digests, dict(zip(digests.values(), vectors, strict=True)))
    return store


def reasons(logs: list[MutableMapping[str, Any]]) -> list[str]:
    return [line["reason"] for line in logs if line["event"] == "pgvector_not_used"]


def random_vectors(seed: int, count: int, size: int = SIZE) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, size))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def test_both_ways_rank_the_same_passages_for_the_same_people(
    database: Database, plain_url: str, tmp_path: Path
) -> None:
    database.run('CREATE SCHEMA "an extension"; CREATE EXTENSION vector SCHEMA "an extension"')
    database.run('REVOKE ALL ON SCHEMA "an extension" FROM PUBLIC')
    pages = write_pages(tmp_path / "docs", PAGES)
    with (
        closing(PostgresIndex(database.url, schema="one")) as with_it,
        closing(PostgresIndex(plain_url, schema="two")) as without,
    ):
        for index in (with_it, without):
            index.index([pages])
        assert (with_it.pgvector(), without.pgvector()) == ('"an extension"', "")

        @given(
            seed=st.integers(0, 10**6),
            audiences=st.lists(st.sampled_from(AUDIENCES), min_size=PAGES, max_size=PAGES),
            viewers=st.sampled_from(VIEWERS),
            most=st.integers(1, PAGES + 2),
            by_words=st.sets(st.integers(0, PAGES - 1), max_size=4),
        )
        def rank_alike(seed: int, audiences: list[str], viewers: Viewers, most: int, by_words: set[int]) -> None:
            vectors, question = random_vectors(seed, PAGES), random_vectors(seed + 1, 1)[0]
            allowed = {audience for audience in AUDIENCES if may_see(audience, viewers)}
            exact = [float(row @ question) for row, held in zip(vectors, audiences, strict=True) if held in allowed]
            for index in (with_it, without):
                with index.session(write=True) as session:
                    numbers = [number for (number,) in session.execute("SELECT number FROM documents ORDER BY number")]
                    for number, audience in zip(numbers, audiences, strict=True):
                        _, (digest,) = condition_of([audience], ())
                        session.execute("UPDATE documents SET audience = ? WHERE number = ?", (digest, number))
                        session.execute(
                            "INSERT INTO audiences VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, audience)
                        )
                store = store_vectors(index, vectors)
                seen = condition_of([a for a in index.audiences() if may_see(a, viewers)], ())
                asked = [numbers[page] << 20 for page in sorted(by_words) if audiences[page] in allowed]
                near, usual = store.nearness(question, asked, most, seen)
                assert usual == pytest.approx(np.mean(exact) if exact else 0.0, abs=ROUNDING)
                assert near.keys() >= set(asked)
                assert sorted(near.values())[-most:] == pytest.approx(sorted(exact)[-most:], abs=ROUNDING)
                for number, cosine in near.items():
                    page = numbers.index(number >> 20)
                    assert audiences[page] in allowed
                    assert cosine == pytest.approx(float(vectors[page] @ question), abs=ROUNDING)
                assert len(store._loaded.numbers) == (0 if index is with_it else PAGES)

        rank_alike()


async def test_vectors_are_taken_over_when_pgvector_comes_and_stay_when_it_goes(
    database: Database, plain_url: str, tmp_path: Path
) -> None:
    pages = write_pages(tmp_path / "docs", 3)
    (pages / "hotel.md").write_text("# Hotel\n\nThe limit for a hotel is 120 euros a night.\n")
    async with ScriptedOpenAI(embed=word_vector) as server:
        with closing(PostgresIndex(plain_url)) as index, capture_logs() as logs:
            async with ranker_of(index, server.url) as ranker:
                index.index([pages])
                with closing(PostgresIndex(plain_url)) as another:
                    another.index([pages])
                assert (index.pgvector(), await ranker.make(), await ranker.make()) == ("", 4, 0)
                assert (await search(index, "accommodation"))[0] == "hotel.md"
                assert reasons(logs) == ["InsufficientPrivilege"]
                database.run("CREATE EXTENSION vector")
                index.index([pages])
                assert (index.pgvector(), ranker.store.counts()) == ("public", (0, 4))
                assert (await ranker.make(), await ranker.make(), ranker.store.counts()) == (4, 0, (4, 4))
                assert (await search(index, "accommodation"))[0] == "hotel.md"
                database.run("DROP EXTENSION vector CASCADE")
                assert (index.pgvector(), ranker.store.counts()) == ("", (4, 4))
                assert (await search(index, "accommodation"))[0] == "hotel.md"
                assert server.embedded[4:] == ["accommodation"]


async def test_a_vector_that_an_older_version_stored_is_taken_over(database: Database, tmp_path: Path) -> None:
    pages = write_pages(tmp_path / "docs", 2)
    async with ScriptedOpenAI(embed=word_vector) as server:
        with closing(PostgresIndex(database.url)) as index:
            index.index([pages])
            async with ranker_of(index, server.url) as ranker:
                await ranker.make()
                with index.session(write=True) as session:
                    (number, digest), *_ = session.execute("SELECT number, digest FROM passage_vectors").fetchall()
                    session.execute("DELETE FROM passage_vectors WHERE number = ?", (number,))
                    session.execute("INSERT INTO passage_vectors VALUES (?, ?)", (number, digest))
                    session.execute("INSERT INTO vectors VALUES (?, ?)", (b"another", b"\0\0"))
                assert ranker.store.counts() == (1, 2)
                assert (await ranker.make(), ranker.store.counts(), len(server.embedded)) == (1, (2, 2), 2)


def test_an_extension_without_half_precision_is_not_used(database: Database, tmp_path: Path) -> None:
    database.run("CREATE EXTENSION vector; ALTER TYPE halfvec RENAME TO other")
    with closing(PostgresIndex(database.url)) as index, capture_logs() as logs:
        index.index([write_pages(tmp_path / "docs", 1)])
        assert (index.pgvector(), reasons(logs)) == ("", ["older than 0.7"])


def test_an_extension_that_an_admin_drops_is_not_created_again(database: Database, tmp_path: Path) -> None:
    with closing(PostgresIndex(database.url)) as index:
        for schema in ("public", ""):
            index.index([write_pages(tmp_path / f"docs {schema}", 2)])
            assert index.pgvector() == schema
            database.run("DROP EXTENSION IF EXISTS vector CASCADE")


def test_vectors_of_every_size_are_compared_with_their_kind(each_index: KnowledgeIndex, tmp_path: Path) -> None:
    each_index.index([write_pages(tmp_path / "docs", 2)])
    asking = VectorStore(each_index)
    for size in (1, 4_100, 20_000, SIZE):
        vectors = random_vectors(size, 2, size)
        store_vectors(each_index, vectors)
        asking._reload_at = 0.0
        near, _ = asking.nearness(vectors[0], [], 1, EVERY)
        assert [*near.values()] == pytest.approx([1.0], abs=0.3 if size > 16_000 else ROUNDING)
        assert asking.nearness(random_vectors(1, 1, 7)[0], [1 << 20], 1, EVERY) == ({}, 0.0)
    assert store_vectors(each_index, np.zeros((2, SIZE), np.float32)).nearness(vectors[0], [], 1, EVERY)[1] == 0.0


def test_a_narrowed_search_finds_only_the_named_documents(database: Database, tmp_path: Path) -> None:
    with closing(PostgresIndex(database.url)) as index:
        index.index([write_pages(tmp_path / "docs", 12)])
        seen = SeenBy(index, VIEWERS[0], ("03", "1"))
        assert {passage.document for passage in seen.search("page")} == {"03.md", "10.md", "11.md"}
        near, _ = store_vectors(index, random_vectors(1, 12)).nearness(
            random_vectors(2, 1)[0], [], 12, condition_of(("public",), ("03", "1"))
        )
        assert len(near) == 3
