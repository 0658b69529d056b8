"""A call that Slack carries out after it was given up still has only one effect."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from structlog.testing import capture_logs

from agent.model.protocol import ModelError
from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import ENDS_SESSION, AnswerKey, Recheck
from bot.gates.flow import read_body
from bot.queue.claim import OK, Lease
from bot.queue.queue import Mailbox
from bot.slack.message import Incoming
from bot.turn import recovery
from bot.turn.recovery import delete_duplicates, run_recheck
from tests.support.local_slack import CHANNEL, CHAT, Slack
from tests.support.posted_answers import LONG, answer, answers
from tests.support.redis_fleet import node
from tests.support.team_bot import GOOD, TeamBot, run_rechecks, team_bot
from tests.support.waiting import wait_until

words = st.text(max_size=20)
POST = "chat.postMessage"
REQUEST_S = 0.2


@given(words, words, words, words)
def test_saved_state_is_read_back_unchanged(team: str, channel: str, thread_ts: str, ts: str) -> None:
    recheck = Recheck(place=ThreadKey(team=team, channel=channel, thread_ts=thread_ts), question_ts=ts)
    assert read_body(recheck.to_json()) == (1, recheck)
    with pytest.raises(ValueError):  # noqa: PT011 - any reason will do: it is no message of a person's
        Incoming.from_json(recheck.to_json())


@pytest.mark.parametrize(
    "body",
    ["", "no message", "[]", "{}", '{"schema": "two"}', '"run_recheck"', '{"settle": 1}', '{"settle": {"place": {}}}'],
)
def test_an_unreadable_body_gives_no_message(body: str) -> None:
    assert read_body(body) == (1, None)


def stamps(slack: Slack, place: ThreadKey) -> list[str]:
    return [message["ts"] for message in answers(slack, place)]


async def wait_for_late_calls(slack: Slack) -> None:
    """Slack has carried out every call, even late."""
    slack.server.faults.release()
    await wait_until(lambda: all(call.done for call in slack.server.calls), "Slack carried it out")


async def answer_question(at: TeamBot, place: ThreadKey, ts: str) -> None:
    await at.store(ts, place)
    assert await at.handle() == OK


async def long(at: TeamBot, place: ThreadKey, ts: str) -> None:
    """An answer of several messages, of which the first and the last are late."""
    at.slack.server.faults.delay(POST, 0.0, times=2)
    at.slack.server.faults.hold(POST)
    answer_key = AnswerKey(question_ts=ts, turn_id="turn-1", may_exist=False)
    await at.services.delivery.post_answer(place, answer(*LONG), answer_key)


async def stop_question(at: TeamBot, place: ThreadKey, ts: str) -> None:
    incoming = await at.store(ts, place)
    await at.cancellations.record_stop(replace(incoming, event_ts="9999999999.000000"))
    assert await at.handle() == OK
    assert {message["text"] for message in answers(at.slack, place)} == {"Stopped."}


async def post_notice(at: TeamBot, place: ThreadKey, ts: str) -> None:
    await at.services.delivery.post_notice(place, "I'm paused right now.", f"{ts}:paused:1")


async def give_up(at: TeamBot, place: ThreadKey, ts: str) -> None:
    await at.store(ts, place)
    claimed, lease = await at.claim()
    await at.flow.notify_given_up(claimed, lease, "no end after 5 tries")
    assert await at.mailbox.finish(claimed, "ok")


Posting = Callable[[TeamBot, ThreadKey, str], Awaitable[None]]
POSTINGS: dict[str, tuple[Posting, Any, int]] = {
    "answer": (answer_question, GOOD, 1),
    "graceful failure": (answer_question, ModelError("RefusalError", "no"), 1),
    "answer of several messages": (long, GOOD, 3),
    "Stopped.": (stop_question, GOOD, 1),
    "notice": (post_notice, GOOD, 1),
    "given up": (give_up, GOOD, 1),
}


@pytest.mark.parametrize("channel", [CHANNEL, CHAT])
@pytest.mark.parametrize("name", list(POSTINGS))
async def test_a_late_duplicate_of_a_retried_call_is_deleted(
    name: str, channel: str, tmp_path: Path, redis_client: Redis
) -> None:
    posting, draft, messages = POSTINGS[name]
    async with team_bot(tmp_path, redis_client, [draft], request_s=REQUEST_S) as at:
        place, ts = at.slack.ask(channel=channel)
        at.slack.server.faults.hold(POST)
        await posting(at, place, ts)
        first = stamps(at.slack, place)
        assert len(first) == messages
        await wait_for_late_calls(at.slack)
        assert len(answers(at.slack, place)) > messages, "Slack has no key that would refuse the second"
        await run_rechecks(at)
        assert stamps(at.slack, place) == first, "what people saw first stays"


async def test_a_placeholder_that_arrives_after_the_answer_is_deleted(tmp_path: Path, redis_client: Redis) -> None:
    async with team_bot(tmp_path, redis_client, [GOOD], request_s=REQUEST_S) as at:
        place, ts = at.slack.ask()
        answer_key = AnswerKey(question_ts=ts, turn_id="turn-1", may_exist=False)
        at.slack.server.faults.hold(POST)
        await at.services.delivery.show_placeholder(place, "_busy_", answer_key)
        await at.services.delivery.post_answer(place, answer("So."), answer_key)
        first = stamps(at.slack, place)
        await wait_for_late_calls(at.slack)
        assert len(answers(at.slack, place)) == 2
        await run_rechecks(at)
        assert stamps(at.slack, place) == first


@pytest.mark.parametrize("why", ["drained", "stopped", "edited", "deleted"])
async def test_an_interrupted_post_that_arrives_late_is_not_a_duplicate(
    why: str, tmp_path: Path, redis_client: Redis
) -> None:
    """The turn was interrupted during its post: no one waits for the reply, and Slack carries it out."""
    drafts = [GOOD, "<answer>It is 120 requests, as edited [1].</answer>"]
    async with team_bot(tmp_path, redis_client, drafts) as at:
        place, ts = at.slack.ask()
        incoming = await at.store(ts, place)
        at.slack.server.faults.hold(POST)
        assert await at.interrupt(lambda: at.slack.count(POST), stop="" if why == "drained" else why) in {None, OK}
        if why == "edited":
            at.slack.server.edit(CHANNEL, ts, "<@U0ORION> how many?")
            edited_ts = at.slack.server.messages(CHANNEL, ts)[0]["edited"]["ts"]
            await at.store(ts, place, kind="edit", edited_ts=edited_ts, event_ts="9999999999.000001")
        if why == "deleted":
            await at.cancellations.record_deletion(incoming)
            await at.store(ts, place, kind="delete")
        if why != "stopped":
            assert await at.handle() == OK
        await wait_for_late_calls(at.slack)
        await run_rechecks(at)
        assert ["120 requests" in text for text in at.posted_texts(place)] == ([] if why == "deleted" else [True])
        if why == "edited":
            assert "as edited" in at.posted_texts(place)[0]


async def test_the_answer_to_the_latest_of_two_versions_stays(slack: Slack) -> None:
    """The older one arrived between the newer one's lookup and post: it is first, and out of date."""
    place, ts = slack.ask()
    older = Incoming(kind="question", thread=place, user="U", ts=ts, addressed="mention").turn_id
    await slack.delivery.post_answer(place, answer(*LONG), AnswerKey(question_ts=ts, turn_id=older, may_exist=False))
    slack.server.edit(CHANNEL, ts, "<@U0ORION> how do we release on Fridays?")
    edited_ts = slack.server.messages(CHANNEL, ts)[0]["edited"]["ts"]
    incoming = Incoming(kind="edit", thread=place, user="U", ts=ts, addressed="mention", edited_ts=edited_ts)
    answer_key = AnswerKey(question_ts=ts, turn_id=incoming.turn_id, may_exist=False)
    (latest,) = await slack.delivery.post_answer(place, answer("Not at all."), answer_key)
    await delete_duplicates(slack.delivery, place, ts)
    assert stamps(slack, place) == [latest]


