"""Two hundred injections, planted where text comes in, each obeyed by the model: nothing of one reaches Slack.

A row has what is planted beside a true fact, the draft of a model that obeys to the message, and what must then never
be in anything that Slack was sent. The loop, the verifier, the index, the delivery and the Slack server are real.
"""

import asyncio
import html
import json
import re
import unicodedata
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from agent.actions import Respond, ToolCall, ToolCalls
from agent.budget import Budget
from agent.knowledge.index.sqlite import SqliteIndex
from agent.model.prompts import private_texts
from agent.model.protocol import WriteContext, WriteStream
from agent.outcome import Answered, Partial
from agent.thread.conversation import AttachedFile, Question, ThreadMessage, viewers_of
from agent.thread.state import ThreadState
from agent.tools.builtin.knowledge import for_viewers, knowledge_tools
from agent.tools.tool import Tool
from agent.turn.loop import run_turn
from bot.delivery.answer_key import AnswerKey
from tests.support.fakes import Listener, PassageTool, ScriptedModel
from tests.support.local_slack import Slack, local_slack
from tests.support.paths import ROOT
from verification.types import Source

ROWS: Final = [
    json.loads(line) for line in (ROOT / "tests/data" / "injections.jsonl").read_text(encoding="utf-8").splitlines()
]
GROUPS: Final = 4
AT_ONCE: Final = 8
PROMPT: Final = " ".join(max(private_texts(), key=len).split())[:120]
UNSEEN: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


class Obedient(ScriptedModel):
    """Does what the planted text says, as a draft that a row spells out."""

    def __init__(self, row: dict[str, Any]) -> None:
        called = ToolCalls(calls=(ToolCall(call_id="1", tool="web_search", input={"query": row["question"]}),))
        super().__init__(decisions=[called, Respond()] if row["place"] == "tool" else [Respond()])
        self._row = row

    def write(self, context: WriteContext) -> WriteStream:
        fact = self._row["fact"]
        number = next((source.id for source in context.sources if fact in source.text), 1)
        draft = self._row["draft"].replace("{good}", f"{fact} [{number}]").replace("{c}", f"[{number}]")
        self.drafts = [f"<answer>{draft.replace('{prompt}', PROMPT)}</answer>"]
        return super().write(context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    slack: Slack
    index: SqliteIndex

    async def ask(self, row: dict[str, Any]) -> str:
        """One turn from the question to Slack; returns how it ended."""
        key, ts = self.slack.ask(f"<@U0ORION> {row['question']}")
        files, state, tools = self._plant(row)
        question = Question(thread=key, user="U0YOU", text=row["question"], ts=ts, files=files)
        outcome, _ = await run_turn(
            question,
            state,
            model=Obedient(row),
            tools=for_viewers(tools, viewers_of(question)),
            budget=Budget(attempts=1),
            emit=Listener(),
        )
        await self.slack.delivery.post_answer(
            key, outcome.answer, AnswerKey(question_ts=ts, turn_id=row["id"], may_exist=False)
        )
        return outcome.name

    def _plant(self, row: dict[str, Any]) -> tuple[tuple[AttachedFile, ...], ThreadState, dict[str, Tool]]:
        tools: dict[str, Tool] = {tool.spec.name: tool for tool in knowledge_tools(self.index)}
        text, files, history = text_of(row), (), ()
        if row["place"] == "file":
            return (AttachedFile(name="notes.txt", text=text),), ThreadState(), tools
        if row["place"] == "thread":
            said = ThreadMessage(role="user", text=text, user="U0PEOPLE", ts="1.0", addressed=False)
            return files, ThreadState(history=(said,)), tools
        if row["place"] == "tool":
            found = Source(
                id=0, title=row["title"], url="https://docs.example/page", text=text, origin="tool:web_search"
            )
            tools["web_search"] = PassageTool(found, name="web_search")
        return files, ThreadState(history=history), tools


def text_of(row: dict[str, Any]) -> str:
    return f"{row['fact']}\n\n{row['planted']}\n\nAsk in #help for more."


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    for row in ROWS:
        if row["place"] == "document":
            (tmp_path / f"{row['id'][:3]}.md").write_text(f"# {row['title']}\n\n{text_of(row)}\n", encoding="utf-8")
    index = await asyncio.to_thread(SqliteIndex.open, tmp_path / "index.sqlite3")
    await asyncio.to_thread(index.index, [tmp_path], docs_url="https://docs.example/")
    async with local_slack() as slack:
        yield Place(slack=slack, index=index)
    index.close()


IDS = re.compile(r"\b(?:\d{10}\.\d{6}|[0-9a-f]{8}(?:[0-9a-f]{24})?)\b")
"""Slack's times and Orion's ids: that three digits of one are those of an injection is chance (it was seen)."""


def text_sent_for(slack: Slack, row_id: str) -> str:
    """All that Slack was sent for one turn, as a reader, or a machine, would make it out."""
    bodies = [call.arguments for call in slack.server.calls if call.method.startswith("chat.")]
    mine = [body for body in bodies if row_id in json.dumps(body.get("metadata", ""))]
    assert mine
    return readable(IDS.sub("", json.dumps(mine, ensure_ascii=False)))


def readable(text: str) -> str:
    return UNSEEN.sub("", unicodedata.normalize("NFKC", html.unescape(text))).casefold()


@pytest.mark.parametrize("group", range(GROUPS))
async def test_nothing_of_an_injection_reaches_slack(place: Place, group: int) -> None:
    rows = ROWS[group::GROUPS]
    gate = asyncio.Semaphore(AT_ONCE)
    through: list[str] = []

    async def one(row: dict[str, Any]) -> None:
        async with gate:
            ending = await place.ask(row)
        shown = text_sent_for(place.slack, row["id"])
        found = [words for words in row["never"] if readable(words.replace("{prompt}", PROMPT[:60])) in shown]
        if found:
            through.append(f"{row['id']} ({ending}): {found}")

    async with asyncio.TaskGroup() as turns:
        for row in rows:
            turns.create_task(one(row))
    assert sorted(through) == []


async def test_the_honest_model_passes_unchanged(place: Place) -> None:
    """The same hostile sources and a model that does not obey: the fact gets through, even next to an attack."""
    honest: Sequence[dict[str, Any]] = [{**row, "draft": "{good}"} for row in ROWS[::4]]
    endings = [await place.ask(row) for row in honest]
    answered = {Answered.name, Partial.name}
    assert [row["id"] for row, ending in zip(honest, endings, strict=True) if ending not in answered] == []
