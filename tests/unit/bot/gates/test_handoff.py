"""Ask a human: the button, what people get to see, once, and what is said where it fails."""

from dataclasses import replace
from pathlib import Path

import pytest
from redis.asyncio import Redis

from agent.texts.catalogue import say
from bot.delivery.blocks import HAND_OFF_ACTION
from bot.local.model.roster import VISITOR, Json, Member
from bot.slack.directory import SlackDirectory
from bot.slack.hand_off_place import HandOffPlace
from tests.support.fakes import THREAD
from tests.support.local_slack import Slack
from tests.support.orion_running import (
    CHANNEL,
    DIRECT,
    MENTION,
    Setting,
    answers,
    idle,
    running,
    settings_in,
    text_of,
    whispers,
)
from tests.support.waiting import wait_until

UNKNOWN = "Which brand of coffee machine stands <!channel> on the third floor of the Lisbon office & why?"
HELPERS = "C0ENGINEERING"


async def ask_in_vain(setting: Setting, text: str = UNKNOWN, channel: str = CHANNEL) -> Json:
    ts = setting.ask(f"{MENTION} {text}" if channel == CHANNEL else text, channel=channel)
    return await setting.answer_to(ts, channel=channel)


def button(message: Json) -> Json | None:
    elements = [e for block in message.get("blocks", []) for e in block.get("elements", [])]
    return next((e for e in elements if e.get("action_id") == HAND_OFF_ACTION), None)


def hand_offs(setting: Setting, channel: str = HELPERS, thread: str | None = None) -> list[Json]:
    found = setting.workspace.messages(channel, thread)
    return [m for m in found if ":handed:" in str(m.get("metadata"))]


def now(setting: Setting, message: Json, channel: str = CHANNEL) -> Json:
    thread = message.get("thread_ts")
    return next(m for m in setting.workspace.messages(channel, thread) if m["ts"] == message["ts"])


@pytest.mark.parametrize("handoff", [HELPERS, "#engineering"])
async def test_a_hand_off_posts_question_sources_and_a_link_once(tmp_path: Path, redis_url: str, handoff: str) -> None:
    async with running(settings_in(tmp_path, redis_url, handoff=handoff)) as setting:
        answer = await ask_in_vain(setting)
        offered = button(answer)
        assert offered is not None
        assert offered["text"]["text"] == say("ask_human", None)
        assert offered["confirm"]["text"]["text"] == say("hand_off_confirm", None, where="#engineering")
        for user in (VISITOR, "U0ONCALL", VISITOR):
            await setting.workspace.click(CHANNEL, answer["ts"], HAND_OFF_ACTION, user=user)
        await wait_until(lambda: "✓" in str(button(now(setting, answer))), "the button says so")
        await setting.workspace.click(CHANNEL, answer["ts"], HAND_OFF_ACTION)
        await wait_until(lambda: idle(setting), "all clicks are seen to")
        (post,) = hand_offs(setting)
        text = text_of(post)
        who = next(who for who in (VISITOR, "U0ONCALL") if f"<@{who}>" in text)  # clicks at once have no order
        assert say("hand_off_head", None, who=f"<@{who}>") in text
        assert "coffee machine stands @channel on the third floor of the Lisbon office &amp; why?" in text
        assert "/docs/" in text
        assert f"/archives/{CHANNEL}/p{answer['ts'].replace('.', '')}" in text
        assert "<!" not in text
        thread_mode = now(setting, answer)
        assert (thread_mode["text"], thread_mode["metadata"]) == (answer["text"], answer["metadata"])
        assert [b["type"] for b in thread_mode["blocks"]] == [b["type"] for b in answer["blocks"]]
        assert (who, say("handed_off", None, where=f"<#{HELPERS}>")) in whispers(setting)
        before = len(setting.workspace.messages(CHANNEL, answer["thread_ts"]))
        setting.ask("Is the machine on the third floor broken?", thread=answer["thread_ts"])
        await wait_until(lambda: idle(setting), "what people say there is taken in")
        assert len(setting.workspace.messages(CHANNEL, answer["thread_ts"])) == before + 1, "Orion keeps quiet"


async def test_a_click_by_a_person_who_has_become_a_guest_asks_no_one(tmp_path: Path, redis_url: str) -> None:
    async with running(settings_in(tmp_path, redis_url, handoff=HELPERS)) as setting:
        answer = await ask_in_vain(setting)
        setting.workspace.workspace.roster.members[VISITOR] = Member(id=VISITOR, name="Guest", is_restricted=True)
        await setting.workspace.click(CHANNEL, answer["ts"], HAND_OFF_ACTION)
        await wait_until(lambda: whispers(setting), "the click is refused")
        assert hand_offs(setting) == []


