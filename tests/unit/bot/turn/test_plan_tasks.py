"""A plan of several steps as people see it: tasks above the answer, or a status that names the step in hand."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from agent.actions import Action, FinishStep, Respond, Step
from agent.model.protocol import ModelError
from agent.texts.catalogue import LANGUAGES
from agent.turn.events import StepSeen
from bot.delivery.stream import Streams
from bot.queue.claim import OK, LeaseLost
from bot.turn.status import step_status, stream_tasks
from tests.support.fakes import ScriptedModel, Slow
from tests.support.local_slack import local_slack
from tests.support.openai_server import HANGS, RESPOND, Scripted, calls
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, text_of
from tests.support.posted_answers import answers
from tests.support.stream_recovery import GOOD, stream_in, streaming_in
from tests.support.stream_stage import APPEND, FIRST, START, STOP, THIRD, WRONG, Stage, body, draft, stage
from tests.support.team_bot import TeamBot, team_bot
from tests.support.waiting import wait_until

STEPS = [{"description": "Find the limit of a key"}, {"description": "Compare it with the partner plan"}]
PLANNED = calls(("finish_step", {"step": 1, "result": "600", "plan": STEPS}))
ASKS_BACK = calls(("ask_user", {"question": "Which plan do you mean?", "key": "plan", "plan": STEPS}))
TASKS = [("Find the limit of a key", "complete"), ("Compare it with the partner plan", "in_progress")]
DONE = [(title, "complete") for title, _ in TASKS]
TWO = (Step(description="Find the limit"), Step(description="Compare it"))
DECIDED: list[Action | ModelError] = [FinishStep(step=1, result="120", plan=TWO), Respond()]


def steps_with(*statuses: str, title: str = "Look") -> tuple[StepSeen, ...]:
    return tuple(StepSeen(title=title, status=status) for status in statuses)  # type: ignore[arg-type] # as the plan has


def tasks(message: dict[str, Any]) -> list[tuple[str, str]]:
    """Title and status of each task in the message."""
    return [(block["title"], block["status"]) for block in message.get("blocks", []) if block["type"] == "task_card"]


async def wait_for_plan(at: Stage, ts: str) -> dict[str, Any]:
    """The message that shows the plan with its second step in hand."""
    await at.setting.workspace.wait_for(lambda: any(tasks(message) == TASKS for message in at.own(ts)))
    (message,) = at.own(ts)
    return message


def once(*first: Scripted) -> Any:
    """Decisions: these, then always to answer."""
    left = list(first)
    return lambda _: left.pop(0) if left else RESPOND


def test_only_the_first_open_step_is_in_progress() -> None:
    steps = steps_with("done", "failed", "open", "open", "skipped")
    assert [task["status"] for task in stream_tasks(steps, None)] == [
        "complete", "error", "in_progress", "pending", "error",
    ]  # fmt: skip
    assert [task["id"] for task in stream_tasks(steps, None)] == ["step-1", "step-2", "step-3", "step-4", "step-5"]
    assert step_status(steps, None) == "is at step 3 of 5: Look"
    assert step_status(steps_with("done", "done"), None) == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_steps_are_shown_in_the_language_of_the_question(language: str) -> None:
    without = steps_with("done", "open", title="")
    said, (_, second) = step_status(without, language), stream_tasks(without, language)
    others = {step_status(without, other) for other in LANGUAGES if other != language}
    assert said not in others
    assert all(part in said for part in ("2", "…"))
    assert "2" in second["title"]


async def test_a_plan_is_shown_above_the_answer_as_it_proceeds(tmp_path: Path, redis_url: str) -> None:
    gate = asyncio.Event()
    drafted = draft("Ea", gate=gate, rest=(FIRST, THIRD))
    async with stage(tmp_path, redis_url, drafted, drafted, gate=gate, decisions=once(PLANNED)) as at:
        ts = at.ask()
        growing = await wait_for_plan(at, ts)
        assert (growing["text"], growing["streaming_state"]) == ("", "in_progress")
        gate.set()
        message = await at.wait_for_answer(ts)
        assert message["ts"] == growing["ts"]
        assert tasks(message) == DONE
        kinds = [block["type"] for block in message["blocks"]]
        assert kinds[:3] == ["task_card", "task_card", "markdown"]
        assert "3,000 requests" in message["text"]
        assert (at.calls(START), at.calls(STOP), at.calls("chat.postMessage"), at.calls("chat.update")) == (1, 1, 0, 0)


async def test_without_streams_the_status_names_the_step(tmp_path: Path, redis_url: str) -> None:
    german = [{"description": "Das Limit finden"}, {"description": "Mit dem Partnerplan vergleichen <!here>"}]
    plan = calls(("finish_step", {"step": 1, "result": "600", "plan": german}))
    async with stage(tmp_path, redis_url, decisions=once(plan, HANGS), streams=False) as at:
        at.setting.ask("Wie viele Anfragen pro Minute darf ein API-Schlüssel stellen?", channel=DIRECT)
        await at.setting.workspace.wait_for(lambda: "ist bei Schritt 2 von 2: …" in at.setting.statuses)
        at.ask()
        assert "here" not in str(at.setting.statuses)
        assert at.calls(START) == 0


async def test_the_status_names_the_step_that_a_tool_is_called_for(tmp_path: Path, redis_url: str) -> None:
    plan = calls(("finish_step", {"step": 1, "result": "600", "plan": STEPS}), ("search", {"query": "partner"}))
    async with stage(tmp_path, redis_url, decisions=once(plan, HANGS), streams=False) as at:
        at.ask()
        await at.setting.workspace.wait_for(
            lambda: "is at step 1 of 2: Find the limit of a key" in at.setting.statuses[-1:], 20
        )


async def test_a_plan_of_one_step_shows_nothing(tmp_path: Path, redis_url: str) -> None:
    plan = calls(("respond", {"plan": STEPS[:1]}))
    async with stage(tmp_path, redis_url, draft(FIRST, THIRD), decisions=once(plan)) as at:
        message = await at.wait_for_answer(at.ask())
        assert tasks(message) == []
        assert not any("step" in status for status in at.setting.statuses)
        appended = [call.arguments for call in at.setting.workspace.calls if call.method in {APPEND, STOP}]
        assert not any("chunks" in arguments for arguments in appended)


async def test_a_failure_message_replaces_the_plan(tmp_path: Path, redis_url: str) -> None:
    async with stage(tmp_path, redis_url, *[draft(WRONG, WRONG)] * 4, decisions=once(PLANNED)) as at:
        message = await at.wait_for_answer(at.ask())
        assert tasks(message) == []
        assert "900 requests" not in text_of(message)


async def test_a_clarifying_question_replaces_the_plan_which_then_continues(tmp_path: Path, redis_url: str) -> None:
    gate = asyncio.Event()
    decisions = once(ASKS_BACK, calls(("finish_step", {"step": 1, "result": "600"})))
    drafts = [draft("Ea", gate=gate, rest=(FIRST,))] * 3
    async with stage(tmp_path, redis_url, *drafts, gate=gate, decisions=decisions) as at:
        ts = at.ask()
        message = await at.wait_for_answer(ts)
        assert (tasks(message), "Which plan" in text_of(message)) == ([], True)
        at.setting.ask("the partner plan", thread=ts)
        await at.setting.workspace.wait_for(lambda: tasks(at.own(ts)[-1]) == TASKS)
        gate.set()
        await wait_until(lambda: at.setting.orion.worker.in_flight == 0, "the turn is over")
        assert [tasks(message) for message in at.own(ts)] == [[], DONE]


async def test_a_plan_is_deleted_with_its_question_and_replaced_after_an_edit(tmp_path: Path, redis_url: str) -> None:
    gate = asyncio.Event()
    deleted = asyncio.Event()

    def write_draft(request: Mapping[str, Any]) -> Scripted:
        if "on the partner plan?" in str(request["messages"]):
            return draft(THIRD)
        return draft(FIRST) if deleted.is_set() else draft("Ea", gate=gate)

    async with stage(tmp_path, redis_url, write_draft, gate=gate, decisions=once(PLANNED, RESPOND, PLANNED)) as at:
        ts = at.ask()
        await wait_for_plan(at, ts)
        at.setting.workspace.delete(CHANNEL, ts)
        await wait_until(lambda: at.setting.orion.worker.in_flight == 0 and not at.own(ts), "nothing is left")
        deleted.set()
        ts = at.ask()
        first = await at.wait_for_answer(ts)
        assert tasks(first) == DONE
        at.setting.workspace.edit(CHANNEL, ts, f"{MENTION} And how many on the partner plan?")
        await at.setting.workspace.wait_for(lambda: "3,000" in text_of(at.own(ts)[0]))
        message = await at.wait_for_answer(ts)
        assert (message["ts"], tasks(message)) == (first["ts"], [])


async def test_a_server_that_takes_no_tasks_is_not_asked_for_them_again(tmp_path: Path, redis_url: str) -> None:
    async with stage(tmp_path, redis_url, *[draft(FIRST, THIRD)] * 4, decisions=once(PLANNED, RESPOND, PLANNED)) as at:
        at.setting.workspace.faults.fail(APPEND, "invalid_chunks")
        message = await at.wait_for_answer(at.ask())
        assert (tasks(message), "3,000" in text_of(message)) == ([], True)
        message = await at.wait_for_answer(at.ask())
        assert (tasks(message), message["blocks"][0]["type"]) == ([], "markdown")
        assert not any("chunks" in call.arguments for call in at.setting.workspace.calls if call.method == STOP)


TROUBLES = [(method, trouble) for method in (START, APPEND) for trouble in ("lose_response", "reset", "fail", "hang")]


async def test_any_failure_of_a_plan_leaves_one_answer(tmp_path: Path, redis_url: str) -> None:
    decisions = once(*[PLANNED, RESPOND] * len(TROUBLES), PLANNED)
    async with stage(tmp_path, redis_url, *[draft(FIRST, THIRD)] * 18, decisions=decisions) as at:
        for method, trouble in [*TROUBLES, (APPEND, "rate_limit")]:
            getattr(at.setting.workspace.faults, trouble)(method)
            message = await at.wait_for_answer(at.ask())
            said = body(message)
            assert [said.count(words) for words in ("600", "3,000")] == [1, 1], (method, trouble)
            assert all(status == "complete" for _, status in tasks(message)), (method, trouble)
            assert message["metadata"]["event_payload"]["turn_id"]


@pytest.mark.parametrize("stops", [False, True])
async def test_a_worker_that_dies_after_a_plan_leaves_none(at: TeamBot, *, stops: bool) -> None:
    """The next worker knows only the plan's message, whether it answers the question or finds it withdrawn."""
    at.services = streaming_in(at, model=Slow(["<answer>Ea"], decisions=DECIDED))
    place, ts = at.slack.ask()
    incoming = await at.store(ts, place)
    assert await at.interrupt(lambda: any(map(tasks, answers(at.slack, place)))) is None
    assert len(answers(at.slack, place)) == 1
    at.services = streaming_in(at, model=ScriptedModel([GOOD], decisions=DECIDED))
    if stops:
        await at.cancellations.record_stop(replace(incoming, event_ts="9999999999.000000"))
    assert await at.handle() == OK
    (message,) = answers(at.slack, place)
    assert tasks(message) == []
    assert ("120 requests" in message["text"], message["text"] == "Stopped.") == (not stops, stops)


async def test_the_answer_waits_for_a_plan_that_is_being_sent(tmp_path: Path, redis_client: Redis) -> None:
    async with team_bot(tmp_path, redis_client, ["<answer>What is this?</answer>"]) as at:
        at.services = streaming_in(at, model=ScriptedModel(["<answer>NOT_IN_SOURCES</answer>"], decisions=DECIDED))
        for method in (START, APPEND):
            place, ts = at.slack.ask()
            await at.store(ts, place)
            at.slack.server.faults.delay(method, 0.5)
            assert await at.handle() == OK
            (message,) = answers(at.slack, place)
            assert message["metadata"]["event_type"] == "orion_answer"
            assert tasks(message) == []


@pytest.mark.parametrize("error", [RedisConnectionError, LeaseLost])
async def test_showing_a_plan_never_ends_a_turn_without_redis_or_lease(error: type[Exception]) -> None:
    async with local_slack() as slack, asyncio.timeout(10):
        place, _ = slack.ask()
        stream, _ = stream_in(place, Streams(slack.calls), error)
        stream.show_plan(stream_tasks(steps_with("open", "open"), None))
        await stream.send_changes()
        assert slack.count(START) == 0
