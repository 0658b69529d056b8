"""Opening and closing the parts of a turn from the settings."""

import asyncio
import json
import socket
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.sources.git import GitSource
from agent.knowledge.types import IndexReport, KnowledgeAwayError
from agent.model.openai import OpenAIModel
from agent.model.protocol import RETRYABLE, DecideContext, Decision, ServerAddress
from agent.outcome import Answered, Failed, TurnOutcome
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import ThreadState
from bot.documents.open import corpus_of, open_index
from bot.errors import WrongUse
from bot.settings import Settings
from bot.turn.engine import RESERVED, Engine, mcp_servers, open_engine, open_tools
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_command import LIMITS, QUESTION
from tests.support.orion_running import settings_in
from tests.support.paths import ROOT


def docs_in(folder: Path, text: str = LIMITS) -> Path:
    folder.mkdir()
    (folder / "limits.md").write_text(text)
    return folder


async def run(engine: Engine, text: str = QUESTION) -> TurnOutcome:
    question = Question(thread=ThreadKey(team="T", channel="C", thread_ts="1"), user="U", text=text, ts="1")
    return (await engine.run(question, ThreadState(), emit=lambda _: None))[0]


async def test_the_engine_answers_from_its_documents(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "", docs=(docs_in(tmp_path / "docs"),), docs_url="https://wiki.example")
    async with open_engine(settings, corpus_of(settings)) as engine:
        assert engine.report.added == 1
        outcome = await run(engine)
    assert isinstance(outcome, Answered)
    assert outcome.answer.sources[0].url.startswith("https://wiki.example/limits.md")


class Hesitant(OpenAIModel):
    """Its draft is requested before its decision, as happens with a proxy in front of the model."""

    async def decide(self, context: DecideContext) -> Decision:
        await asyncio.sleep(0.05)
        return await super().decide(context)


async def test_a_model_that_is_back_gets_a_single_call_first(tmp_path: Path) -> None:
    """A draft beside the decision would take the one call that may find out, and stop with the refused decision."""
    draft = says("<answer>Each API key may make 600 requests a minute [1].</answer>")
    async with ScriptedOpenAI(decisions=(RESPOND,), drafts=(draft,)) as server:
        settings = settings_in(
            tmp_path, "", docs=(docs_in(tmp_path / "docs"),), openai_base_url=server.url, model="m", judge=False
        )
        async with open_engine(settings, corpus_of(settings)) as engine:
            engine.breaker.first_pause_s = 0.001
            for _ in range(engine.breaker.failures):
                engine.breaker.record_failure()
            await asyncio.sleep(0.01)
            assert engine.breaker.is_open
            model = Hesitant(address=ServerAddress(base_url=server.url), model="m", breaker=engine.breaker)
            outcome = await run(replace(engine, model=model))
            await model.aclose()
        assert server.phases() == ["decide", "write"]
    assert isinstance(outcome, Answered)


async def test_settings_reach_policy_and_budget(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "", max_attempts=2, general="refuse", link_hosts=frozenset({"a.example"}))
    async with open_engine(settings, corpus_of(settings)) as engine:
        assert engine.budget.attempts == 2
        assert (engine.policy.general, engine.policy.link_hosts) == ("refuse", frozenset({"a.example"}))
        assert "llm_generate" not in engine.tools


async def test_a_model_server_enables_the_generating_tool(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "", openai_base_url="http://127.0.0.1:9/v1")
    async with open_engine(settings, corpus_of(settings)) as engine:
        assert isinstance(engine.model, OpenAIModel)
        assert "llm_generate" in engine.tools


async def test_named_folders_get_an_index_of_their_own(tmp_path: Path) -> None:
    """Trying a folder out does not empty the index that a running Orion serves from."""
    served, tried = docs_in(tmp_path / "served"), docs_in(tmp_path / "tried", "# Other\n\nWords.")
    settings = settings_in(tmp_path / "home", "", docs=(served,))
    corpora = [corpus_of(settings), corpus_of(settings, [tried]), corpus_of(settings, [tried], "http://127.0.0.1:1")]
    assert len({corpus.index_path for corpus in corpora}) == 3
    assert corpora[1] == corpus_of(settings, [tried])
    for corpus in corpora:
        async with open_index(corpus):
            pass
    async with open_index(corpora[0]) as (index, report):
        assert report.unchanged == 1
        assert [document.title for document in index.documents()] == ["Limits"]


async def test_repositories_are_indexed_together_with_folders(tmp_path: Path) -> None:
    here = ROOT
    settings = settings_in(tmp_path / "home", "", docs=(docs_in(tmp_path / "docs"),))
    entries = frozenset({f"{tmp_path}/nowhere", f"{here}@HEAD:docs/decisions/"})
    corpus = corpus_of(settings.model_copy(update={"git_docs": entries, "git_docs_url": "https://git.example/b"}))
    assert set(corpus.sources) == {
        GitSource(repository=tmp_path / "nowhere", url="https://git.example/b"),
        GitSource(repository=here, folder="docs/decisions", url="https://git.example/b"),
    }
    assert corpus_of(settings, [tmp_path / "docs"]).sources == ()
    wrong = settings.model_copy(update={"git_docs": frozenset({"a@b@c"})})
    with pytest.raises(WrongUse, match="FOLDER@REF"):
        corpus_of(wrong)
    only = settings.model_copy(update={"docs": (), "git_docs": frozenset({f"{tmp_path}/nowhere"})})
    async with open_index(corpus_of(only)) as (index, report):
        assert index.documents() == ()
        assert len(report.failed) == 1


