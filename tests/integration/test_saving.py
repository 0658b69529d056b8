"""Saved answers in a running Orion: what a person answered once, Orion answers from then on, where it may."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent.knowledge.sources.answers import SavedAnswer
from bot.answers import AnswerBook
from bot.delivery.dialogs import REVIEW_AFTER
from bot.local.model.roster import BOT_USER, VISITOR, Channel, ChannelKind
from bot.reports.weekly import latest_due
from tests.support.langfuse_receiver import LangfuseReceiver
from tests.support.openai_server import RESPOND, Scripted, ScriptedOpenAI, says
from tests.support.orion_running import (
    CHANNEL,
    DIRECT,
    MENTION,
    Setting,
    dialog_values,
    posts,
    running,
    settings_in,
    text_of,
)
from tests.support.waiting import wait_until

ANN, BOB, GROUP = "U0PEOPLE", "U0ONCALL", "S0TEAM"
QUESTION = "Where is the key of the bicycle shed?"
ANSWER = "The key of the bicycle shed hangs behind the reception desk, on the green hook."
AGAIN = "Who knows where we keep the key for the bicycle shed?"


def draft(request: Any) -> Scripted:
    """Cite the saved answer if it is among the sources."""
    text = json.dumps(request)
    found = ANSWER in text
    return says(f"<answer>{ANSWER} [1]</answer>" if found else "<answer>NOT_IN_SOURCES</answer>")


@asynccontextmanager
async def saving(tmp_path: Path, redis_url: str, **more: Any) -> AsyncIterator[Setting]:
    """An Orion with a folder for answers, and a model that finds only what was saved."""
    given = {"answers": tmp_path / "answers", "admins": frozenset({ANN}), "handoff": GROUP, "judge": False, **more}
    async with (
        ScriptedOpenAI(decisions=lambda _: RESPOND, drafts=draft) as server,
        running(settings_in(tmp_path / "home", redis_url, **server.settings, **given)) as setting,
    ):
        yield setting


async def twice(click: Callable[[], Coroutine[Any, Any, object]]) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(click())


async def hand_over(setting: Setting) -> str:
    """Ask, and hand the question to people. Returns the thread."""
    ts = setting.ask(f"{MENTION} {QUESTION}")
    refusal = await setting.answer_to(ts)
    await setting.workspace.click(CHANNEL, refusal["ts"], "orion_hand_off", user=VISITOR)
    await setting.workspace.wait_for(lambda: save_buttons(setting))
    return ts


def save_buttons(setting: Setting) -> list[dict[str, Any]]:
    everything = [*posts(setting.workspace, CHANNEL), *setting.workspace.ephemerals(CHANNEL)]
    return [one for one in everything if "orion_save_answer" in json.dumps(one.get("blocks", []))]


async def dialog(setting: Setting) -> dict[str, Any]:
    views = await setting.workspace.wait_for(lambda: list(setting.workspace.workspace.views.open.values()))
    return dict(views[-1].view)


def ephemerals(setting: Setting, user: str) -> list[str]:
    return [one["text"] for one in setting.workspace.ephemerals(CHANNEL) if one["ephemeral_for"] == user]


async def load_saved(setting: Setting, tmp_path: Path) -> list[SavedAnswer]:
    book = AnswerBook(folder=tmp_path / "answers")
    await wait_until(lambda: bool(book.answers()), "the answer is saved")
    return list(book.answers().values())


async def test_a_persons_answer_is_saved_by_one_click_and_used_from_then_on(tmp_path: Path, redis_url: str) -> None:
    async with saving(tmp_path, redis_url) as setting:
        workspace, thread = setting.workspace, await hand_over(setting)
        workspace.post(VISITOR, CHANNEL, "Anyone?", thread)
        workspace.post(ANN, CHANNEL, ANSWER, thread)
        offer = (await workspace.wait_for(lambda: save_buttons(setting)[1:]))[0]
        assert offer["ephemeral_for"] == ANN, "the asker gets no offer"
        await workspace.click(CHANNEL, offer["ts"], "orion_save_answer", user=ANN)
        view = await dialog(setting)
        values = dialog_values(view)
        assert values["answer"]["answer"]["value"] == ANSWER
        assert QUESTION in values["question"]["question"]["value"]
        await twice(lambda: workspace.submit(view["id"], values, ANN))
        await workspace.wait_for(lambda: "Saved." in "".join(ephemerals(setting, ANN)))
        (answer,) = await load_saved(setting, tmp_path)
        assert (answer.audience, answer.owner, answer.name) == (f"T0LOCAL/{CHANNEL}", ANN, "People partner")
        assert thread.replace(".", "") in answer.link

        found = text_of(await setting.answer_to(setting.ask(f"{MENTION} {AGAIN}", user=BOB)))
        assert ANSWER in found.replace(" [1]", "")
        assert "confirmed by People partner" in found
        ts = setting.ask(f"{MENTION} {AGAIN}", channel="C0GENERAL")
        elsewhere = text_of(await setting.answer_to(ts, channel="C0GENERAL"))
        assert "green hook" not in elsewhere
        assert "confirmed by" not in elsewhere


async def test_the_dialog_says_what_is_wrong_and_saves_nothing(tmp_path: Path, redis_url: str) -> None:
    async with saving(tmp_path, redis_url) as setting:
        thread = setting.ask(QUESTION)
        reply = setting.workspace.post(BOB, CHANNEL, ANSWER, thread)
        await setting.workspace.use_shortcut(CHANNEL, reply, "orion_save", BOB)
        view = await dialog(setting)
        changes: list[tuple[str, dict[str, Any], str]] = [
            ("answer", {"value": "The password is hunter2hunter2."}, "password"),
            ("answer", {"value": "Ask <!channel> for it."}, "mention of everyone"),
            ("audience", {"selected_option": {"value": "public"}}, "more people"),
            ("review", {"selected_date": "2020-01-01"}, "future"),
            ("owner", {"selected_user": BOB}, "approve"),
        ]
        for block, change, words in changes:
            errors = await setting.workspace.submit(view["id"], dialog_values(view, **{block: change}), BOB)
            assert words in errors[block]
        assert not (tmp_path / "answers").exists()
        assert await setting.orion.redis.exists("orion:proposals:T0LOCAL") == 0


async def test_a_proposal_is_approved_edited_and_withdrawn_in_app_home(tmp_path: Path, redis_url: str) -> None:
    async with saving(tmp_path, redis_url) as setting:
        workspace, thread = setting.workspace, setting.ask(QUESTION)
        reply = workspace.post(BOB, CHANNEL, f"{ANSWER} <@{ANN}> knows <#C0GENERAL>.", thread)
        await workspace.use_shortcut(CHANNEL, reply, "orion_save", BOB)
        view = await dialog(setting)
        assert dialog_values(view)["answer"]["answer"]["value"] == f"{ANSWER} @People partner knows #general."
        assert await workspace.submit(view["id"], dialog_values(view), BOB) == {}
        workspace.open_home(ANN)
        home = await workspace.wait_for(lambda: workspace.workspace.views.homes.get(ANN))
        assert ANSWER in json.dumps(home)
        home_id = home["id"]
        await twice(lambda: workspace.click_view(home_id, "orion_answer_approve", user=ANN))
        (answer,) = await load_saved(setting, tmp_path)
        assert answer.name == "People partner"
        chat = workspace.workspace.roster.direct_message(BOB).id
        await workspace.wait_for(lambda: "approved" in text_of({"text": str(workspace.messages(chat))}))
        home = await workspace.wait_for(lambda: home_with(setting, ANN, "orion_answer_edit"))
        assert any(QUESTION in str(block.get("text")) for block in home["blocks"]), "each entry shows its question"
        await workspace.click_view(home["id"], "orion_answer_edit", user=ANN)
        view = await dialog(setting)
        later = {"answer": {"value": "It hangs on the red hook."}}
        assert await workspace.submit(view["id"], dialog_values(view, **later), ANN) == {}
        (answer,) = await load_saved(setting, tmp_path)
        assert answer.answer == "It hangs on the red hook."
        assert answer.review == answer.confirmed + REVIEW_AFTER
        await workspace.click_view(home["id"], "orion_answer_withdraw", user=ANN)
        await workspace.wait_for(lambda: not AnswerBook(folder=tmp_path / "answers").answers())


def home_with(setting: Setting, user: str, words: str) -> dict[str, Any] | None:
    home = setting.workspace.workspace.views.homes.get(user)
    return home if home and words in json.dumps(home) else None


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("deleted", "was deleted"),
        ("shared", "another organisation"),
        ("off", "ORION_ANSWERS"),
        ("closed", "No one may"),
    ],
)
async def test_the_shortcut_says_why_nothing_can_be_saved(
    case: str, words: str, tmp_path: Path, redis_url: str
) -> None:
    changes: dict[str, dict[str, Any]] = {"off": {"answers": None}, "closed": {"admins": frozenset()}}
    async with saving(tmp_path, redis_url, **changes.get(case, {})) as setting:
        workspace, thread = setting.workspace, setting.ask(QUESTION)
        reply = workspace.post(BOB, CHANNEL, ANSWER, thread)
        if case == "shared":
            workspace.workspace.roster.channels[CHANNEL].is_ext_shared = True
        async with asyncio.TaskGroup() as group:
            group.create_task(workspace.use_shortcut(CHANNEL, reply, "orion_save", ANN))
            await asyncio.sleep(0)  # Slack has sent the message along
            if case == "deleted":
                workspace.delete(CHANNEL, reply)
        assert words in json.dumps(await dialog(setting))


async def test_the_dialog_opens_in_time_even_if_slack_answers_no_lookup(tmp_path: Path, redis_url: str) -> None:
    async with saving(tmp_path, redis_url, allow_guests=True, allow_external=True) as setting:
        workspace, thread = setting.workspace, setting.workspace.post(VISITOR, CHANNEL, QUESTION)
        reply = workspace.post(BOB, CHANNEL, ANSWER, thread)
        for method in ("users.info", "conversations.replies"):
            workspace.faults.hang(method, times=9)
        await workspace.use_shortcut(CHANNEL, reply, "orion_save", ANN)
        assert ANSWER in json.dumps(await dialog(setting))
        workspace.faults.release()


async def test_another_apps_message_names_no_turn_of_another_place(tmp_path: Path, redis_url: str) -> None:
    async with saving(tmp_path, redis_url) as setting:
        workspace = setting.workspace
        private = await setting.answer_to(setting.ask(QUESTION, channel=DIRECT), channel=DIRECT)
        ts = workspace.post_as_other_app(CHANNEL, "The shed is open.")
        forged = workspace.workspace.log.get(CHANNEL, ts)
        assert forged
        assert private["metadata"]["event_payload"]["turn_id"]
        forged.metadata = private["metadata"]
        await workspace.use_shortcut(CHANNEL, ts, "orion_save", ANN)
        view = await dialog(setting)
        assert QUESTION not in json.dumps(view)
        assert "The shed is open." in json.dumps(view)


async def test_orions_own_words_are_not_a_persons_answer(tmp_path: Path, redis_url: str) -> None:
    async with saving(tmp_path, redis_url) as setting:
        refusal = await setting.answer_to(setting.ask(f"{MENTION} {QUESTION}"))
        await setting.workspace.use_shortcut(CHANNEL, refusal["ts"], "orion_save", ANN)
        values = dialog_values(await dialog(setting))
        assert "value" not in values["answer"]["answer"]
        assert QUESTION in values["question"]["question"]["value"]


def save_for(audience: str, folder: Path) -> None:
    known = SavedAnswer(
        question=QUESTION, answer=ANSWER, audience=audience, owner=ANN, name="Ann", confirmed=date(2026, 11, 26)
    )
    AnswerBook(folder=folder / "answers").write(known)


async def ask_privately(setting: Setting, channel: str) -> dict[str, Any]:
    """Use the shortcut on Bob's question, and return the answer in the direct message."""
    workspace = setting.workspace
    ts = setting.ask(f"<@{ANN}> {QUESTION}", user=BOB, channel=channel)
    await workspace.use_shortcut(channel, ts, "orion_ask_privately", VISITOR)
    asked = (await workspace.wait_for(lambda: workspace.messages(DIRECT)))[-1]
    assert f"@People partner {QUESTION}" in text_of(asked)
    private = await setting.answer_to(asked["ts"], channel=DIRECT)
    assert ANSWER in text_of(private).replace(" [1]", "")
    assert posts(workspace, channel) == []
    return private


