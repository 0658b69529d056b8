"""Missions whose process is killed (kill -9) between a clarifying question and its answer, or between two tools.

Orion is a separate process over a real Redis; model and workspace are servers in the test. The result is
read from outside: the thread's state in Redis, the log of both processes, and the messages in Slack.
"""

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from itertools import repeat
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from agent.thread.state import ThreadState
from agent.thread.store import ThreadStore
from bot.cli.local import settings_for
from bot.local.model.roster import TEAM_ID, VISITOR
from bot.local.server import LocalWorkspace
from tests.process.chaos.crew import Member, crew
from tests.process.chaos.member import Role
from tests.process.test_process import wait_until_connected, workspace
from tests.support.openai_server import HANGS, RESPOND, Scripted, ScriptedOpenAI, calls, says
from tests.support.orion_running import CHANNEL, MENTION, answers, settings_in, text_of, text_pages
from tests.support.waiting import wait_until

LIMITS = "Public API: limits and errors"
BACK = "Which plan do you mean?"
GOOD = says("<answer>Keys on the partner plan may make 3,000 requests a minute [1].</answer>")
OTHER = says("<answer>A request body may be 2 MB at most [1].</answer>")
PLAN = [{"description": "Find out the plan"}, {"description": "Look up its limit", "tool": "get_document"}]
READ = calls(("get_document", {"document": LIMITS}))
LISTED = calls(("list_documents", {}))
OF_MISSIONS = {
    "mission_set",
    "completed_todolist_detected_on_new_input",
    "resetting_mission_for_new_query",
    "mission_reset_complete",
    "tool_called",
    "turn_outcome",
}


class Scene:
    """One workspace, one Redis, one scripted model; processes come and go."""

    def __init__(self, tmp_path: Path, redis_url: str, redis_client: Redis, server: ScriptedOpenAI) -> None:
        self._home = tmp_path
        self._redis_url = redis_url
        self._store = ThreadStore(redis_client)
        self._server = server
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.workspace: LocalWorkspace = await self._stack.enter_async_context(workspace())
        self.crew = self._stack.enter_context(crew(self._home / "crew"))
        settings = settings_in(self._home, self._redis_url, openai_base_url=self._server.url, model="scripted")
        self._settings = settings_for(settings.model_copy(update={"docs": (text_pages(),)}), self.workspace)
        return self

    async def serving(self, name: str) -> Member:
        """A process that takes events and answers them; its leases are short, for the next one waits for them."""
        member = self.crew.start(Role(name=name, socket=True, lease_s=2.0), self._settings)
        await wait_until_connected(self.workspace)
        return member

    async def kill(self, member: Member) -> None:
        self.crew.kill(member)
        await wait_until(lambda: self.workspace.connections == 0, "its connection is gone")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def ask(self, text: str, thread: str | None = None) -> str:
        return self.workspace.post(VISITOR, CHANNEL, f"{MENTION} {text}", thread)

    async def answer(self, ts: str, thread: str) -> str:
        found = await self.workspace.wait_for(lambda: answers(self.workspace, ts, thread), 60)
        return text_of(found[0])

    async def state(self, thread: str) -> ThreadState:
        return await self._store.load(ThreadKey(team=TEAM_ID, channel=CHANNEL, thread_ts=thread))

    async def wait_until_answered(self, thread: str, answered: int) -> None:
        """Until so many messages of the thread are answered and remembered."""

        async def are_remembered() -> bool:
            history = (await self.state(thread)).history
            return sum(message.role == "assistant" for message in history) >= answered

        await wait_until(are_remembered, f"{answered} answers are remembered", 60)

    def events(self) -> list[str]:
        """The log lines of both processes about missions and tools, in order."""
        lines = [json.loads(line) for one in self.crew.members for line in one.log.read_text().splitlines()]
        detail = {"tool_called": "tool", "turn_outcome": "outcome"}
        told = [(line["event"], line.get(detail.get(line["event"], ""), "")) for line in lines]
        return [f"{event} {more}".strip() for event, more in told if event in OF_MISSIONS]


