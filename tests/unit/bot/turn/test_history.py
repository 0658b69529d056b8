"""Messages of a thread before a question."""

import asyncio
import itertools
import json
from pathlib import Path

import pytest

from agent.texts.catalogue import SUGGESTED_PROMPTS, help_text, say
from bot.local.model.limits import Strictness
from tests.support.openai_server import says
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, Setting, answers, running, settings_in, text_of
from tests.support.scripted_orion import LIMIT, done, with_model
from tests.support.waiting import wait_until


async def wait_until_done(setting: Setting) -> None:
    await wait_until(lambda: done(setting), "all is said")


async def test_a_mention_includes_what_was_said_to_others_since(tmp_path: Path, redis_url: str) -> None:
    async with with_model(tmp_path, redis_url) as (setting, server):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        await setting.answer_to(ts)
        setting.ask("<@U0ONCALL> we settled on the Lisbon plan", thread=ts)
        setting.ask(f"{MENTION} mute", thread=ts)
        await wait_until_done(setting)
        setting.ask("And Ben pays for the pastries.", thread=ts)
        await wait_until_done(setting)
        before = len(server.requests)
        again = setting.ask(f"{MENTION} {LIMIT}", thread=ts)
        await setting.answer_to(again, thread=ts)
        asked = [json.dumps(body, default=str) for body in server.requests[before:]]
        assert all("Lisbon plan" in body and "pastries" in body for body in asked)
        assert all(body.count("Lisbon plan") <= 2 for body in asked), "once as talk, once as a source"
        await wait_until_done(setting)
        last = setting.ask(f"{MENTION} {LIMIT}", thread=ts)
        await setting.answer_to(last, thread=ts)
        assert json.dumps(server.requests[-1], default=str).count("pastries") <= 2, "it is remembered once"


async def test_a_new_thread_in_a_direct_message_sees_the_previous_exchange_without_storing_it(
    tmp_path: Path, redis_url: str
) -> None:
    async with with_model(tmp_path, redis_url) as (setting, server):
        first = setting.ask(f"{LIMIT} I ask for the pastries.", channel=DIRECT)
        await setting.answer_to(first, channel=DIRECT)
        await wait_until_done(setting)
        before = len(server.requests)
        second = setting.ask("And per hour?", channel=DIRECT)
        await setting.answer_to(second, channel=DIRECT)
        await wait_until_done(setting)
        assert all("pastries" in json.dumps(body, default=str) for body in server.requests[before:])
        setting.workspace.delete(DIRECT, first)
        await wait_until_done(setting)
        before = len(server.requests)
        await setting.answer_to(
            setting.ask("And per day?", thread=second, channel=DIRECT), thread=second, channel=DIRECT
        )
        assert len(server.requests) > before
        assert not any("pastries" in json.dumps(body, default=str) for body in server.requests[before:])


async def test_without_a_model_a_new_thread_repeats_nothing_and_only_answers_from_documents_count(
    tmp_path: Path, redis_url: str
) -> None:
    async with running(settings_in(tmp_path, redis_url)) as setting:
        said = []
        for text in (LIMIT, "Is anybody there?", "Hello", SUGGESTED_PROMPTS[0]["message"]):
            said.append(text_of(await setting.answer_to(setting.ask(text, channel=DIRECT), channel=DIRECT)))
            await wait_until_done(setting)
        assert ["600 requests" in text for text in said] == [True, False, False, False]
        assert help_text(None) in said[-1], "who asks what Orion can do is told"
        german = await setting.answer_to(setting.ask("Wer bist du?", channel=DIRECT), channel=DIRECT)
        assert help_text("de") in text_of(german), "in the language of the message"
        stats = await setting.orion.observers.stats.read(1)
        assert stats.group("outcome") == {"quoted": 1, "refused": 1, "unsourced": 1}
        assert (stats.pass_rate, stats["usage:model_calls"]) == (None, 0)


@pytest.mark.parametrize("remembered", [False, True])
async def test_an_unreadable_thread_does_not_prevent_an_answer(
    tmp_path: Path, redis_url: str, *, remembered: bool
) -> None:
    async with with_model(tmp_path, redis_url) as (setting, _):
        root = setting.ask("Good morning.")
        if remembered:
            first = setting.ask(f"{MENTION} {LIMIT}", thread=root)
            await setting.answer_to(first, thread=root)
            await wait_until_done(setting)
        setting.workspace.faults.fail("conversations.replies", "missing_scope", times=100)
        ts = setting.ask(f"{MENTION} {LIMIT}", thread=root)
        answer = await setting.answer_to(ts, thread=root)
        assert "600 requests" in text_of(answer)