async def test_after_a_reply_from_slack_no_recheck_is_left(at: TeamBot) -> None:
    place, ts = at.slack.ask()
    await answer_question(at, place, ts)
    assert (await at.mailbox.depth()).messages == 0
    assert at.slack.count("conversations.replies") == 0


async def test_a_newer_recheck_replaces_an_older_one(at: TeamBot) -> None:
    """Slack was away for long: each try left a message, and one look is enough for all of them."""
    place, ts = at.slack.ask()
    await answer_question(at, place, ts)
    for _ in range(3):
        await Recheck(place=place, question_ts=ts).add(at.mailbox)
    (incoming,) = await at.mailbox.claim("w", 9)
    assert await at.flow.handle(incoming, Lease(incoming.leased_until)) == OK
    assert await at.mailbox.finish(incoming, "give_back")
    await run_rechecks(at)
    assert at.slack.count("conversations.replies") == 1
    assert (await at.mailbox.depth()).messages == 0


async def test_a_newer_recheck_does_not_wait_for_an_older_one(at: TeamBot) -> None:
    place, ts = at.slack.ask()
    await Recheck(place=place, question_ts=ts).add(at.mailbox)
    (incoming,) = await at.mailbox.claim("w", 9)
    assert await at.mailbox.finish(incoming, "give_back", after_s=60)
    assert await at.mailbox.claim("w", 9) == []
    await Recheck(place=place, question_ts=ts).add(at.mailbox)
    assert len(await at.mailbox.claim("w", 9)) == 1


