"""The connection to Langfuse: a trace for each turn, people's feedback, and an end that keeps its deadline (G2).

Its SDK, with OpenTelemetry and numpy, takes half a second and 50 MB: only who has keys loads it.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Final, TypeVar, cast

import structlog

from observability.langfuse.tracing import TurnTrace, send_score, walled

if TYPE_CHECKING:
    from langfuse import Langfuse

log = structlog.get_logger()

# W3C Trace Context: 16 bytes in small hexadecimal digits, not all of them zero.
_TRACE_ID: Final = re.compile("[0-9a-f]{32}")
Result = TypeVar("Result")


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
        self.send_content = send_content
        self.version = version
        self.tag = environment or "slack"
        self.client: Langfuse | None = None
        if public_key and secret_key:
            from observability.langfuse.client import open_client  # noqa: PLC0415 (see above)

            self.client = open_client(public_key, secret_key, self.host, environment)

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
        trace_id = trace_id_of(turn_id)
        send_score(
            self.client, "user_feedback", float(good), kind="BOOLEAN", trace_id=trace_id, part=part, comment=comment
        )

    @walled
    def verifier(self, *, false_accept_rate: float, false_reject_rate: float) -> None:
        """How often the verifier was wrong on labelled texts; they belong to no turn, so to a session of their own."""
        client = cast("Langfuse", self.client)
        rates = {"verifier_false_accept_rate": false_accept_rate, "verifier_false_reject_rate": false_reject_rate}
        for name, rate in rates.items():
            client.create_score(name=name, value=rate, data_type="NUMERIC", session_id="verifier")

    async def aclose(self, *, deadline_s: float = 3.0) -> None:
        """Send what is left, within ``deadline_s`` seconds; what a dead host did not take by then is dropped."""
        client, self.client = self.client, None
        if client is None:
            return
        if client._resources is not None:  # noqa: SLF001 (there is no public way to keep the SDK from blocking the exit)
            atexit.unregister(client._resources.shutdown)  # noqa: SLF001 (as above)

        def close() -> None:
            with suppress(Exception):
                client.shutdown()

        try:
            await in_daemon(close, "langfuse-shutdown", deadline_s)
        except TimeoutError:
            log.warning("trace_shutdown_cut_short", deadline_s=deadline_s)


async def in_daemon(work: Callable[[], Result], name: str, deadline_s: float) -> Result:
    """What ``work`` gives, in a daemon's thread: the end of the process would wait for the loop's own threads.

    Raises ``API_ERRORS`` and ``LookupError`` as ``work`` does, ``TimeoutError`` after ``deadline_s`` seconds.
    """
    from observability.langfuse.client import API_ERRORS  # noqa: PLC0415 (see above)

    loop, done = asyncio.get_running_loop(), Future[Result]()
    done.set_running_or_notify_cancel()  # whoever stops waiting must not cancel it: the thread ends it by itself

    def run() -> None:
        try:
            done.set_result(work())
        except (*API_ERRORS, LookupError) as error:
            done.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    async with asyncio.timeout(deadline_s):
        return await asyncio.wrap_future(done, loop=loop)
