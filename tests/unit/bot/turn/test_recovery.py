"""Answers that were cut off are taken over, and questions that met an outage are retried."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import pytest
from redis.asyncio import Redis

from agent.outcome import Failed
from agent.texts.catalogue import own_message
from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import AnswerKey
from bot.delivery.stream import Streams
from bot.local.model.messages import MessageLog
from bot.local.model.roster import TEAM_ID
from bot.queue.claim import OK
from bot.slack.history import STREAM_UNKNOWN, StreamedMessage
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Facts, read_facts
from bot.turn.engine import TurnTimeouts
from bot.turn.job import Job
from bot.turn.recovery import DOCUMENTS_AWAY, MODEL_AWAY, delete_duplicates, give_back_with_status, retry_delay_s
from bot.turn.status import WorkingStatus
from tests.support.clock import Clock
from tests.support.fakes import Slow
from tests.support.local_slack import Slack
from tests.support.openai_server import RESPOND, fails, says
from tests.support.orion_running import CHANNEL, MENTION, text_of
from tests.support.posted_answers import answers
from tests.support.scripted_orion import DRAFTS, LIMIT, QUICK, with_model
from tests.support.stream_recovery import GOOD, stream_in, streaming_in
from tests.support.team_bot import TeamBot, run_rechecks, team_bot
from tests.support.waiting import wait_until
from verification.types import Answer

ANSWER = Answer(text="Each key may send 120 requests.", chunks=("Each key may send 120 requests.",), verified=True)
START = "chat.startStream"


async def begin_stream(slack: Slack, place: ThreadKey, text: str = "") -> str:
    """A stream as a dead worker leaves it."""
    to = {"recipient_team_id": TEAM_ID, "recipient_user_id": "U0YOU"}
    body = {"channel": place.channel, "thread_ts": place.thread_ts, **to}
    ts = str((await slack.calls.write("chat.startStream", body))["ts"])
    if text:
        await slack.calls.write("chat.appendStream", {"channel": place.channel, "ts": ts, "markdown_text": text})
    return ts


@pytest.mark.parametrize("text", ["", "Each **key**"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("ended", [True, False])
async def test_the_next_answer_takes_a_stream_over(text: str, slack: Slack, *, known: bool, ended: bool) -> None:
    place, asked = slack.ask()
    ts = await begin_stream(slack, place, text)
    if ended:
        await slack.calls.write("chat.stopStream", {"channel": place.channel, "ts": ts})
    streamed = StreamedMessage("begun", ts) if known else STREAM_UNKNOWN
    answer_key = AnswerKey(question_ts=asked, turn_id="t" * 32, streamed=streamed)
    (answered,) = await slack.delivery.post_answer(place, ANSWER, answer_key)
    found = {message["ts"]: message["text"] for message in answers(slack, place)}
    if text and ended and not known:
        assert found == {ts: text, answered: ANSWER.text}  # nothing tells it from an answer any more
    else:
        assert found == {ts: ANSWER.text}


async def test_a_recheck_finds_a_stream_that_a_frozen_worker_began_late(slack: Slack) -> None:
    clock = Clock()
    slack.server.workspace.log = MessageLog(clock)
    clock.now = time.time() - 60
    place, asked = slack.ask()
    (first,) = await slack.delivery.post_answer(place, ANSWER, AnswerKey(question_ts=asked, turn_id="t" * 32))
    await begin_stream(slack, place)
    clock.now = time.time()
    others = {await begin_stream(slack, place, "Another turn of the thread"), await begin_stream(slack, place)}
    await delete_duplicates(slack.delivery, place, "0000000001.000000")
    assert len(answers(slack, place)) == 4  # no answer to that question: nothing is touched
    await delete_duplicates(slack.delivery, place, asked)
    assert {message["ts"] for message in answers(slack, place)} == {first} | others


async def test_a_stream_that_its_turn_ends_meanwhile_is_not_treated_as_blank(slack: Slack) -> None:
    """The first piece of an answer can wait for Slack longer than a blank stream is left alone."""
    clock = Clock()
    slack.server.workspace.log = MessageLog(clock)
    clock.now = time.time() - 60
    place, asked = slack.ask()
    await slack.delivery.post_answer(place, ANSWER, AnswerKey(question_ts=asked, turn_id="t" * 32))
    stream, _ = stream_in(place, Streams(slack.calls))
    await stream.show("Two.", "Two.")
    clock.now = time.time()
    slack.server.faults.delay("chat.stopStream", 0.3)
    async with asyncio.TaskGroup() as group:
        group.create_task(delete_duplicates(slack.delivery, place, asked))
        await wait_until(lambda: slack.count("chat.stopStream"), "it is about to be ended")
        assert await stream.close("Two.", [], {"event_type": "orion_answer", "event_payload": {}})
    assert [message["text"] for message in answers(slack, place)] == [ANSWER.text, "Two."]


async def test_shown_text_stays_with_a_note_that_it_was_stopped(slack: Slack) -> None:
    place, asked = slack.ask()
    ts = await begin_stream(slack, place, "Each key")
    answer_key = AnswerKey(question_ts=asked, turn_id="t" * 32, streamed=StreamedMessage("begun", ts))
    assert await slack.delivery.end_streams(place, answer_key, "Stopped.")
    (message,) = answers(slack, place)
    assert [block["type"] for block in message["blocks"]] == ["markdown", "context"]
    assert message["metadata"]["event_payload"] == {"question_ts": asked, "turn_id": "", "verified": False}
    assert not await slack.delivery.end_streams(place, answer_key, "Stopped.")  # it is ended


async def test_a_stream_waits_for_the_next_answer_or_is_deleted(slack: Slack) -> None:
    place, asked = slack.ask()
    ts = await begin_stream(slack, place, "Each key")
    answer_key = AnswerKey(question_ts=asked, streamed=StreamedMessage("begun", ts))
    assert not await slack.delivery.end_streams(place, answer_key)
    (posted,) = await slack.reader.find_posts(place, asked)
    assert (posted.ts, posted.placeholder) == (ts, True)
    other = await begin_stream(slack, place, "Each key")
    await slack.delivery.delete_streams(place, replace(answer_key, streamed=StreamedMessage("begun", other)))
    assert [message["ts"] for message in answers(slack, place)] == [ts]


async def test_the_start_is_recorded_before_a_stream_and_its_ts_right_after(slack: Slack) -> None:
    place, _ = slack.ask()
    stream, noted = stream_in(place, Streams(slack.calls))
    assert await stream.show("One.", "One.")
    assert noted.told == ["", stream.streamed.ts]


async def test_pieces_are_sent_together_while_slack_limits_the_rate(slack: Slack) -> None:
    place, _ = slack.ask()
    stream, _ = stream_in(place, Streams(slack.calls, each_s=0.2))
    async with stream.sending():
        for text in ("One.", "Two.", "Three."):
            await stream.show(text, text)
            await wait_until(lambda: slack.count("chat.appendStream") >= 1, "the first is sent")
        await wait_until(lambda: "Three." in answers(slack, place)[0]["text"], "all are sent")
    assert slack.count("chat.appendStream") == 2
    assert answers(slack, place)[0]["text"] == "One.\n\nTwo.\n\nThree."


async def test_limited_piece_is_sent_again_after_a_while(slack: Slack) -> None:
    place, _ = slack.ask()
    stream, _ = stream_in(place, Streams(slack.calls, each_s=0.01, limited_s=0.2))
    slack.server.faults.rate_limit("chat.appendStream", retry_after=3_600)
    async with stream.sending():
        await stream.show("One.", "One.")
        await wait_until(lambda: slack.count("chat.appendStream") == 1, "it was refused")
        await stream.show("Two.", "Two.")
        await wait_until(lambda: "Two." in answers(slack, place)[0]["text"], "all is sent")
    assert answers(slack, place)[0]["text"] == "One.\n\nTwo."


async def test_a_workspace_that_refused_streams_is_asked_again_only_after_a_while(slack: Slack) -> None:
    streams = Streams(slack.calls, missing_s=0.3, limited_s=3_600)
    place = slack.ask()[0]
    elsewhere = replace(place, channel="C0OTHER")
    streams.remember_refusal(place, DeliveryFailed("channel_type_not_supported", permanent=False))
    assert (streams.may_be_tried(place), streams.may_be_tried(elsewhere)) == (False, True)
    await wait_until(lambda: streams.may_be_tried(place), "it is tried again")
    streams.remember_refusal(place, DeliveryFailed("ratelimited", permanent=False))
    assert not streams.may_be_tried(elsewhere)
    streams = Streams(slack.calls)
    slack.server.faults.fail(START, "unknown_method")
    with pytest.raises(DeliveryFailed):
        await slack.calls.call_once(START, {})
    assert not streams.may_be_tried(elsewhere)


@pytest.fixture
async def at(tmp_path: Path, redis_client: Redis) -> AsyncIterator[TeamBot]:
    """A bot that shows its answers while they grow."""
    async with team_bot(tmp_path, redis_client, [GOOD]) as bot:
        bot.services = streaming_in(bot)
        yield bot


@pytest.mark.parametrize("method", ["chat.startStream", "chat.appendStream", "chat.stopStream"])
async def test_a_turn_interrupted_mid_stream_is_finished_in_its_message(method: str, at: TeamBot) -> None:
    place, ts = at.slack.ask()
    await at.store(ts, place)
    at.slack.server.faults.delay(method, 1.0)
    usual = at.services
    if method != "chat.stopStream":  # the model is waited for meanwhile
        at.services = streaming_in(at, model=Slow([GOOD[:-20]]))
    assert await at.interrupt(lambda: at.slack.count(method)) is None
    at.services = usual
    await wait_until(lambda: all(call.done for call in at.slack.server.calls), "Slack carried it out")
    assert await at.handle() == OK
    (message,) = answers(at.slack, place)
    assert message["metadata"]["event_payload"]["turn_id"]
    assert "streaming_state" not in message
    assert str(message["blocks"]).count("120 requests") == 1


async def test_an_interrupted_stream_that_is_then_stopped_keeps_its_text(at: TeamBot) -> None:
    at.services = streaming_in(at, model=Slow([GOOD[:-20]]))
    place, ts = at.slack.ask()
    incoming = await at.store(ts, place)
    assert await at.interrupt(lambda: "120 requests" in str(answers(at.slack, place))) is None
    await at.cancellations.record_stop(replace(incoming, event_ts="9999999999.000000"))
    assert await at.handle() == OK
    (message,) = answers(at.slack, place)
    assert ["120 requests" in message["text"], "Stopped." in str(message["blocks"])] == [True, True]


async def test_a_bot_without_an_account_gets_a_post(at: TeamBot) -> None:
    """Slack takes only people for a stream's recipients; its refusal would take streams from the whole channel."""
    for user, starts in (("B0ALERTS", 0), ("U0YOU", 1)):
        place, ts = at.slack.ask()
        await at.store(ts, place, user=user)
        assert await at.handle() == OK
        assert at.slack.count(START) == starts
        assert "120 requests" in str(answers(at.slack, place))


