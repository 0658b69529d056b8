"""A bot that streams its answers to the local workspace, and the drafts it streams."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.local.model.limits import LENIENT, Strictness
from bot.turn.engine import TurnTimeouts
from tests.support.local_slack import block_text
from tests.support.openai_server import RESPOND, Script, Scripted, ScriptedOpenAI, says
from tests.support.orion_running import CHANNEL, MENTION, Setting, running, text_of
from tests.support.scripted_orion import LIMIT, with_server
from tests.support.waiting import wait_until

FIRST = "Each API key may make 600 requests a minute [1]."
WRONG = "Bursts of up to 900 requests a second are accepted [1]."
THIRD = "Keys on the partner plan may make **3,000 requests** a minute [1]."
START, APPEND, STOP = "chat.startStream", "chat.appendStream", "chat.stopStream"
QUICK = TurnTimeouts(call_s=5.0, request_s=1.0, first_pause_s=0.01, pause_least_s=0.05, pause_most_s=0.1, rest_s=0.05)


def draft(*blocks: str, gate: asyncio.Event | None = None, rest: tuple[str, ...] = ()) -> Scripted:
    """A draft that stops before ``rest`` until ``gate`` is set. Words come one by one."""
    before, after = "\n\n".join(blocks), "".join(f"\n\n{block}" for block in rest)
    return says("<answer>", *pieces(before), before_end=gate, after=(*pieces(after), "</answer>"))


def pieces(text: str) -> tuple[str, ...]:
    return tuple(text[at : at + 7] for at in range(0, len(text), 7))


@dataclass(kw_only=True)
class Stage:
    """An Orion with streams, its model, and the gate that the model waits at."""

    setting: Setting
    server: ScriptedOpenAI
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self, **more: Any) -> str:
        return self.setting.ask(f"{MENTION} {LIMIT}", **more)

    def calls(self, method: str) -> int:
        return sum(call.method == method for call in self.setting.workspace.calls)

    def own(self, ts: str) -> list[dict[str, Any]]:
        """Everything in the thread but the question."""
        return [m for m in self.setting.workspace.messages(CHANNEL, ts) if m.get("bot_id")]

    async def wait_for_text(self, ts: str, text: str) -> dict[str, Any]:
        """The one message that grows, once it holds this."""
        await self.setting.workspace.wait_for(lambda: any(text in text_of(m) for m in self.own(ts)))
        (message,) = self.own(ts)
        return message

    async def wait_for_answer(self, ts: str) -> dict[str, Any]:
        """The only message of Orion in the thread, once it is complete."""
        await self.setting.answer_to(ts)
        await wait_until(lambda: self.setting.orion.worker.in_flight == 0, "the turn is over")
        (message,) = self.own(ts)
        assert "streaming_state" not in message
        return message


@asynccontextmanager
async def stage(
    home: Path,
    redis_url: str,
    *drafts: Scripted | Callable[[Mapping[str, Any]], Scripted],
    gate: asyncio.Event | None = None,
    strictness: Strictness = LENIENT,
    decisions: Script = lambda _: RESPOND,
    **more: Any,
) -> AsyncIterator[Stage]:
    """``drafts``: in their order, or one function of the request."""
    script: Script = [each for each in drafts if isinstance(each, Scripted)]
    for each in drafts:
        if not isinstance(each, Scripted):
            script = each
    async with ScriptedOpenAI(decisions=decisions, drafts=script) as server:
        settings = with_server(home, redis_url, server).model_copy(update={"streams": True, **more})
        async with running(settings, strictness=strictness, timeouts=QUICK) as setting:
            held = gate or asyncio.Event()
            try:
                yield Stage(setting=setting, server=server, gate=held)
            finally:
                held.set()


def body(message: dict[str, Any]) -> str:
    return "\n".join(map(block_text, message["blocks"]))
