"""A service is down: the person sees it within seconds, and the question's time limit begins with the failure."""

import time
from dataclasses import replace
from itertools import repeat
from pathlib import Path

from redis.asyncio import Redis

from agent.outcome import Failed
from agent.texts.catalogue import own_message
from bot.delivery.answer_key import AnswerKey
from bot.slack.message import Incoming
from bot.stores.stores import Facts, read_facts
from bot.turn.engine import TurnTimeouts
from bot.turn.job import Job
from bot.turn.recovery import DOCUMENTS_AWAY, MODEL_AWAY, give_back_with_status, retry_delay_s
from bot.turn.status import WorkingStatus
from tests.support.openai_server import RESPOND, fails, says
from tests.support.orion_running import CHANNEL, MENTION, Setting, text_of
from tests.support.scripted_orion import DRAFTS, LIMIT, QUICK, with_model
from tests.support.team_bot import team_bot
from tests.support.waiting import wait_until

PATIENT = TurnTimeouts(model_s=180)
DOWN = Failed(answer=own_message("away"), reason="LLMError")


def statuses(setting: Setting) -> list[str]:
    calls = [c for c in setting.workspace.calls if c.method == "assistant.threads.setStatus"]
    return [str(call.arguments["status"]) for call in calls]


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
        assert abs(again.waiting_since - time.time()) < 60
        queued = replace(job, claimed=replace(claimed, enqueued_at=time.time() - 7_200))
        assert (retry_delay_s(queued, DOWN, PATIENT), queued.waiting_since) == (2.0, 0.0), "the queue takes nothing"
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
        await wait_until(lambda: MODEL_AWAY in statuses(setting), "the failure is shown")
        assert "600 requests" in text_of(await setting.answer_to(ts))
        after = statuses(setting)[statuses(setting).index(MODEL_AWAY) :]
        assert "is thinking…" not in after


async def test_a_thread_is_read_only_once_for_all_tries_of_its_question(tmp_path: Path, redis_url: str) -> None:
    failing = [fails(500)] * 4
    async with with_model(tmp_path, redis_url, decisions=[*failing, RESPOND], timeouts=QUICK) as (setting, server):
        root = setting.workspace.post("U0ONCALL", CHANNEL, "We talk of the walrus key here.")
        ts = setting.ask(f"{MENTION} {LIMIT}", thread=root)
        assert "600 requests" in text_of(await setting.answer_to(ts, thread=root))
        assert MODEL_AWAY in statuses(setting), "it was given back meanwhile"
        assert all("walrus" in str(request) for request in server.requests), "each try knew the thread"
        assert sum(call.method == "conversations.replies" for call in setting.workspace.calls) == 1


async def test_the_status_is_shown_while_the_thread_is_read(tmp_path: Path, redis_url: str) -> None:
    async with with_model(tmp_path, redis_url) as (setting, server):
        setting.workspace.faults.hang("conversations.replies")
        root = setting.workspace.post("U0ONCALL", CHANNEL, "Who knows about keys?")
        ts = setting.ask(f"{MENTION} {LIMIT}", thread=root)
        await wait_until(lambda: statuses(setting) == ["is thinking…"], "a status is shown")
        assert server.requests == []
        setting.workspace.faults.release()
        assert "600 requests" in text_of(await setting.answer_to(ts, thread=root))
