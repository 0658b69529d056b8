"""Streams of answers that are cut off and taken over."""

import asyncio
from dataclasses import replace
from typing import Any

from agent.thread.conversation import ThreadKey
from bot.delivery.stream import AnswerStream, Streams
from bot.slack.web_api import no_lease
from bot.turn.job import TeamServices
from tests.support.fakes import ScriptedModel
from tests.support.team_bot import TeamBot

GOOD = "<answer>Each key may send 120 requests a minute [1].\n\nAbove that the API answers with error 429 [1].</answer>"


class Noted:
    """Marks that only a test sees; with an ``error``, none can be set before the start."""

    def __init__(self, error: type[Exception] | None = None) -> None:
        self.told: list[str] = []
        self.error = error

    async def mark(self, _: Any, name: str, value: str) -> None:
        self.told.append("" if name.startswith("streams:") else value)
        if self.error:
            raise self.error


def stream_in(place: ThreadKey, streams: Streams, error: type[Exception] | None = None) -> tuple[AnswerStream, Noted]:
    noted = Noted(error)
    fakes: dict[str, Any] = {"mailbox": noted, "claimed": None, "begun": asyncio.Event()}
    stream = AnswerStream(streams=streams, place=place, user="U0YOU", lease_check=no_lease, turn_id="t1", **fakes)
    return stream, noted


def streaming_in(at: TeamBot, model: ScriptedModel | None = None, call_s: float = 5.0) -> TeamServices:
    """The same parts, with streams."""
    engine = replace(at.services.engine, model=model or at.model)
    return replace(at.services, engine=engine, streams=Streams(at.slack.calls, call_s=call_s))
