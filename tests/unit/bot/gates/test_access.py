"""Access in a whole workspace: guests, strangers, budgets and pauses, and the notice that each gets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from agent.texts.catalogue import help_text, say
from agent.thread.conversation import ThreadKey
from agent.thread.state import PendingQuestion, ThreadState
from agent.thread.store import ThreadStore
from bot.gates.access import MAX_LOOKUP_WAIT_S
from bot.local.model.roster import BOT_USER, TEAM_ID, VISITOR, Channel, Member
from bot.queue.claim import OK, Lease
from bot.slack.directory import ACCESS_TTL_S
from bot.slack.message import Access, Incoming
from bot.stores.limits import Limits, Pausing
from bot.stores.stores import Cancellations, ThreadModes
from tests.support.gates import GateScene, gates
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import (
    CHANNEL,
    DIRECT,
    GUEST,
    MENTION,
    STRANGER,
    Setting,
    answers,
    idle,
    posts,
    running,
    settings_in,
    text_of,
    whispers,
)
from tests.support.waiting import wait_until

LIMIT = "How many requests per minute may an API key make?"
DRAFT = says("<answer>An API key may make 600 requests a minute [1].</answer>")


@asynccontextmanager
async def orion(tmp_path: Path, redis_url: str, **more: Any) -> AsyncIterator[Setting]:
    async with running(settings_in(tmp_path, redis_url, **more)) as started:
        roster = started.workspace.workspace.roster
        roster.members[GUEST] = Member(id=GUEST, name="Guest", is_restricted=True, locale="de-DE")
        roster.members[STRANGER] = Member(id=STRANGER, name="Stranger", team="T0OTHER")
        for channel in (CHANNEL, "C0GENERAL"):
            roster.channels[channel].members |= {GUEST, STRANGER}
        yield started


@pytest.fixture
async def setting(tmp_path: Path, redis_url: str) -> AsyncIterator[Setting]:
    async with orion(tmp_path, redis_url) as started:
        yield started


async def test_guests_and_strangers_get_one_notice_and_no_answer(setting: Setting) -> None:
    asked = [setting.ask(f"{MENTION} {LIMIT}", user=user) for user in (GUEST, STRANGER, GUEST)]
    aside = setting.ask("The handbook says so", thread=asked[0])
    allowed = setting.ask(f"{MENTION} {LIMIT}")
    await setting.answer_to(allowed)
    await wait_until(lambda: len(whispers(setting)) >= 2, "both were told")
    german = setting.ask(f"{MENTION} Wie viele Anfragen pro Minute darf ein Schlüssel stellen?", user=GUEST)
    await wait_until(lambda: idle(setting), "all letters are seen to")
    assert sorted(whispers(setting)) == [(GUEST, say("guest", None)), (STRANGER, say("external_person", None))]
    for ts in (*asked, aside, german):
        assert answers(setting.workspace, ts, asked[0] if ts == aside else ts) == []


async def test_a_guest_in_a_direct_message_is_refused_in_each_thread(at: GateScene) -> None:
    roster = at.slack.server.workspace.roster
    roster.members[GUEST] = Member(id=GUEST, name="Guest", is_restricted=True)
    roster.channels[DIRECT].members.add(GUEST)
    threads = [ThreadKey(team=TEAM_ID, channel=DIRECT, thread_ts=ts) for ts in ("1.0", "2.0", "2.0")]
    for ts, thread in enumerate(threads, 1):
        claimed, lease = await at.store(thread=thread, ts=f"{ts}.0", addressed="direct", user=GUEST)
        assert await at.flow.handle(claimed, lease) == OK
        await at.mailbox.finish(claimed, OK.verb)
    assert [one["text"] for one in at.slack.server.ephemerals(DIRECT)] == [say("guest", None)] * 2
    assert at.through == []


async def test_a_notice_that_failed_is_posted_once_with_the_next_message(at: GateScene) -> None:
    at.slack.server.workspace.roster.members[GUEST] = Member(id=GUEST, name="Guest", is_restricted=True)
    at.slack.server.faults.fail("chat.postEphemeral", "internal_error")
    for told in (0, 1, 1):
        assert await at.knock(user=GUEST, vouched=True) == OK
        assert len(at.slack.server.ephemerals("C0GENERAL")) == told


async def test_guests_and_strangers_are_answered_if_they_have_access(tmp_path: Path, redis_url: str) -> None:
    async with orion(tmp_path, redis_url, allow_guests=True, allow_users=frozenset({GUEST, STRANGER})) as setting:
        for user in (GUEST, STRANGER):
            await setting.answer_to(setting.ask(f"{MENTION} {LIMIT}", user=user))
        refused = setting.ask(f"{MENTION} {LIMIT}")
        await wait_until(lambda: whispers(setting), "the one who is not on the list is told")
        assert whispers(setting) == [(VISITOR, say("user_refused", None))]
        assert answers(setting.workspace, refused, refused) == []


async def test_a_shared_channel_is_refused_and_its_text_is_not_stored(redis_client: Redis, setting: Setting) -> None:
    shared = Channel(id="C0SHARED", name="shared", members={VISITOR, BOT_USER}, is_ext_shared=True)
    setting.workspace.workspace.roster.channels["C0SHARED"] = shared
    for _ in range(2):
        ts = setting.ask(f"{MENTION} zebra secrets", channel="C0SHARED")
    await wait_until(lambda: whispers(setting, "C0SHARED"), "the person is told")
    await wait_until(lambda: idle(setting), "all letters are seen to")
    assert whispers(setting, "C0SHARED") == [(VISITOR, say("external_channel", None))]
    assert answers(setting.workspace, ts, ts, "C0SHARED") == []
    assert [key async for key in redis_client.scan_iter() if "standing" in key] == []
    assert await redis_client.keys("*zebra*") == []


async def test_a_used_up_budget_is_reported_with_its_renewal_and_does_not_apply_to_admins(
    tmp_path: Path, redis_url: str
) -> None:
    async with ScriptedOpenAI(decisions=[RESPOND] * 3, drafts=[DRAFT] * 3) as server:
        more = {
            "openai_base_url": server.url,
            "model": "m",
            "daily_tokens_user": 200,
            "admins": frozenset({"U0ONCALL"}),
        }
        async with orion(tmp_path, redis_url, **more) as setting:
            first = await setting.answer_to(setting.ask(f"{MENTION} {LIMIT}"))
            assert "600" in text_of(first)
            refused = await setting.answer_to(setting.ask(f"{MENTION} Und wie viele Anfragen sind es pro Stunde?"))
            assert say("budget_user", "de") in text_of(refused)
            assert "00:00 UTC" in text_of(refused)
            for _ in range(2):
                await setting.answer_to(setting.ask(f"{MENTION} {LIMIT}", user="U0ONCALL"))
            assert server.phases().count("write") == 3


async def test_an_edit_beyond_the_budget_keeps_the_answer(tmp_path: Path, redis_url: str) -> None:
    async with ScriptedOpenAI(decisions=[RESPOND], drafts=[DRAFT]) as server:
        more = {"openai_base_url": server.url, "model": "m", "daily_tokens_channel": 200}
        async with orion(tmp_path, redis_url, **more) as setting:
            ts = setting.ask(f"{MENTION} {LIMIT}")
            await setting.answer_to(ts)
            setting.workspace.edit(CHANNEL, ts, f"{MENTION} What does error FH-2002 mean?")
            await wait_until(lambda: whispers(setting), "the person is told")
            assert say("budget_channel", None) in whispers(setting)[0][1]
            assert "600" in text_of(answers(setting.workspace, ts, ts)[0])


async def test_questions_during_a_pause_get_one_notice_and_are_answered_in_order_afterwards(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    pausing = Pausing(redis_client)
    await pausing.pause("new <index>")
    async with orion(tmp_path, redis_url) as setting:
        with capture_logs() as logs:
            root = setting.ask(f"{MENTION} {LIMIT}")
            (told,) = await setting.workspace.wait_for(lambda: own_posts(setting, CHANNEL, root))
        assert text_of(told).startswith(say("paused", None) + "\nnew &lt;index&gt;")
        assert told["metadata"]["event_type"] == "orion_notice", "it is no answer: that one is still to come"
        assert any((line["event"], line.get("because")) == ("question_waits", "paused") for line in logs)
        second = setting.ask("What does error FH-2002 mean?", thread=root)
        third = setting.ask("What does error FH-3001 mean?", thread=root)
        setting.ask(LIMIT, channel=DIRECT)
        await setting.workspace.wait_for(lambda: posts(setting.workspace, DIRECT))
        await pausing.resume()
        await wait_until(lambda: answers(setting.workspace, third, root), "the last question is answered", 30)
        notices, *answered = own_posts(setting, CHANNEL, root)
        assert text_of(notices) == text_of(told), "who looks sees the answer as something new, not as a changed notice"
        assert [m["metadata"]["event_payload"]["question_ts"] for m in answered] == [root, second, third]


def own_posts(setting: Setting, channel: str, thread: str | None = None) -> list[dict[str, Any]]:
    return [m for m in setting.workspace.messages(channel, thread) if m.get("bot_id")]


async def test_person_who_asks_through_an_app_is_answered_and_an_app_is_not(setting: Setting) -> None:
    setting.workspace.workspace.roster.members["U0OTHER"] = Member(id="U0OTHER", name="Other app", is_bot=True)
    by_app = setting.workspace.post_as_other_app(CHANNEL, f"{MENTION} {LIMIT}")
    by_person = setting.workspace.post_as_other_app(CHANNEL, f"{MENTION} {LIMIT}", user=VISITOR)
    await setting.answer_to(by_person)
    await wait_until(lambda: idle(setting), "all messages are seen to")
    assert (answers(setting.workspace, by_app, by_app), whispers(setting)) == ([], [])


async def test_an_access_check_without_a_reply_from_slack_makes_the_question_wait(at: GateScene) -> None:
    claimed, lease = await at.store(vouched=True)
    for _ in range(6):
        at.slack.server.faults.fail("users.info", "internal_error", times=1)
    ending = await at.flow.handle(claimed, lease)
    assert (ending.verb, at.through) == ("give_back", [])
    assert at.slack.server.ephemerals("C0GENERAL") == []
    waited = replace(claimed, enqueued_at=claimed.enqueued_at - 60)
    for _ in range(2):
        for _ in range(6):
            at.slack.server.faults.fail("users.info", "internal_error", times=1)
        assert (await at.flow.handle(waited, lease)).after_s == 15
    assert [one["text"] for one in at.slack.server.ephemerals("C0GENERAL")] == [say("checking", None)]
    given_up = await at.flow.handle(replace(claimed, enqueued_at=claimed.enqueued_at - MAX_LOOKUP_WAIT_S), lease)
    assert given_up.verb == "dead"
    at.slack.server.faults.clear()
    assert await at.flow.handle(claimed, lease) == OK
    assert len(at.through) == 1


@pytest.mark.parametrize(
    ("method", "vouched", "why"),
    [("users.info", True, "unknown_person"), ("conversations.info", False, "unknown_channel")],
)
async def test_an_access_check_that_slack_never_answers_refuses_with_a_remedy(
    method: str, why: Any, at: GateScene, *, vouched: bool
) -> None:
    at.slack.server.faults.fail(method, "missing_scope")
    assert await at.knock(vouched=vouched) == OK
    assert at.through == []
    assert [one["text"] for one in at.slack.server.ephemerals("C0GENERAL")] == [say(why, None)]


async def test_unknown_or_old_sharing_is_looked_up_unless_everyone_has_access(
    redis_client: Redis, at: GateScene
) -> None:
    at.slack.server.channel("C0GENERAL").is_ext_shared = True
    for waited_s, vouched in ((0, False), (ACCESS_TTL_S + 1, True)):
        claimed, lease = await at.store(vouched=vouched)
        assert await at.flow.handle(replace(claimed, enqueued_at=claimed.enqueued_at - waited_s), lease) == OK
        assert at.through == []
    async with gates(redis_client, Access(allow_external=True, allow_guests=True)) as openly:
        assert await openly.knock() == OK
        assert len(openly.through) == 1
        assert (openly.slack.count("users.info"), openly.slack.count("conversations.info")) == (0, 0)


@pytest.mark.parametrize("more", [{"kind": "delete", "user": STRANGER}, {"kind": "mute", "vouched": True}])
async def test_messages_that_cost_nothing_pass(redis_client: Redis, more: dict[str, Any], at: GateScene) -> None:
    await Pausing(redis_client).pause()
    assert await at.knock(**more) == OK
    assert len(at.through) == 1


async def test_a_guest_cannot_mute(redis_client: Redis, at: GateScene) -> None:
    at.slack.server.workspace.roster.members[GUEST] = Member(id=GUEST, name="Guest", is_ultra_restricted=True)
    thread_modes = ThreadModes(redis_client)
    place, ts = at.slack.ask()
    await thread_modes.set(place, "muted")
    assert await at.knock(thread=place, ts=ts, kind="mute", user=GUEST, vouched=True, addressed="follow_up") == OK
    assert await thread_modes.get(place) == "engaged"
    assert at.slack.server.ephemerals("C0GENERAL") == []


async def test_a_guest_refused_late_does_not_take_a_members_thread(redis_client: Redis, at: GateScene) -> None:
    at.slack.server.workspace.roster.members[GUEST] = Member(id=GUEST, name="Guest", is_restricted=True)
    thread_modes = ThreadModes(redis_client)
    place, ts = at.slack.ask()
    for number, user in enumerate((GUEST, VISITOR)):
        incoming = Incoming(
            kind="question", thread=place, user=user, ts=f"{ts[:-1]}{number}", addressed="mention", vouched=True
        )
        await at.mailbox.enqueue(str(place), incoming.to_json(), event_ids=[user])
        await thread_modes.set(place, "engaged")
    for _ in range(2):
        (claimed,) = await at.mailbox.claim("w", 1)
        assert await at.flow.handle(claimed, Lease(claimed.leased_until)) == OK
        await at.mailbox.finish(claimed, "ok")
    assert len(at.through) == 1
    assert await thread_modes.get(place) == "engaged"


async def test_a_budget_does_not_concern_people_who_talk_to_others(redis_client: Redis) -> None:
    """While Orion waits for one person's answer, what others say costs nothing and gets no answer, this one neither."""
    async with gates(redis_client, limits=Limits(channel=1)) as at:
        place, ts = at.slack.ask()
        pending = PendingQuestion(key="plan", text="Which?", user="U0ONCALL")
        await ThreadStore(redis_client).save(place, ThreadState(pending_question=pending))
        claimed, lease = await at.store(thread=place, ts=ts, vouched=True, addressed="follow_up")
        async with at.budgets.count_turn(Incoming.from_json(claimed.body)) as tokens:
            tokens.add(1)
        await Pausing(redis_client).pause()
        assert await at.flow.handle(claimed, lease) == OK, "nor is it kept waiting for an admin"
        assert at.through == []
        assert [m for m in at.slack.server.messages(place.channel, place.thread_ts) if m.get("bot_id")] == []
        assert (await ThreadStore(redis_client).load(place)).history[-1].ts == ts


