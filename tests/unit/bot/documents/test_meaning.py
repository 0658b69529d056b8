"""Search by meaning as the bot sets it up: the server, the time of the vectors, and the message without any."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from bot.cli.ask import ask
from bot.doctor.checks import CheckLine
from bot.doctor.doctor import run_checks
from bot.doctor.model_checks import check_embedding
from bot.documents.open import corpus_of, keep_vectors_current, make_vectors, open_index, open_meaning
from bot.evals.retrieval import evaluate_retrieval
from bot.settings import DEFAULT_EMBED_MODEL, embedding_address, find_unknown_names
from observability.stats import Stats
from tests.support.documents import SMALL
from tests.support.openai_server import RESPOND, ScriptedOpenAI, fails, says, word_vector
from tests.support.orion_command import Terminal
from tests.support.orion_running import settings_in
from tests.support.postgres_server import database_in
from tests.support.waiting import wait_until

HOTEL = "# Hotel\n\nThe limit for a hotel is 120 euros a night.\n"
OFF = {"embed_model": "off"}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "hotel.md").write_text(HOTEL)
    return folder


@pytest.fixture
async def server() -> AsyncIterator[ScriptedOpenAI]:
    async with ScriptedOpenAI(
        embed=word_vector,
        models=({"id": "my-embedder", "object": "model"},),
        decisions=[RESPOND] * 9,
        drafts=[says("<answer>The limit is 120 euros a night [1].</answer>")] * 9,
    ) as opened:
        yield opened


@pytest.mark.parametrize(
    ("given", "url", "model"),
    [
        ({"openai_api_key": SecretStr("k")}, "", DEFAULT_EMBED_MODEL),
        ({"openai_base_url": "http://a/v1"}, "http://a/v1", ""),
        ({"openai_base_url": "http://a/v1", "embed_model": "e"}, "http://a/v1", "e"),
        ({"openai_api_key": SecretStr("k"), "embed_base_url": "http://e/v1"}, "http://e/v1", ""),
        ({"embed_base_url": "http://e/v1", "embed_model": "e"}, "http://e/v1", "e"),
    ],
)
def test_the_embedding_server_follows_the_settings(
    tmp_path: Path, given: dict[str, object], url: str, model: str
) -> None:
    found = embedding_address(settings_in(tmp_path, "", **given))
    assert found is not None
    assert (found[0].base_url, found[1]) == (url, model)


@pytest.mark.parametrize(
    "given",
    [{}, {"openai_api_key": SecretStr("k"), **OFF}, {"azure_openai_endpoint": "https://x.openai.azure.com"}],
)
def test_search_uses_words_without_a_server_or_if_turned_off(tmp_path: Path, given: dict[str, object]) -> None:
    assert embedding_address(settings_in(tmp_path, "", **given)) is None


def test_another_server_does_not_see_the_model_servers_account(tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path, "", openai_api_key=SecretStr("k"), openai_org_id="org", embed_base_url="http://e/v1",
        openai_custom_headers=SecretStr("X-Secret: s"), embed_api_key=SecretStr("e"),
    )  # fmt: skip
    found = embedding_address(settings)
    assert found is not None
    assert (found[0].api_key, set(found[0].headers.values())) == ("e", {None})
    assert "X-Secret" in found[0].headers


def test_the_old_name_of_a_setting_leads_to_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORION_SEMANTIC", "on")
    assert find_unknown_names()["ORION_SEMANTIC"] == "ORION_EMBED_MODEL"


async def test_vectors_are_made_in_the_background_and_their_tokens_counted(
    tmp_path: Path, docs: Path, server: ScriptedOpenAI, redis_client: Redis
) -> None:
    settings = settings_in(tmp_path, "", docs=(docs,), openai_base_url=server.url)
    stats = Stats(redis_client)
    async with open_index(corpus_of(settings)) as (index, _), open_meaning(settings, index) as meaning:
        assert meaning is not None
        async with keep_vectors_current(meaning, stats, again_s=0.01):
            await wait_until(lambda: meaning.store.counts() == (1, 1), "the first passage has a vector")
            (docs / "dogs.md").write_text("# Animals\n\nDogs are welcome on Fridays.\n")
            await asyncio.to_thread(index.index, [docs])
            await wait_until(lambda: meaning.store.counts() == (2, 2), "the second passage has one too")

            async def is_counted() -> bool:
                return (await stats.read(1)).models().get("my-embedder", (0,))[0] == meaning.embedder.tokens[
                    "my-embedder"
                ]

            await wait_until(is_counted, "the tokens are counted")
    assert index.meaning is None


async def test_doctor_says_what_compares_the_vectors_in_postgresql(
    tmp_path: Path, docs: Path, server: ScriptedOpenAI, postgres_url: str
) -> None:
    settings = settings_in(tmp_path, "", docs=(docs,), openai_base_url=server.url)
    with database_in(postgres_url) as database:
        with database.without_extensions() as url:
            settings = settings.model_copy(update={"knowledge_url": SecretStr(url)})
            assert "in its own memory, because PostgreSQL has no pgvector" in str(await check_embedding(settings, 5))
        settings = settings.model_copy(update={"knowledge_url": SecretStr(database.url)})
        assert str(await check_embedding(settings, 5)).endswith("; PostgreSQL compares them")


async def test_doctor_reports_the_progress_of_the_vectors(tmp_path: Path, docs: Path, server: ScriptedOpenAI) -> None:
    settings = settings_in(tmp_path, "", docs=(docs,), openai_base_url=server.url)
    async with open_index(corpus_of(settings)) as (index, _), open_meaning(settings, index) as meaning:
        assert str(await check_embedding(settings, 5)).startswith(
            "my-embedder embeds; 0 of 1 passages have a vector; the"
        )
        await make_vectors(meaning)
    assert await check_embedding(settings, 5) == "my-embedder embeds; 1 of 1 passages have a vector"
    assert await check_embedding(settings.model_copy(update=OFF), 5) == ""
    server.embed_failures = [fails(401, "no")]
    (check,) = await run_checks([CheckLine("Search by meaning", check_embedding)], settings, 5)
    assert (check.ok, "401" in check.detail, "ORION_EMBED_API_KEY" in check.remedy) == (False, True, True)


async def test_doctor_reports_no_fault_if_the_server_has_no_embeddings(tmp_path: Path, docs: Path) -> None:
    async with ScriptedOpenAI() as server:
        settings = settings_in(tmp_path, "", docs=(docs,), openai_base_url=server.url)
        assert str(await check_embedding(settings, 5)).startswith("off: the model server lists no embedding model")


async def test_a_question_over_a_channels_own_documents_is_searched_by_meaning(
    tmp_path: Path, docs: Path, server: ScriptedOpenAI
) -> None:
    settings = settings_in(tmp_path, "", openai_base_url=server.url, model="m", judge=False)
    asked = await ask(settings, "Accommodation?", docs=[docs], thread="")
    assert [source["title"] for source in asked["sources"]] == ["Hotel"], asked
    assert server.embedded[-1] == "Accommodation?"


async def test_retrieval_is_measured_with_meaning(tmp_path: Path, server: ScriptedOpenAI) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL))
    report = await evaluate_retrieval(path, settings_in(tmp_path, "", openai_base_url=server.url))
    assert (report["semantic"], report["recall_at_5"]) == (True, 1.0)


async def test_orion_index_makes_the_vectors(terminal: Terminal, server: ScriptedOpenAI) -> None:
    terminal.set(OPENAI_BASE_URL=server.url)
    done = await asyncio.to_thread(terminal.orion, "index", str(terminal.docs))
    assert done.code == 0
    assert "passages can be found by meaning." in done.out
    assert "vectors: " in done.err
    terminal.set(ORION_EMBED_MODEL="another")
    server.embed_failures = [fails(401, "no")]
    done = await asyncio.to_thread(terminal.orion, "index", str(terminal.docs))
    assert "Search goes by words alone: " in done.err
    assert "401" in done.err
