"""One message from claim to delivery, interrupted wherever it hurts: the answer is posted once, or its person is told.

The mailbox is a real one in Valkey, Slack is the local workspace, the model is scripted: what goes wrong goes wrong
there.
"""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from structlog.testing import capture_logs

from agent.actions import NoReply
from agent.model.protocol import DecideContext, Decision, ModelError
from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import AnswerKey
from bot.queue.claim import OK, Cancellation, Lease, LeaseLost
from bot.slack.message import Addressed, Files, Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.turn_records import OutboxEntry
from bot.turn import recovery
from bot.turn.status import Pace
from tests.support.local_slack import CHANNEL
from tests.support.team_bot import GOOD, TeamBot, lose, run_rechecks, team_bot
from tests.support.waiting import wait_until
from verification.types import Answer


async def test_message_given_back_after_its_post_appears_once(tmp_path: Path, redis_client: Redis) -> None:
    async with team_bot(tmp_path, redis_client, [GOOD], pause_s=10) as at:
        place, _ = await at.ask()
        at.slack.server.faults.lose_response("chat.postMessage")
        assert await at.interrupt(lambda: at.posted_texts(place)) is None
        assert await at.handle() == OK
        assert len(at.posted_texts(place)) == 1
        assert len(at.model.written) == 1


async def test_stop_after_the_post_leaves_the_answer_and_keeps_the_turn(at: TeamBot) -> None:
    place, _ = await at.ask()
    at.slack.server.faults.delay("assistant.threads.setStatus", 2.0, times=99)
    with capture_logs() as logs:
        ending = await at.interrupt(lambda: "answer_delivered" in [entry["event"] for entry in logs], stop="stopped")
    assert ending == OK
    assert ["120 requests" in text for text in at.posted_texts(place)] == [True]
    assert (await at.threads.load(place)).history != ()


async def test_a_question_that_still_waits_is_stopped_once(at: TeamBot) -> None:
    place, ts = await at.ask()
    incoming = await at.store(at.slack.server.post("U0YOU", CHANNEL, "stop", ts), place, kind="stop", text="stop")
    (question,) = await at.mailbox.list_messages(str(place))
    assert at.cancelled == [Cancellation(thread=str(place), reason="stopped", message_id=question.id)]
    assert await at.handle() == OK
    assert [text[:7] for text in at.posted_texts(place)] == ["Stopped"]
    assert at.model.decided == []
    await at.intake.store_or_carry_out(incoming)
    assert len(at.cancelled) == 1, "a stop that Slack sends again stops nothing"


async def test_stop_is_confirmed_once_slack_takes_messages_again(at: TeamBot) -> None:
    at.services.delivery.calls.patience_s = 0.05  # its own patience, shortened
    place, ts = await at.ask()
    await at.store(at.slack.server.post("U0YOU", CHANNEL, "stop", ts), place, kind="stop", text="stop")
    at.slack.server.faults.fail("chat.postMessage", "internal_error", times=99)
    assert (await at.handle()).verb == "give_back"
    at.slack.server.faults.clear()
    assert await at.handle() == OK
    assert [text[:7] for text in at.posted_texts(place)] == ["Stopped"]


async def test_a_question_stored_but_not_acknowledged_is_answered_when_slack_resends_it(at: TeamBot) -> None:
    """Its thread must be among those that are looked into after an absence."""
    place, ts = at.slack.ask()
    incoming = await at.store(ts, place)  # and then Redis went away, or the process died

    async def cancel(wish: Cancellation) -> None:
        raise AssertionError(wish)

    await at.intake_with(cancel).store_or_carry_out(incoming)
    assert await at.stores.served.latest(9) == [place]


async def test_a_mention_without_files_waits_for_its_second_event_in_channels_that_send_it(
    monkeypatch: pytest.MonkeyPatch, at: TeamBot
) -> None:
    monkeypatch.setattr("bot.events.intake.TWIN_WAIT_S", 60.0)
    receiver, (place, ts) = at.intake, at.slack.ask()
    whole = Incoming(kind="question", thread=place, user="U0YOU", ts=ts, addressed="mention", text="?", files="none")
    half, claimed = replace(whole, files="unknown"), []
    for number, event in enumerate((half, whole, half)):
        await receiver.store_or_carry_out(replace(event, event_ids=(f"{number}",)))
        found = await at.mailbox.claim("w", 1)
        claimed.append(len(found))
        assert all([await at.mailbox.finish(one, "ok") for one in found])
    assert claimed == [1, 1, 0]


