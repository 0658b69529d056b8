"""Listening: Orion answers unasked only if every claim is certain, and only in channels that allow it."""

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.local.model.messages import MessageLog
from bot.local.model.roster import VISITOR
from bot.stores.limits import MAX_POSTS_A_DAY
from bot.turn.unasked import MAX_AGE_S
from tests.support.clock import Clock
from tests.support.openai_server import RESPOND, Scripted, ScriptedOpenAI, fails, says
from tests.support.orion_running import (
    CHANNEL,
    DIRECT,
    MENTION,
    Setting,
    answers,
    idle,
    posts,
    running,
    settings_in,
    text_of,
)
from tests.support.waiting import wait_until

QUESTION = "How many requests may one API key send per minute?"
SAID = "<answer>One API key may send 600 requests per minute"
GOOD = says(f"{SAID} [1].</answer>")
DOUBTFUL = says("<answer>One API key may send 600 requests per minute, and nobody checks it [1].</answer>")
YES, NO = says("Yes."), says("no")
Judge = Callable[[Any], Scripted]


def judging(*, supported: bool, reply: str = "answered") -> Judge:
    def judge(request: Any) -> Scripted:
        numbers = range(1, json.dumps(request).count("Claim ") + 6)
        verdicts = [{"claim": number, "lines": ["1.0"], "supported": supported} for number in numbers]
        return says(json.dumps({"verdicts": verdicts, "reply": reply}))

    return judge


@asynccontextmanager
async def listening(
    tmp_path: Path,
    redis_url: str,
    *,
    said: Scripted = YES,
    still_open: Scripted = YES,
    draft: Scripted = GOOD,
    judgements: Judge | None = None,
    **more: Any,
) -> AsyncIterator[tuple[Setting, ScriptedOpenAI]]:
    """An Orion that listens in one channel, with a model that always says the same."""
    async with ScriptedOpenAI(
        decisions=lambda _: RESPOND,
        drafts=lambda _: draft,
        judgements=judgements or judging(supported=True),
        generations=lambda request: still_open if "Later messages" in str(request) else said,
    ) as server:
        settings = settings_in(tmp_path / "home", redis_url, **server.settings, listen=frozenset({CHANNEL}), **more)
        async with running(settings) as setting:
            yield setting, server


async def wait_until_idle(setting: Setting) -> None:
    """Wait until nothing is left to work on."""
    await wait_until(lambda: idle(setting), "every event is taken in and handled", 30)


async def test_a_confirmed_answer_appears_with_the_reason_for_it(tmp_path: Path, redis_url: str) -> None:
    async with listening(tmp_path, redis_url) as (setting, server):
        ts = setting.ask(QUESTION)
        answer = await setting.answer_to(ts)
        assert "600 requests per minute" in text_of(answer)
        assert "No one mentioned me" in text_of(answer)
        methods = [call.method for call in setting.workspace.calls]
        assert not [name for name in methods if "setStatus" in name or "sessions" in name]
        ts = setting.ask("And per hour?", thread=ts)  # from here on it is a conversation like any other
        await wait_until(lambda: server.phases().count("write") > 1, "the follow-up is worked on")


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (QUESTION, {"said": NO}),
        (QUESTION, {"said": fails(500)}),
        (QUESTION, {"draft": DOUBTFUL, "judgements": judging(supported=False)}),
        (QUESTION, {"draft": DOUBTFUL, "judgements": judging(supported=True, reply="partly")}),
        (QUESTION, {"draft": says("<answer>NOT_IN_SOURCES</answer>")}),
        (QUESTION, {"draft": says("<answer>One API key may send 900 requests per minute [2].</answer>")}),
        (QUESTION, {"draft": says(f"{SAID} [1]. See [x](https://evil.test/) [1].</answer>")}),
        (QUESTION, {"draft": says(f"{SAID} [1]. The password is Winter2026! [1].</answer>")}),
        (QUESTION, {"judge": False}),
        ("See you at lunch, Jonas.", {}),
        (f"<@U0ONCALL> {QUESTION}", {}),
        (f"`{QUESTION}`", {}),
    ],
    ids=range(12),
)
async def test_without_certainty_nothing_is_posted(
    text: str, more: dict[str, Any], tmp_path: Path, redis_url: str
) -> None:
    async with listening(tmp_path, redis_url, **more) as (setting, _):
        setting.ask(text)
        await wait_until_idle(setting)
        assert posts(setting.workspace, CHANNEL) == []
        assert (await setting.orion.observers.stats.read(1)).turns == 0


