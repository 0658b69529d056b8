"""Attacks of each kind on a running Orion: none reaches Slack in a form that has an effect.

The model obeys everything it reads and repeats the attack. Documents, names and messages contain it too.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from bot.answers import AnswerBook
from bot.cli.mcp import build_server, open_agent
from bot.local.model.errors import ApiError
from bot.local.model.roster import BOT_USER, VISITOR, Channel, Member
from bot.reports.weekly import latest_due
from tests.support.attacks import ATTACKS, NEVER, SECRETS, SERIALISED
from tests.support.live_parts import live_parts
from tests.support.mcp_server import serve_app
from tests.support.openai_server import RESPOND, Scripted, ScriptedOpenAI, calls, says
from tests.support.orion_running import (
    CHANNEL,
    DIRECT,
    GUEST,
    MENTION,
    STRANGER,
    Setting,
    answers,
    dialog_values,
    idle,
    posts,
    running,
    settings_in,
    text_of,
)
from tests.support.waiting import wait_until

TRUE = "Deploy from the console of the platform [1]."
WRITES = ("chat.", "views.", "assistant.threads", "agents.")
WAYS = {False: ("complete", "ask_user", "unasked", "private"), True: ("respond",)}
BUTTONS = ("orion_trust", "orion_hand_off", "orion_share")


def attack_in(body: Mapping[str, Any]) -> tuple[int, str]:
    """Number of the attack and the way out that a question names."""
    number, way = re.findall(r"attack (\d+) by (\w+)", json.dumps(body["messages"]))[-1]
    return int(number), way


def decide(body: Mapping[str, Any]) -> Scripted:
    """Repeat the attack in a summary, in a question back, or in a plan, for which a tool of that name is called."""
    number, way = attack_in(body)
    attack = ATTACKS[number]
    if way == "complete":
        return calls(("complete", {"summary": f"{TRUE} {attack}"}))
    if way == "ask_user":
        return calls(("ask_user", {"question": f"Which one do you mean? {attack}", "key": "k"}))
    tool = f"evil{number % 2}_t{number}"
    if way == "unasked" or f"{tool} {{" in str(body["messages"]):
        return RESPOND
    plan = [{"description": f"Look at {attack} first"}, {"description": "Read more"}]
    return calls((tool, {}), ("finish_step", {"step": 1, "result": "Done", "plan": plan}))


def write(body: Mapping[str, Any]) -> Scripted:
    number, way = attack_in(body)
    cited = TRUE.replace("[1]", "[1][2]") if way != "unasked" and number % 2 else TRUE
    return says(f"<answer>{cited} {ATTACKS[number]}</answer>")


def evil_servers() -> tuple[MCPServer, MCPServer]:
    """Two MCP servers with a tool for each attack, which is its title. The tools of one fail, with it as the reason."""
    servers = MCPServer("evil0"), MCPServer("evil1")

    def tool(number: int) -> Callable[[], Awaitable[str]]:
        async def run() -> str:
            if number % 2 == 0:
                raise ToolError(ATTACKS[number])
            return TRUE.removesuffix(" [1].")

        return run

    for number, attack in enumerate(ATTACKS):
        servers[number % 2].add_tool(tool(number), name=f"t{number}", title="Tool" if attack in SERIALISED else attack)
    return servers


@asynccontextmanager
async def evil_configuration(folder: Path) -> AsyncIterator[Path]:
    """The file that names the two servers, while they run."""
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(serve_app(one.streamable_http_app())) for one in evil_servers()]
        named = {f"evil{n}": {"url": url, "audience": "public", "allow": ["*"]} for n, url in enumerate(urls)}
        file = folder / "mcp.json"
        file.write_text(json.dumps({"mcpServers": named}))
        yield file


def live_parts_sent(setting: Setting) -> dict[str, list[str]]:
    """The parts of everything sent to Slack that Slack would make active, by method, except for Orion's own links."""
    own = re.compile(
        rf"{re.escape(setting.workspace.url)}/(?:docs|archives)/|@(?:{VISITOR}|U0P\d+)$|#{CHANNEL}$|!date\^"
    )
    found = {
        call.method: [part for part in live_parts(call.arguments) if not own.match(part)]
        for call in setting.workspace.calls
        if call.method.startswith(WRITES)
    }
    return {method: parts for method, parts in found.items() if parts}