@pytest.mark.parametrize("addressed", ["mention", "direct", "follow_up"])
async def test_the_first_version_of_a_question_that_arrives_after_its_edit_is_not_asked(
    addressed: Addressed, at: TeamBot
) -> None:
    place, ts = at.slack.ask()
    keys = ("evt:T1:2", f"msg:{place.team}:{place.channel}:{ts}")
    first = Incoming(kind="question", thread=place, user="U0YOU", ts=ts, addressed=addressed, text="?", event_ids=keys)
    await at.intake.store_or_carry_out(replace(first, kind="edit", edited_ts="2.0", event_ids=(f"{keys[1]}:2.0",)))
    is_new = await at.intake.store_or_carry_out(first)
    assert is_new is (addressed == "follow_up"), "an edited follow-up alone gets no answer"


async def test_a_stop_interrupted_by_a_redis_outage_counts_when_slack_resends_it(at: TeamBot) -> None:
    place, ts = await at.ask()
    refused = ["once"]

    async def cancel(wish: Cancellation) -> None:
        if refused:
            raise RedisConnectionError(refused.pop())
        at.cancelled.append(wish)

    intake = at.intake_with(cancel)
    said = at.slack.server.post("U0YOU", CHANNEL, "stop", ts)
    stop = Incoming(kind="stop", thread=place, user="U0YOU", ts=said, addressed="direct", event_ids=("evt:T1:1",))
    with pytest.raises(RedisConnectionError):
        await intake.store_or_carry_out(stop)
    for _ in range(2):
        await intake.store_or_carry_out(stop)
    (question,) = await at.mailbox.list_messages(str(place))
    assert at.cancelled == [Cancellation(thread=str(place), reason="stopped", message_id=question.id)]


async def test_an_outage_of_slack_uses_up_no_tries(at: TeamBot) -> None:
    at.services.delivery.calls.patience_s = 0.05  # its own patience, shortened
    place, _ = await at.ask()
    at.slack.server.faults.fail("chat.postMessage", "internal_error", times=99)
    for _ in range(8):
        ending = await at.handle()
        assert ending.verb == "give_back"
        assert ending.after_s > 0
    at.slack.server.faults.clear()
    assert await at.handle() == OK
    assert len(at.model.written) == 1
    assert "120 requests" in at.posted_texts(place)[0]
    assert (await at.services.observers.stats.read(1)).turns == 1, "counted once, however late it is delivered"


@pytest.mark.parametrize("how", ["edited after Redis was lost", "a dead letter tried again days later"])
async def test_a_question_repeated_from_elsewhere_is_answered_in_place(how: str, at: TeamBot) -> None:
    """Redis does not record the answer, and it is the message's first try: only Slack has it."""
    edited = how.startswith("edited")
    place, ts = at.slack.ask()
    if not edited:
        ts = f"{float(ts) - 3 * 86_400:.6f}"
    old = Answer(text="Ask again.", chunks=("Ask again.",), sources=(), verified=True, attempts=1)
    await at.slack.delivery.post_answer(place, old, AnswerKey(question_ts=ts, turn_id="before"))
    await at.store(ts, place, **({"edited_ts": f"{float(ts) + 60:.6f}"} if edited else {}))
    assert await at.handle() == OK
    (said,) = at.posted_texts(place)
    assert "120 requests" in said


async def test_posts_of_an_edits_turn_are_looked_for_even_if_slack_delays_reading(
    tmp_path: Path, redis_client: Redis
) -> None:
    """The first answer's messages are known, but not those that this turn posted."""
    async with team_bot(tmp_path, redis_client, [GOOD], pause_s=10) as at:
        place, ts = await at.ask()
        assert await at.handle() == OK
        edit = await at.store(ts, place, kind="edit", edited_ts=f"{float(ts) + 60:.6f}")
        long = Answer(text="long", chunks=tuple(f"Paragraph {number}." for number in range(100)), sources=())
        decided = OutboxEntry(outcome="answered", answer=long, state=await at.threads.load(place))
        await at.redis.set(
            at.mailbox.key(str(place), "mark", str(place), f"outbox:{edit.turn_id}"), decided.to_json(), ex=60
        )

        at.slack.server.faults.lose_response("chat.postMessage")
        assert await at.interrupt(lambda: len(at.posted_texts(place)) > 1) is None
        at.slack.server.faults.rate_limit("conversations.replies", retry_after=60, times=9)
        assert (await at.handle()).verb == "give_back"
        assert len(at.posted_texts(place)) == 2
        at.slack.server.faults.clear()
        assert await at.handle() == OK
        assert len(at.posted_texts(place)) == 3


