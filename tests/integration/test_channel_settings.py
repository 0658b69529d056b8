"""Settings in channels.toml apply only in their channel. Audiences name groups, channels and addresses."""

import json
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.local.model.roster import VISITOR
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, Setting, running, settings_in, text_of
from tests.support.scripted_orion import QUICK

QUESTION = "How long is the canteen open?"
OTHER = "C0GENERAL"
ADMIN = "U0PEOPLE"


def write_docs(folder: Path, audience: str = "") -> Path:
    for name, text in {
        "north/lunch.md": "The canteen is open for 3 hours.",
        "south/lunch.md": "It is open for 5 hours.",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# Canteen {name[:5]}\n\n{text}")
    if audience:
        (folder / "south" / "orion-audience.toml").write_text(f"\ufeffaudience = [{audience}]\n")
    return folder


async def test_documents_instruction_and_language_apply_only_in_their_channel(tmp_path: Path, redis_url: str) -> None:
    file = tmp_path / "channels.toml"
    written = f'[{CHANNEL}]\ndocuments = ["south/"]\ninstruction = "Name the hours first."\nlanguage = "de"\n'
    file.write_text(f"\ufeff{written}")  # as an editor under Windows saves it
    async with ScriptedOpenAI(
        decisions=lambda _: RESPOND, drafts=lambda _: says("<answer>NOT_IN_SOURCES</answer>")
    ) as server:
        settings = settings_in(tmp_path / "home", redis_url, **server.settings, channels=file)
        async with running(settings, docs=write_docs(tmp_path / "docs")) as setting:
            for channel in (CHANNEL, OTHER):
                server.requests.clear()
                answer = await setting.answer_to(setting.ask(f"{MENTION} {QUESTION}", channel=channel), channel=channel)
                prompts = json.dumps(server.requests)
                here = channel == CHANNEL
                assert ("3 hours" in prompts) is not here
                assert "5 hours" in prompts
                assert ("Name the hours first." in prompts) is here
                assert ("Antwort" in text_of(answer)) is here


@pytest.mark.parametrize(
    ("audience", "error", "seen"),
    [
        ("S0HELPERS", "", True),
        ("ann@acme.example", "", True),
        (OTHER, "", True),
        (f"T0LOCAL/{OTHER}", "", True),
        ("S0OTHER", "", False),
        ("bob@acme.example", "", False),
        ("C0ELSEWHERE", "", False),
        (OTHER, "internal_error", False),
        ("S0HELPERS", "missing_scope", False),
        (OTHER, "missing_scope", True),
    ],
)
async def test_a_person_belongs_to_their_groups_channels_and_address_in_a_direct_message(
    audience: str, error: str, *, seen: bool, tmp_path: Path, redis_url: str
) -> None:
    docs = write_docs(tmp_path / "docs", f'"{audience}"')
    async with running(settings_in(tmp_path / "home", redis_url), docs=docs, timeouts=QUICK) as setting:
        roster = setting.workspace.workspace.roster
        roster.members[VISITOR] = replace(roster.members[VISITOR], email="Ann@acme.example")
        roster.group_members["S0HELPERS"].add(VISITOR)
        if error:
            setting.workspace.faults.fail("usergroups.list", error, times=99)
        ts = setting.ask(QUESTION, channel=DIRECT)
        answer = await setting.answer_to(ts, thread=ts, channel=DIRECT)
        assert ("5 hours" in json.dumps(answer)) is seen
        ts = setting.ask(f"{MENTION} {QUESTION}")
        assert "5 hours" not in json.dumps(await setting.answer_to(ts)), "in a channel others read along"


async def open_channel_dialog(setting: Setting) -> dict[str, Any]:
    workspace = setting.workspace
    workspace.open_home(ADMIN)
    home = await workspace.wait_for(lambda: workspace.workspace.views.homes.get(ADMIN))
    await workspace.click_view(home["id"], "orion_channel", user=ADMIN)
    views = await workspace.wait_for(lambda: list(workspace.workspace.views.open.values()))
    return dict(views[-1].view)


def filled_dialog(**values: str) -> dict[str, Any]:
    """The view that Slack sends for a filled-in dialog."""
    kinds = {"which": "selected_conversation", "mode": "selected_option", "language": "selected_option"}
    said = {"mode": "mention", "language": "asker", **values}
    return {
        name: {name: {kinds.get(name, "value"): {"value": text} if "option" in kinds.get(name, "") else text}}
        for name, text in said.items()
    }


@asynccontextmanager
async def with_admin(tmp_path: Path, redis_url: str) -> AsyncIterator[tuple[Setting, Path]]:
    file = tmp_path / "set" / "channels.toml"
    settings = settings_in(tmp_path / "home", redis_url, channels=file, admins=frozenset({ADMIN}))
    async with running(settings, docs=write_docs(tmp_path / "docs")) as setting:
        yield setting, file


async def test_an_admin_changes_a_channel_in_app_home_with_immediate_effect(tmp_path: Path, redis_url: str) -> None:
    async with with_admin(tmp_path, redis_url) as (setting, file):
        workspace, view = setting.workspace, await open_channel_dialog(setting)
        values = filled_dialog(which=CHANNEL, documents=" south/ \n\n", handoff="#help", language="de")
        assert not await workspace.submit(view["id"], values, ADMIN)
        assert tomllib.loads(file.read_text()) == {
            f"T0LOCAL/{CHANNEL}": {"documents": ["south/"], "handoff": "#help", "language": "de"}
        }
        answer = text_of(await setting.answer_to(setting.ask(f"{MENTION} {QUESTION}")))
        assert "5 hours" in answer
        assert "3 hours" not in answer
        await workspace.wait_for(lambda: "south/" in json.dumps(workspace.workspace.views.homes[ADMIN]))
        view = await open_channel_dialog(setting)
        assert view["private_metadata"] == CHANNEL
        assert view["blocks"][1]["element"]["initial_value"] == "south/"


async def test_the_dialog_of_a_channel_says_what_is_wrong_and_saves_nothing(tmp_path: Path, redis_url: str) -> None:
    async with with_admin(tmp_path, redis_url) as (setting, file):
        view = await open_channel_dialog(setting)

        async def submit(values: dict[str, str]) -> dict[str, str]:
            return await setting.workspace.submit(view["id"], filled_dialog(**{"which": CHANNEL, **values}), ADMIN)

        wrong: dict[str, tuple[dict[str, str], str]] = {
            "handoff": ({"handoff": "@ann"}, "#name"),
            "instruction": ({"instruction": "x" * 501}, "500"),
            "documents": ({"documents": "a/\n" * 51}, "50"),
        }
        for block, (values, words) in wrong.items():
            assert words in (await submit(values))[block]
        assert "channels.toml" in (await submit({"which": DIRECT}))["documents"]
        assert not file.parent.exists()
        file.parent.write_text("a file where the folder should be")
        assert "I can't write `channels.toml`" in (await submit({}))["documents"]
        file.parent.unlink()
        file.parent.mkdir()
        file.write_text(f'["{CHANNEL}"]\ndocuments = ["south/"]\n')
        assert "already has settings" in (await submit({"language": "de"}))["which"]
        members = setting.workspace.workspace.roster.members
        members[ADMIN] = replace(members[ADMIN], is_restricted=True)
        await setting.orion.redis.delete(*await setting.orion.redis.keys("orion:person:*"))
        assert "guest account" in (await submit({}))["documents"]
        assert tomllib.loads(file.read_text()) == {CHANNEL: {"documents": ["south/"]}}


async def test_only_admins_see_and_change_the_settings_of_channels(tmp_path: Path, redis_url: str) -> None:
    async with with_admin(tmp_path, redis_url) as (setting, file):
        workspace, view = setting.workspace, await open_channel_dialog(setting)
        workspace.open_home(VISITOR)
        home = await workspace.wait_for(lambda: workspace.workspace.views.homes.get(VISITOR))
        assert "orion_channel" not in json.dumps(home)
        workspace.workspace.views.open[view["id"]] = replace(workspace.workspace.views.open[view["id"]], user=VISITOR)
        assert not await workspace.submit(view["id"], filled_dialog(which=CHANNEL, language="de"), VISITOR)
        assert not file.exists()