@pytest.mark.parametrize(
    ("kind", "audience", "meanwhile", "words"),
    [
        ("group", f"{CHANNEL},{VISITOR}", "", ""),
        ("mpim", f"{CHANNEL},{VISITOR}", "", ""),
        ("group", VISITOR, "", "confirmed by Ann"),
        ("group", f"{CHANNEL},{VISITOR}", "asker left", "both"),
        ("group", f"{CHANNEL},{VISITOR}", "Orion left", "both"),
        ("channel", f"{CHANNEL},{VISITOR}", "shared", "organisation"),
    ],
)
async def test_a_private_answer_is_shared_if_everyone_may_see_its_sources_and_the_asker_is_a_member(
    kind: ChannelKind, audience: str, meanwhile: str, words: str, *, tmp_path: Path, redis_url: str
) -> None:
    save_for(audience, tmp_path)
    async with saving(tmp_path, redis_url, allow_external=meanwhile == "Orion left") as setting:
        workspace = setting.workspace
        channel = workspace.workspace.roster.channels[CHANNEL]
        channel.kind, channel.is_ext_shared = kind, meanwhile == "shared"
        private = await ask_privately(setting, CHANNEL)
        channel.members -= {"asker left": {VISITOR}, "Orion left": {BOT_USER}}.get(meanwhile, set())
        await twice(lambda: workspace.click(DIRECT, private["ts"], "orion_share", user=VISITOR))
        said = await workspace.wait_for(lambda: workspace.ephemerals(DIRECT)[1:])
        shared = [text_of(post) for post in posts(workspace, CHANNEL)]
        if not words:
            assert len(shared) == 1
            assert ANSWER in shared[0].replace(" [1]", "")
            assert "privately" in shared[0]
        else:
            assert shared == []
            assert words in said[0]["text"]