async def test_exports_are_indexed_too(tmp_path: Path) -> None:
    export = tmp_path / "export"
    export.mkdir()
    (export / "channels.json").write_text('[{"id": "C0OPS", "name": "ops"}]')
    settings = settings_in(tmp_path / "home", "", slack_exports=(export,), slack_exports_url="https://acme.slack.com")
    corpus = corpus_of(settings)
    assert [source.key for source in corpus.sources] == [f"slack:{export}"]
    async with open_index(corpus) as (_, report):
        assert report == IndexReport()


@pytest.mark.parametrize("home", ["limits.md", "limits.md/deeper"])
async def test_an_unwritable_place_is_reported(home: str, tmp_path: Path) -> None:
    docs = docs_in(tmp_path / "docs")
    settings = settings_in(docs / home, "", docs=(docs,))
    with pytest.raises(WrongUse, match="Name another folder in ORION_HOME"):
        async with open_engine(settings, corpus_of(settings)):
            pass


def away(tmp_path: Path, **options: object) -> Settings:
    """Settings that name a PostgreSQL where none is."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"postgresql://orion:hunter2@127.0.0.1:{closed.getsockname()[1]}/orion"
    return settings_in(tmp_path, "", knowledge_url=SecretStr(url), **options)


async def test_the_shared_index_is_used_if_one_is_configured(tmp_path: Path, postgres_url: str) -> None:
    docs = docs_in(tmp_path / "docs")
    settings = settings_in(tmp_path / "home", "", docs=(docs,), knowledge_url=SecretStr(postgres_url))
    async with open_engine(settings, corpus_of(settings)) as engine:
        assert (engine.report.added, engine.shared) == (1, True)
        outcome = await run(engine)
        assert isinstance(engine.index, PostgresIndex)
        with engine.index.session() as session:
            session.execute("DROP SCHEMA orion CASCADE")
    assert isinstance(outcome, Answered)
    assert not settings.index_path.exists()
    assert corpus_of(settings, [docs]).database == ""


async def test_without_the_shared_index_no_question_is_answered_as_not_found(tmp_path: Path) -> None:
    settings = away(tmp_path / "home", docs=(docs_in(tmp_path / "docs"),))
    async with open_engine(settings, corpus_of(settings)) as engine:
        assert [name for name, _ in engine.report.failed] == ["ORION_KNOWLEDGE_URL"]
        outcome = await run(engine)
        greeted = await run(engine, "Hello!")
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.reason in RETRYABLE) == ("KnowledgeAwayError", True)
    assert "couldn't search the documents" in outcome.answer.text
    assert isinstance(greeted, Answered)


async def test_commands_report_an_unreachable_shared_index(tmp_path: Path) -> None:
    settings = away(tmp_path)
    with pytest.raises(KnowledgeAwayError):
        async with open_index(corpus_of(settings)):
            pass
    wrong = settings.model_copy(update={"knowledge_url": SecretStr("postgresql://x:hunter2@[half")})
    with pytest.raises(WrongUse, match="not the address of a PostgreSQL") as raised:
        async with open_index(corpus_of(wrong)):
            pass
    assert "hunter2" not in str(raised.value)


def config(tmp_path: Path, **servers: Any) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text("\ufeff" + json.dumps({"mcpServers": servers}))
    return path


async def names(settings: Settings) -> list[str]:
    async with AsyncExitStack() as stack:
        tools, _, _ = await open_tools(settings, stack)
        return [tool.spec.name for tool in tools]


async def test_configured_tools_are_available(tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path, "", git=(tmp_path,), files=(tmp_path,), searxng_url="http://127.0.0.1:9", git_url="https://g.example"
    )
    assert await names(settings) == ["git_log", "git_show", "file_read", "web_search"]
    assert set(await names(settings)) <= RESERVED
    assert await names(settings_in(tmp_path, "")) == []


@pytest.mark.parametrize("variable", ["git", "files"])
async def test_a_missing_folder_is_reported(tmp_path: Path, variable: str) -> None:
    with pytest.raises(WrongUse, match=f"ORION_{variable.upper()} names .*nowhere, which is not a folder"):
        await names(settings_in(tmp_path, "", **{variable: (tmp_path / "nowhere",)}))


async def test_orion_starts_although_a_server_is_down(tmp_path: Path) -> None:
    path = config(tmp_path, gone={"command": str(tmp_path / "nowhere")}, off={"command": "x", "disabled": True})
    settings = settings_in(tmp_path, "", mcp_config=path)
    async with AsyncExitStack() as stack:
        _, mcp, _ = await open_tools(settings, stack)
        assert mcp
        assert list(mcp.by_name()) == ["gone_search"]
    assert [server.name for server in mcp_servers(settings)] == ["gone"]


async def test_an_exception_inside_is_raised_unchanged(tmp_path: Path) -> None:
    """The servers' keepers run in a task group, which would wrap it up."""
    settings = settings_in(
        tmp_path, "", mcp_config=config(tmp_path, gone={"command": sys.executable, "args": ["-c", ""]})
    )

    async def fail() -> None:
        async with AsyncExitStack() as stack:
            await open_tools(settings, stack)
            raise WrongUse("no reason")

    with pytest.raises(WrongUse, match="no reason"):
        await fail()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read \\(No such file or directory\\)"),
        (b"\xff\xfe", "cannot be read \\(it is not UTF-8 text\\)"),
        (b"{", "It should be a JSON object such as"),
        (b'{"mcpServers": {"a": {}}}', "Server 'a': it needs either 'command' or 'url'\\."),
    ],
)
def test_a_contradictory_configuration_is_refused(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "mcp.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WrongUse, match=reason):
        mcp_servers(settings_in(tmp_path, "", mcp_config=path))
