"""The status that people see while a question waits in the queue and while Orion works on it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import AnswerKey
from bot.queue.claim import LeaseLost
from bot.queue.queue import Mailbox
from bot.slack.message import Incoming
from bot.stores.stores import Stores, read_facts
from bot.turn.recovery import MODEL_AWAY
from bot.turn.status import BEHIND, Pace, QueueNotices, WorkingStatus
from tests.support.local_slack import CHANNEL, CHAT, Slack, local_slack
from tests.support.posted_answers import answer, answers, texts
from tests.support.services import workspaces_of

QUICK = Pace(change_s=0.01, remind_s=0.05)
SLOW = Pace(change_s=0.01, remind_s=60)


def statuses_sent(slack: Slack) -> list[str]:
    return [
        call.arguments["status"]
        for call in slack.server.calls
        if call.method == "assistant.threads.setStatus" and call.done and "status" in call.arguments
    ]


def is_cleared(slack: Slack) -> bool:
    """Return True if neither a status nor a Stop button is shown."""
    threads = slack.server.workspace.threads
    return not threads.status_payloads() and {one.status for one in threads.sessions.values()} == {"active"}


async def test_the_status_is_shown_changed_and_cleared(slack: Slack) -> None:
    place, ts = slack.ask()
    async with WorkingStatus(slack.delivery, place, AnswerKey(question_ts=ts), SLOW).updating() as status:
        await slack.server.wait_for(lambda: statuses_sent(slack) == ["is thinking…"])
        status.show("is reading…")
        await slack.server.wait_for(lambda: statuses_sent(slack)[-1] == "is reading…")
        status.changed.set()  # Slack removed it, as it does when a message appears
        await slack.server.wait_for(lambda: statuses_sent(slack) == ["is thinking…", "is reading…", "is reading…"])
    assert is_cleared(slack)


async def test_the_status_is_renewed_before_slack_drops_it(slack: Slack) -> None:
    place, ts = slack.ask()
    async with WorkingStatus(slack.delivery, place, AnswerKey(question_ts=ts), QUICK).updating():
        await slack.server.wait_for(lambda: statuses_sent(slack) == ["is thinking…"] * 4)
    assert Pace().remind_s < 120


async def test_changes_in_a_burst_are_sent_as_the_last_one(slack: Slack) -> None:
    place, ts = slack.ask()
    async with WorkingStatus(slack.delivery, place, AnswerKey(question_ts=ts), Pace(change_s=0.2)).updating() as status:
        await slack.server.wait_for(lambda: statuses_sent(slack) == ["is thinking…"])
        for number in range(50):
            status.show(f"step {number}")
        await slack.server.wait_for(lambda: len(statuses_sent(slack)) > 1)
    assert statuses_sent(slack) == ["is thinking…", "step 49"]


@pytest.mark.parametrize("error", ["unknown_method", "missing_scope", "not_allowed_token_type"])
async def test_without_statuses_a_placeholder_becomes_the_answer(error: str, slack: Slack) -> None:
    place, ts = slack.ask()
    slack.server.faults.fail("assistant.threads.setStatus", error, times=100)
    answer_key = AnswerKey(question_ts=ts, turn_id="turn-1", may_exist=False)
    async with WorkingStatus(slack.delivery, place, answer_key, SLOW).updating() as status:
        await slack.server.wait_for(lambda: texts(answers(slack, place)) == ["_Orion is thinking…_"])
        status.show("is reading…")
        await slack.server.wait_for(lambda: texts(answers(slack, place)) == ["_Orion is reading…_"])
        ((block,),) = [message["blocks"] for message in answers(slack, place)]
        assert block["text"]["verbatim"], "a step may name a host, which is no link"
        await slack.delivery.post_answer(place, answer("So."), answer_key)
    assert texts(answers(slack, place)) == ["So."]
    assert slack.count("assistant.threads.setStatus") == 1


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update"])
async def test_the_answer_waits_for_a_slow_placeholder(method: str, slack: Slack) -> None:
    place, ts = slack.ask()
    slack.server.faults.missing.add("assistant.threads.setStatus")
    answer_key = AnswerKey(question_ts=ts, turn_id="turn-1", may_exist=False)
    before = slack.count(method)
    slack.server.faults.delay(method, 0.3)
    async with WorkingStatus(slack.delivery, place, answer_key, SLOW).updating() as status:
        if method == "chat.update":
            await slack.server.wait_for(lambda: answers(slack, place))
            status.show("is writing an answer…")
        await slack.server.wait_for(lambda: slack.count(method) > before)
        await status.stop_updates()
        await slack.delivery.post_answer(place, answer("So."), answer_key)
    await slack.server.wait_for(lambda: all(call.done for call in slack.server.calls if call.method == method))
    assert texts(answers(slack, place)) == ["So."]
    assert slack.count("chat.postMessage") == 1


async def test_an_outage_of_slack_stops_no_turn() -> None:
    async with local_slack(patience_s=0.05) as slack:
        place, ts = slack.ask()
        slack.server.faults.fail("*", "internal_error", times=1000)
        async with WorkingStatus(slack.delivery, place, AnswerKey(question_ts=ts), QUICK).updating() as status:
            await slack.server.wait_for(lambda: slack.count("assistant.threads.setStatus") > 2)
            status.show("is reading…")
        slack.server.faults.clear()
        assert slack.server.messages(CHANNEL)


async def test_a_cancelled_turn_clears_its_status(slack: Slack) -> None:
    place, ts = slack.ask()

    async def turn() -> None:
        async with WorkingStatus(slack.delivery, place, AnswerKey(question_ts=ts), SLOW).updating():
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(turn())
        await slack.server.wait_for(lambda: statuses_sent(slack) == ["is thinking…"])
        task.cancel()
    assert task.cancelled()
    assert is_cleared(slack)


async def test_losing_the_lease_ends_the_status_and_leaves_the_turn_to_its_worker(slack: Slack) -> None:
    place, ts = slack.ask()
    slack.server.faults.fail("assistant.threads.setStatus", "unknown_method", times=5)

    def lost() -> None:
        raise LeaseLost

    answer_key = AnswerKey(question_ts=ts, lease_check=lost)
    async with WorkingStatus(slack.delivery, place, answer_key, SLOW).updating() as status:
        status.show("is reading…")
    assert answers(slack, place) == []


@pytest.mark.parametrize("error", ["", "unknown_method"])
async def test_a_waiting_question_keeps_its_status(error: str, slack: Slack) -> None:
    place, ts = slack.ask()
    if error:
        slack.server.faults.fail("assistant.threads.setStatus", error, times=9)
    async with WorkingStatus(slack.delivery, place, AnswerKey(question_ts=ts), SLOW).updating() as status:
        await slack.server.wait_for(lambda: slack.count("assistant.threads.setStatus"))
        await status.leave_text(MODEL_AWAY)
    assert texts(answers(slack, place)) == ([f"_Orion {MODEL_AWAY}_"] if error else [])
    if not error:
        assert statuses_sent(slack)[-1] == MODEL_AWAY


@dataclass(frozen=True, kw_only=True)
class Scene:
    slack: Slack
    mailbox: Mailbox
    queueing: QueueNotices

    async def ask(self, text: str = "how do we release?", *, channel: str = "C0GENERAL") -> Incoming:
        place, ts = self.slack.ask(text, channel)
        return await self.store(place, ts)

    async def store(self, place: ThreadKey, ts: str) -> Incoming:
        incoming = Incoming(kind="question", thread=place, user="U0YOU", ts=ts, addressed="mention")
        await self.mailbox.enqueue(str(place), incoming.to_json(), event_ids=[ts])
        return incoming


@pytest.fixture
async def on(slack: Slack, redis_client: Redis) -> AsyncIterator[Scene]:
    mailbox = Mailbox(redis_client)
    queueing = QueueNotices(mailbox, workspaces_of(slack, redis_client), for_s=0, again_s=60)
    yield Scene(slack=slack, mailbox=mailbox, queueing=queueing)
    await mailbox.aclose()


async def test_people_waiting_for_a_full_pool_see_their_number_once(on: Scene) -> None:
    for _ in range(3):
        await on.ask()
    await on.queueing.sweep()
    await on.queueing.sweep()
    assert statuses_sent(on.slack) == [f"is busy: you are number {number} in the queue…" for number in (1, 2, 3)]


async def test_the_place_in_the_queue_disappears_when_the_turn_begins(on: Scene, redis_client: Redis) -> None:
    incoming = await on.ask()
    await on.queueing.sweep()
    later, stores = await on.ask(), Stores(redis_client, on.mailbox)
    claimed, unnoticed = await on.mailbox.claim("w", 2)
    # only the turn of a question whose number is shown sends a status at once
    assert (await read_facts(stores, incoming, "", claimed.id)).has_notice
    assert not (await read_facts(stores, later, "", unnoticed.id)).has_notice
    assert await on.mailbox.finish(unnoticed, "ok")
    async with WorkingStatus(on.slack.delivery, incoming.thread, AnswerKey(question_ts=incoming.ts)).updating():
        await on.slack.server.wait_for(lambda: statuses_sent(on.slack)[-1] == "is thinking…")
    assert await on.mailbox.finish(claimed, "ok")
    await on.queueing.sweep()
    assert on.slack.server.workspace.threads.status_payloads() == []


@pytest.mark.parametrize("channel", ["C0GENERAL", CHAT])
async def test_a_message_behind_a_running_turn_gets_a_notice_even_after_a_restart(channel: str, on: Scene) -> None:
    first = await on.ask(channel=channel)
    await on.mailbox.claim("a worker that dies with all it knows", 1)
    await on.store(first.thread, f"{float(first.ts) + 1:.6f}")
    await on.queueing.sweep()
    assert statuses_sent(on.slack) == [BEHIND]


async def test_a_notice_that_arrives_too_late_is_withdrawn(on: Scene) -> None:
    await on.ask()
    (waiting,) = await on.mailbox.list_waiting(for_s=0, again_s=1, limit=1)
    on.slack.server.faults.hold("assistant.threads.setStatus")
    async with asyncio.TaskGroup() as group:
        group.create_task(on.queueing.notify(waiting, Incoming.from_json(waiting.entry.body)))
        await on.slack.server.wait_for(lambda: on.slack.count("assistant.threads.setStatus"))
        (claimed,) = await on.mailbox.claim("w", 1)
        assert await on.mailbox.finish(claimed, "ok")
        on.slack.server.faults.release()
    assert statuses_sent(on.slack) == ["is busy: you are number 1 in the queue…"]
    assert is_cleared(on.slack), "nobody but who told it clears it"
    await on.queueing.notify(waiting, Incoming.from_json(waiting.entry.body))
    assert len(statuses_sent(on.slack)) == 1, "what is answered is not told"


async def test_message_other_than_a_question_is_not_reported(on: Scene) -> None:
    place, ts = on.slack.ask()
    incoming = Incoming(kind="delete", thread=place, user="U0YOU", ts=ts, addressed="mention")
    await on.mailbox.enqueue(str(place), incoming.to_json(), event_ids=["a"])
    await on.mailbox.enqueue("T1:C1:1.0", "no letter", event_ids=["b"])
    await on.store(ThreadKey(team="TELSEWHERE", channel="C1", thread_ts="1.0"), "1.0")
    await on.queueing.sweep()
    assert statuses_sent(on.slack) == []


async def test_an_outage_of_slack_delays_no_one(on: Scene) -> None:
    await on.ask()
    await on.ask()
    on.slack.server.faults.fail("assistant.threads.setStatus", "internal_error", times=1)
    await on.queueing.sweep()
    assert "is busy: you are number 2 in the queue…" in statuses_sent(on.slack)