@pytest.mark.parametrize("kind", ["group", "mpim", "im"])
async def test_a_message_that_orion_cannot_see_is_answered_privately(
    kind: ChannelKind, tmp_path: Path, redis_url: str
) -> None:
    save_for(VISITOR, tmp_path)
    async with saving(tmp_path, redis_url) as setting:
        place = Channel(id="D0TWO", name="", kind=kind, members={VISITOR, BOB})
        setting.workspace.workspace.roster.channels[place.id] = place
        private = await ask_privately(setting, place.id)
        assert "orion_share" not in json.dumps(private["blocks"])


async def test_an_answer_in_the_hand_off_channel_is_saved_for_that_channel(tmp_path: Path, redis_url: str) -> None:
    async with saving(tmp_path, redis_url, handoff="C0ENGINEERING") as setting:
        workspace = setting.workspace
        refusal = await setting.answer_to(setting.ask(f"{MENTION} {QUESTION}"))
        await workspace.click(CHANNEL, refusal["ts"], "orion_hand_off", user=VISITOR)
        (post,) = await workspace.wait_for(lambda: posts(workspace, "C0ENGINEERING"))
        workspace.post(BOB, "C0ENGINEERING", ANSWER, post["ts"])
        await workspace.click("C0ENGINEERING", post["ts"], "orion_save_answer", user=ANN)
        view = await dialog(setting)
        values = dialog_values(view)
        assert values["answer"]["answer"]["value"] == ANSWER
        assert QUESTION in values["question"]["question"]["value"]
        assert await workspace.submit(view["id"], values, ANN) == {}
        (answer,) = await load_saved(setting, tmp_path)
        assert answer.audience == "T0LOCAL/C0ENGINEERING"


