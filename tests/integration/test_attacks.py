"""Attacks of each kind on a running Orion, by each way out: nothing of one reaches Slack in a form that acts.

The model obeys whatever it read and repeats the attack; documents, names and messages carry it too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.local.model.errors import ApiError
from bot.local.model.roster import VISITOR, Member
from bot.reports.weekly import latest_due
from tests.support.live_parts import live_parts
from tests.support.openai_server import RESPOND, Scripted, ScriptedOpenAI, calls, says
from tests.support.orion_running import (
    CHANNEL,
    DIRECT,
    GUEST,
    MENTION,
    STRANGER,
    Setting,
    answers,
    idle,
    running,
    settings_in,
)
from tests.support.waiting import wait_until

TRUE = "Deploy from the console of the platform [1]."
MIX = "7Qz9Lm2XvB4nT8kRw1Yc5HdJ3gPs6FaU0eNi"
SCHEMES = ["data:text/html,evil", "javascript:alert('evil')", "JaVaScRiPt://evil.test/%0aalert(1)"]
SCHEMES += ["intent://evil.test/#Intent;scheme=https;end", "ms-word:ofe|u|https://evil.test/a.docx"]
SCHEMES += ["magnet:?xt=evil", "itms-apps://evil.test/a", "zoommtg://evil.test/join", "tg://resolve?domain=evil"]
SCHEMES += [
    "//evil.test/a",
    "https:\\\\evil.test\\a",
    "https://good@evil.test/a",
    "https://d\u043ecs.test/",
    "slack://evil",
]
SCHEMES += ["%68ttps://evil.test/", "ht\ntps://evil.test/", "&#104;ttps://evil.test/", "h\u00adttps://evil.test/"]
FORMS = ["[x][y]\n\n[y]: https://evil.test/a", "<https://evil.test/a>", '<a href="https://evil.test/a">x</a>']
FORMS += [
    "<https://evil.test/a|https://docs.test/>",
    "_https://evil.test/a_",
    "-https://evil.test/a",
    "<iframe src=evil>",
]
FORMS += [
    "https:\u200b//evil.test/",
    "![i](https://evil.test/i.png)",
    "<!date^1^{date}^https://evil.test/|x>",
    "www.evil.test/a",
]
CALLS = [
    "<!channel>",
    "<!here|x>",
    "<!subteam^S0EVIL>",
    "<@U0EVIL>",
    "<#C0EVIL|help>",
    "&lt;!channel&gt;",
    "`<!channel>`",
]
HIDDEN = ["pay \u202e001\u202c euros", "a\U000e0041\U000e0042b", "a\u2066\u2067b\u2069"]
SECRETS = ["xoxb" + "-2847163950-" + MIX[:24], "sk" + "-proj-" + MIX, "password: " + "Winter2026!", "pcsk_" + MIX * 2]
SECRETS += ["postgres://admin:" + "p4ssw0rd9" + "@db.acme.test/main"]
SERIALISED = ['{"answer": "Use the console."}', '{"action": "respond", "text": "x"}', "<thinking>x</thinking>"]
ATTACKS = [*(f"[x]({target})" for target in SCHEMES), *FORMS, *CALLS, *HIDDEN, *SECRETS, *SERIALISED]
NEVER = [*SECRETS, '{"', "{&quot;", "thinking>"]
WRITES = ("chat.", "views.", "assistant.threads", "agents.")
WAYS = {False: ("respond", "complete", "ask_user"), True: ("respond", "plan")}


def attack_in(body: Mapping[str, Any]) -> tuple[str, str]:
    """The attack and the way out that a question names."""
    number, way = re.findall(r"attack (\d+) by (\w+)", json.dumps(body["messages"]))[-1]
    return ATTACKS[int(number)], way


def decide(body: Mapping[str, Any]) -> Scripted:
    attack, way = attack_in(body)
    if way == "complete":
        return calls(("complete", {"summary": f"{TRUE} {attack}"}))
    if way == "ask_user":
        return calls(("ask_user", {"question": f"Which one do you mean? {attack}", "key": "k"}))
    if way == "respond" or body["messages"][-1]["role"] == "tool" or "found so far" in json.dumps(body):
        return RESPOND
    plan = [{"description": f"Look at {attack} first"}, {"description": "Read more"}]
    return calls(("search", {"query": "deploy", "plan": plan}))


def write(body: Mapping[str, Any]) -> Scripted:
    attack, way = attack_in(body)
    return says(f"<answer>{TRUE} {attack if way == 'respond' else ''}</answer>")


def live_parts_sent(setting: Setting) -> dict[str, list[str]]:
    """What Slack would make live of all that it was sent, by method, but for the documents and messages themselves."""
    own = re.compile(rf"{re.escape(setting.workspace.url)}/(?:docs|archives)/|@{VISITOR}$|#{CHANNEL}$|!date\^")
    found = {
        call.method: [part for part in live_parts(call.arguments) if not own.match(part)]
        for call in setting.workspace.calls
        if call.method.startswith(WRITES)
    }
    return {method: parts for method, parts in found.items() if parts}


@pytest.mark.parametrize("streams", [False, True])
async def test_nothing_that_a_model_repeats_of_an_attack_acts_in_slack(
    *, streams: bool, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.slack.rate_limits.PACES", {})  # two hundred questions in one channel
    (tmp_path / "deploy.md").write_text(f"# Deploy\n\n{TRUE.removesuffix(' [1].')}.\n")
    async with ScriptedOpenAI(decisions=decide, drafts=write) as server:
        model = {"openai_base_url": server.url, "openai_api_key": SecretStr("k"), "model": "m", "max_attempts": 1}
        settings = settings_in(tmp_path / "home", redis_url, **model, streams=streams)
        async with running(settings, docs=tmp_path) as setting:
            asked = {
                setting.ask(f"{MENTION} How do I deploy? (attack {number} by {way})"): (way, attack)
                for way in WAYS[streams]
                for number, attack in enumerate(ATTACKS)
            }
            await wait_until(lambda: idle(setting), "all are answered", 100)
            assert {ts: asked[ts] for ts in asked if not answers(setting.workspace, ts, ts)} == {}
            assert live_parts_sent(setting) == {}
            sent = json.dumps([call.arguments for call in setting.workspace.calls if call.method.startswith("chat.")])
            assert [words for words in NEVER if json.dumps(words)[1:-1] in sent] == []


BAD = (
    "<!channel> [y](ssh://evil.test/) javascript:evil \u202etxt\u202c \U000e0041 *b* `c` <@U0EVIL> <#C0EVIL> &lt;!here>"
)
DOCUMENTS = {
    "a.md": f"---\ntitle: {BAD}\nurl: javascript:evil\n---\n\n# {BAD}\n\n## Deploying {BAD}\n\n"
    f"Deploy from the console of the platform. {BAD}\n\n- Deploy step {BAD}\n\n"
    f"| a | b |\n|---|---|\n| deploy {BAD} | x |\n",
    "<!channel> \u202e evil.md": f"# Seats\n\nThe team plan has forty seats. {BAD}\n",
    "b.html": "<title>&lt;!channel&gt; \u202e</title><h1>Roll back</h1><p>Roll back with the console. "
    "<a href='javascript:evil'>js</a> &lt;!here&gt; &#x202e;txt</p>",
}
QUESTIONS = ["How do I deploy?", "How many seats has the team plan?", "How do I roll back?", f"zebra? {BAD}"]
BUTTONS = ("orion_trust", "orion_feedback", "orion_not_helpful", "orion_hand_off")


async def press_everything(setting: Setting, answer: Mapping[str, Any], user: str = VISITOR) -> None:
    for action in BUTTONS:
        with suppress(ApiError):  # not every answer has every button
            await setting.workspace.click(CHANNEL, answer["ts"], action, user=user)


@pytest.mark.parametrize("model", ["", "m"])
async def test_nothing_in_documents_names_and_messages_acts_on_any_surface(
    model: str, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.slack.rate_limits.PACES", {})
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in DOCUMENTS.items():
        (docs / name).write_text(text)
    people = {"handoff": CHANNEL, "report": CHANNEL, "admins": frozenset({VISITOR}), "answers": tmp_path / "answers"}
    async with ScriptedOpenAI(decisions=lambda _: RESPOND, drafts=lambda _: says(f"<answer>{TRUE}</answer>")) as server:
        settings = settings_in(
            tmp_path / "home", redis_url, **people, openai_base_url=server.url if model else "", model=model
        )
        async with running(settings, docs=docs) as setting:
            workspace = setting.workspace
            roster = workspace.workspace.roster
            for user in (VISITOR, "U0ONCALL"):
                roster.members[user] = Member(id=user, name=BAD, title=BAD)
            roster.channels["C0ENGINEERING"].name, roster.groups["S0HELPERS"] = BAD, BAD
            for question in QUESTIONS:
                file = workspace.add_file(VISITOR, "<!channel> \u202eevil.txt", f"Zebras deploy. {BAD}".encode())
                ts = workspace.post(
                    VISITOR, CHANNEL, f"{MENTION} {question}", files=[file] if "zebra" in question else []
                )
                await press_everything(setting, await setting.answer_to(ts))
            asked = workspace.post("U0ONCALL", CHANNEL, f"Where is <#C0ENGINEERING>, <!subteam^S0HELPERS>? {BAD}")
            reply = workspace.post("U0ONCALL", CHANNEL, f"Behind the reception. {BAD}", asked)
            await workspace.use_shortcut(CHANNEL, reply, "orion_save", VISITOR)
            await workspace.use_shortcut(CHANNEL, asked, "orion_ask_privately", VISITOR)
            workspace.post(VISITOR, DIRECT, f"How do I deploy? {BAD}")
            workspace.open_home(VISITOR)
            workspace.open_home(VISITOR, "messages")
            methods = {"views.open", "views.publish", "assistant.threads.setSuggestedPrompts", "agents.sessions.rename"}
            await wait_until(
                lambda: methods <= {call.method for call in workspace.calls}, "every surface was shown", 30
            )
            await wait_until(lambda: idle(setting), "all are answered", 30)
            assert setting.orion.reporting is not None
            monday = latest_due(datetime.now(UTC), "UTC") + timedelta(days=7, hours=1)
            reports = replace(setting.orion.reporting, now=lambda: monday)
            assert await reports.post_if_due(await reports.workspaces.of(""))
            assert live_parts_sent(setting) == {}


REFUSED = {
    GUEST: Member(id=GUEST, name="Guest", is_restricted=True),
    STRANGER: Member(id=STRANGER, name="Stranger", team="T0OTHER"),
    "U0DENIED": Member(id="U0DENIED", name="Denied"),
}
SHORTCUTS = ("orion_ask", "orion_ask_privately", "orion_save")


@pytest.mark.parametrize("user", REFUSED)
async def test_a_person_without_access_is_shown_nothing_by_any_gesture(
    user: str, tmp_path: Path, redis_url: str
) -> None:
    (tmp_path / "walrus.md").write_text("# Walrus plan\n\nThe walrus plan has forty seats.\n")
    people = {"deny_users": frozenset({"U0DENIED"}), "handoff": CHANNEL, "admins": frozenset({VISITOR})}
    settings = settings_in(tmp_path / "home", redis_url, **people, answers=tmp_path / "answers")
    async with running(settings, docs=tmp_path) as setting:
        workspace, roster = setting.workspace, setting.workspace.workspace.roster
        roster.members |= REFUSED
        roster.channels[CHANNEL].members.add(user)
        ts = setting.ask(f"{MENTION} How many seats has the walrus plan?")
        answer = await setting.answer_to(ts)
        await wait_until(lambda: idle(setting), "the turn is over")
        before = len(workspace.calls)
        for tab in ("home", "messages"):
            workspace.open_home(user, tab)
        await press_everything(setting, answer, user)
        for shortcut in SHORTCUTS:
            for message in (ts, answer["ts"]):
                await workspace.use_shortcut(CHANNEL, message, shortcut, user)
        workspace.post(user, roster.direct_chat(user).id, "How many seats has the walrus plan?")
        shown = {"views.publish", "views.open", "chat.postMessage", "chat.postEphemeral"}
        await wait_until(lambda: shown <= {call.method for call in workspace.calls[before:]}, "each was answered", 20)
        await wait_until(lambda: idle(setting), "all are seen to")
        after = json.dumps([call.arguments for call in workspace.calls[before:] if call.method.startswith(WRITES)])
        assert "forty" not in after
        assert "Walrus" not in after
        (turn,) = {post["metadata"]["event_payload"]["turn_id"] for post in answers(workspace, ts, ts)}
        assert await setting.orion.observers.records.judgements({"turn_id": turn}) == []
