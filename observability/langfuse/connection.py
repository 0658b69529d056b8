"""The connection to Langfuse: a trace for each turn, people's feedback, and an end that keeps its deadline."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from typing import Any, Final

from observability.langfuse.sender import Sender
from observability.langfuse.tracing import TurnTrace, walled

# W3C Trace Context: 16 bytes in small hexadecimal digits, not all of them zero.
_TRACE_ID: Final = re.compile("[0-9a-f]{32}")


def trace_id_of(turn_id: str) -> str:
    """The trace of a turn: the same whoever asks, so a click days later and a turn begun anew both find it.

    A turn id that can be a trace id is one: what the log and the record call the turn finds its trace too.
    """
    if _TRACE_ID.fullmatch(turn_id) and turn_id.strip("0"):
        return turn_id
    return hashlib.sha256(turn_id.encode("utf-8", "replace")).hexdigest()[:32]


class Tracer:
    """The process's connection to Langfuse; without keys, a null tracer. ``version`` is that of the prompts."""

    def __init__(  # noqa: PLR0913 (what a connection needs, each named at the call)
        self,
        *,
        public_key: str,
        secret_key: str,
        host: str,
        send_content: bool = True,
        version: str = "",
        environment: str | None = None,
    ) -> None:
        """``environment`` is kept apart from people's questions in Slack, which stand in Langfuse's default one."""
        self.host = host.rstrip("/")
        self.keys = (public_key, secret_key)
        self.send_content = send_content
        self.environment = environment
        self.tag = environment or "slack"
        about = {"environment": environment, "release": version_of("orion"), "version": version}
        self.about = {f"langfuse.{name}": value for name, value in about.items() if value}
        keyed = public_key and secret_key
        self.sender = Sender(public_key=public_key, secret_key=secret_key, host=self.host) if keyed else None

    def turn(self, turn_id: str, *, thread: str, user: str, question: str) -> TurnTrace:
        """The trace of a turn, begun."""
        trace = TurnTrace(self, trace_id_of(turn_id))
        trace.begin(thread=thread, user=user, question=question)
        return trace

    @walled
    def feedback(self, turn_id: str, *, user: str, good: bool, reasons: Sequence[str] = (), said: str = "") -> None:
        """A person's judgement of an answer, on the same trace; a second click of theirs replaces the first.

        ``said`` is sent only where texts may be.
        """
        part = hashlib.sha256(user.encode()).hexdigest()[:16]
        comment = ": ".join(filter(None, (", ".join(reasons), said if self.send_content else "")))
        self.score(
            "user_feedback", float(good), kind="BOOLEAN", trace_id=trace_id_of(turn_id), part=part, comment=comment
        )

    @walled
    def verifier(self, *, false_accept_rate: float, false_reject_rate: float) -> None:
        """How often the verifier was wrong on labelled texts; they belong to no turn, so to a session of their own."""
        rates = {"verifier_false_accept_rate": false_accept_rate, "verifier_false_reject_rate": false_reject_rate}
        for name, rate in rates.items():
            self._send({"id": secrets.token_hex(16), "sessionId": "verifier"}, name, rate, "NUMERIC")

    def score(  # noqa: PLR0913 (a score has this many facts, each named at the call)
        self,
        name: str,
        value: float | str,
        *,
        kind: str,
        trace_id: str,
        part: str = "",
        observation: str | None = None,
        comment: str = "",
    ) -> None:
        """Queue one score of a trace; its id follows from the rest. For callers behind the wall."""
        facts = {"traceId": trace_id, "observationId": observation, "comment": comment}
        known = {"id": "-".join(filter(None, (trace_id, name, part)))} | {k: v for k, v in facts.items() if v}
        self._send(known, name, value, kind)

    async def aclose(self, *, deadline_s: float = 3.0) -> None:
        """Send what is left, within ``deadline_s`` seconds; what a dead host did not take by then is dropped."""
        sender, self.sender = self.sender, None
        if sender is not None:
            await sender.aclose(deadline_s=deadline_s)

    def _send(self, about: dict[str, Any], name: str, value: float | str, kind: str) -> None:
        if self.sender is None:  # closed while a turn was on its way
            return
        where = {"environment": self.environment} if self.environment else {}
        when = datetime.now(UTC).isoformat()  # it may wait for a host that is away
        score = {**about, "name": name, "value": value, "dataType": kind, "timestamp": when, **where}
        self.sender.score(score)