async def test_a_person_is_told_of_a_given_up_message_unless_it_has_an_answer(at: TeamBot) -> None:
    place, ts = at.slack.ask()
    incoming = await at.store(ts, place)
    claimed, lease = await at.claim()
    await at.flow.notify_given_up(claimed, lease, "no end after 5 tries")
    assert incoming.turn_id[:12] in at.posted_texts(place)[0]

    other, second = at.slack.ask()
    await at.store(second, other)
    await at.mailbox.finish(claimed, "dead")
    claimed, lease = await at.claim()
    assert await at.flow.handle(claimed, lease) == OK
    await at.flow.notify_given_up(claimed, lease, "no end after 5 tries")
    assert ["120 requests" in text for text in at.posted_texts(other)] == [True]


async def test_a_message_given_up_while_slack_is_down_is_kept_until_the_person_can_be_told(
    tmp_path: Path, redis_client: Redis
) -> None:
    async with team_bot(tmp_path, redis_client, [], patience_s=0.05) as at:
        place, _ = await at.ask()
        claimed, lease = await at.claim()
        at.slack.server.faults.fail("conversations.replies", "internal_error", times=100)
        with pytest.raises(DeliveryFailed):
            await at.flow.notify_given_up(claimed, lease, "no end after 5 tries")
        at.slack.server.faults.clear()
        await at.flow.notify_given_up(claimed, lease, "no end after 5 tries")
        assert len(at.posted_texts(place)) == 1


async def test_a_question_that_came_after_a_later_one_is_remembered_once(at: TeamBot) -> None:
    """The later one, first in work, read the thread and found the earlier one in it."""
    place, first = at.slack.ask()
    second = at.slack.server.post("U0YOU", CHANNEL, "<@U0ORION> and in the evening?", first)
    for ts in (second, first):
        await at.store(ts, place)
        assert await at.handle() == OK
    asked = [m.ts for m in (await at.threads.load(place)).history if m.role == "user"]
    assert asked == [second, first]


async def test_a_worker_that_froze_after_its_claim_starts_no_turn(at: TeamBot) -> None:
    await at.ask()
    claimed, lease = await at.claim()
    await lose(at, claimed, lease)
    with capture_logs() as logged, pytest.raises(LeaseLost):
        await at.flow.handle(claimed, lease)
    assert logged == []
    assert await at.handle() == OK


async def taken_over_while_it_posts(at: TeamBot, place: ThreadKey) -> None:
    """The first worker hangs in its post and loses the thread; the second answers; then the first post lands too."""
    claimed, lease = await at.claim()
    at.slack.server.faults.hang("chat.postMessage")

    async def frozen() -> None:
        with pytest.raises(LeaseLost):
            await at.flow.handle(claimed, lease)

    async with asyncio.TaskGroup() as group:
        group.create_task(frozen())
        await wait_until(lambda: at.slack.count("chat.postMessage"), "the first worker posts")
        await lose(at, claimed, lease)
        assert await at.handle() == OK
        at.slack.server.faults.release()


async def test_the_second_post_of_a_worker_that_lost_its_thread_is_found_and_deleted(at: TeamBot) -> None:
    place, ts = await at.ask()
    await taken_over_while_it_posts(at, place)
    assert len(at.posted_texts(place)) == 2, "Slack has no key that would refuse the second"
    first = at.slack.server.messages(place.channel, place.thread_ts)[1]["ts"]
    await run_rechecks(at)
    ((kept, text),) = [(m["ts"], m["text"]) for m in at.slack.server.messages(place.channel, ts) if m.get("bot_id")]
    assert kept == first
    assert "120 requests" in text
    assert at.slack.server.workspace.threads.statuses == {}


async def test_a_dead_workers_status_is_cleared_when_another_worker_finishes(
    tmp_path: Path, redis_client: Redis
) -> None:
    """The answer was decided, the worker died; the status, or the placeholder, must not stay beside it."""
    async with team_bot(tmp_path, redis_client, [GOOD, "<answer>Another text [1].</answer>"]) as at:
        place, ts = await at.ask()
        at.slack.server.faults.hang("chat.postMessage")
        assert await at.interrupt(lambda: at.slack.count("chat.postMessage")) is None
        at.slack.server.faults.clear()
        await at.slack.delivery.set_status(place, "is thinking…")
        for _ in range(2):  # two workers died one after the other, each with a placeholder of its own
            answer_key = AnswerKey(question_ts=ts)
            await type(at.slack.delivery)(at.slack.workspace).show_placeholder(place, "_busy_", answer_key)
        assert await at.handle() == OK
        assert ["120 requests" in text for text in at.posted_texts(place)] == [True]
        assert (len(at.model.written), (await at.threads.load(place)).history[-1].role) == (1, "assistant")
        assert at.slack.server.workspace.threads.statuses == {}


