"""Measure the time of an answer next to one plain streamed call, and the cost of a conversation.

Run it by hand: `python -m tests.measure.latency`. The model is a server that decides after 1.2 s, writes after 0.6 s at
40 tokens a second and judges in 1 s. What was sent before is what a provider's prompt cache can use.
"""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any, Final

import aiohttp

from agent.budget import Budget
from agent.model.openai import OpenAIModel
from agent.model.protocol import ServerAddress
from agent.thread.state import ThreadState
from agent.turn.loop import run_turn
from agent.turn.progress import Policy
from tests.support.fakes import LIMITS, REFUNDS, Listener, PassageTool, question
from tests.support.openai_server import RESPOND, Mode, Scripted, ScriptedOpenAI, calls, says
from verification.types import Source

DECIDE_S: Final = 1.2
FIRST_TOKEN_S: Final = 0.6
TOKENS_A_SECOND: Final = 40
JUDGE_S: Final = 1.0
THOUGHT: Final = "<thinking>The limits page has the figure and what comes above it. Nothing is missing.</thinking>"
PARAGRAPHS: Final = (
    ("A key is good for 120 requests in each minute, and what goes beyond that is turned away with error 429 [1]."),
    (
        "So a client that needs more has to spread its requests over time: 120 × 60 = 7,200 requests are possible "
        "in an hour, as long as no single minute goes above the limit [1]."
    ),
    (
        "Meals on a trip are another matter: what people spend on them comes back to them, but not more than 45 "
        "euros for each day they are away [2]."
    ),
)
FOUND: Final[tuple[Source, ...]] = (LIMITS, REFUNDS)


class Screen:
    """A stage that notes when each block is shown."""

    def __init__(self) -> None:
        self.shown: list[float] = []

    async def show(self, markdown: str, text: str) -> bool:
        """Take a block."""
        self.shown.append(time.perf_counter())
        return bool(markdown or text)


class Paced:
    """The replies of the server, with their times."""

    def decide(self, _: Mapping[str, Any]) -> Scripted:
        return replace(RESPOND, wait_s=DECIDE_S)

    def write(self, _: Mapping[str, Any]) -> Scripted:
        return says(*_tokens(_draft()), wait_s=FIRST_TOKEN_S, piece_s=1 / TOKENS_A_SECOND)

    def judge(self, request: Mapping[str, Any]) -> Scripted:
        claims = re.findall(r"^claim (\d+), cites \[(\d+)\]", request["messages"][-1]["content"], re.MULTILINE)
        said = [{"claim": int(n), "lines": [f"{cited}.1"], "supported": True} for n, cited in claims]
        return says(json.dumps({"verdicts": said, "reply": "answered"}), wait_s=JUDGE_S)


def _draft() -> str:
    answer = "\n\n".join(PARAGRAPHS)
    return f"{THOUGHT}<answer>{answer}</answer>"


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(text[start : start + 4] for start in range(0, len(text), 4))


def _prompt_text(request: Mapping[str, Any]) -> str:
    """A prompt as a cache sees it: tools come before messages."""
    tools = json.dumps(request["tools"]) if "tools" in request else ""
    return tools + json.dumps(request["messages"])


def cacheable_share(prompts: list[str]) -> float:
    """The share of all characters sent that were at the same place in an earlier prompt."""
    common = sum(
        max((_common(earlier, prompt) for earlier in prompts[:number]), default=0)
        for number, prompt in enumerate(prompts)
    )
    return common / sum(map(len, prompts))


def _common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


async def plain(server: ScriptedOpenAI) -> float:
    """Seconds of one streamed call without anything round it."""
    body = {"model": "m", "stream": True, "messages": [{"role": "system", "content": "Answer."}]}
    began = time.perf_counter()
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.url}/chat/completions", json=body) as reply,
    ):
        await reply.read()
    return time.perf_counter() - began