def steps(state: ThreadState) -> list[tuple[str, str, str]]:
    assert state.plan is not None
    return [(step.description, step.status, step.result) for step in state.plan.steps]


async def test_after_a_kill_the_mission_continues_and_a_second_one_resets_it(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    asks_back = calls(("ask_user", {"question": BACK, "key": "plan", "plan": PLAN}))
    decisions = [asks_back, LISTED, READ, calls(("finish_step", {"step": 1, "result": "partner"})), RESPOND, RESPOND]

    def draft(request: Mapping[str, Any]) -> Scripted:
        return OTHER if "How big may a request body be?" in request["messages"][-1]["content"] else GOOD

    async with (
        ScriptedOpenAI(decisions=decisions, drafts=draft) as server,
        Scene(tmp_path, redis_url, redis_client, server) as scene,
    ):
        first = await scene.serving("first")
        thread = scene.ask("How many requests may a key make?")
        assert BACK in await scene.answer(thread, thread)
        await scene.wait_until_answered(thread, 1)
        await scene.kill(first)
        asked = await scene.state(thread)
        assert asked.pending_question is not None
        assert steps(asked) == [("Find out the plan", "open", ""), ("Look up its limit", "open", "")]

        await scene.serving("second")
        reply = scene.ask("The partner plan", thread)
        assert "3,000 requests" in await scene.answer(reply, thread)
        await scene.wait_until_answered(thread, 2)
        after = await scene.state(thread)
        later = scene.ask("How big may a request body be?", thread)
        assert "2 MB" in await scene.answer(later, thread)
        await scene.wait_until_answered(thread, 3)
        last = await scene.state(thread)
    assert after.todolist_id == asked.todolist_id
    assert (after.mission, after.answers) == (asked.mission, {"plan": "The partner plan"})
    assert after.pending_question is None
    assert steps(after) == [("Find out the plan", "done", "partner"), ("Look up its limit", "done", "")]
    assert last.todolist_id not in {None, asked.todolist_id}
    assert last.answers == after.answers
    assert steps(last) == [("How big may a request body be?", "done", "")]
    assert scene.events() == [
        "mission_set",
        "tool_called search",
        "turn_outcome asked",
        "tool_called search",
        "tool_called list_documents",
        "tool_called get_document",
        "turn_outcome answered",
        "completed_todolist_detected_on_new_input",
        "resetting_mission_for_new_query",
        "mission_reset_complete",
        "mission_set",
        "tool_called search",
        "turn_outcome answered",
    ]
    assert [len(answers(scene.workspace, ts, thread)) for ts in (thread, reply, later)] == [1, 1, 1]


async def test_a_turn_killed_between_two_tools_is_repeated_and_answered_once(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with (
        ScriptedOpenAI(decisions=[LISTED, HANGS, LISTED, READ, RESPOND], drafts=repeat(GOOD)) as server,
        Scene(tmp_path, redis_url, redis_client, server) as scene,
    ):
        first = await scene.serving("first")
        thread = scene.ask("How many requests may a key of the partner plan make?")
        await wait_until(lambda: server.phases().count("decide") == 2, "the second decision is asked for")
        await scene.kill(first)
        assert answers(scene.workspace, thread, thread) == []
        assert (await scene.state(thread)).plan is None
        await scene.serving("second")
        assert "3,000 requests" in await scene.answer(thread, thread)
        await scene.wait_until_answered(thread, 1)
        state = await scene.state(thread)
    before = ["mission_set", "tool_called search", "tool_called list_documents"]
    assert scene.events() == [*before, *before, "tool_called get_document", "turn_outcome answered"]
    assert steps(state) == [("How many requests may a key of the partner plan make?", "done", "")]
    assert [message.role for message in state.history] == ["user", "assistant"]
    assert len(answers(scene.workspace, thread, thread)) == 1