async def ask_all(setting: Setting, ways: Sequence[str]) -> None:
    """Ask for every attack by every other way: each of a person and in a channel of its own where Orion listens."""
    roster = setting.workspace.workspace.roster
    for number in range(len(ATTACKS)):
        user, ear = f"U0P{number}", f"C0EAR{number}"
        roster.members[user] = Member(id=user, name="Person")
        roster.channels[ear] = Channel(id=ear, name=f"ear-{number}", members={user, BOT_USER})
        roster.channels["C0GENERAL"].members.add(user)
        for way in ways[number // 2 % 2 :: 2] or ways:  # each kind of attack, with each server, by each way
            text = f"How do I deploy? (attack {number} by {way})"
            if way == "private":
                ts = setting.ask(text, channel="C0GENERAL", user="U0ONCALL")
                await setting.workspace.use_shortcut("C0GENERAL", ts, "orion_ask_privately", user)
            elif way == "unasked":
                setting.ask(text, channel=ear, user=user)
            else:
                setting.ask(f"{MENTION} {text}", user=user)
    await wait_until(lambda: idle(setting), "all are answered", 100)


async def press_everything(setting: Setting, channel: str, ts: str, user: str = VISITOR) -> None:
    for action in BUTTONS:
        with suppress(ApiError):  # not every answer has every button
            await setting.workspace.click(channel, ts, action, user=user)


@pytest.mark.parametrize("streams", [False, True])
async def test_an_attack_that_the_model_repeats_has_no_effect_in_slack(
    *, streams: bool, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.slack.rate_limits.PACES", {})  # hundreds of questions in one channel
    (tmp_path / "deploy.md").write_text(f"# Deploy\n\n{TRUE.removesuffix(' [1].')}.\n")
    ears = frozenset(f"C0EAR{number}" for number in range(len(ATTACKS)))
    async with (
        ScriptedOpenAI(decisions=decide, drafts=write, generations=lambda _: says("yes")) as server,
        evil_configuration(tmp_path) as configuration,
    ):
        more = {"mcp_config": configuration, "listen": ears, "handoff": CHANNEL}
        settings = settings_in(tmp_path / "home", redis_url, **server.settings, **more, max_attempts=1, streams=streams)
        async with running(settings, docs=tmp_path) as setting:
            await ask_all(setting, WAYS[streams])
            for channel in [*setting.workspace.workspace.roster.channels]:
                for post in posts(setting.workspace, channel):
                    await press_everything(setting, channel, post["ts"])
            await wait_until(lambda: idle(setting), "all buttons are seen to", 100)
            assert live_parts_sent(setting) == {}
            sent = json.dumps([call.arguments for call in setting.workspace.calls if call.method.startswith(WRITES)])
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
    "c.md": "".join(f"# Shelf {n} {attack}\n\nShelf {n} has pens. {attack}\n\n" for n, attack in enumerate(ATTACKS)),
} | {
    f"{n}.md": f"---\ntitle: {' '.join(' '.join(ATTACKS[n::8]).split())}\n---\n\nPallet {n} has paper.\n"
    for n in range(8)
}
QUESTIONS = ["How do I deploy?", "How many seats has the team plan?", "How do I roll back?", f"zebra? {BAD}"]
QUESTIONS += [f"What is on shelf {number}? {ATTACKS[number]}" for number in range(0, len(ATTACKS), 2)]
QUESTIONS += [f"Where is rack {number}?" for number in range(1, len(ATTACKS), 2)]  # of answers that people saved


async def save_every_attack(setting: Setting) -> None:
    """Save an answer that a person gave with each attack in it, unless the dialog refuses it."""
    workspace = setting.workspace
    asked = workspace.post("U0ONCALL", CHANNEL, f"Where is <#C0ENGINEERING>, <!subteam^S0HELPERS>? {BAD}")
    for number, attack in enumerate(ATTACKS):
        reply = workspace.post("U0ONCALL", CHANNEL, f"Rack {number} is behind the reception. {attack}", asked)
        await workspace.use_shortcut(CHANNEL, reply, "orion_save", VISITOR)
        view = (await workspace.wait_for(lambda: [*workspace.workspace.views.open.values()]))[-1].view
        values = dialog_values(view, question={"value": f"Where is rack {number}? {attack}"})
        errors = await workspace.submit(view["id"], values)
        assert [*live_parts({"text": "".join(errors.values())})] == []


@pytest.mark.parametrize("model", ["", "m"])
async def test_nothing_in_documents_names_and_messages_has_an_effect_anywhere(
    model: str, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.slack.rate_limits.PACES", {})
    docs, book = tmp_path / "docs", AnswerBook(folder=tmp_path / "answers")
    docs.mkdir()
    for name, text in DOCUMENTS.items():
        (docs / name).write_text(text)
    people = {"handoff": CHANNEL, "report": CHANNEL, "admins": frozenset({VISITOR}), "answers": book.folder}
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
            if not model:
                await save_every_attack(setting)
            for question in QUESTIONS[:5] if model else QUESTIONS:
                file = workspace.add_file(VISITOR, "<!channel> \u202eevil.txt", f"Zebras deploy. {BAD}".encode())
                ts = workspace.post(
                    VISITOR, CHANNEL, f"{MENTION} {question}", files=[file] if "zebra" in question else []
                )
                await press_everything(setting, CHANNEL, (await setting.answer_to(ts))["ts"])
            await workspace.use_shortcut(CHANNEL, ts, "orion_ask_privately", VISITOR)
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
            assert bool(book.answers()) == (not model)
            assert {answer.audience for answer in book.answers().values()} <= {f"T0LOCAL/{CHANNEL}"}
            sent = [json.dumps(call.arguments) for call in workspace.calls if call.method.startswith(WRITES)]
            shown = "".join(
                words for words in sent if "initial_value" not in words
            )  # dialogs with a person's own words
            assert [secret for secret in SECRETS if json.dumps(secret)[1:-1] in shown] == []


async def test_an_attack_that_the_model_repeats_does_not_reach_clients_of_orion_mcp(
    tmp_path: Path, redis_url: str
) -> None:
    bad = BAD.replace("C0EVIL", "C0BAD")  # a channel that a source names may be named
    (tmp_path / "deploy.md").write_text(f"# Deploy {bad}\n\n{TRUE.removesuffix(' [1].')}.\n\nDeploy {bad}\n")
    async with ScriptedOpenAI(decisions=lambda _: RESPOND, drafts=write) as server:
        settings = settings_in(tmp_path / "home", redis_url, docs=(tmp_path,), **server.settings, max_attempts=1)
        async with open_agent(settings) as agent, Client(build_server(agent, user="public")) as client:
            for number, attack in enumerate(ATTACKS):
                asked = await client.call_tool("ask", {"question": f"How do I deploy? (attack {number} by unasked)"})
                source = {"id": 1, "title": "Deploy", "url": "https://docs.test/", "text": TRUE}
                checked = await client.call_tool("verify", {"text": f"{TRUE} {attack}", "sources": [source]})
                answer, verdict = asked.structured_content or {}, checked.structured_content or {}
                assert [*live_parts({"markdown_text": answer["answer"]})] == []
                assert [words for words in NEVER if words in answer["answer"]] == []
                assert not verdict["passed"] or [*live_parts({"markdown_text": verdict["text"]})] == []
            found = await client.call_tool("search", {"query": "deploy"})
            passages = (found.structured_content or {})["passages"]
            assert [part for part in live_parts(passages) if part.startswith("hidden")] == []
            assert passages


GALLERY = """# Gallery

The gallery opened on 3 May 2024. The lease ends in March 2031. The desk is open Monday to Friday.

Requests are answered within 14 days.
"""
TODAY = datetime.now(UTC).date()
RIGHT_DATES = [
    "The gallery opened on May 3rd, 2024", "The gallery opened on 2024-05-03", "The gallery opened in May 2024",
    "The gallery opened on Friday, 3 May 2024", "The gallery opened in Q2 2024", "The gallery opened in 2024-W18",
    "Die Galerie öffnete am 3. Mai 2024", "Die Galerie öffnete am 03.05.2024", "画廊于2024年5月3日开放",
    "ギャラリーは2024年5月3日に開館しました", "La galerie a ouvert le 3 mai 2024", "The lease ends in March 2031",
    "The desk is open on Wednesday",
    f"A request of today is answered within 14 days, so by {TODAY + timedelta(14):%-d %B %Y}",
]  # fmt: skip
INVENTED_DATES = [
    *(f"The gallery closes on {TODAY + timedelta(days):{form}}" for days in (0, 9, 99) for form in ("%-d %B %Y", "%F")),
    f"The gallery closes in {TODAY + timedelta(90):%B %Y}", "The gallery closes in Q3 2027",
    "The gallery closes in 2027-W05", "The gallery opened in Q4 2024", "The gallery opened in 2024-W33",
    "The gallery closes in the third quarter of 2027",
    "The gallery closes in week 12 of 2027", "The gallery closes at 18:15", "Die Galerie schließt am 3. Mai 2027",
    "Die Galerie schließt am 3.5.2027", "Die Galerie schließt Ende Oktober 2027", "画廊于2027年5月3日关闭",
    "ギャラリーは2027年5月3日に閉まります", "La galerie ferme le 3 mai 2027", "La galería cierra el 3 de mayo de 2027",
    "Galeri tutup pada 3 Mei 2027", "The desk is open on Sundays", "The gallery closes tomorrow",
    "The gallery closes next month", "The gallery closes at Christmas", "The gallery closes in FY27",
    "The gallery closes in 3Q27", "The gallery closes in the third quarter", "The gallery closes Jun-27",
    "The gallery closes in '27", "Die Galerie schließt an Heiligabend", "La galerie ferme à midi", "画廊明天关闭",
    "La galerie ferme fin juin", "La galería cierra mañana", "Galeri tutup tahun depan", "ギャラリーは来月閉まります",
]  # fmt: skip


async def test_without_a_judge_an_invented_date_is_not_posted(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.slack.rate_limits.PACES", {})
    (tmp_path / "gallery.md").write_text(f"---\nupdated: 2023-01-09\n---\n\n{GALLERY}")
    claims = RIGHT_DATES + INVENTED_DATES

    def draft(body: Mapping[str, Any]) -> Scripted:
        number = re.findall(r"gallery (\d+)", json.dumps(body["messages"]))[-1]
        return says(f"<answer>{claims[int(number)]} [1].</answer>")

    async with ScriptedOpenAI(decisions=lambda _: RESPOND, drafts=draft) as server:
        more = {**server.settings, "max_attempts": 1, "judge": False}
        async with running(settings_in(tmp_path / "home", redis_url, **more), docs=tmp_path) as setting:
            asked = {setting.ask(f"{MENTION} Is there news about gallery {n}?"): c for n, c in enumerate(claims)}
            await wait_until(lambda: idle(setting), "all are answered", 60)
            shown_for = {claim: text_of(answers(setting.workspace, ts, ts)[0]) for ts, claim in asked.items()}
            assert [claim for claim, text in shown_for.items() if claim in text] == RIGHT_DATES


REFUSED = {
    GUEST: Member(id=GUEST, name="Guest", is_restricted=True),
    STRANGER: Member(id=STRANGER, name="Stranger", team="T0OTHER", is_stranger=True),
    "U0PARTNER": Member(id="U0PARTNER", name="Partner", team="T0OTHER"),
    "W0OTHERORG": Member(id="W0OTHERORG", name="Person of another enterprise", team="T0OTHER", enterprise="E0OTHER"),
    "U0DENIED": Member(id="U0DENIED", name="Denied"),
}
SHORTCUTS = ("orion_ask", "orion_ask_privately", "orion_save")


@pytest.mark.parametrize("user", REFUSED)
async def test_a_person_without_access_sees_nothing_after_any_click(user: str, tmp_path: Path, redis_url: str) -> None:
    (tmp_path / "walrus.md").write_text("# Walrus plan\n\nThe walrus plan has forty seats.\n")
    people = {"deny_users": frozenset({"U0DENIED"}), "handoff": CHANNEL, "admins": frozenset({VISITOR})}
    settings = settings_in(tmp_path / "home", redis_url, **people, answers=tmp_path / "answers")
    async with running(settings, docs=tmp_path) as setting:
        workspace, roster = setting.workspace, setting.workspace.workspace.roster
        roster.members[user] = Member(id=user, name="Person")
        roster.channels[CHANNEL].members.add(user)
        workspace.post(user, CHANNEL, f"{MENTION} How many seats has the walrus plan?")  # Orion now knows a full member
        ts = setting.ask(f"{MENTION} How many seats has the walrus plan?")
        answer = await setting.answer_to(ts)
        await wait_until(lambda: idle(setting), "the turn is over")
        roster.members |= REFUSED
        before = len(workspace.calls)
        workspace.open_home(user, "messages")
        workspace.open_home(user)
        await workspace.wait_for(lambda: [call for call in workspace.calls[before:] if call.method == "views.publish"])
        await press_everything(setting, CHANNEL, answer["ts"], user)
        for shortcut in SHORTCUTS:
            for message in (ts, answer["ts"]):
                await workspace.use_shortcut(CHANNEL, message, shortcut, user)
        await wait_until(
            lambda: "views.publish" in {call.method for call in workspace.calls[before:]}, "Slack was asked"
        )
        workspace.post(user, roster.direct_message(user).id, "How many seats has the walrus plan?")
        shown = {"views.publish", "views.open", "chat.postMessage", "chat.postEphemeral"}
        await wait_until(lambda: shown <= {call.method for call in workspace.calls[before:]}, "each was answered")
        await wait_until(lambda: idle(setting), "all are seen to")
        after = json.dumps([call.arguments for call in workspace.calls[before:] if call.method.startswith(WRITES)])
        assert "forty" not in after
        assert "Walrus" not in after
        (turn,) = {post["metadata"]["event_payload"]["turn_id"] for post in answers(workspace, ts, ts)}
        assert await setting.orion.observers.records.judgements({"turn_id": turn}) == []