async def test_a_refused_message_that_is_given_up_is_reported_to_no_one(at: GateScene) -> None:
    lease = (await at.store(refused="user_refused"))[1]
    roster = at.slack.server.workspace.roster
    roster.members[GUEST] = Member(id=GUEST, name="Guest", is_restricted=True)
    await at.people.find_person(TEAM_ID, GUEST)
    for more in ({"refused": "user_refused"}, {"user": GUEST}, {}):
        await at.flow.notify_given_up((await at.store(**more))[0], lease, str(more))
    assert at.dead == ["{}"]


@pytest.mark.parametrize("ending", ["paused", "deleted", "given up"])
async def test_taking_over_a_turn_releases_a_killed_workers_reservation(redis_client: Redis, ending: str) -> None:
    async with gates(redis_client, limits=Limits(channel=2_000)) as at:
        claimed, lease = await at.store(vouched=True)
        incoming = Incoming.from_json(claimed.body)
        async with at.budgets.reserve(incoming.turn_id, incoming):  # the worker is killed here
            async with at.budgets.reserve("other", incoming) as is_reserved:
                assert not is_reserved
            if ending == "paused":
                await Pausing(redis_client).pause()
            elif ending == "deleted":
                await Cancellations(redis_client).record_deletion(incoming)
            again = replace(claimed, tries=2)
            await (
                at.flow.notify_given_up(again, lease, "crashed")
                if ending == "given up"
                else at.flow.handle(again, lease)
            )
            async with at.budgets.reserve("other", incoming) as is_reserved:
                assert is_reserved


