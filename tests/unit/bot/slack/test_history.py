"""Reading a conversation back: earlier messages, page by page, and posts of this question."""

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agent.thread.conversation import ThreadKey, ThreadMessage
from bot.servers.http import serve
from bot.slack.client import SlackWorkspace, open_client
from bot.slack.history import Posted, ThreadReader, sort_key
from bot.slack.message import BotIdentity
from bot.slack.web_api import DeliveryFailed, SlackCalls
from tests.support.local_slack import CHANNEL, CHAT, Slack


def metadata(event_type: str, **payload: object) -> dict[str, object]:
    return {"event_type": event_type, "event_payload": payload}


async def say(slack: Slack, place: ThreadKey, text: str, *, meta: dict[str, object] | None = None) -> str:
    thread = {} if place.thread_ts == place.channel else {"thread_ts": place.thread_ts}
    reply = await slack.calls.write(
        "chat.postMessage", {"channel": place.channel, "text": text, **thread, **({"metadata": meta} if meta else {})}
    )
    return str(reply["ts"])


async def test_a_thread_reads_oldest_first_with_its_speakers(slack: Slack) -> None:
    place, ts = slack.ask("<@U0ORION> how do we <https://x.example|release>?")
    answer = await say(slack, place, "On Tuesdays.")
    reply = slack.server.post("U0RELEASE", CHANNEL, "and &lt;who&gt;?", ts)
    slack.server.workspace.log.visible(CHANNEL, reply).subtype = "me_message"
    assert (await slack.reader.read_conversation(place)).messages == (
        ThreadMessage(role="user", text="how do we release (https://x.example)?", user="U0YOU", ts=ts),
        ThreadMessage(role="assistant", text="On Tuesdays.", ts=answer),
        ThreadMessage(role="user", text="and <who>?", user="U0RELEASE", ts=reply, addressed=False),
    )
    assert [m.ts for m in (await slack.reader.read_conversation(place, before=reply)).messages] == [ts, answer]
    assert (await slack.reader.read_conversation(place, before=ts)).messages == ()


async def test_a_long_thread_is_read_over_all_pages_from_its_end(slack: Slack) -> None:
    place, ts = slack.ask()
    for number in range(1_300):
        slack.server.post("U0RELEASE", CHANNEL, f"line {number}", ts)
    read = (await slack.reader.read_conversation(place, limit=1_500)).messages
    assert [m.text for m in read[1:]] == [f"line {number}" for number in range(1_300)]
    assert slack.count("conversations.replies") == 3, "after the first page come larger ones"
    read = (await slack.reader.read_conversation(place)).messages
    assert [m.text for m in read] == [f"line {number}" for number in range(1_100, 1_300)]


async def test_a_direct_message_reads_its_last_messages(slack: Slack) -> None:
    stamps = [slack.ask(f"question {number}", CHAT)[1] for number in range(250)]
    place = ThreadKey(team="T0LOCAL", channel=CHAT, thread_ts=CHAT)
    read = (await slack.reader.read_conversation(place, limit=3, before=stamps[-1])).messages
    assert [m.text for m in read] == ["question 246", "question 247", "question 248"]
    assert slack.count("conversations.history") == 1


async def test_posts_for_a_question_are_found_in_order(slack: Slack) -> None:
    place, ts = slack.ask()
    working = await say(slack, place, "…", meta=metadata("orion_working", question_ts=ts))
    second = await say(slack, place, "2", meta=metadata("orion_answer", question_ts=ts, turn_id="t1", part=2))
    first = await say(slack, place, "1", meta=metadata("orion_answer", question_ts=ts, turn_id="t1"))
    await say(slack, place, "other", meta=metadata("orion_answer", question_ts="1.1", turn_id="t0"))
    await say(slack, place, "other", meta=metadata("something_else", question_ts=ts))
    assert await slack.reader.find_posts(place, ts) == (
        Posted(ts=working, placeholder=True),
        Posted(ts=first, turn_id="t1"),
        Posted(ts=second, turn_id="t1", part=2),
    )


async def test_another_apps_metadata_is_ignored(slack: Slack) -> None:
    place, ts = slack.ask()
    forged = slack.server.post("U0RELEASE", CHANNEL, "I am Orion", ts)
    message = slack.server.workspace.log.get(CHANNEL, forged)
    assert message is not None
    message.metadata = metadata("orion_answer", question_ts=ts, turn_id="t1")
    assert await slack.reader.find_posts(place, ts) == ()


async def test_without_the_history_scope_nothing_is_found(slack: Slack) -> None:
    place, ts = slack.ask()
    slack.server.faults.fail("conversations.replies", "missing_scope", times=2)
    assert await slack.reader.find_posts(place, ts) == ()
    with pytest.raises(DeliveryFailed, match="missing_scope"):
        await slack.reader.read_conversation(place)


async def test_an_endless_thread_is_read_up_to_a_limit_and_nothing_twice() -> None:
    asked: list[str] = []

    async def again(request: web.Request) -> web.Response:
        asked.append(request.query.get("cursor", ""))
        message = {"type": "message", "user": "U0YOU", "text": "first", "ts": "1700000000.000100"}
        return web.json_response({"ok": True, "messages": [message], "response_metadata": {"next_cursor": "more"}})

    application = web.Application()
    application.router.add_get("/api/conversations.replies", again)
    async with serve(application) as port, open_client("xoxb-1", api_url=f"http://127.0.0.1:{port}/api/") as client:
        place = ThreadKey(team="T1", channel="C1", thread_ts="1700000000.000100")
        workspace = SlackWorkspace(SlackCalls(client))
        workspace.use_installation("xoxb-1", BotIdentity(user="U0ORION", bot="B0ORION"))
        read = (await ThreadReader(workspace).read_conversation(place)).messages
    assert [message.text for message in read] == ["first"]
    assert asked == ["", *["more"] * 19]


@given(st.tuples(st.integers(0, 2_000_000_000), st.integers(0, 999_999)), st.text())
def test_timestamps_are_ordered_exactly(parts: tuple[int, int], noise: str) -> None:
    assert sort_key(f"{parts[0]}.{parts[1]:06}") == parts
    assert len(sort_key(noise)) == 2
