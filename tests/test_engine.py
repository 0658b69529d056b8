"""What a turn needs is opened from the settings, and closed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.conversation import Question, ThreadKey
from agent.extractive_model import ExtractiveModel
from agent.openai_model import OpenAIModel
from agent.outcome import Answered
from agent.thread_state import ThreadState
from bot.engine import corpus_of, open_engine, open_index, open_model
from bot.wrong_use import WrongUse
from tests.orion_command import LIMITS, QUESTION
from tests.orion_running import settings_in


def docs_in(folder: Path, text: str = LIMITS) -> Path:
    folder.mkdir()
    (folder / "limits.md").write_text(text)
    return folder


async def test_engine_answers_from_its_documents(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "", docs=(docs_in(tmp_path / "docs"),), docs_url="https://wiki.example")
    question = Question(thread=ThreadKey(team="T", channel="C", thread_ts="1"), user="U", text=QUESTION, ts="1")
    async with open_engine(settings, corpus_of(settings)) as engine:
        assert engine.report.added == 1
        outcome, _ = await engine.run(question, ThreadState(), emit=lambda _: None)
    assert isinstance(outcome, Answered)
    assert outcome.answer.sources[0].url.startswith("https://wiki.example/limits.md")


async def test_settings_reach_policy_and_budget(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "", max_attempts=2, general="refuse", link_hosts=frozenset({"a.example"}))
    async with open_engine(settings, corpus_of(settings)) as engine:
        assert engine.budget.attempts == 2
        assert (engine.policy.general, engine.policy.link_hosts) == ("refuse", frozenset({"a.example"}))
        assert "llm_generate" not in engine.tools


async def test_d1_a_server_brings_the_generating_tool(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "", openai_base_url="http://127.0.0.1:9/v1")
    async with open_engine(settings, corpus_of(settings)) as engine:
        assert isinstance(engine.model, OpenAIModel)
        assert "llm_generate" in engine.tools


async def test_h1_without_a_server_orion_quotes(tmp_path: Path) -> None:
    async with open_model(settings_in(tmp_path, "")) as model:
        assert isinstance(model, ExtractiveModel)


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


async def test_without_folders_the_index_is_taken_as_it_is(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "home", "", docs=(docs_in(tmp_path / "docs"),))
    async with open_index(corpus_of(settings)):
        pass
    async with open_index(corpus_of(settings.model_copy(update={"docs": ()}))) as (index, report):
        assert len(index.documents()) == 1
        assert report.added == report.removed == 0


@pytest.mark.parametrize("name", ["nowhere", "docs/limits.md"])
def test_what_is_no_folder_is_refused(name: str, tmp_path: Path) -> None:
    docs_in(tmp_path / "docs")
    with pytest.raises(WrongUse, match="is no folder"):
        corpus_of(settings_in(tmp_path, ""), [tmp_path / name])


@pytest.mark.parametrize("home", ["limits.md", "limits.md/deeper"])
async def test_place_that_cannot_be_written_is_told(home: str, tmp_path: Path) -> None:
    docs = docs_in(tmp_path / "docs")
    settings = settings_in(docs / home, "", docs=(docs,))
    with pytest.raises(WrongUse, match="Name another folder in ORION_HOME"):
        async with open_engine(settings, corpus_of(settings)):
            pass


async def test_index_that_is_a_folder_is_told(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "")
    settings.index_path.mkdir()
    with pytest.raises(WrongUse, match="cannot be written"):
        async with open_index(corpus_of(settings)):
            pass
