"""What channels.toml says of a channel holds there, and only there; audiences know groups, channels and addresses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.local.model.roster import VISITOR
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, running, settings_in, shown

QUESTION = "How long is the canteen open?"
OTHER = "C0GENERAL"


def write_docs(folder: Path, audience: str = "") -> Path:
    for name, text in {
        "north/lunch.md": "The canteen is open for 3 hours.",
        "south/lunch.md": "It is open for 5 hours.",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# Canteen {name[:5]}\n\n{text}")
    if audience:
        (folder / "south" / "orion-audience.toml").write_text(f"audience = [{audience}]\n")
    return folder


async def test_documents_instruction_and_language_hold_in_their_channel_only(tmp_path: Path, redis_url: str) -> None:
    file = tmp_path / "channels.toml"
    file.write_text(f'[{CHANNEL}]\ndocuments = ["south/"]\ninstruction = "Name the hours first."\nlanguage = "de"\n')
    async with ScriptedOpenAI(
        decisions=lambda _: RESPOND, drafts=lambda _: says("<answer>NOT_IN_SOURCES</answer>")
    ) as server:
        settings = settings_in(
            tmp_path / "home",
            redis_url,
            openai_base_url=server.url,
            openai_api_key=SecretStr("k"),
            model="m",
            channels=file,
        )
        async with running(settings, docs=write_docs(tmp_path / "docs")) as setting:
            for channel in (CHANNEL, OTHER):
                server.requests.clear()
                answer = await setting.answer_to(setting.ask(f"{MENTION} {QUESTION}", channel=channel), channel=channel)
                prompts = json.dumps(server.requests)
                here = channel == CHANNEL
                assert ("3 hours" in prompts) is not here
                assert "5 hours" in prompts
                assert ("Name the hours first." in prompts) is here
                assert ("Antwort" in shown(answer)) is here


@pytest.mark.parametrize(
    ("audience", "seen"),
    [
        ('"S0HELPERS"', True),
        ('"ann@acme.example"', True),
        (f'"{OTHER}"', True),
        (f'"T0LOCAL/{OTHER}"', True),
        ('"S0OTHER"', False),
        ('"bob@acme.example"', False),
        ('"C0ELSEWHERE"', False),
    ],
)
@pytest.mark.parametrize("away", [False, True])
async def test_a_person_belongs_to_their_groups_channels_and_address_in_a_direct_chat(
    audience: str, *, seen: bool, away: bool, tmp_path: Path, redis_url: str
) -> None:
    docs = write_docs(tmp_path / "docs", audience)
    async with running(settings_in(tmp_path / "home", redis_url), docs=docs) as setting:
        roster = setting.workspace.workspace.roster
        roster.members[VISITOR] = replace(roster.members[VISITOR], email="Ann@acme.example")
        roster.group_members["S0HELPERS"].add(VISITOR)
        if away:
            setting.workspace.faults.fail("usergroups.list", "internal_error", times=99)
        ts = setting.ask(QUESTION, channel=DIRECT)
        answer = await setting.answer_to(ts, thread=ts, channel=DIRECT)
        assert ("5 hours" in json.dumps(answer)) is (seen and not away)
        ts = setting.ask(f"{MENTION} {QUESTION}")
        assert "5 hours" not in json.dumps(await setting.answer_to(ts)), "in a channel others read along"