async def test_a_session_that_slack_did_not_end_is_ended_once_no_turn_is_at_work(at: TeamBot) -> None:
    place, _ = await at.ask()
    check, (claimed, lease) = Recheck(place=place, question_ts=ENDS_SESSION), await at.claim()
    assert (await run_recheck(check, claimed, lease, at.stores, at.slack.delivery)).verb == "give_back"
    assert at.slack.count("agents.sessions.setStatus") == 0
    assert await at.mailbox.finish(claimed, "ok")
    assert await run_recheck(check, claimed, lease, at.stores, at.slack.delivery) == OK
    assert at.slack.count("agents.sessions.setStatus") == 1


async def test_the_recheck_is_repeated_until_nothing_more_can_arrive(
    monkeypatch: pytest.MonkeyPatch, at: TeamBot
) -> None:
    place, ts = at.slack.ask()
    await Recheck(place=place, question_ts=ts).add(at.mailbox)
    (incoming,) = await at.mailbox.claim("w", 9)
    recheck = Recheck(place=place, question_ts=ts)
    monkeypatch.setattr(recovery, "RECHECK_AT_S", (2.0, 4.0, 8.0))
    rests: list[float] = []
    for age_s in (0.0, 2.5, 4.5, 9.0):
        aged = replace(incoming, enqueued_at=time.time() - age_s)
        lease = Lease(incoming.leased_until)
        rests.append((await run_recheck(recheck, aged, lease, at.stores, at.slack.delivery)).after_s)
    assert [round(rest, 1) for rest in rests] == [2.0, 1.5, 3.5, 0.0]
    assert at.slack.count("conversations.replies") == 3


@pytest.mark.parametrize("channel", [CHANNEL, CHAT])
async def test_the_status_of_an_edited_question_at_work_is_kept(
    channel: str, tmp_path: Path, redis_client: Redis
) -> None:
    async with team_bot(tmp_path, redis_client, [GOOD, GOOD], request_s=REQUEST_S) as at:
        place, ts = at.slack.ask(channel=channel)
        await answer_question(at, place, ts)
        (first,) = stamps(at.slack, place)
        await at.store(ts, place, kind="edit", edited_ts="9999999999.000000")
        claimed, lease = await at.claim()
        await at.services.delivery.show_placeholder(place, "_busy_", AnswerKey(question_ts=ts))
        await at.slack.delivery.set_status(place, "is thinking…")
        await Recheck(place=place, question_ts=ts).add(at.mailbox)
        await run_rechecks(at)
        assert len(answers(at.slack, place)) == 2
        assert len(at.slack.server.workspace.threads.statuses) == 1
        assert await at.flow.handle(claimed, lease) == OK
        assert stamps(at.slack, place) == [first]


async def test_the_status_of_another_running_question_is_not_touched(at: TeamBot) -> None:
    place, ts = at.slack.ask()
    await answer_question(at, place, ts)
    await at.store(at.slack.server.post("U0YOU", CHANNEL, "and when?", ts), place)
    await at.slack.delivery.post_answer(place, answer("So."), AnswerKey(question_ts=ts, turn_id="turn-2"))
    claimed, lease = await at.claim()
    await at.slack.delivery.set_status(place, "is thinking…")
    await Recheck(place=place, question_ts=ts).add(at.mailbox)
    await run_rechecks(at)
    assert len(at.slack.server.workspace.threads.statuses) == 1
    await at.flow.handle(claimed, lease)


PLACE = ThreadKey(team="T", channel="C", thread_ts="1.0")


async def test_orion_waits_for_a_redis_that_fails_over(tmp_path: Path) -> None:
    async with node(tmp_path) as server, server.client() as client:
        mailbox = Mailbox(client)
        server.kill()
        asyncio.get_running_loop().call_later(0.6, server.start_again)
        with capture_logs() as logged:
            await Recheck(place=PLACE, question_ts="1.0").add(mailbox)
        assert {line["event"] for line in logged} == {"stamina.retry_scheduled"}
        (incoming,) = await mailbox.claim("w", 9)
        assert read_body(incoming.body)[1] == Recheck(place=PLACE, question_ts="1.0")
        await mailbox.aclose()


async def test_without_redis_the_post_continues(redis_client: Redis) -> None:
    mailbox = Mailbox(Redis(port=9, retry=Retry(NoBackoff(), 0)))
    with capture_logs() as logged:
        await Recheck(place=PLACE, question_ts="1.0").add(mailbox, patience_s=0.3)
    assert logged[-1]["event"] == "recheck_not_stored"
    await mailbox.aclose()
