"""A process's tracing: a trace for each turn, people's feedback, and a shutdown that keeps its deadline."""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from functools import partial
from threading import Thread
from typing import Any, Final

import structlog

from observability.langfuse.connection import Connection, trace_id_of
from observability.langfuse.tracing import TurnTrace, content_of, log_exceptions, score_id
from observability.redaction import redact

log = structlog.get_logger()

SHUTDOWN_TIMEOUT_S: Final = 3.0


class Tracer:
    """Sends to Langfuse through its SDK, which is loaded when the first turn needs it. Without keys, a no-op."""

    def __init__(
        self,
        connection: Connection,
        *,
        tag: str = "slack",
        version: str = "",
        send_content: bool = True,
        known: re.Pattern[str] | None = None,
    ) -> None:
        """``version`` is that of the prompts; ``known`` matches the configured secrets."""
        self.connection = connection
        self.send_content = send_content
        self._redact = partial(redact, known=known)
        self.client: Any = None
        self._tag = tag
        self._version = version
        self._loading = asyncio.Lock()
        self._is_closed = False

    async def connect(self) -> None:
        """Load the SDK in a thread and open its client, once."""
        if self.client is not None or self._is_closed or not self.connection.is_configured:
            return
        async with self._loading:
            if self.client is None and not self._is_closed:
                try:
                    self.client = await asyncio.to_thread(self._open_client)
                except (ImportError, OSError, RuntimeError, ValueError) as error:
                    log.warning("langfuse_not_opened", error_type=type(error).__name__)
                    self._is_closed = True

    async def turn(self, turn_id: str, *, thread: str, user: str, question: str) -> TurnTrace:
        """Return the trace of a turn, begun."""
        await self.connect()
        trace = TurnTrace(self.client, trace_id_of(turn_id), send_content=self.send_content)
        trace.begin(thread=thread, user=user, question=question, tag=self._tag, version=self._version)
        return trace

    async def feedback(
        self, turn_id: str, *, user: str, good: bool, reasons: Sequence[str] = (), comment: str = ""
    ) -> None:
        """Score an answer as a person judged it. Their second click replaces the first.

        ``comment`` is sent only if texts may be.
        """
        await self.connect()
        trace_id, person = trace_id_of(turn_id), hashlib.sha256(user.encode()).hexdigest()[:16]
        text = ": ".join(filter(None, (", ".join(reasons), comment if self.send_content else "")))
        self._score(
            name="user_feedback", value=float(good), data_type="BOOLEAN", trace_id=trace_id,
            score_id=score_id(trace_id, "user_feedback", person), comment=self._redact(text) or None,
        )  # fmt: skip

    async def verifier(self, *, false_accept_rate: float, false_reject_rate: float) -> None:
        """Score the verifier itself, as measured on labelled texts, in a session of its own."""
        await self.connect()
        rates = {"verifier_false_accept_rate": false_accept_rate, "verifier_false_reject_rate": false_reject_rate}
        for name, rate in rates.items():
            self._score(name=name, value=rate, data_type="NUMERIC", session_id="verifier")

    async def aclose(self, *, timeout_s: float = SHUTDOWN_TIMEOUT_S) -> None:
        """Send the rest within ``timeout_s``. Data that a failing host did not accept by then is dropped."""
        client, self.client, self._is_closed = self.client, None, True
        if client is None:
            return
        closing = Thread(target=client.close, name="langfuse-close", daemon=True)  # a daemon never delays the exit
        closing.start()
        await asyncio.to_thread(closing.join, timeout_s)
        if closing.is_alive():
            log.warning("trace_shutdown_cut_short", timeout_s=timeout_s)

    def text(self, text: str) -> Any:
        """Return a text in redacted form, for calls that the SDK's mask does not see."""
        return self._redact(content_of(text, send=self.send_content))

    def _open_client(self) -> Any:
        from observability.langfuse.client import Client  # noqa: PLC0415 (a third of a second and 25 MB)

        return Client(self.connection, self._redact)

    @log_exceptions
    def _score(self, **facts: Any) -> None:
        self.client.create_score(**facts)
