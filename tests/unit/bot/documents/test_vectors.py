"""Vectors are made beside the work, before it for a command, and told by `orion doctor` and `orion index`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from agent.knowledge.index.index import Ranked
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.semantic.extra import give_meaning
from agent.knowledge.types import KnowledgeAwayError
from bot.cli.ask import ask
from bot.doctor.checks import CheckLine, check_vectors
from bot.documents.open import corpus_of, open_index
from bot.documents.vectors import make_vectors, vectors_meanwhile
from bot.errors import WrongUse
from bot.evals.answers import ask_all
from bot.evals.retrieval import evaluate_retrieval
from bot.settings import load_settings
from tests.support.orion_command import Terminal, opened
from tests.support.orion_running import settings_in
from tests.support.tiny_bert import write_model
from tests.support.waiting import wait_until
from tests.unit.bot.evals.test_retrieval import SMALL

Progress = Callable[[int, int], None] | None
HOTEL = "# Hotel\n\nThe limit for a hotel is 120 euros a night.\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_model(tmp_path_factory.mktemp("tiny")))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "hotel.md").write_text(HOTEL)
    return folder


@pytest.fixture
def index(tmp_path: Path, docs: Path, model: str) -> Iterator[SqliteIndex]:
    with closing(SqliteIndex.open(tmp_path / "k.db")) as opened:
        opened.index([docs])
        give_meaning(opened, model)
        yield opened


class Failing:
    """A ``Meaning`` whose index comes and goes."""

    def __init__(self) -> None:
        self.tries = 0

    def ranked(self, query: str, by_words: Sequence[Ranked], most: int) -> Sequence[Ranked]:  # noqa: ARG002 - words alone
        return by_words

    def make(self, *, progress: Progress = None, stop: threading.Event | None = None) -> int:  # noqa: ARG002 - fails first
        self.tries += 1
        if self.tries < 3:
            raise KnowledgeAwayError("OperationalError")
        return 0

    def counts(self) -> tuple[int, int]:
        return 0, 0


async def test_nothing_is_made_where_search_by_meaning_is_not_chosen() -> None:
    assert await make_vectors(None) == (0, 0)
    async with vectors_meanwhile(None):
        pass


async def test_command_waits_for_all_vectors(index: SqliteIndex) -> None:
    assert await make_vectors(index.meaning) == (1, 1)


async def test_vectors_are_made_meanwhile_also_of_what_comes_later(index: SqliteIndex, docs: Path) -> None:
    meaning = index.meaning
    assert meaning is not None
    async with vectors_meanwhile(meaning, again_s=0.01):
        await wait_until(lambda: meaning.counts() == (1, 1), "the first passage has a vector")
        (docs / "dogs.md").write_text("# Animals\n\nDogs are welcome on Fridays.\n")
        await asyncio.to_thread(index.index, [docs])
        await wait_until(lambda: meaning.counts() == (2, 2), "the second passage has one too")


async def test_what_the_block_raises_comes_out_as_it_was(index: SqliteIndex) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with vectors_meanwhile(index.meaning):
            raise KeyError("mine")


async def test_an_index_that_is_away_is_tried_again() -> None:
    meaning = Failing()
    with capture_logs() as logs:
        async with vectors_meanwhile(meaning, again_s=0.01):
            await wait_until(lambda: meaning.tries > 2, "it is back")
    told = {"event": "vectors_not_made", "error_type": "KnowledgeAwayError", "log_level": "warning"}
    assert logs == [told, told]


async def test_doctor_says_how_far_the_vectors_are(tmp_path: Path, docs: Path, model: str) -> None:
    settings = settings_in(tmp_path, "", docs=(docs,))
    assert await check_vectors(settings, 1) == ""
    settings = settings.model_copy(update={"semantic": model})
    async with open_index(corpus_of(settings)) as (index, _):
        assert await check_vectors(settings, 1) == (
            "0 of 1 passages have a vector; the others are found by their words until a running Orion or `orion index` "
            "has made theirs"
        )
        await make_vectors(index.meaning)
    assert await check_vectors(settings, 1) == "1 of 1 passages have a vector"


@pytest.mark.parametrize(
    ("update", "said"),
    [
        ({"semantic": "/nowhere"}, "has no usable config.json"),
        ({"knowledge_url": SecretStr("postgresql://nobody@127.0.0.1:1/none")}, "the shared index cannot be used"),
    ],
)
async def test_doctor_says_what_is_missing(tmp_path: Path, model: str, update: dict[str, object], said: str) -> None:
    settings = settings_in(tmp_path, "", semantic=model).model_copy(update=update)
    (check,) = await CheckLine("Search by meaning", check_vectors).checks(settings, 1)
    assert (check.ok, said in check.detail, bool(check.remedy)) == (False, True, True)


async def test_an_index_without_its_model_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="Search by meaning has no model"):
        async with open_index(corpus_of(settings_in(tmp_path, "", semantic=str(tmp_path)))):
            pass


async def test_commands_over_documents_of_their_own_search_by_meaning(tmp_path: Path, docs: Path, model: str) -> None:
    settings = settings_in(tmp_path, "", semantic=model)
    asked = await ask(settings, "What is the limit for a hotel?", docs=[docs], thread="")
    assert "120 euros" in asked["answer"]
    async with open_index(corpus_of(settings, [docs])) as (index, _):
        assert index.meaning is not None
        assert index.meaning.counts() == (1, 1)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"id": "1", "question": "What is the limit for a hotel?", "expect": ["120 euros"]}))
    assert (await ask_all(settings, rows, docs)).figures()["answered_as_expected"] == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_retrieval_is_measured_with_meaning(
    kind: str, tmp_path: Path, model: str, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL))
    database = request.getfixturevalue("postgres_url") if kind != "sqlite" else ""
    report = evaluate_retrieval(path, database=database, semantic=model)
    assert (report["index"], report["semantic"], report["recall_at_5"]) == (kind, True, 1.0)
    with pytest.raises(WrongUse, match="has no model"):
        evaluate_retrieval(path, database=database, semantic=str(tmp_path))


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    (tmp_path / "terminal").mkdir()
    yield from opened(tmp_path / "terminal", capsys, monkeypatch)


def test_orion_index_makes_the_vectors(terminal: Terminal, model: str) -> None:
    terminal.set(ORION_SEMANTIC=model)
    done = terminal.orion("index", str(terminal.docs))
    assert done.code == 0
    assert "passages can be found by meaning." in done.out
    assert "vectors: " in done.err


@pytest.mark.parametrize(
    ("value", "chosen"), [("", ""), ("off", ""), ("0", ""), (" On ", "on"), ("1", "on"), ("true", "on")]
)
def test_the_setting_is_a_switch_or_a_folder(
    value: str, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORION_SEMANTIC", value)
    assert load_settings().semantic == chosen
    monkeypatch.setenv("ORION_SEMANTIC", f" {tmp_path} ")
    assert load_settings().semantic == str(tmp_path)
    monkeypatch.setenv("ORION_SEMANTIC", str(tmp_path / "nowhere"))
    with pytest.raises(WrongUse, match="ORION_SEMANTIC must be on, off, or the folder of a model"):
        load_settings()
