"""Vectors from a server over real HTTP: made, resumed, compared, and left out while the server is away."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agent.knowledge.index.index import KnowledgeIndex, Ranked, SeenBy
from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.semantic.ranking import MEANING_SHARE, SemanticRanker, fuse_scores
from agent.knowledge.semantic.vectors import EmbedderError, text_to_embed
from agent.model.embeddings import DIMENSIONS, ServerEmbedder
from agent.model.protocol import ServerAddress
from agent.thread.conversation import Viewers
from tests.support.openai_server import Scripted, ScriptedOpenAI, fails, word_vector

TEXTS = {
    "hotel.md": "# Hotel\n\nThe limit for a hotel is 120 euros a night.\n",
    "lunch.md": "# Lunch\n\nThe canteen of the office.\n\n## Coffee\n\nCoffee is in the canteen.\n",
    "door.md": "# Door\n\nA badge and a note of the doctor.\n",
}


@pytest.fixture
def index(each_index: KnowledgeIndex) -> KnowledgeIndex:
    return each_index


@pytest.fixture
def docs(tmp_path: Path, index: KnowledgeIndex) -> Path:
    """Three documents of four passages, indexed."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    index.index([folder])
    return folder


@asynccontextmanager
async def ranker_of(index: KnowledgeIndex, url: str, model: str = "embedder") -> AsyncIterator[SemanticRanker]:
    embedder = ServerEmbedder(ServerAddress(base_url=url), model)
    index.meaning = ranker = SemanticRanker(embedder, index)
    yield ranker
    await embedder.aclose()


@asynccontextmanager
async def embedder_of(
    model: str, *failures: Scripted, **parts: Any
) -> AsyncIterator[tuple[ScriptedOpenAI, ServerEmbedder]]:
    async with ScriptedOpenAI(embed=word_vector, **parts) as server:
        server.embed_failures = [*failures]
        async with aclosing(ServerEmbedder(ServerAddress(base_url=server.url, api_key="k"), model)) as embedder:
            yield server, embedder


async def search(index: KnowledgeIndex, query: str) -> list[str]:
    return [p.document for p in index.search(query, vector=await index.embed_question(query))]


def embedding_server() -> ScriptedOpenAI:
    return ScriptedOpenAI(embed=word_vector)


@pytest.mark.parametrize(
    ("title", "heading", "text", "embedded"),
    [
        ("Hotel", "Hotel", "# Hotel\n\nFine.", "Hotel\n\nFine."),
        ("Lunch", "Coffee", "## Coffee\n\nFine.", "Lunch\nCoffee\n\nFine."),
        ("Lunch", "Coffee", "It goes on.", "Lunch\nCoffee\nIt goes on."),
        ("", "", "plain", "plain"),
    ],
)
def test_text_to_embed_has_title_and_heading_once(title: str, heading: str, text: str, embedded: str) -> None:
    assert text_to_embed(title, heading, text) == embedded


async def test_a_passage_without_any_of_the_words_is_found(index: KnowledgeIndex, docs: Path) -> None:
    async with embedding_server() as server, ranker_of(index, server.url) as ranker:
        assert await search(index, "accommodation") == []
        assert await ranker.make() == 4
        assert (await search(index, "accommodation"))[0] == "hotel.md"
        assert (await search(index, "canteen coffee"))[0] == "lunch.md"
        seen = SeenBy(index, Viewers(team="T", channel="C"))
        assert seen.search("accommodation", vector=await seen.embed_question("accommodation"))[0].document == "hotel.md"
        assert ranker.embedder.tokens["embedder"] > 20


