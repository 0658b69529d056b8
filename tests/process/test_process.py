"""The log of `orion serve` as a process of its own, after every ending of a turn."""

import asyncio
import json
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp

from agent.model.prompts import NOT_FOUND
from bot.local.model.limits import LENIENT
from bot.local.model.roster import VISITOR
from bot.local.server import LocalWorkspace
from tests.support.openai_server import RESPOND, Scripted, ScriptedOpenAI, calls, says
from tests.support.orion_running import CHANNEL, MENTION, answers, process, serve_environment, text_of, text_pages
from tests.support.waiting import wait_until

GOOD = "<answer>Each API key may make 600 requests a minute [1].</answer>"


def workspace() -> LocalWorkspace:
    return LocalWorkspace(docs=(text_pages(),), strictness=LENIENT)


async def wait_until_connected(opened: LocalWorkspace) -> None:
    await wait_until(lambda: opened.connections == 1, "orion serve is connected", 60)


ANSWERABLE = "How many requests per minute may an API key make? The {word} team asks."
QUESTIONS = {
    "zebrafinch": ANSWERABLE,
    "heliotrope": ANSWERABLE,
    "bandicoot": ANSWERABLE,
    "periwinkle": ANSWERABLE,
    "quetzal": "quetzal?",
    "ocelot": ANSWERABLE,
    "narwhal": ANSWERABLE,
}
"""One question for each ending of a turn, identified by a word that is in no document."""
DRAFTS = {
    "zebrafinch": GOOD,
    "heliotrope": "<answer>Each API key may make 600 requests a minute [1]. A team may make 987654 [1].</answer>",
    "bandicoot": "<answer>Each API key may make 987654 requests a minute [1].</answer>",
    "periwinkle": f"<answer>{NOT_FOUND}</answer>",
    "quetzal": "<answer>The quetzal was first described in 1832 and lives in cloud forests.</answer>",
}
ASKED_BACK = "Which marmoset do you mean?"


def asked_about(request: Mapping[str, Any]) -> str:
    """The word of the question that a request of Orion's is about."""
    text = json.dumps(request["messages"])
    return next(word for word in QUESTIONS if word in text)


def decision(request: Mapping[str, Any]) -> Scripted:
    return (
        calls(("ask_user", {"question": ASKED_BACK, "key": "which"})) if asked_about(request) == "ocelot" else RESPOND
    )


async def test_no_log_line_has_a_text_or_a_secret(tmp_path: Path) -> None:
    """Every ending of a turn, an edit, a deletion and a bad signature: the log has the events, and no one's words."""
    never = asyncio.Event()

    def draft(request: Mapping[str, Any]) -> Scripted:
        word = asked_about(request)
        return says(DRAFTS[word]) if word in DRAFTS else says("<answer>Each API key may", before_end=never)

    async with workspace() as opened, ScriptedOpenAI(decisions=decision, drafts=draft) as server:
        environment = serve_environment(
            opened, tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-test-abcdefghijklmnop", ORION_MODEL="m",
            ORION_JUDGE="off",
        )  # fmt: skip
        log = tmp_path / "log"
        async with process(["serve", "--mode", "http"], environment, log) as served:
            opened.http.url = f"http://127.0.0.1:{await port_in(log)}/slack/events"
            forged = {"text": ANSWERABLE, "token": "xoxb-forged-badger"}
            headers = {"X-Slack-Request-Timestamp": str(int(time.time())), "X-Slack-Signature": "v0=badger"}
            async with (
                aiohttp.ClientSession() as attacker,
                attacker.post(opened.http.url, json=forged, headers=headers) as reply,
            ):
                assert reply.status == 401
            turns = await every_ending(opened, log)
            served.send_signal(signal.SIGTERM)
            assert await served.wait() == 0
        text = log.read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        ended = {line["outcome"] for line in lines if line["event"] == "turn_outcome"}
        assert ended == {"answered", "partial", "failed", "refused", "unsourced", "asked"}
        happened = {line["event"] for line in lines}
        assert {"turn_stopped", "answer_delivered", "event_stored", "turn_ended", "slack_signature_refused"} <= happened
        assert {line["turn_id"] for line in lines if line["event"] == "turn_outcome"} <= turns
        words = ["987654", "requests a minute", "requests per minute", "API key", "cloud forests", "marmoset", "badger"]
        secrets = [
            "sk-test",
            "an assistant in a team's chat",
            opened.bot_token,
            opened.app_token,
            opened.signing_secret,
        ]
        assert [word for word in [*QUESTIONS, *words, *secrets] if word in text] == []


async def every_ending(opened: LocalWorkspace, log: Path) -> set[str]:
    """Ask each question, stop one, edit one, delete one. Returns the ids of the turns whose answers are in Slack."""
    asked = {
        word: opened.post(VISITOR, CHANNEL, f"{MENTION} {question.format(word=word)}")
        for word, question in QUESTIONS.items()
    }
    running = asked.pop("narwhal")
    for ts in asked.values():
        await opened.wait_for(lambda ts=ts: answers(opened, ts, ts), 60)  # type: ignore[misc]
    shown_for = {word: text_of(answers(opened, ts, ts)[0]) for word, ts in asked.items()}
    assert "marmoset" in shown_for["ocelot"]
    assert "left out" in shown_for["heliotrope"]
    turns = {turn_of(opened, ts) for ts in asked.values()}
    opened.post(VISITOR, CHANNEL, "stop", running)
    await wait_until(lambda: "turn_stopped" in log.read_text(), "the turn is stopped")
    edited = asked["zebrafinch"]
    opened.edit(CHANNEL, edited, f"{MENTION} {QUESTIONS['bandicoot'].format(word='bandicoot')}")
    await opened.wait_for(lambda: turn_of(opened, edited) not in turns, 30)
    opened.delete(CHANNEL, asked["heliotrope"])
    await opened.wait_for(lambda: not answers(opened, asked["heliotrope"], asked["heliotrope"]), 30)
    return turns | {turn_of(opened, edited)}


def turn_of(opened: LocalWorkspace, ts: str) -> str:
    """The id of the turn that answered this question."""
    return str(answers(opened, ts, ts)[0]["metadata"]["event_payload"]["turn_id"])


async def port_in(log: Path) -> int:
    """The port that a process says it opened."""
    found: list[int] = []

    def is_open() -> bool:
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        found.extend(line["port"] for line in lines if line["event"] == "pages_open")
        return bool(found)

    await wait_until(is_open, "the pages are open", 60)
    return found[0]