async def turn(server: ScriptedOpenAI, *, early: bool, streams: bool, judged: bool) -> tuple[float, float]:
    """Seconds to the first visible words and to the whole answer, with an empty connection pool."""
    model = OpenAIModel(address=ServerAddress(base_url=server.url), model="m")
    screen = Screen() if streams else None
    began = time.perf_counter()
    outcome, _ = await run_turn(
        question("How many requests may a key send a minute, and are meals paid back?", ts="1795430400.0"),
        ThreadState(),
        model=model,
        tools={"search": PassageTool(*FOUND)},
        budget=Budget(),
        emit=Listener(),
        policy=Policy(early_draft=early),
        judge=model if judged else None,
        stage=screen,
    )
    whole = time.perf_counter() - began
    await model.aclose()
    if outcome.name != "answered":
        raise AssertionError(outcome)
    return screen.shown[0] - began if screen and screen.shown else whole, whole


THOUSAND: Final = "A page of the handbook has a few hundred words, and most of them are about something else. " * 12
QUESTIONS: Final = (
    "How many requests may a key send a minute?",
    "And what about meals? Look it up.",
    "Then how many requests are too many?",
)


class Conversation:
    """Three turns of one thread: an easy one, one with a second search, one whose first draft is wrong."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.searched = False

    def decide(self, request: Mapping[str, Any]) -> Scripted:
        self.asked.append(_prompt_text(request))
        prompt = request["messages"][-1]["content"]
        if QUESTIONS[1] in prompt and not self.searched:
            self.searched = True
            found = {"query": "meals on a business trip"}
            if "tools" not in request:
                return says(json.dumps({"action": "tool_call", "tool": "search", "input": found}))
            return calls(("search", found))
        return RESPOND if "tools" in request else says('{"action": "respond"}')

    def write(self, request: Mapping[str, Any]) -> Scripted:
        self.asked.append(_prompt_text(request))
        mended = any(message["role"] == "assistant" for message in request["messages"])
        wrong = QUESTIONS[2] in request["messages"][1]["content"] and not mended
        return says(f"<answer>A key may send {900 if wrong else 120} requests a minute [1].</answer>")


async def cost(mode: Mode) -> str:
    """Calls, tokens and what was sent before, over the three turns."""
    told, state = Conversation(), ThreadState()
    sources = tuple(replace(source, text=f"{source.text} {THOUSAND}") for source in FOUND)
    async with ScriptedOpenAI(decisions=told.decide, drafts=told.write, mode=mode) as server:
        model = OpenAIModel(address=ServerAddress(base_url=server.url), model="m")
        for number, text in enumerate(QUESTIONS):
            asked = question(text, ts=f"{1795430400 + number}.0")
            tools = {"search": PassageTool(*sources)}
            _, state = await run_turn(asked, state, model=model, tools=tools, budget=Budget(), emit=Listener())
        await model.aclose()
    sent = sum(map(len, told.asked))
    return (
        f"{len(told.asked)} calls, {sent / 4:.0f} prompt tokens, {cacheable_share(told.asked):.0%} of them sent before"
    )


async def main() -> None:
    """Print the tables."""
    paced = Paced()
    async with ScriptedOpenAI(decisions=paced.decide, drafts=paced.write, judgements=paced.judge) as server:
        alone = await plain(server)
        first_end = FIRST_TOKEN_S + len(_tokens(f"{THOUGHT}<answer>{PARAGRAPHS[0]}")) / TOKENS_A_SECOND
        say(f"one plain streamed call: {alone:.2f} s; its first paragraph ends after {first_end:.2f} s")
        say("early draft, streams, judge: first words s, whole s, after the plain call s")
        for early, streams, judged in product((False, True), repeat=3):
            first, whole = await turn(server, early=early, streams=streams, judged=judged)
            marks = ", ".join("yes" if mark else "no" for mark in (early, streams, judged))
            say(f"{marks}: {first:.2f}, {whole:.2f}, {whole - alone:+.2f}")
    modes: tuple[Mode, ...] = ("tools", "no_tools")
    for mode in modes:
        say(f"three turns, {mode}: {await cost(mode)}")


def say(line: str) -> None:
    """A line of a table."""
    print(line)  # noqa: T201 (for a person)


if __name__ == "__main__":
    asyncio.run(main())
