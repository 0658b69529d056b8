"""A thread that Redis lost is looked up in Slack, by the worker and once (A2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from redis.asyncio import Redis

from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey
from agent.thread.store import Fence
from bot.delivery.delivery import AnswerKey
from bot.gates.recall import AGAIN_S, Recalling
from bot.queue.lease import Lease, now
from bot.queue.queue import Claimed
from bot.queue.worker import OK, Ending, later
from bot.slack.message import Incoming, ThreadMode
from bot.stores.thread_mode import ThreadModes
from tests.support.local_slack import Slack, local_slack
from tests.unit.bot.delivery.test_delivery import answer

ENDED = Ending(verb="ok", reason="it was answered")
AFTERWARDS = 9e9


@dataclass(slots=True)
class Answerer:
    """Whoever would answer; remembers what it got."""

    answered: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    async def handle(self, claimed: Claimed, _: Lease) -> Ending:
        self.answered.append(claimed.body)
        return ENDED

    async def tell_dead(self, claimed: Claimed, _: Lease, reason: str) -> None:
        self.told.append(f"{reason}: {claimed.body}")


def letter_in(place: ThreadKey, *, unproven: bool = True) -> Incoming:
    return Incoming(
        kind="question", thread=place, user="U0YOU", ts="8000000000.0", addressed="follow_up", text="And?",
        unproven=unproven,
    )  # fmt: skip


def claimed_with(body: str) -> Claimed:
    fence = Fence(key="k", token="1")
    return Claimed(
        thread="t", id="1", body=body, tries=1, enqueued_at=0, leased_until=now() + 9, exhausted=False, fence=fence
    )


LEASE = Lease(now() + 600)


def recalling_of(slack: Slack, redis: Redis, answerer: Answerer) -> tuple[Recalling, ThreadModes]:
    thread_modes = ThreadModes(redis, clock=lambda: AFTERWARDS)
    return Recalling(answerer.handle, answerer.tell_dead, thread_modes=thread_modes, reader=slack.reader), thread_modes


@pytest.mark.parametrize(
    ("own", "thread_mode", "ending"),
    [
        (("On Tuesdays.",), "engaged", ENDED),
        (("On Tuesdays.", say("muted", "de")), "muted", OK),
        ((say("muted", "de"), "On Tuesdays."), "engaged", ENDED),
        ((), "unknown", OK),
    ],
)
async def test_a2_what_orion_last_said_in_the_thread_decides(
    own: Sequence[str], thread_mode: ThreadMode, ending: Ending, redis_client: Redis
) -> None:
    async with local_slack() as slack:
        place, ts = slack.ask()
        for text in own:
            answer_key = AnswerKey(question_ts=ts, may_exist=False)
            await slack.delivery.answer(place, replace(answer(text), sources=()), answer_key)
        answerer = Answerer()
        recalling, thread_modes = recalling_of(slack, redis_client, answerer)
        claimed = claimed_with(letter_in(place).to_json())
        assert await recalling.handle(claimed, LEASE) == ending
        assert await thread_modes.of(place) == thread_mode
        looks = slack.made("conversations.replies")
        assert await recalling.handle(claimed, LEASE) == ending
        assert slack.made("conversations.replies") == looks, "a letter that waits for an admin asks Slack once"
        assert len(answerer.answered) == (2 if ending == ENDED else 0)


async def test_a2_a_mention_that_came_later_is_no_proof_for_what_people_said_before(redis_client: Redis) -> None:
    async with local_slack() as slack:
        place, _ = slack.ask()
        answerer = Answerer()
        recalling, thread_modes = recalling_of(slack, redis_client, answerer)
        await thread_modes.engage(place)
        assert await recalling.handle(claimed_with(letter_in(place).to_json()), LEASE) == OK
        assert answerer.answered == []
        assert await thread_modes.of(place) == "engaged"


async def test_a2_a_letter_with_proof_and_an_unreadable_one_go_on_unasked(redis_client: Redis) -> None:
    async with local_slack() as slack:
        place, _ = slack.ask()
        answerer = Answerer()
        recalling, _ = recalling_of(slack, redis_client, answerer)
        for body in (letter_in(place, unproven=False).to_json(), "no letter"):
            assert await recalling.handle(claimed_with(body), LEASE) == ENDED
            await recalling.tell_dead(claimed_with(body), LEASE, "gone")
        assert (len(answerer.answered), len(answerer.told)) == (2, 2)
        assert slack.made("conversations.replies") == 0


async def test_a2_a_slack_that_is_away_is_waited_for_and_a_thread_that_is_gone_is_not(redis_client: Redis) -> None:
    async with local_slack(patience_s=0.05) as slack:
        place, _ = slack.ask()
        recalling, _ = recalling_of(slack, redis_client, Answerer())
        claimed = claimed_with(letter_in(place).to_json())
        slack.server.faults.fail("conversations.replies", "internal_error", times=20)
        assert await recalling.handle(claimed, LEASE) == later(AGAIN_S)
        gone = claimed_with(letter_in(replace(place, thread_ts="1.000001")).to_json())
        slack.server.faults.clear()
        assert await recalling.handle(gone, LEASE) == OK


async def test_a2_nobody_is_told_of_a_letter_that_was_perhaps_not_for_orion(redis_client: Redis) -> None:
    async with local_slack() as slack:
        place, _ = slack.ask()
        answerer = Answerer()
        recalling, thread_modes = recalling_of(slack, redis_client, answerer)
        claimed = claimed_with(letter_in(place).to_json())
        await recalling.tell_dead(claimed, LEASE, "crashed")
        assert answerer.told == []
        await thread_modes.engage(place)
        await recalling.tell_dead(claimed, LEASE, "crashed")
        assert len(answerer.told) == 1