async def test_a_dead_workers_status_is_cleared_when_the_question_is_withdrawn(at: TeamBot) -> None:
    place, ts = at.slack.ask()
    incoming = await at.store(ts, place)
    await at.slack.delivery.set_status(place, "is thinking…")
    await at.slack.delivery.show_placeholder(place, "_busy_", AnswerKey(question_ts=ts))
    claimed, lease = await at.claim()
    await lose(at, claimed, lease)
    await at.cancellations.record_deletion(incoming)
    assert await at.handle() == OK
    assert at.posted_texts(place) == []
    assert at.slack.server.workspace.threads.statuses == {}


@pytest.mark.parametrize(("error", "verb"), [("channel_not_found", "ok"), ("internal_error", "give_back")])
async def test_a_recheck_that_slack_refuses_is_repeated_if_that_may_help(
    error: str, verb: str, monkeypatch: pytest.MonkeyPatch, at: TeamBot
) -> None:
    await at.ask()
    claimed, lease = await at.claim()
    await lose(at, claimed, lease)
    assert await at.handle() == OK
    monkeypatch.setattr(recovery, "RECHECK_AT_S", (0.0,))
    at.services.delivery.calls.patience_s = 0.05  # its own patience, shortened
    at.slack.server.faults.fail("conversations.replies", error, times=99)
    (incoming,) = await at.mailbox.claim("w", 9)
    assert (await at.flow.handle(incoming, Lease(incoming.leased_until))).verb == verb


@pytest.mark.parametrize("decision", [NoReply(), ModelError("AuthenticationError", "no")])
async def test_a_message_for_other_people_gets_no_reply_and_is_not_counted(
    tmp_path: Path, redis_client: Redis, decision: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.turn.answer.Pace", lambda **_: Pace(settle_s=0.0, change_s=0.0))
    async with team_bot(tmp_path, redis_client, [GOOD]) as at:
        decide = at.model.decide

        async def decide_slowly(context: DecideContext) -> Decision:
            for _ in range(3):  # a status would be shown meanwhile
                await at.slack.client.auth_test()
            return await decide(context)

        monkeypatch.setattr(at.model, "decide", decide_slowly)
        place, ts = await at.ask()
        assert await at.handle() == OK
        answered, statuses = at.posted_texts(place), at.slack.count("assistant.threads.setStatus")
        at.model.decisions[:] = [decision]
        aside = at.slack.server.post("U0YOU", CHANNEL, "nice, see you at lunch Jonas", ts)
        await at.store(aside, place, addressed="follow_up", text="nice, see you at lunch Jonas")
        assert await at.handle() == OK
        assert (at.posted_texts(place), at.slack.count("assistant.threads.setStatus")) == (answered, statuses)
        assert (await at.services.observers.stats.read(1)).answered == 1
        latest = (await at.threads.load(place)).history[-1]
        assert (latest.text, latest.addressed) == ("nice, see you at lunch Jonas", False)


@pytest.mark.parametrize(("text", "files"), [("and how many on Sundays?", "none"), ("", "none"), ("", "some")])
async def test_people_among_themselves_get_no_notice_of_an_outage_and_no_help(
    at: TeamBot, text: str, files: Files
) -> None:
    place, ts = await at.ask()
    assert await at.handle() == OK
    answered, statuses = at.posted_texts(place), at.slack.count("assistant.threads.setStatus")
    at.services = replace(at.services, timeouts=replace(at.services.timeouts, model_s=0.0))
    at.model.decisions[:] = [ModelError("RateLimitError", "busy")]
    aside = at.slack.server.post("U0YOU", CHANNEL, text, ts)
    attached = ({"id": "F1", "name": "party.png"},) if files == "some" else ()
    await at.store(aside, place, addressed="follow_up", text=text, files=files, attached=attached)
    assert await at.handle() == OK
    assert (at.posted_texts(place), at.slack.count("assistant.threads.setStatus")) == (answered, statuses)
