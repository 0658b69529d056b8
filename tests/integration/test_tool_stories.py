"""Whole turns with tools, as lists of events: documents listed, commits summarised, the web asked.

Everything is real except the servers: the engine of the settings, an index, a Git repository, a search engine's server,
a model's server with a script. Each list is compared whole.
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent.json_data import compact_json
from agent.outcome import Answered, TurnOutcome
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import ThreadState
from agent.turn.events import (
    Done,
    ModelEnd,
    ModelStart,
    PlanMoved,
    StateUpdated,
    Thinking,
    Token,
    ToolEnd,
    ToolStart,
    TurnEvent,
    Verification,
)
from bot.documents.open import corpus_of
from bot.settings import Settings
from bot.turn.engine import Engine, open_engine
from tests.support.openai_server import RESPOND, ScriptedOpenAI, calls, says
from tests.support.orion_running import settings_in
from tests.support.searxng import LocalSearxNG

PLACE = ThreadKey(team="T1", channel="C1", thread_ts="1.0")
REFUNDS = "# Refunds\n\nMeals on a trip are paid back up to 45 euros a day.\n"
LIMITS = "# Limits\n\nEach key may send 120 requests a minute.\n"


@dataclass(slots=True)
class Story:
    """Turns of one thread; each turn's events as short lines, texts of the model folded."""

    engine: Engine
    state: ThreadState = field(default_factory=ThreadState)
    events: list[str] = field(default_factory=list)

    async def ask(self, text: str, ts: str = "1.0", user: str = "U1") -> TurnOutcome:
        self.events = []
        question = Question(thread=PLACE, user=user, text=text, ts=ts)
        outcome, self.state = await self.engine.run(question, self.state, emit=self._note)
        return outcome

    def _note(self, event: TurnEvent) -> None:
        line = event_line(event)
        if line != "token" or self.events[-1] != "token":
            self.events.append(line)


def event_line(event: TurnEvent) -> str:
    """One event as a line."""
    match event:
        case ToolStart():
            call = event.call
            line = f"{call.tool} starts {json.dumps(call.input)}" if call.tool != "search" else "search starts"
        case ToolEnd():
            result = event.result
            line = f"{result.tool} {'brings' if result.ok else 'fails'} {result.content or result.error}"
        case StateUpdated():
            line = f"state {', '.join(sorted(event.changes))}"
        case PlanMoved():
            line = f"plan {', '.join(step.status for step in event.steps)}"
        case ModelStart() | ModelEnd():
            line = f"{event.phase} {'starts' if isinstance(event, ModelStart) else 'ends'}"
        case Done() | Verification():
            line = f"done {event.outcome}" if isinstance(event, Done) else f"verified {event.verdict.passed}"
        case Thinking() | Token():
            line = type(event).__name__.lower()
    return line


@asynccontextmanager
async def story(settings: Settings, server: ScriptedOpenAI, docs: Path) -> AsyncIterator[Story]:
    inside = settings.model_copy(update={"openai_base_url": server.url, "model": "m", "docs": (docs,)})
    async with open_engine(inside, corpus_of(inside)) as engine:
        yield Story(engine)


def folder(tmp_path: Path, **documents: str) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in documents.items():
        (docs / f"{name}.md").write_text(text)
        os.utime(docs / f"{name}.md", (1_795_000_000, 1_795_000_000))
    return docs


FIRST_SEARCH = ["search starts", "search brings No passage has any of these words."]
WRITTEN = ["write starts", "token", "write ends", "verified True"]
JUDGED = [*WRITTEN[:-1], "judge starts", "judge ends", WRITTEN[-1]]
PLANNED = "state steps, todolist_id"
CLOSED = "state closed, steps, todolist_id"
DECIDED = ["decide starts", "decide ends"]


async def test_a_question_for_the_list_of_documents_is_answered(tmp_path: Path) -> None:
    """list_documents, then llm_generate, then a cited answer. The text of llm_generate is not a source."""
    wrote = {"prompt": "Group these documents.", "context": {"documents": ["Limits", "Refunds"]}}
    answer = "<answer>There are two documents: Limits and Refunds [1].</answer>"
    docs = folder(tmp_path, limits=LIMITS, refunds=REFUNDS)
    async with (
        ScriptedOpenAI(
            decisions=[calls(("list_documents", {})), calls(("llm_generate", wrote)), RESPOND],
            generations=[says("Two documents about 999 topics.")],
            drafts=[says(answer)],
        ) as server,
        story(settings_in(tmp_path, ""), server, docs) as told_,
    ):
        outcome = await told_.ask("What have you got?")
        prompts = json.dumps([request["messages"] for request in server.requests if request.get("stream")])
    listed = "2 documents:\n- Limits (limits.md), updated 2026-11-18\n- Refunds (refunds.md), updated 2026-11-18"
    generated = compact_json(
        {"success": True, "generated_text": "Two documents about 999 topics.", "tokens_used": 120,
         "prompt_tokens": 100, "completion_tokens": 20, "estimated": False}
    )  # fmt: skip
    assert told_.events == [
        *FIRST_SEARCH,
        *DECIDED,
        PLANNED,
        "list_documents starts {}",
        f"list_documents brings {listed}",
        *DECIDED,
        f"llm_generate starts {json.dumps(wrote)}",
        f"llm_generate brings {generated}",
        *DECIDED,
        *JUDGED,
        CLOSED,
        "done answered",
    ]
    assert isinstance(outcome, Answered)
    assert [source.title for source in outcome.answer.sources] == ["List of documents"]
    assert "source [2]" not in prompts


async def test_a_question_is_answered_from_web_results(tmp_path: Path) -> None:
    """Two tools of one step run at once; the one that fails is read, the other's text is cited with its link."""
    page = {"title": "Tea prices", "url": "https://tea.example/p", "content": "A kilo of tea costs 9 euros."}
    step = calls(("web_search", {"query": "price of tea"}), ("get_document", {"document": "tea"}))
    answer = "<answer>A kilo of tea costs 9 euros [1].</answer>"
    async with (
        LocalSearxNG(page) as engine,
        ScriptedOpenAI(decisions=[step, RESPOND], drafts=[says(answer)]) as server,
        story(settings_in(tmp_path, "", searxng_url=engine.url), server, folder(tmp_path)) as told_,
    ):
        outcome = await told_.ask("What does a kilo of tea cost?")
    head = ["search starts", "search brings There are no documents yet.", *DECIDED, PLANNED]
    starts = ['web_search starts {"query": "price of tea"}', 'get_document starts {"document": "tea"}']
    ends = {
        "web_search brings Tea prices (https://tea.example/p)",
        "get_document fails There is no document of that name.",
    }
    tail = [*DECIDED, *WRITTEN, CLOSED, "done answered"]
    at = len(head) + len(starts)
    assert told_.events[:at] == head + starts
    assert set(told_.events[at : at + 2]) == ends
    assert told_.events[at + 2 :] == tail
    assert isinstance(outcome, Answered)
    assert outcome.answer.chunks[0].startswith("A kilo of tea costs 9 euros <https://tea.example/p|")