async def test_only_new_passages_are_embedded(index: KnowledgeIndex, docs: Path) -> None:
    progress: list[tuple[int, int]] = []
    async with embedding_server() as server, ranker_of(index, server.url) as ranker:
        assert ranker.store.counts() == (0, 4)
        assert await ranker.make(progress=lambda having, every: progress.append((having, every))) == 4
        assert (progress, await ranker.make(), len(server.embedded)) == ([(4, 4)], 0, 4)
        (docs / "lunch.md").write_text(TEXTS["lunch.md"] + "\n## Doctor\n\nA sick note.\n")
        (docs / "door.md").unlink()
        index.index([docs])
        server.embedded.clear()
        assert await ranker.make() == 3
        assert server.embedded == ["Lunch\nDoctor\n\nA sick note."]
        assert ranker.store.counts() == (4, 4)
        assert "door.md" not in await search(index, "badge")


async def test_vectors_of_another_model_or_prefix_are_not_compared(
    index: KnowledgeIndex, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with embedding_server() as server, ranker_of(index, server.url) as one:
        await one.make()
        assert await one.embed_question("accommodation") is not None
        async with ranker_of(index, server.url, model="another") as other:
            assert await search(index, "accommodation") == []
            assert await other.make() == 4
            assert (await search(index, "accommodation"))[0] == "hotel.md"
            monkeypatch.setattr("agent.model.embeddings._PREFIXES", ((re.compile("another"), "", "passage: "),))
            assert await search(index, "accommodation") == []
            server.embedded.clear()
            assert await other.make() == 4
            assert all(text.startswith("passage: ") for text in server.embedded)
            assert (await search(index, "accommodation"))[0] == "hotel.md"
        assert await one.embed_question("accommodation") is None


async def test_an_unavailable_server_leaves_search_by_words_and_is_reported_once(
    index: KnowledgeIndex, docs: Path
) -> None:
    async with embedding_server() as server, ranker_of(index, server.url) as ranker:
        await ranker.make()
        server.embed_failures = [fails(401, "wrong key"), fails(401, "wrong key")]
        with capture_logs() as logs:
            assert await search(index, "badge") == ["door.md"]
            assert await search(index, "accommodation") == []  # not asked again for a while
            assert len(server.embed_requests) == 2
            ranker._retry_at = 0.0
            assert await search(index, "accommodation") == []
            assert "status 401" in ranker.failure
            ranker._retry_at = 0.0
            assert (await search(index, "accommodation"))[0] == "hotel.md"
    assert [line["event"] for line in logs] == ["search_by_words_only", "search_by_meaning_back"]
    assert not ranker.failure


async def test_rate_limits_are_waited_out_and_a_broken_run_is_continued(index: KnowledgeIndex, docs: Path) -> None:
    for number in range(120):
        (docs / f"{number}.md").write_text(f"# Leave {number}\n\nDays {number}.\n")
    index.index([docs])
    async with embedding_server() as server, ranker_of(index, server.url) as ranker:
        server.embed_failures = [fails(429, "slow down", retry_after_ms="5"), Scripted(cut=True), fails(503)]

        def stop(having: int, every: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await ranker.make(progress=stop)
        made, every = ranker.store.counts()
        assert 0 < made < every == 124
        assert made + await ranker.make() == every
        assert len(server.embedded) == every


async def test_batches_and_texts_that_are_too_large_are_reduced(index: KnowledgeIndex, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(5):
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Leave {number}\n\n{'Days of leave. ' * 60}\n")
    index.index([tmp_path / "docs"])

    class Small(ScriptedOpenAI):
        async def _embeddings(self, request: web.Request) -> web.Response:
            texts = (await request.json())["input"]
            if len(texts) > 2 or any(len(text) > 600 for text in texts):
                self.embed_failures = [fails(500, "input (700 tokens) is too large to process")]  # as llama.cpp
            return await super()._embeddings(request)

    async with Small(embed=word_vector) as server, ranker_of(index, server.url) as ranker:
        assert await ranker.make() == ranker.store.counts()[1]
        assert max(map(len, server.embedded)) <= 600


@pytest.mark.parametrize(
    ("listed", "model"),
    [
        (("llama3", "nomic-embed-text", "bge-m3"), "nomic-embed-text"),
        (("llama3", "paraphrase-multilingual"), "paraphrase-multilingual"),
        (("llama3",), ""),
        (None, ""),
    ],
)
async def test_a_model_is_found_in_the_servers_list(listed: Sequence[str] | None, model: str) -> None:
    models = None if listed is None else tuple({"id": name, "object": "model"} for name in listed)
    async with embedder_of("", models=models) as (_, embedder):
        if model:
            assert await embedder.find_model() == model
        else:
            with pytest.raises(EmbedderError, match="ORION_EMBED_MODEL") as unset:
                await embedder.find_model()
            assert unset.value.is_unset


async def test_vectors_have_length_one_and_are_shortened_if_the_model_allows() -> None:
    async with embedder_of("text-embedding-3-small") as (server, embedder):
        vectors = await embedder.embed_passages(["a hotel", "lone \ud800 half"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert server.embed_requests[0]["dimensions"] == DIMENSIONS
    assert server.embed_requests[0]["headers"]["Authorization"] == "Bearer k"


@pytest.mark.parametrize(
    ("model", "question", "passage"),
    [
        ("text-embedding-3-small", "", ""),
        ("bge-m3", "", ""),
        ("multilingual-e5-small-q4", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: ", ""),
        ("nomic-embed-text:latest", "search_query: ", "search_document: "),
        ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("snowflake-arctic-embed:22m", "Represent this sentence", ""),
        ("BAAI/bge-large-en-v1.5", "Represent this sentence", ""),
    ],
)
async def test_question_and_passages_begin_as_the_models_maker_says(model: str, question: str, passage: str) -> None:
    async with embedder_of(model) as (server, embedder):
        await embedder.embed_question("hotel?")
        await embedder.embed_passages(["a hotel"])
    asked, stored = server.embedded
    assert asked.startswith(question)
    assert asked.endswith("hotel?")
    assert bool(question) == (asked != "hotel?")
    assert stored == f"{passage}a hotel"


@pytest.mark.parametrize(
    "reply",
    [
        {"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]},
        {"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": ["1", "0"]}], "usage": None},
        {"data": [{"index": None, "embedding": [1, 0]}, {"embedding": [0, 1]}], "usage": {"prompt_tokens": "7"}},
    ],
)
async def test_vectors_are_read_in_every_form_that_servers_send(reply: dict[str, object]) -> None:
    async with embedder_of("m", Scripted(raw=json.dumps(reply).encode())) as (_, embedder):
        assert (await embedder.embed_passages(["a", "b"])).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"data": [{"embedding": []}]}', "no usable vectors"),
        (b'{"data": [{"embedding": [1e400]}]}', "no usable vectors"),
        (b'{"data": [{"embedding": {"float": [1]}}]}', "no usable vectors"),
        (b'{"data": [{}]}', "no usable vectors"),
        (b'{"data": {"embedding": [1]}}', "0 vectors for 1 texts"),
        (b"[[1, 2]]", "0 vectors for 1 texts"),
        (b'{"error": {"code": "model_not_found"}}', "model_not_found"),
        (b"<html>Log in</html>", "not JSON"),
        (b"", "not JSON"),
    ],
)
async def test_a_reply_without_vectors_is_reported(raw: bytes, reason: str) -> None:
    async with embedder_of("m", *[Scripted(raw=raw)] * 2) as (_, embedder):
        with pytest.raises(EmbedderError, match=reason):
            await embedder.embed_question("a")


async def test_an_index_rebuilt_by_a_newer_version_keeps_its_vectors(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "door.md").write_text(TEXTS["door.md"])
    async with embedding_server() as server:
        for version in (0, 1):
            with closing(SqliteIndex.open(tmp_path / "k.db")) as index:
                index.index([tmp_path / "docs"])
                async with ranker_of(index, server.url) as ranker:
                    assert await ranker.make() == 1
                with index.session(write=True) as session:
                    session.execute(f"PRAGMA user_version = {version}")
        assert len(server.embedded) == 1


MAKER = """
import asyncio, sys
from pathlib import Path
from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
from tests.unit.agent.knowledge.semantic.test_search_by_meaning import ranker_of
kind, where, schema, url = sys.argv[1:]
index = SqliteIndex.open(Path(where)) if kind == "sqlite" else PostgresIndex(where, schema=schema)
def progress(having, every):
    print(having, flush=True)
    sys.stdin.readline()
async def main():
    async with ranker_of(index, url) as ranker:
        await ranker.make(progress=progress)
asyncio.run(main())
"""


async def test_a_killed_process_leaves_its_vectors_and_no_lock(
    index: KnowledgeIndex, docs: Path, request: pytest.FixtureRequest
) -> None:
    for number in range(200):
        (docs / f"{number}.md").write_text(f"# Leave {number}\n\nDays {number}.\n")
    index.index([docs])
    if isinstance(index, SqliteIndex):
        where = ["sqlite", str(index.path), ""]
    else:
        assert isinstance(index, PostgresIndex)
        where = ["postgres", request.getfixturevalue("postgres_url"), index._schema]
    async with embedding_server() as server, ranker_of(index, server.url) as ranker:
        command = [sys.executable, "-c", MAKER, *where, server.url]
        maker = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
        assert maker.stdout is not None
        held = int(await maker.stdout.readline())
        assert await ranker.make() == 0
        maker.kill()
        await maker.wait()
        assert ranker.store.counts() == (held, 204)
        made = 0
        while not made:  # the database server may need a moment to notice
            made = await ranker.make()
        assert made == 204 - held


WORDS = st.dictionaries(st.integers(1, 30), st.floats(0.01, 1), max_size=20).map(
    lambda scores: sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
)
COSINES = st.dictionaries(st.integers(1, 30), st.floats(-1, 1), max_size=20)


async def test_words_that_cover_little_of_a_question_do_not_decide(index: KnowledgeIndex, docs: Path) -> None:
    question = "badge lost, so what does the accommodation of my accommodation accommodation cost"
    assert await search(index, question) == ["door.md"]
    async with embedding_server() as server, ranker_of(index, server.url) as ranker:
        await ranker.make()
        assert (await search(index, question))[0] == "hotel.md"
        assert (await search(index, "badge"))[0] == "door.md"


def test_both_scores_are_weighted_by_their_shares() -> None:
    found = fuse_scores([(7, 0.8), (17, 0.4)], {7: 0.2, 17: 0.8, 27: 0.6}, 0.2)
    share = MEANING_SHARE
    assert [number for number, _ in found] == [17, 7, 27]
    expected = [(1 - share) * 0.4 + share * 0.75, (1 - share) * 0.8, share * 0.5]
    assert [score for _, score in found] == pytest.approx(expected)


def test_of_two_equal_passages_the_one_next_to_a_good_one_ranks_higher() -> None:
    assert [number for number, _ in fuse_scores([], {3: 0.3, 6: 0.3, 7: 0.6}, 0.0)] == [7, 6, 3]


def test_a_passage_without_a_vector_is_ranked_by_its_words() -> None:
    by_words = [(1, 0.9), (2, 0.8), (3, 0.7)]
    assert [number for number, _ in fuse_scores(by_words, {1: 0.5, 3: 0.5}, 0.1)] == [1, 2, 3]


def test_passages_with_equal_scores_are_ordered_by_number() -> None:
    assert fuse_scores([], {5: 0.5, 3: 0.5}, 0.0) == [(3, 0.5 * MEANING_SHARE), (5, 0.5 * MEANING_SHARE)]
    assert fuse_scores([], {5: 1.0, 3: 1.0}, 1.0) == [(3, 0.0), (5, 0.0)]
    assert fuse_scores([], {}, 0.0) == []


@given(WORDS, COSINES, st.floats(-1, 1))
def test_ranking_covers_both_lists(by_words: list[Ranked], cosines: dict[int, float], usual: float) -> None:
    found = fuse_scores(by_words, cosines, usual)
    assert {number for number, _ in found} == {number for number, _ in by_words} | set(cosines)
    assert found == sorted(found, key=lambda scored: (-scored[1], scored[0]))
