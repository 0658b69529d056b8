"""Traces of `orion ask` in Langfuse, in an environment of their own (G2).

Import this only with Langfuse's keys: its SDK takes half a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from agent.thread.conversation import Question
from bot.settings import Settings
from bot.turn.observer import open_tracer
from observability.langfuse.tracing import TurnTrace

# A person waits for the prompt: what a dead host did not take by then is dropped.
SENT_WITHIN_S: Final = 2.0


@asynccontextmanager
async def traced(settings: Settings, question: Question, turn_id: str, *, session: str) -> AsyncIterator[TurnTrace]:
    """The trace of a question, begun; leaving ends it, where nothing else did, and sends it."""
    tracer = open_tracer(settings, "terminal")
    try:
        trace = tracer.turn(turn_id, thread=session, user=question.user, question=question.text)
        try:
            yield trace
        finally:
            trace.end(outcome="interrupted")
    finally:
        await tracer.aclose(deadline_s=SENT_WITHIN_S)