async def test_a_decided_answer_is_delivered_even_if_the_budget_is_spent(redis_client: Redis) -> None:
    async with gates(redis_client, limits=Limits(workspace=1)) as at:
        claimed, lease = await at.store(vouched=True)
        incoming = Incoming.from_json(claimed.body)
        async with at.budgets.count_turn(incoming) as tokens:
            tokens.add(1)
        await at.mailbox.mark(claimed, f"outbox:{incoming.turn_id}", "{}")
        assert await at.flow.handle(claimed, lease) == OK
        assert len(at.through) == 1


async def test_waiting_for_an_admin_is_not_an_outage(redis_client: Redis, at: GateScene) -> None:
    claimed, lease = await at.store(vouched=True)
    old = replace(claimed, enqueued_at=claimed.enqueued_at - 7_200)
    await Pausing(redis_client).resume()
    await at.flow.handle(old, lease)
    assert at.through[0].claimed.enqueued_at > claimed.enqueued_at - 60


async def test_a_withdrawn_question_is_not_told_about_pauses(redis_client: Redis, at: GateScene) -> None:
    await Pausing(redis_client).pause()
    claimed, lease = await at.store(vouched=True)
    await Cancellations(redis_client).record_deletion(Incoming.from_json(claimed.body))
    assert await at.flow.handle(claimed, lease) == OK
    assert len(at.through) == 1


async def test_help_and_mute_replies_use_the_threads_language_or_the_persons(setting: Setting) -> None:
    roster = setting.workspace.workspace.roster
    roster.members["U0RELEASE"] = Member(id="U0RELEASE", name="Release manager", locale="fr-FR")
    helped = await setting.answer_to(setting.ask(MENTION, user="U0RELEASE"))
    assert help_text("fr") in text_of(helped)
    german = setting.ask(f"{MENTION} Wie viele Anfragen pro Minute darf ein Schlüssel stellen?")
    await setting.answer_to(german)
    await wait_until(lambda: idle(setting), "the turn is over")
    muted = await setting.answer_to(setting.ask("mute", thread=german, user="U0RELEASE"), thread=german)
    assert say("muted", "de") in text_of(muted)