@pytest.mark.parametrize("stops", [False, True])
async def test_a_stream_that_begins_too_late_is_deleted(at: TeamBot, *, stops: bool) -> None:
    """Slack was slower than a start may take, and began it all the same, under the answer."""
    clock = Clock()
    at.slack.server.workspace.log = MessageLog(clock)
    clock.now = time.time() - 60
    at.services = streaming_in(at, call_s=30.0 if stops else 0.1)
    place, ts = at.slack.ask()
    await at.store(ts, place)
    at.slack.server.faults.delay(START, 1.0)
    if stops:
        assert await at.interrupt(lambda: at.slack.count(START), stop="stopped") == OK
    else:
        assert await at.handle() == OK
    (answer,) = answers(at.slack, place)
    await wait_until(lambda: len(answers(at.slack, place)) > 1, "the stream began")
    clock.now = time.time()
    await run_rechecks(at)
    assert [message["ts"] for message in answers(at.slack, place)] == [answer["ts"]]


async def test_a_given_up_message_says_so_in_its_stream(at: TeamBot) -> None:
    place, ts = at.slack.ask()
    await at.store(ts, place)
    at.services = streaming_in(at, model=Slow([GOOD[:-20]]))
    at.slack.server.faults.hang("chat.appendStream")
    assert await at.interrupt(lambda: at.slack.count("chat.appendStream")) is None
    claimed, lease = await at.claim()
    await at.flow.notify_given_up(claimed, lease, "bug")
    (message,) = answers(at.slack, place)
    assert "streaming_state" not in message


