"""The way of a message, end to end, over both modes: a person writes in the workspace, Orion answers there."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from agent.texts.catalogue import say
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, Setting, answers, running, settings_in, text_of
from tests.support.scripted_orion import LIMIT
from tests.support.waiting import wait_until


@pytest.fixture(params=["socket", "http"])
async def setting(request: pytest.FixtureRequest, tmp_path: Path, redis_url: str) -> AsyncIterator[Setting]:
    async with running(settings_in(tmp_path, redis_url), mode=request.param) as started:
        yield started


async def test_a_mention_is_answered_in_the_thread_with_its_source(setting: Setting) -> None:
    ts = setting.ask(f"{MENTION} {LIMIT}")
    answer = await setting.answer_to(ts)
    assert answer["thread_ts"] == ts
    assert "600 requests a minute" in text_of(answer)
    assert "/docs/api/limits-and-errors.md" in text_of(answer)
    assert answer["metadata"]["event_payload"]["verified"] is True


async def test_a_follow_up_without_mention_is_understood(setting: Setting) -> None:
    ts = setting.ask(f"{MENTION} How quickly must the primary acknowledge a page?")
    await setting.answer_to(ts)
    follow_up = setting.ask("And the secondary?", thread=ts)
    answer = await setting.answer_to(follow_up, thread=ts)
    assert "on-call.md" in text_of(answer)


async def test_a_direct_message_is_answered_in_its_own_thread(setting: Setting) -> None:
    ts = setting.ask(f"<@U0ONCALL> asks: {LIMIT}", channel=DIRECT)
    answer = await setting.answer_to(ts, channel=DIRECT)
    assert answer["thread_ts"] == ts
    assert "600" in text_of(answer)
    threads = setting.workspace.workspace.threads
    await setting.workspace.wait_for(lambda: threads.sessions[(DIRECT, ts)].status == "active")
    assert {place: session.title for place, session in threads.sessions.items()} == {
        (DIRECT, ts): f"@On-call engineer asks: {LIMIT}"
    }


async def test_a_redelivered_event_and_its_duplicate_give_one_answer(setting: Setting) -> None:
    setting.workspace.faults.duplicate_events = 4
    ts = setting.ask(f"{MENTION} {LIMIT}")
    await setting.answer_to(ts)
    later = setting.ask("What does error FH-2002 mean?", thread=ts)
    await setting.answer_to(later, thread=ts)
    assert len(answers(setting.workspace, ts, ts)) == 1
    assert len(answers(setting.workspace, later, ts)) == 1


async def test_an_edited_question_gets_a_new_answer_in_place(setting: Setting) -> None:
    ts = setting.ask(f"{MENTION} {LIMIT}")
    first = await setting.answer_to(ts)
    setting.workspace.edit(CHANNEL, ts, f"{MENTION} What does error FH-2002 mean?")
    await setting.workspace.wait_for(lambda: "changed meanwhile" in text_of(answers(setting.workspace, ts, ts)[0]))
    thread_mode = answers(setting.workspace, ts, ts)
    assert [message["ts"] for message in thread_mode] == [first["ts"]]


async def forgotten(setting: Setting, redis: Redis) -> None:
    """Redis loses everything while nothing runs."""
    await wait_until(lambda: setting.orion.worker.in_flight == 0, "all turns have ended")
    await redis.flushall()


async def test_lost_redis_does_not_end_a_conversation(setting: Setting, redis_client: Redis) -> None:
    ts = setting.ask(f"{MENTION} How quickly must the primary acknowledge a page?")
    await setting.answer_to(ts)
    await forgotten(setting, redis_client)
    follow_up = setting.ask("And the secondary?", thread=ts)
    answer = await setting.answer_to(follow_up, thread=ts)
    assert "on-call.md" in text_of(answer)


async def test_after_a_lost_redis_people_and_muted_threads_are_not_disturbed(
    setting: Setting, redis_client: Redis
) -> None:
    among_people = setting.ask("How do releases work?")
    muted = setting.ask(f"{MENTION} {LIMIT}")
    await setting.answer_to(muted)
    mute = setting.ask("mute", thread=muted)
    await setting.answer_to(mute, thread=muted)
    await forgotten(setting, redis_client)
    before = looks(setting)
    ignored = [(setting.ask(LIMIT, thread=root), root) for root in (among_people, muted)]

    async def are_known() -> bool:
        found = [*await redis_client.keys("orion:stranger:*"), *await redis_client.keys("orion:standing:*")]
        return len(found) == len(ignored)

    await wait_until(are_known, "both threads are known again")
    ignored += [(setting.ask(LIMIT, thread=root), root) for root in (among_people, muted)]
    again = setting.ask(f"{MENTION} {LIMIT}", thread=muted)
    await setting.answer_to(again, thread=muted)
    assert [found for ts, root in ignored if (found := answers(setting.workspace, ts, root))] == []
    assert looks(setting) - before <= 4, "one look a thread, what the mention reads, and whether it has files"


def looks(setting: Setting) -> int:
    """The number of times a thread was read in Slack."""
    return sum(call.method == "conversations.replies" for call in setting.workspace.calls)


async def test_the_status_is_shown_and_no_answer_is_unfurled(setting: Setting) -> None:
    root = setting.workspace.post("U0ONCALL", CHANNEL, "Who knows about keys?")
    setting.workspace.faults.delay("conversations.replies", 0.5)  # what is answered at once needs no status
    ts = setting.ask(f"{MENTION} {LIMIT}", thread=root)
    await setting.answer_to(ts, thread=root)
    calls = setting.workspace.calls
    assert any(call.method == "assistant.threads.setStatus" for call in calls)
    posts = [call for call in calls if call.method == "chat.postMessage"]
    assert posts
    for post in posts:
        assert post.arguments["unfurl_links"] in (False, "false", "0")
        assert post.arguments["unfurl_media"] in (False, "false", "0")


async def test_muted_direct_message_says_how_to_unmute(setting: Setting) -> None:
    root = setting.ask(LIMIT, channel=DIRECT)
    await setting.answer_to(root, channel=DIRECT)
    muted = await setting.answer_to(setting.ask("mute", channel=DIRECT, thread=root), thread=root, channel=DIRECT)
    assert "`unmute`" in text_of(muted)
    ts = setting.ask(LIMIT, channel=DIRECT, thread=root)
    setting.workspace.edit(DIRECT, ts, f"{LIMIT} Please.")
    events = setting.workspace.workspace.deliveries.log
    await wait_until(lambda: all(event.acknowledged for event in events), "both have arrived")

    async def quiet() -> bool:
        return (await setting.orion.mailbox.depth()).messages == 0

    await wait_until(quiet, "both are done with")
    assert answers(setting.workspace, ts, root, DIRECT) == []
    back = await setting.answer_to(setting.ask("unmute", channel=DIRECT, thread=root), thread=root, channel=DIRECT)
    assert text_of(back).startswith(say("unmuted", None))
    again = setting.ask(LIMIT, channel=DIRECT, thread=root)
    assert "600" in text_of(await setting.answer_to(again, thread=root, channel=DIRECT))
