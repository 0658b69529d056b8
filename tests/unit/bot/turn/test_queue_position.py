"""Who waits for a free place sees how soon it is their turn, once, and not a moment longer than they wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import AnswerKey
from bot.queue.queue import Mailbox
from bot.slack.message import Incoming
from bot.turn.status import BEHIND, QueueNotices, WorkingStatus
from tests.support.local_slack import CHAT, Slack, local_slack
from tests.support.services import workspaces_of
from tests.support.shown_statuses import cleared, shown


@dataclass(frozen=True, kw_only=True)
class Scene:
    slack: Slack
    mailbox: Mailbox
    queueing: QueueNotices

    async def asked(self, text: str = "how do we release?", *, channel: str = "C0GENERAL") -> Incoming:
        place, ts = self.slack.ask(text, channel)
        return await self.stored(place, ts)

    async def stored(self, place: ThreadKey, ts: str) -> Incoming:
        incoming = Incoming(kind="question", thread=place, user="U0YOU", ts=ts, addressed="mention")
        await self.mailbox.enqueue(str(place), incoming.to_json(), event_ids=[ts])
        return incoming


@asynccontextmanager
async def scene(redis: Redis) -> AsyncIterator[Scene]:
    async with local_slack() as slack:
        mailbox = Mailbox(redis)
        yield Scene(
            slack=slack,
            mailbox=mailbox,
            queueing=QueueNotices(mailbox, workspaces_of(slack, redis), for_s=0, again_s=60),
        )
        await mailbox.aclose()


async def test_who_waits_behind_a_full_pool_sees_their_number_once(redis_client: Redis) -> None:
    async with scene(redis_client) as on:
        for _ in range(3):
            await on.asked()
        await on.queueing.sweep()
        await on.queueing.sweep()
        assert shown(on.slack) == [f"is busy: you are number {number} in the queue…" for number in (1, 2, 3)]


async def test_the_number_makes_way_for_the_turn(redis_client: Redis) -> None:
    async with scene(redis_client) as on:
        incoming = await on.asked()
        await on.queueing.sweep()
        (claimed,) = await on.mailbox.claim("w", 1)
        async with WorkingStatus(on.slack.delivery, incoming.thread, AnswerKey(question_ts=incoming.ts)).updating():
            await on.slack.server.wait_for(lambda: shown(on.slack)[-1] == "is thinking…")
        assert await on.mailbox.finish(claimed, "ok")
        await on.queueing.sweep()
        assert on.slack.server.workspace.threads.status_payloads() == []


@pytest.mark.parametrize("channel", ["C0GENERAL", CHAT])
async def test_message_behind_a_running_turn_says_that_it_waits_also_after_a_restart(
    redis_client: Redis, channel: str
) -> None:
    async with scene(redis_client) as on:
        first = await on.asked(channel=channel)
        await on.mailbox.claim("a worker that dies with all it knows", 1)
        await on.stored(first.thread, f"{float(first.ts) + 1:.6f}")
        await on.queueing.sweep()
        assert shown(on.slack) == [BEHIND]


async def test_word_that_comes_too_late_is_taken_back(redis_client: Redis) -> None:
    async with scene(redis_client) as on:
        await on.asked()
        (waiting,) = await on.mailbox.list_waiting(for_s=0, again_s=1, limit=1)
        on.slack.server.faults.hold("assistant.threads.setStatus")
        async with asyncio.TaskGroup() as group:
            group.create_task(on.queueing.notify(waiting, Incoming.from_json(waiting.body)))
            await on.slack.server.wait_for(lambda: on.slack.made("assistant.threads.setStatus"))
            (claimed,) = await on.mailbox.claim("w", 1)
            assert await on.mailbox.finish(claimed, "ok")
            on.slack.server.faults.release()
        assert shown(on.slack) == ["is busy: you are number 1 in the queue…"]
        assert cleared(on.slack), "nobody but who told it clears it"
        await on.queueing.notify(waiting, Incoming.from_json(waiting.body))
        assert len(shown(on.slack)) == 1, "what is answered is not told"


async def test_what_is_no_question_is_not_told(redis_client: Redis) -> None:
    async with scene(redis_client) as on:
        place, ts = on.slack.ask()
        incoming = Incoming(kind="delete", thread=place, user="U0YOU", ts=ts, addressed="mention")
        await on.mailbox.enqueue(str(place), incoming.to_json(), event_ids=["a"])
        await on.mailbox.enqueue("T1:C1:1.0", "no letter", event_ids=["b"])
        await on.stored(ThreadKey(team="TELSEWHERE", channel="C1", thread_ts="1.0"), "1.0")
        await on.queueing.sweep()
        assert shown(on.slack) == []


async def test_slack_that_is_away_holds_nobody_up(redis_client: Redis) -> None:
    async with scene(redis_client) as on:
        await on.asked()
        await on.asked()
        on.slack.server.faults.fail("assistant.threads.setStatus", "internal_error", times=1)
        await on.queueing.sweep()
        assert "is busy: you are number 2 in the queue…" in shown(on.slack)