PATIENT = TurnTimeouts(model_s=180)
DOWN = Failed(answer=own_message("away"), reason="LLMError")


async def test_waiting_for_the_model_begins_with_its_first_failure(tmp_path: Path, redis_client: Redis) -> None:
    async with team_bot(tmp_path, redis_client, []) as at:
        await at.ask()
        claimed, lease = await at.claim()
        incoming = Incoming.from_json(claimed.body)
        job = Job(claimed=claimed, lease=lease, incoming=incoming)
        answer_key = AnswerKey(question_ts=incoming.ts)
        async with WorkingStatus(at.slack.delivery, job.place, answer_key).updating() as status:
            ending = await give_back_with_status(at.mailbox, job, status, DOWN, 2.0)
            assert (ending.verb, ending.after_s) == ("give_back", 2.0)
            await give_back_with_status(at.mailbox, job, status, replace(DOWN, reason="KnowledgeAwayError"), 2.0)
        told = [c.arguments["status"] for c in at.slack.server.calls if c.method == "assistant.threads.setStatus"]
        assert told[-2:] == [MODEL_AWAY, DOCUMENTS_AWAY]
        again = replace(job, facts=await read_facts(at.stores, incoming, job.turn_id))
        assert abs(again.failed_since - time.time()) < 60
        queued = replace(job, claimed=replace(claimed, enqueued_at=time.time() - 7_200))
        assert (retry_delay_s(queued, DOWN, PATIENT), queued.failed_since) == (2.0, 0.0), "the queue takes nothing"
        asked = replace(queued, facts=Facts(failed_since=str(time.time() - 90)))
        assert 29 < (retry_delay_s(asked, DOWN, PATIENT) or 0) < 35
        asked = replace(asked, facts=Facts(failed_since=str(time.time() - 179)))
        assert retry_delay_s(asked, DOWN, PATIENT) is None
        resumed = replace(asked, claimed=replace(claimed, enqueued_at=time.time() - 3))
        assert retry_delay_s(resumed, DOWN, PATIENT) == 2.0, "an admin's pause lay between"
        refused = Failed(answer=DOWN.answer, reason="AuthenticationError")
        for outcome in (refused, replace(DOWN, retry_after_s=999.0)):
            assert retry_delay_s(job, outcome, PATIENT) is None, "it does not pass"