async def test_a_question_in_the_report_can_be_answered_there_and_corrects_its_trace(
    tmp_path: Path, redis_url: str
) -> None:
    async with LangfuseReceiver() as receiver:
        keys = {
            "langfuse_public_key": "pk", "langfuse_secret_key": SecretStr("sk"), "langfuse_base_url": receiver.url,
        }  # fmt: skip
        async with saving(tmp_path, redis_url, report=CHANNEL, **keys) as setting:
            await setting.answer_to(setting.ask(f"{MENTION} {QUESTION}"))
            assert setting.orion.reporting is not None
            monday = latest_due(datetime.now(UTC), "UTC") + timedelta(days=7, hours=1)
            reports = replace(setting.orion.reporting, now=lambda: monday)
            assert await reports.post_if_due(await reports.workspaces.of(""))
            (report,) = save_buttons(setting)
            assert QUESTION in json.dumps(report["blocks"])
            await setting.workspace.click(CHANNEL, report["ts"], "orion_save_answer", user=ANN)
            view = await dialog(setting)
            values = dialog_values(view, answer={"value": ANSWER})
            assert values["question"]["question"]["value"] == QUESTION
            await setting.workspace.submit(view["id"], values, ANN)
            await load_saved(setting, tmp_path)
            await wait_until(lambda: ANSWER in receiver.score("output"), "the trace is corrected")
            await wait_until(lambda: receiver.items, "the question is in the dataset")
    assert [item["expectedOutput"] for item in receiver.items] == [ANSWER]
