"""The right to stop a turn, and the reply to a stop that finds none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import pytest
from redis.asyncio import Redis

from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey
from agent.thread.store import ThreadStore
from bot.gates.access import cached_refusal, visit_of
from bot.gates.stop import cancel_thread, receive_stop
from bot.local.model.roster import Member
from bot.queue.claim import Cancellation
from bot.queue.queue import Mailbox
from bot.slack.directory import Person
from bot.slack.message import Access, Incoming, Kind
from bot.stores.stores import Facts, Stores, read_facts
from tests.support.gates import ASKS
from tests.support.openai_server import RESPOND, says
from tests.support.orion_running import CHANNEL, DIRECT, GUEST, MENTION, Setting, text_of, whispers
from tests.support.scripted_orion import DRAFTS, LIMIT, with_model, writing
from tests.support.waiting import wait_until

PLACE = ThreadKey(team="T1", channel="C1", thread_ts="1700000000.000100")
STOP = Incoming(kind="stop", thread=PLACE, user="U1", ts="1700000009.000000", addressed="follow_up", vouched=True)
NOTHING = say("nothing_runs", None)


@asynccontextmanager
async def hanging(tmp_path: Path, redis_url: str) -> AsyncIterator[tuple[Setting, str, asyncio.Event]]:
    """A turn of a member that waits for the model; a guest is in the channel too."""
    async with writing(tmp_path, redis_url) as (setting, ts, gate):
        roster = setting.workspace.workspace.roster
        roster.members[GUEST] = Member(id=GUEST, name="Guest", is_restricted=True)
        roster.channels[CHANNEL].members.add(GUEST)
        yield setting, ts, gate


async def over(setting: Setting) -> bool:
    """Return True if every event was accepted and at most the one question waits or runs."""
    events = setting.workspace.workspace.deliveries.log
    stored = (await setting.orion.mailbox.depth()).messages
    return all(event.acknowledged for event in events) and stored <= 1 and setting.orion.worker.in_flight <= 1


async def test_a_guest_cannot_stop_a_members_turn(tmp_path: Path, redis_url: str) -> None:
    async with hanging(tmp_path, redis_url) as (setting, ts, gate):
        setting.ask("stop", thread=ts, user=GUEST)
        setting.ask(f"{MENTION} stop", thread=ts, user=GUEST)
        await setting.workspace.wait_for(lambda: whispers(setting))
        await wait_until(lambda: over(setting), "both stops are done with")
        setting.ask("stop", thread=ts, user=GUEST)  # the person is known after that
        await wait_until(lambda: over(setting), "the third one too")
        gate.set()
        assert "600 requests" in text_of(await setting.answer_to(ts))
        assert whispers(setting) == [(GUEST, say("guest", None))]


async def test_another_member_can_stop_it_after_a_lookup_in_slack(tmp_path: Path, redis_url: str) -> None:
    async with hanging(tmp_path, redis_url) as (setting, ts, _):
        setting.ask("stop", thread=ts, user="U0ONCALL")
        assert text_of(await setting.answer_to(ts)).startswith("Stopped")
        assert whispers(setting) == []


async def test_a_stop_without_a_turn_is_answered_only_to_its_author(tmp_path: Path, redis_url: str) -> None:
    async with hanging(tmp_path, redis_url) as (setting, ts, gate):
        gate.set()
        await setting.answer_to(ts)
        await wait_until(lambda: setting.orion.worker.in_flight == 0, "the turn is over")
        setting.ask("stop", thread=ts)
        await setting.workspace.wait_for(lambda: whispers(setting))
        setting.ask("stop", channel=DIRECT)
        await setting.workspace.wait_for(lambda: whispers(setting, DIRECT))
        assert [text for _, text in whispers(setting) + whispers(setting, DIRECT)] == [NOTHING, NOTHING]
        setting.ask(f"{MENTION} mute", thread=ts)
        await wait_until(lambda: over(setting), "the thread is muted")
        setting.ask("stop", thread=ts)  # said to the others
        await wait_until(lambda: over(setting), "the stop is done with")
        assert len(whispers(setting)) == 1


@pytest.mark.parametrize("channel", [CHANNEL, DIRECT])
async def test_slacks_stop_button_shows_while_a_turn_runs_and_stops_it(
    channel: str, tmp_path: Path, redis_url: str
) -> None:
    async with writing(tmp_path, redis_url, channel) as (setting, ts, _):
        workspace = setting.workspace.workspace
        shown_at = (channel, ts)  # where the status is, and so the button
        await setting.workspace.wait_for(lambda: session(setting, shown_at) == "processing")
        assert shown_at in workspace.threads.statuses
        setting.workspace.stop_session(channel, ts)
        assert text_of(await setting.answer_to(ts, channel=channel)).startswith("Stopped")
        await setting.workspace.wait_for(lambda: session(setting, shown_at) == "active")
        assert whispers(setting, channel) == []


async def test_stop_as_a_new_direct_message_stops_the_previous_thread(tmp_path: Path, redis_url: str) -> None:
    async with writing(tmp_path, redis_url, DIRECT) as (setting, ts, _):
        await setting.workspace.wait_for(lambda: session(setting, (DIRECT, ts)) == "processing")
        setting.ask("stop", channel=DIRECT)
        assert text_of(await setting.answer_to(ts, channel=DIRECT)).startswith("Stopped")


async def test_a_click_removes_a_stop_button_that_a_killed_worker_left(tmp_path: Path, redis_url: str) -> None:
    async with hanging(tmp_path, redis_url) as (setting, ts, gate):
        gate.set()
        await setting.answer_to(ts)
        await wait_until(lambda: setting.orion.worker.in_flight == 0, "the turn is over")
        threads = setting.workspace.workspace.threads
        threads.set_session((CHANNEL, ts), "processing", "")  # as a worker that was killed leaves it
        setting.workspace.stop_session(CHANNEL, ts)
        await setting.workspace.wait_for(lambda: session(setting, (CHANNEL, ts)) == "active")
        await setting.workspace.wait_for(lambda: whispers(setting))


async def test_stop_also_cancels_a_clarifying_question(tmp_path: Path, redis_url: str) -> None:
    drafts = repeat(says(DRAFTS["good"]))
    async with with_model(tmp_path, redis_url, decisions=[ASKS, RESPOND, RESPOND], drafts=drafts) as (setting, _):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        await setting.answer_to(ts)
        await wait_until(lambda: setting.orion.worker.in_flight == 0, "Orion asked back")
        stop = setting.ask("stop", thread=ts)
        assert text_of(await setting.answer_to(stop, thread=ts)).startswith("Stopped")
        again = setting.ask(f"{LIMIT} Please.", thread=ts)
        await setting.answer_to(again, thread=ts)
        await wait_until(lambda: setting.orion.worker.in_flight == 0, "the turn is over")
        state = await ThreadStore(setting.orion.redis).load(ThreadKey(team="T0LOCAL", channel=CHANNEL, thread_ts=ts))
        assert (state.answers, state.mission) == ({}, f"{LIMIT} Please."), "it is no answer to what was let be"
        assert whispers(setting) == []


def session(setting: Setting, thread: tuple[str, str]) -> str:
    found = setting.workspace.workspace.threads.sessions.get(thread)
    return found.status if found else ""


@pytest.mark.parametrize(
    ("access", "more", "known", "admitted"),
    [
        (Access(), {}, Person(), True),
        (Access(), {}, None, False),
        (Access(), {}, Person(guest=True), False),
        (Access(allow_guests=True), {}, Person(guest=True), True),
        (Access(), {}, Person(external=True), False),
        (Access(allow_users=frozenset({"U1"})), {}, None, True),
        (Access(), {"vouched": False}, Person(), False),
        (Access(), {"vouched": False, "thread": replace(PLACE, channel="D1")}, Person(), True),
        (Access(allow_external=True, allow_guests=True), {"vouched": False}, None, True),
    ],
)
def test_known_people_are_admitted_without_asking_slack(
    access: Access, more: dict[str, object], known: Person | None, *, admitted: bool
) -> None:
    incoming = replace(STOP, **more)  # type: ignore[arg-type]  # of the rows above
    assert (cached_refusal(visit_of(incoming, Facts(person=known)), access) == "") is admitted


@pytest.fixture
async def stores(redis_client: Redis) -> AsyncIterator[Stores]:
    mailbox = Mailbox(redis_client)
    yield Stores(redis_client, mailbox)
    await mailbox.aclose()


async def store(stores: Stores, *kinds: Kind, user: str = "U2", after: bool = False) -> None:
    for number, kind in enumerate(kinds, 1):
        ts = f"17000000{'9' if after else '0'}{number}.000000"
        incoming = Incoming(kind=kind, thread=PLACE, user=user, ts=ts, addressed="mention", text="q")
        await stores.mailbox.enqueue(str(PLACE), incoming.to_json(), event_ids=[ts])


class Cancelled(list[Cancellation]):
    """The cancellations that were sent."""

    async def __call__(self, wish: Cancellation) -> None:
        assert wish.thread == str(PLACE)
        self.append(wish)


async def test_late_stop_takes_back_nothing_that_was_asked_after_it(stores: Stores) -> None:
    cancelled = Cancelled()
    await store(stores, "question", after=True)
    assert not await cancel_thread(STOP, stores, cancelled)
    assert cancelled == []


async def test_waiting_messages_are_withdrawn_and_a_deletion_continues(stores: Stores) -> None:
    cancelled = Cancelled()
    await store(stores, "delete", "question")
    assert await cancel_thread(STOP, stores, cancelled)
    assert cancelled == [], "the deletion at its head is no turn"
    messages = [Incoming.from_json(one.body) for one in await stores.mailbox.list_messages(str(PLACE))]
    assert all([(await read_facts(stores, incoming, "t")).stop_ts for incoming in messages])


@pytest.mark.parametrize(("asker", "obeyed"), [("U1", 1), ("U2", 0)])
async def test_an_unknown_person_stops_their_own_turn_at_once_and_others_after_the_access_check(
    stores: Stores, redis_client: Redis, asker: str, obeyed: int
) -> None:
    cancelled = Cancelled()
    await store(stores, "question", user=asker)
    for _ in range(2):
        await receive_stop(STOP, stores, cancelled, Access())
    assert [wish.reason for wish in cancelled] == ["stopped"] * obeyed
    assert len(await stores.mailbox.list_messages(f"{PLACE}:stop")) == 1 - obeyed
    assert (await ThreadStore(redis_client).load(PLACE)).history == ()
