"""People change their mind while Orion works or waits: stop, edit, delete, even across processes and restarts."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.actions import ToolCall, ToolCalls
from agent.budget import Budget
from agent.outcome import OutOfBudget, TurnOutcome
from agent.thread.conversation import ThreadKey
from agent.thread.state import ThreadState
from agent.thread.store import ThreadStore
from agent.tools.tool import Tool, ToolResult, ToolSpec
from agent.turn.events import Done
from agent.turn.loop import run_turn
from bot.local.model.roster import ADMIN, BOT_USER, TEAM_ID, VISITOR, Channel, ChannelKind
from bot.stores.limits import Pausing
from bot.turn.recovery import MODEL_AWAY
from tests.support.fakes import Listener, PassageTool, ScriptedModel, question
from tests.support.openai_server import RESPOND, ScriptedOpenAI, fails, says
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, Setting, answers, posts, running, settings_in, text_of
from tests.support.scripted_orion import DRAFTS, LIMIT, QUICK, done, quiet, with_model, with_server, writing
from tests.support.waiting import wait_until

Worker = Callable[..., AbstractAsyncContextManager[Setting]]


async def test_a_question_that_waits_for_a_rate_limit_is_stopped_at_once(tmp_path: Path, redis_url: str) -> None:
    async with with_model(tmp_path, redis_url, decisions=[fails(429, retry_after="60")]) as (setting, _):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        calls = setting.workspace.calls
        await setting.workspace.wait_for(lambda: any(c.arguments.get("status") == MODEL_AWAY for c in calls))
        await wait_until(lambda: setting.orion.worker.in_flight == 0, "the question waits")
        setting.ask("stop", thread=ts)
        answer = await setting.answer_to(ts)
        assert text_of(answer).startswith("Stopped")
        await wait_until(lambda: quiet(setting), "nothing is left to do")
        assert setting.workspace.workspace.threads.status_payloads() == []


async def test_an_edit_that_will_not_be_answered_leaves_the_running_turn(tmp_path: Path, redis_url: str) -> None:
    async with writing(tmp_path, redis_url) as (setting, ts, gate):
        await Pausing(setting.orion.redis).pause("")
        setting.workspace.edit(CHANNEL, ts, f"{MENTION} What does error FH-2002 mean?")
        events = setting.workspace.workspace.deliveries.log
        await wait_until(lambda: all(event.acknowledged for event in events), "the edit has arrived")
        gate.set()
        assert "600 requests" in text_of(await setting.answer_to(ts))


async def test_an_edit_of_an_older_question_changes_no_answer(tmp_path: Path, redis_url: str) -> None:
    async with with_model(tmp_path, redis_url) as (setting, server):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        first = await setting.answer_to(ts)
        later = setting.ask("How many requests per minute again?", thread=ts)
        await setting.answer_to(later, thread=ts)
        await wait_until(lambda: quiet(setting), "both are answered")
        setting.workspace.edit(CHANNEL, ts, f"{MENTION} What does error FH-2002 mean?")
        events = setting.workspace.workspace.deliveries.log
        await wait_until(lambda: all(event.acknowledged for event in events), "the edit has arrived")
        await wait_until(lambda: quiet(setting), "the edit is done with")
        assert len(server.requests) == 5
        assert [text_of(one) for one in answers(setting.workspace, ts, ts)] == [text_of(first)]
        place = ThreadKey(team=TEAM_ID, channel=CHANNEL, thread_ts=ts)
        history = (await ThreadStore(setting.orion.redis).load(place)).history
        assert next(m.text for m in history if m.role == "user") == "What does error FH-2002 mean?"


async def test_a_follow_up_that_is_edited_before_its_turn_begins_is_answered(tmp_path: Path, redis_url: str) -> None:
    async with with_model(tmp_path, redis_url) as (setting, _):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        await setting.answer_to(ts)
        asked = len(setting.workspace.calls)
        setting.workspace.faults.hold("users.info")
        later = setting.ask("How many requests per minute again?", thread=ts, user=ADMIN)
        calls = setting.workspace.calls
        await wait_until(lambda: any(c.method == "users.info" for c in calls[asked:]), "Slack is asked who that is")
        setting.workspace.edit(CHANNEL, later, "How many requests per minute may one key make?")
        events = setting.workspace.workspace.deliveries.log
        await wait_until(lambda: all(event.acknowledged for event in events), "the edit has arrived")
        setting.workspace.faults.release()
        await wait_until(lambda: quiet(setting), "all is done")
        assert ["600 requests" in text_of(one) for one in answers(setting.workspace, later, ts)] == [True]


@asynccontextmanager
async def apart(home: Path, redis_url: str, server: ScriptedOpenAI) -> AsyncIterator[tuple[Setting, Worker]]:
    """A process that only takes events, and a way to open others that only work: what arrives does so elsewhere."""
    async with running(with_server(home / "front", redis_url, server), part="front") as front:

        def worker(name: str = "worker") -> AbstractAsyncContextManager[Setting]:
            settings = with_server(home / name, redis_url, server)
            return running(settings, part="worker", inhabited=front.workspace, timeouts=QUICK)

        yield front, worker


def shown_in(setting: Setting, thread: str) -> list[str]:
    return [text_of(m) for m in setting.workspace.messages(CHANNEL, thread) if m.get("bot_id")]


async def test_stop_that_arrives_at_another_process_ends_the_turn(tmp_path: Path, redis_url: str) -> None:
    gate = asyncio.Event()
    async with (
        ScriptedOpenAI(decisions=[RESPOND], drafts=[says(DRAFTS["good"], before_end=gate)]) as server,
        apart(tmp_path, redis_url, server) as (front, worker),
        worker("first") as first,
        worker("second") as second,
    ):
        await wait_until(
            lambda: first.orion.worker.listening.is_set() and second.orion.worker.listening.is_set(), "ears"
        )
        ts = front.ask(f"{MENTION} {LIMIT}")
        await server.wait_for_requests(2)
        front.ask("stop", thread=ts)
        await wait_until(lambda: done(front, first, second), "the turn is over")
        assert [text[:7] for text in shown_in(front, ts)] == ["Stopped"]
        gate.set()


async def test_an_edit_that_arrives_at_another_process_is_answered_in_place(tmp_path: Path, redis_url: str) -> None:
    gate = asyncio.Event()
    drafts = [says(DRAFTS["good"], before_end=gate), says(DRAFTS["good"])]
    async with (
        ScriptedOpenAI(decisions=[RESPOND] * 2, drafts=drafts) as server,
        apart(tmp_path, redis_url, server) as (front, worker),
        worker("first") as first,
        worker("second") as second,
    ):
        ts = front.ask(f"{MENTION} {LIMIT}")
        await wait_until(
            lambda: first.orion.worker.listening.is_set() and second.orion.worker.listening.is_set(), "ears"
        )
        await server.wait_for_requests(2)
        front.workspace.edit(CHANNEL, ts, f"{MENTION} How many requests per minute may one key make?")
        await server.wait_for_requests(4)
        await wait_until(lambda: done(front, first, second), "both turns are over, though the first draft never ended")
        assert ["600 requests" in text for text in shown_in(front, ts)] == [True]
        gate.set()


@pytest.mark.parametrize("change", ["stop", "edit", "delete"])
async def test_stop_while_no_worker_runs_still_applies_after_the_restart(
    tmp_path: Path, redis_url: str, change: str
) -> None:
    gate = asyncio.Event()
    async with (
        ScriptedOpenAI(decisions=[RESPOND] * 3, drafts=[says(DRAFTS["good"], before_end=gate)] * 3) as server,
        apart(tmp_path, redis_url, server) as (front, worker),
    ):
        async with worker():
            ts = front.ask(f"{MENTION} {LIMIT}")
            await server.wait_for_requests(2)
        match change:
            case "stop":
                front.ask("stop", thread=ts)
            case "edit":
                front.workspace.edit(CHANNEL, ts, f"{MENTION} How many requests per minute may one key make?")
            case _:
                front.workspace.delete(CHANNEL, ts)
        events = front.workspace.workspace.deliveries.log
        await wait_until(lambda: all(event.acknowledged for event in events), "it is taken in")
        gate.set()
        async with worker("next") as restarted:
            await wait_until(lambda: done(front, restarted), "the question is done with")
        said = [text[:7] for text in shown_in(front, ts)]
        assert (len(said), said == ["Stopped"]) == {"stop": (1, True), "edit": (1, False), "delete": (0, False)}[change]
        assert len(server.requests) == {"stop": 2, "edit": 6, "delete": 2}[change]


async def test_deleting_a_question_deletes_all_messages_of_its_answer(tmp_path: Path, redis_url: str) -> None:
    sentence = "Each API key may make 600 requests a minute [1]."
    long = "<answer>" + "\n\n".join([" ".join([sentence] * 8)] * 25) + "</answer>"
    async with with_model(tmp_path, redis_url, drafts=[says(long)]) as (setting, _):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        await setting.answer_to(ts)
        await wait_until(lambda: quiet(setting), "the answer is whole")
        parts = [m["metadata"]["event_payload"].get("part", 1) for m in setting.workspace.messages(CHANNEL, ts)[1:]]
        assert parts == list(range(1, len(parts) + 1))
        assert len(parts) > 1
        setting.workspace.delete(CHANNEL, ts)
        await wait_until(lambda: shown_in(setting, ts) == [], "all of it is gone")


async def test_an_answer_is_found_by_orions_own_record_if_slack_returns_no_metadata(
    tmp_path: Path, redis_url: str
) -> None:
    async with running(settings_in(tmp_path, redis_url)) as setting:
        workspace, ts = setting.workspace, setting.ask(f"{MENTION} {LIMIT}")
        first = await setting.answer_to(ts)
        await wait_until(lambda: done(setting), "the answer is saved")

        def strip() -> None:
            for message in workspace.workspace.log.replies(CHANNEL, ts):
                message.metadata = None

        strip()
        workspace.edit(CHANNEL, ts, f"{MENTION} What does error FH-2002 mean?")
        await workspace.wait_for(lambda: [m for m in posts(workspace, CHANNEL) if "FH-2002" in text_of(m)])
        assert [message["ts"] for message in posts(workspace, CHANNEL)] == [first["ts"]], "it is updated in place"
        await wait_until(lambda: done(setting), "the edit is saved")
        strip()
        workspace.delete(CHANNEL, ts)
        await workspace.wait_for(lambda: not posts(workspace, CHANNEL))


async def test_a_deleted_message_is_in_no_later_prompt(tmp_path: Path, redis_url: str) -> None:
    async with with_model(tmp_path, redis_url) as (setting, server):
        first = setting.ask(f"{MENTION} {LIMIT} My PIN is 4711.")
        await setting.answer_to(first)
        second = setting.ask(f"{LIMIT} My word is swordfish.", thread=first)
        await setting.answer_to(second, thread=first)
        for ts in (second, first):
            await wait_until(lambda: done(setting), "all is said")
            setting.workspace.delete(CHANNEL, ts)
        await wait_until(lambda: done(setting), "all is taken back")
        before = len(server.requests)
        last = setting.ask(f"{MENTION} {LIMIT}", thread=first)
        await setting.answer_to(last, thread=first)
        asked = json.dumps(server.requests[before:], default=str)
        assert LIMIT in asked
        assert not any(secret in asked for secret in ("4711", "swordfish"))


async def test_an_answer_that_cannot_be_withdrawn_is_left_to_the_admins(tmp_path: Path, redis_url: str) -> None:
    async with with_model(tmp_path, redis_url) as (setting, _):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        await setting.answer_to(ts)
        await wait_until(lambda: done(setting), "the turn is over")
        setting.workspace.faults.fail("conversations.replies", "is_archived")
        setting.workspace.delete(CHANNEL, ts)
        await wait_until(lambda: done(setting), "the deletion is settled")
        assert setting.workspace.messages(DIRECT) == []
        assert [incoming.reason for incoming in await setting.orion.mailbox.list_dead_letters()] == ["is_archived"]


async def test_a_question_in_a_direct_message_stays_one_when_it_gets_replies(tmp_path: Path, redis_url: str) -> None:
    drafts = [says(DRAFTS["good"]), says("<answer>It is 600 a minute [1].</answer>")]
    async with with_model(tmp_path, redis_url, drafts=drafts) as (setting, _):
        ts = setting.ask(LIMIT, channel=DIRECT)
        await setting.answer_to(ts, channel=DIRECT)
        await wait_until(lambda: done(setting), "the turn is over, not only its answer there")
        setting.ask("stop", channel=DIRECT, thread=ts)  # from now on Slack says that the question is a thread's first
        await wait_until(lambda: done(setting), "the thread is there")
        setting.workspace.edit(DIRECT, ts, f"{LIMIT} In short, please.")

        def shows_the_edit() -> bool:
            return "It is 600" in text_of(answers(setting.workspace, ts, ts, DIRECT)[0])

        await setting.workspace.wait_for(shows_the_edit, 20)
        setting.workspace.delete(DIRECT, ts)
        await setting.workspace.wait_for(lambda: not answers(setting.workspace, ts, ts, DIRECT))


@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize("kind", ["channel", "group"])
async def test_the_asker_is_told_that_orion_was_removed_from_the_channel(
    kind: ChannelKind, *, waited: bool, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.gates.flow.ACCESS_TTL_S", 0.0 if waited else 300.0)  # after it, Slack is asked again
    settings = settings_in(tmp_path, redis_url)
    async with running(settings, part="front") as front:
        team = front.workspace.workspace.roster
        people = VISITOR, ADMIN
        team.channels["C0TEAM"] = Channel(id="C0TEAM", name="team", kind=kind, members={*people, BOT_USER})
        asked = [front.ask(f"{MENTION} {LIMIT}", channel="C0TEAM", user=user) for user in people]
        await wait_until(lambda: are_stored(front, len(asked)), "the questions are stored")
        team.channels["C0TEAM"].members.remove(BOT_USER)
        async with running(settings, inhabited=front.workspace, part="worker") as setting:
            await wait_until(lambda: quiet(setting), "the questions are given up")
        chats = [team.direct_message(user).id for user in people]
        texts = [text_of(told) for chat in chats for told in posts(front.workspace, chat)]
        assert len(texts) == len(asked)
        assert all(text.startswith("I can't post where you asked me") and "team" not in text for text in texts)
        assert [answers(front.workspace, ts, ts, "C0TEAM") for ts in asked] == [[], []]


async def are_stored(setting: Setting, count: int) -> bool:
    return (await setting.orion.mailbox.depth()).messages == count


GOOD = "<answer>Each key may send 120 requests a minute [1].</answer>"


class Endless:
    """A tool that never finishes by itself. It records when it starts and when it is stopped."""

    def __init__(self, name: str, *, swallows: bool = False) -> None:
        self.spec = ToolSpec(name=name, description="Waits.", parameters={"type": "object", "properties": {}})
        self.swallows = swallows
        self.notes: list[str] = []

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        self.notes.append("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self.swallows:
                raise
        finally:
            self.notes.append("ended")
        return ToolResult(content=str(len(arguments)))


def both() -> ToolCalls:
    return ToolCalls(calls=(ToolCall(call_id="a", tool="one"), ToolCall(call_id="b", tool="two")))


async def turn(model: ScriptedModel, listener: Listener, *tools: Tool, deadline_s: float = 60.0) -> TurnOutcome:
    named = {tool.spec.name: tool for tool in tools}
    budget = Budget(deadline_s=deadline_s)
    outcome, _ = await run_turn(question(), ThreadState(), model=model, tools=named, budget=budget, emit=listener)
    return outcome


async def cancel_turn(running: asyncio.Task[TurnOutcome], after: Any) -> None:
    """Cancel a turn once something is true; it ends as cancelled and leaves no task behind."""
    others = asyncio.all_tasks() - {running}
    await wait_until(after, "the work is under way")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() <= others


@pytest.mark.parametrize("swallows", [False, True])
async def test_a_cancellation_ends_all_running_tools(*, swallows: bool) -> None:
    one, two, listener = Endless("one", swallows=swallows), Endless("two"), Listener()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(turn(ScriptedModel([GOOD], decisions=[both()]), listener, one, two))
        await cancel_turn(running, lambda: one.notes == two.notes == ["begun"])
    assert one.notes == two.notes == ["begun", "ended"]
    assert not any(isinstance(event, Done) for event in listener.events)


async def test_a_cancellation_ends_the_search_before_the_first_decision() -> None:
    search, model = Endless("search"), ScriptedModel([GOOD])
    search.spec = PassageTool().spec
    async with asyncio.TaskGroup() as group:
        running = group.create_task(turn(model, Listener(), search))
        await cancel_turn(running, lambda: search.notes == ["begun"])
    assert search.notes == ["begun", "ended"]
    assert (model.decided, model.written) == ([], [])


async def test_the_deadline_ends_tools_that_run_at_once_and_says_so() -> None:
    one, two = Endless("one"), Endless("two")
    outcome = await turn(ScriptedModel([GOOD], decisions=[both()]), Listener(), one, two, deadline_s=0.05)
    assert isinstance(outcome, OutOfBudget)
    assert one.notes == two.notes == ["begun", "ended"]