async def test_a_bare_call_under_a_question_asks_that_question(tmp_path: Path, redis_url: str) -> None:
    async with with_model(tmp_path, redis_url) as (setting, server):
        for call in ("can you answer this?", "any idea?", "?", ""):
            before = len(server.requests)
            root = setting.ask("How many requests may one API key send per minute?", user="U0ONCALL")
            ts = setting.ask(f"{MENTION} {call}", thread=root)
            assert "600 requests" in text_of(await setting.answer_to(ts, thread=root))
            assert "600 requests a minute" in json.dumps(server.requests[before], default=str), (
                "the first search found it"
            )


async def test_without_a_model_a_bare_mention_asks_only_a_question_above_it(tmp_path: Path, redis_url: str) -> None:
    async with running(settings_in(tmp_path, redis_url)) as setting:
        for said, words in ((LIMIT, "600 requests"), ("We settled on the Lisbon plan.", help_text(None))):
            root = setting.ask(said, user="U0ONCALL")
            assert words in text_of(await setting.answer_to(setting.ask(MENTION, thread=root), thread=root))


@pytest.mark.parametrize("way", ["edit", "ask"])
async def test_the_thread_is_read_even_if_its_first_question_was_stopped(
    way: str, tmp_path: Path, redis_url: str
) -> None:
    async with with_model(tmp_path, redis_url) as (setting, server):
        workspace = setting.workspace
        log = workspace.add_file("U0ONCALL", "night.log", b"walrus backup failed: disk quota of 40 GB exceeded\n")
        photo = workspace.add_file("U0ONCALL", "photo.png", b"\x89")
        root = workspace.post("U0ONCALL", CHANNEL, "We settled on the Lisbon plan.", files=[log, photo])
        workspace.faults.hang("conversations.replies")
        ts = setting.ask(f"{MENTION} {LIMIT}", thread=root)
        await wait_until(lambda: "conversations.replies" in [call.method for call in workspace.calls], "it reads")
        setting.ask("stop", thread=root)
        assert "Stopped." in text_of(await setting.answer_to(ts, thread=root))
        if way == "edit":
            workspace.edit(CHANNEL, ts, f"{MENTION} {LIMIT} Please.")
        else:
            ts = setting.ask(f"{MENTION} {LIMIT} Please.", thread=root)
        await wait_until(
            lambda: any("600 requests" in text_of(found) for found in answers(workspace, ts, root)), "answered"
        )
        (answer,) = (found for found in answers(workspace, ts, root) if "600 requests" in text_of(found))
        assert "photo.png" in text_of(answer), "what was not read is said"
        asked = [json.dumps(body, default=str) for body in server.requests]
        assert asked
        assert all("Lisbon plan" in body and "disk quota" in body for body in asked)


async def test_one_history_call_a_minute_delays_no_one_and_the_answer_says_what_was_not_read(
    tmp_path: Path, redis_url: str
) -> None:
    unseen = say("file_unseen", None)
    async with running(
        settings_in(tmp_path, redis_url), strictness=Strictness(calls_a_minute={"conversations.replies": 1})
    ) as setting:
        roots = [setting.workspace.post("U0ONCALL", CHANNEL, f"Thread {number}") for number in range(2)]
        first = setting.ask(f"{MENTION} {LIMIT}", thread=roots[0])
        assert unseen not in text_of(await setting.answer_to(first, thread=roots[0]))
        async with asyncio.timeout(10):
            second = setting.ask(f"{MENTION} {LIMIT}", thread=roots[1])
            assert unseen in text_of(await setting.answer_to(second, thread=roots[1]))
        refused = [call for call in setting.workspace.calls if call.method == "conversations.replies"]
        assert len(refused) == 2, "the refusal is remembered, and nobody asks again before its time"


async def test_words_that_show_no_language_are_answered_in_the_one_of_the_conversation(
    tmp_path: Path, redis_url: str
) -> None:
    limit = says("<answer>Jeder Schlüssel darf pro Minute 600 Anfragen stellen [1].</answer>")
    drafts = itertools.chain([limit], itertools.repeat(says("<answer>NOT_IN_SOURCES</answer>")))
    async with with_model(tmp_path, redis_url, drafts=drafts) as (setting, _):
        first = setting.ask(f"{MENTION} API limit?")
        assert say("verified", "de") in text_of(await setting.answer_to(first)), "of the answer, if nothing else"
        asked = setting.ask("Wie viele Anfragen darf ein Schlüssel pro Minute stellen?", channel=DIRECT)
        await setting.answer_to(asked, channel=DIRECT)
        for thread in (asked, None):  # the next direct message opens a thread of its own
            await wait_until_done(setting)
            later = setting.ask("Warum?", channel=DIRECT, thread=thread)
            refusal = await setting.answer_to(later, thread=thread or later, channel=DIRECT)
            assert say("not_found", "de") in text_of(refusal)