async def test_an_unreachable_model_is_named_until_it_answers(tmp_path: Path, redis_url: str) -> None:
    decisions, drafts = [fails(500), fails(500), RESPOND], repeat(says(DRAFTS["good"]))
    async with with_model(tmp_path, redis_url, decisions=decisions, drafts=drafts, timeouts=QUICK) as (setting, _):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        await wait_until(lambda: MODEL_AWAY in setting.statuses, "the failure is shown")
        assert "600 requests" in text_of(await setting.answer_to(ts))
        after = setting.statuses[setting.statuses.index(MODEL_AWAY) :]
        assert "is thinking…" not in after


async def test_a_thread_is_read_only_once_for_all_tries_of_its_question(tmp_path: Path, redis_url: str) -> None:
    failing = [fails(500)] * 4
    async with with_model(tmp_path, redis_url, decisions=[*failing, RESPOND], timeouts=QUICK) as (setting, server):
        root = setting.workspace.post("U0ONCALL", CHANNEL, "We talk of the walrus key here.")
        ts = setting.ask(f"{MENTION} {LIMIT}", thread=root)
        assert "600 requests" in text_of(await setting.answer_to(ts, thread=root))
        assert MODEL_AWAY in setting.statuses, "it was given back meanwhile"
        assert all("walrus" in str(request) for request in server.requests), "each try knew the thread"
        assert sum(call.method == "conversations.replies" for call in setting.workspace.calls) == 1


async def test_the_status_is_shown_while_the_thread_is_read(tmp_path: Path, redis_url: str) -> None:
    async with with_model(tmp_path, redis_url) as (setting, server):
        setting.workspace.faults.hang("conversations.replies")
        root = setting.workspace.post("U0ONCALL", CHANNEL, "Who knows about keys?")
        ts = setting.ask(f"{MENTION} {LIMIT}", thread=root)
        await wait_until(lambda: setting.statuses == ["is thinking…"], "a status is shown")
        assert server.requests == []
        setting.workspace.faults.release()
        assert "600 requests" in text_of(await setting.answer_to(ts, thread=root))