async def test_other_channels_other_peoples_threads_and_guests_get_no_answer(tmp_path: Path, redis_url: str) -> None:
    async with listening(tmp_path, redis_url) as (setting, server):
        setting.ask(QUESTION, channel="C0GENERAL")
        setting.ask(QUESTION, user="U0GUEST")
        root = setting.ask("Morning all", user="U0RELEASE")
        setting.ask(QUESTION, thread=root)
        await wait_until_idle(setting)
        assert server.requests == []
        assert posts(setting.workspace, CHANNEL) + posts(setting.workspace, "C0GENERAL") == []


async def test_changes_during_the_turn_are_taken_into_account(tmp_path: Path, redis_url: str) -> None:
    asked: list[tuple[Setting, str, str]] = []

    def judge(request: Any) -> Scripted:
        """Change the place while the answer is judged."""
        setting, ts, meanwhile = asked.pop()
        match meanwhile:
            case "answered":
                setting.ask("600, I think", thread=ts, user="U0ONCALL")
            case "answered below":
                setting.ask("600, I think", user="U0ONCALL")
            case "muted":
                setting.ask("mute", user="U0ONCALL")
            case "edited":
                setting.workspace.edit(CHANNEL, ts, "How is everyone?")
            case _:
                setting.workspace.delete(CHANNEL, ts)
        return judging(supported=True)(request)

    async with listening(tmp_path, redis_url, draft=DOUBTFUL, judgements=judge, still_open=NO) as (setting, _):
        for meanwhile in ("answered", "answered below", "edited", "deleted", "muted"):
            asked.append((setting, setting.ask(QUESTION), meanwhile))
            await wait_until(lambda: not asked, "the answer is judged")
            await wait_until_idle(setting)
            assert "600 requests" not in str(posts(setting.workspace, CHANNEL)), meanwhile


async def test_other_talk_below_the_question_does_not_stop_the_answer(tmp_path: Path, redis_url: str) -> None:
    asked: list[Setting] = []

    def judge(request: Any) -> Scripted:
        asked.pop().ask("Lunch, anyone?", user="U0ONCALL")
        return judging(supported=True)(request)

    async with listening(tmp_path, redis_url, draft=DOUBTFUL, judgements=judge) as (setting, server):
        asked.append(setting)
        await setting.answer_to(setting.ask(QUESTION))
        assert "Lunch, anyone?" in str(server.requests)


async def test_a_question_that_waited_for_two_minutes_is_not_answered(tmp_path: Path, redis_url: str) -> None:
    async with listening(tmp_path, redis_url) as (setting, server):
        clock = Clock()
        clock.now = time.time() - MAX_AGE_S - 1
        setting.workspace.workspace.log = MessageLog(clock)
        setting.ask(QUESTION)
        await wait_until_idle(setting)
        assert (server.requests, posts(setting.workspace, CHANNEL)) == ([], [])


async def test_dislikes_delete_the_answer_and_quiet_the_channel(tmp_path: Path, redis_url: str) -> None:
    async with listening(tmp_path, redis_url) as (setting, _):
        for _ in range(2):
            ts = setting.ask(QUESTION)
            answer = await setting.answer_to(ts)
            await setting.workspace.click(CHANNEL, answer["ts"], "orion_unasked_not_helpful", user=VISITOR)
            await setting.workspace.wait_for(lambda ts=ts: not answers(setting.workspace, ts, ts))  # type: ignore[misc]
        setting.ask(QUESTION)
        await wait_until_idle(setting)
        assert posts(setting.workspace, CHANNEL) == []


async def test_mute_stops_it_until_unmute(tmp_path: Path, redis_url: str) -> None:
    async with listening(tmp_path, redis_url) as (setting, _):
        setting.ask("mute")
        await setting.workspace.wait_for(lambda: posts(setting.workspace, CHANNEL))
        setting.ask(QUESTION)
        await wait_until_idle(setting)
        assert len(posts(setting.workspace, CHANNEL)) == 1
        setting.ask("unmute")
        await setting.workspace.wait_for(lambda: len(posts(setting.workspace, CHANNEL)) == 2)
        await setting.answer_to(setting.ask(QUESTION))


async def test_the_daily_cap_applies_and_a_mention_is_always_answered(tmp_path: Path, redis_url: str) -> None:
    async with listening(tmp_path, redis_url) as (setting, _):
        stores = setting.orion.redis
        await setting.answer_to(setting.ask(QUESTION))
        await wait_until_idle(setting)
        (key,) = [key async for key in stores.scan_iter("*:listening:posts:*")]
        await stores.set(key, MAX_POSTS_A_DAY, keepttl=True)
        setting.ask(QUESTION)
        await wait_until_idle(setting)
        assert len(posts(setting.workspace, CHANNEL)) == 1
        await setting.answer_to(setting.ask(f"{MENTION} {QUESTION}"))
        direct = setting.ask(QUESTION, channel=DIRECT)
        await setting.answer_to(direct, thread=direct, channel=DIRECT)