async def test_a_shortcut_by_a_person_who_became_a_guest_is_refused(tmp_path: Path, redis_url: str) -> None:
    async with running(settings_in(tmp_path, redis_url)) as setting:
        await ask_in_vain(setting)
        question = setting.workspace.post("U0ONCALL", CHANNEL, "How many requests per minute may one API key send?")
        setting.workspace.workspace.roster.members[VISITOR] = Member(id=VISITOR, name="Guest", is_restricted=True)
        await setting.workspace.use_shortcut(CHANNEL, question, "orion_ask", VISITOR)
        await wait_until(lambda: whispers(setting), "it is refused")
        assert answers(setting.workspace, question, question) == []


async def test_a_user_group_is_mentioned_in_the_thread_but_in_no_direct_message(tmp_path: Path, redis_url: str) -> None:
    async with running(settings_in(tmp_path, redis_url, handoff="S0HELPERS")) as setting:
        answer = await ask_in_vain(setting)
        await setting.workspace.click(CHANNEL, answer["ts"], HAND_OFF_ACTION)
        await wait_until(lambda: hand_offs(setting, CHANNEL, answer["thread_ts"]), "the group is called")
        (post,) = hand_offs(setting, CHANNEL, answer["thread_ts"])
        assert text_of(post).count("<!subteam^S0HELPERS>") == 2  # once for the eye, once for the notification
        assert "<!channel>" not in text_of(post)
        assert button(await ask_in_vain(setting, channel=DIRECT)) is None


async def test_without_a_place_to_ask_or_with_an_answer_there_is_no_button(tmp_path: Path, redis_url: str) -> None:
    async with running(settings_in(tmp_path, redis_url, handoff="")) as setting:
        assert button(await ask_in_vain(setting)) is None
    async with running(settings_in(tmp_path, redis_url, handoff=HELPERS)) as setting:
        assert button(await ask_in_vain(setting, "Hello!")) is None
        direct = await ask_in_vain(setting, channel=DIRECT)
        await setting.workspace.click(DIRECT, direct["ts"], HAND_OFF_ACTION)
        await wait_until(lambda: "✓" in str(button(now(setting, direct, DIRECT))), "the button says so")
        (post,) = hand_offs(setting)
        assert "/archives/" not in text_of(post), "no one else can open a direct message"


async def test_a_crash_between_asking_and_recording_it_asks_only_once(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with running(settings_in(tmp_path, redis_url, handoff=HELPERS)) as setting:
        answer = await ask_in_vain(setting)
        await setting.workspace.click(CHANNEL, answer["ts"], HAND_OFF_ACTION)
        await wait_until(lambda: "✓" in str(button(now(setting, answer))), "the button says so")
        await wait_until(lambda: idle(setting), "the click is seen to")
        for key in [k async for k in redis_client.scan_iter() if ":handed:" in k or ":seen:hand_off" in k]:
            await redis_client.delete(key)
        await setting.workspace.click(CHANNEL, answer["ts"], HAND_OFF_ACTION)
        await wait_until(lambda: idle(setting), "the click is seen to")
        assert len(hand_offs(setting)) == 1


async def test_a_failure_is_posted_in_the_thread_and_the_next_click_counts_again(
    tmp_path: Path, redis_url: str
) -> None:
    async with running(settings_in(tmp_path, redis_url, handoff="#nowhere")) as setting:
        answer = await ask_in_vain(
            setting, "Welche Marke hat die Kaffeemaschine im dritten Stock des Lissabonner Büros?"
        )
        await setting.workspace.click(CHANNEL, answer["ts"], HAND_OFF_ACTION)
        (told,) = await setting.workspace.wait_for(
            lambda: answers(setting.workspace, answer["ts"], answer["thread_ts"]), 10
        )
        assert text_of(told).startswith(say("hand_off_failed", "de"))
        assert "✓" not in str(button(now(setting, answer)))
        await wait_until(lambda: idle(setting), "the click is seen to")
        setting.workspace.channel(HELPERS).name = "nowhere"
        await setting.workspace.click(CHANNEL, answer["ts"], HAND_OFF_ACTION)
        await wait_until(lambda: hand_offs(setting), "people are asked now")


async def test_the_button_is_offered_if_people_can_be_asked(redis_client: Redis, slack: Slack) -> None:
    people, labels = SlackDirectory(slack.workspace, redis_client), {}
    for name in ("", "S0HELPERS", HELPERS, "#help", "S0NOBODY", "C0SECRET"):
        labels[name] = await HandOffPlace(name, people).label(THREAD)
    assert labels == {
        "": "", "S0HELPERS": "@helpers", HELPERS: "#engineering", "#help": "#help", "S0NOBODY": "a user group",
        "C0SECRET": "a private channel",
    }  # fmt: skip
    direct = replace(THREAD, channel="D1")
    assert [await HandOffPlace(name, people).label(direct) for name in ("S0HELPERS", "#help")] == [
        "",
        "#help",
    ]
