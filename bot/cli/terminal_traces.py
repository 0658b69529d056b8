"""Traces of `orion ask` in Langfuse, in an environment of their own (G2).

Import this only with Langfuse's keys: its SDK takes half a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar, Final

from agent.model.prompts import prompts_version
from agent.outcome import Cancelled, Failed, Refused, TurnOutcome, outcome_name
from agent.thread.conversation import Question
from agent.turn.events import TurnEvent
from bot.settings import Settings
from bot.turn.observer import trace_event
from observability.langfuse.tracing import Tracer, TurnTrace

SENT_WITHIN_S: Final = 2.0


class TerminalTracer(Tracer):
    """Traces that Langfuse keeps apart from those of people's questions in Slack."""

    environment: ClassVar[str | None] = "terminal"
    tags: ClassVar[tuple[str, ...]] = ("terminal",)


class TerminalTrace:
    """The trace of one question."""

    def __init__(self, trace: TurnTrace) -> None:
        self._trace = trace
        self._over = False

    def heard(self, event: TurnEvent) -> None:
        """Put one event of the turn on the trace."""
        trace_event(self._trace, event)

    def ended(self, outcome: TurnOutcome) -> None:
        """The turn is over."""
        self._over = True
        reason = outcome.reason if isinstance(outcome, Failed | Refused) else ""
        text = "" if isinstance(outcome, Cancelled) else outcome.answer.text
        self._trace.end(outcome=outcome_name(outcome), reason=reason, answer=text)

    def close(self) -> None:
        """No outcome comes any more, unless there was one."""
        if not self._over:
            self._trace.end(outcome="interrupted")


@asynccontextmanager
async def traced(settings: Settings, question: Question, turn_id: str, *, session: str) -> AsyncIterator[TerminalTrace]:
    """The trace of a question, begun; leaving sends it."""
    tracer = TerminalTracer(
        public_key=settings.langfuse_public_key,
        secret_key=settings.langfuse_secret_key.get_secret_value(),
        host=settings.langfuse_host,
        send_content=settings.trace_content,
        version=prompts_version(),
    )
    try:
        trace = TerminalTrace(tracer.turn(turn_id, thread=session, user=question.user, question=question.text))
        try:
            yield trace
        finally:
            trace.close()
    finally:
        await tracer.aclose(deadline_s=SENT_WITHIN_S)
