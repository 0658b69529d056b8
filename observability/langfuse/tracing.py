"""Tracing: the trace of each turn in Langfuse, its scores, and people's feedback.

No call on a trace raises or waits. Without keys every call is a no-op. The SDK is loaded when the first turn needs it.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from functools import partial, wraps
from threading import Thread
from typing import Any, Final, ParamSpec

import structlog

from observability.langfuse.connection import Connection
from observability.redaction import redact

log = structlog.get_logger()

P = ParamSpec("P")
NAME: Final = "turn"  # name of a trace and of its root, used by charts
MAX_TEXT: Final = 50_000  # maximum characters of a text to send: more than a person reads in a trace
MAX_ID: Final = 200  # maximum characters of a session or a name in Langfuse
SHUTDOWN_TIMEOUT_S: Final = 3.0
# Langfuse's type of a tool, if it has a more specific one than `tool`.
KINDS: Final = {
    **dict.fromkeys(("search", "list_documents", "get_document", "web_search", "slack_search"), "retriever"),
    "llm_generate": "generation",
}
DISCARDED: Final = "discarded"  # the `error` of an early draft that was not needed: not a failure
# Tools whose results may not be stored: a turn with one of them sends only lengths of the model's input.
NOT_STORED: Final = frozenset({"slack_search"})
_QUOTING: Final = frozenset({"words", "detail"})
_PASSED: Final = {"answered": True, "partial": False}
# W3C Trace Context: 16 bytes in lower-case hexadecimal digits, not all of them zero.
_TRACE_ID: Final = re.compile("(?!0{32})[0-9a-f]{32}")


def trace_id_of(turn_id: str) -> str:
    """Return the id of a turn's trace: the turn's own, which log and record share, if it is a valid one."""
    return turn_id if _TRACE_ID.fullmatch(turn_id) else hash_id(turn_id)[:32]


def log_exceptions(method: Callable[P, None]) -> Callable[P, None]:
    """Log exceptions of tracing and let the turn continue: a wall (docs/architecture.md). A no-op without a client."""

    @wraps(method)
    def never_raise(*args: P.args, **kwargs: P.kwargs) -> None:
        owner: Any = args[0]
        if owner.client is None:
            return
        try:
            method(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 (a wall: tracing never ends a turn)
            log.warning("trace_failed", part=method.__name__, error_type=type(error).__name__)

    return never_raise


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedAttempt:
    """One checked draft. ``text`` is the draft after repair; ``repairs`` counts repairs by kind.

    Each issue is a violation: its ``rule`` and ``severity``, the ``words`` in question and the ``detail`` of the fault.
    """

    number: int
    draft: str
    text: str
    passed: bool
    issues: Sequence[Mapping[str, str]] = ()
    repairs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One model call as it was sent, and the tokens it used.

    ``messages``, ``tools`` and ``parameters`` are spelled as in OpenAI's API. ``cached_tokens`` are part of the
    prompt's tokens, ``reasoning_tokens`` of the completion's.
    """

    model: str = ""
    messages: Sequence[Mapping[str, Any]] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def usage(self) -> dict[str, int]:
        """Tokens by the kinds that have a price in Langfuse. Their sum is the total."""
        # A third of Langfuse's models have a price for reasoning tokens, the same as for output; others would charge 0.
        cached = {"input_cached_tokens": self.cached_tokens} if self.cached_tokens else {}
        return {
            "input": self.prompt_tokens - self.cached_tokens,
            **cached,
            "output": self.completion_tokens,
            "total": self.prompt_tokens + self.completion_tokens,
        }


@dataclass(slots=True, eq=False)
class TurnTrace:
    """The trace of one turn, made by ``Tracer.turn``."""

    client: Any  # untyped: the SDK overloads each method by literal types of observations
    trace_id: str
    _: KW_ONLY
    send_content: bool
    _root: Any = None
    _context: Context = field(default_factory=Context)  # the attributes of the root
    _open: dict[tuple[str, str], Any] = field(default_factory=dict)
    _has_text: bool = False
    _may_store: bool = True
    _attempts: list[TracedAttempt] = field(default_factory=list)

    @log_exceptions
    def begin(self, *, thread: str, user: str, question: str, tag: str, version: str) -> None:
        """Start the turn. ``user`` is hashed; ``thread`` becomes the session."""
        common = {
            # Langfuse allows only ASCII for a session.
            "session_id": thread if thread.isascii() and len(thread) <= MAX_ID else hash_id(thread),
            "user_id": hash_id(user),
            "trace_name": NAME,
            "tags": [tag],
            "version": version or None,
        }
        with self.client.root_of(self.trace_id, **common):
            self._root = self.client.start_observation(name=NAME, as_type="agent", input=self._content(question))
            self._context = copy_context()

    @log_exceptions
    def model_start(self, *, phase: str, attempt: int = 0, call_id: str = "") -> None:
        """Start a model call; ``phase`` is ``decide``, ``write`` or ``judge``."""
        self._has_text = self._has_text and phase != "write"
        self._start((phase, call_id), phase, "generation", metadata={"attempt": attempt})

    @log_exceptions
    def first_token(self) -> None:
        """Record that text of the draft arrived. Only the first call per draft counts."""
        generation = self._open.get(("write", ""))
        if generation is not None and not self._has_text:
            self._has_text = True
            generation.update(completion_start_time=datetime.now(UTC))

    @log_exceptions
    def model_end(self, *, phase: str, output: Any, call: Generation, error: str = "", call_id: str = "") -> None:
        """End a model call; ``error`` is the kind of failure, ``discarded``, or empty."""
        facts = self._call_facts(call)
        if error:
            facts |= {"level": "DEFAULT" if error == DISCARDED else "ERROR", "status_message": error}
        self._end((phase, call_id), output=self._content(output), **facts)

    @log_exceptions
    def tool_start(self, call_id: str, *, tool: str, arguments: Mapping[str, Any]) -> None:
        """Start a tool call."""
        name = self.client.redact(tool)[:MAX_ID]  # a model may make it up
        self._start(("tool", call_id), name, KINDS.get(tool, "tool"), input=self._evidence(dict(arguments)))
        self._may_store = self._may_store and tool not in NOT_STORED

    @log_exceptions
    def tool_end(
        self, call_id: str, *, ok: bool, content: str, error: str = "", call: Generation | None = None
    ) -> None:
        """End a tool call. ``call`` is the model call that the tool made, if it made one."""
        facts = {} if ok else {"level": "WARNING", "status_message": "failed"}
        made = self._call_facts(call) if call else {}
        self._end(("tool", call_id), output=self._evidence(content or error), **made, **facts)

    @log_exceptions
    def attempt(self, attempt: TracedAttempt) -> None:
        """Add a checked draft: a guardrail observation with its own score."""
        if self._root is None:
            return
        metadata = {
            "attempt": attempt.number,
            "passed": attempt.passed,
            "repairs": dict(attempt.repairs),
            # Words and details may quote a source.
            "issues": [
                {k: self._evidence(v) if k in _QUOTING else v for k, v in each.items()} for each in attempt.issues
            ],
        }
        facts = {"input": self._content(attempt.draft), "output": self._content(attempt.text), "metadata": metadata}
        guardrail = self._child("verify", "guardrail", level="DEFAULT" if attempt.passed else "WARNING", **facts)
        guardrail.end()
        self._attempts.append(attempt)
        self._score("verify_attempt_pass", attempt.passed, part=str(attempt.number), observation=guardrail.id)
        for rule in sorted({issue["rule"] for issue in attempt.issues if issue["severity"] == "error"}):
            self._score("verify_failure", rule, part=f"{attempt.number}-{rule}")

    @log_exceptions
    def end(self, *, outcome: str, reason: str = "", answer: str = "") -> None:
        """End the turn and all open observations in it. Only the first call counts."""
        root, self._root = self._root, None
        if root is None:
            return
        for key in tuple(self._open):
            self._end(key)
        metadata = {"outcome": outcome, "reason": reason, "attempts": len(self._attempts)}
        failure = {"level": "ERROR", "status_message": reason} if outcome == "failed" else {}
        root.update(output=self._content(answer), metadata=metadata, **failure).end()
        # The dashboard needs scores by outcome and by first draft, because Langfuse cannot count values of metadata.
        self._score("turn_outcome", outcome)
        passed = False if (outcome, reason) == ("failed", "verification") else _PASSED.get(outcome)
        if passed is None:
            return
        self._score("verify_pass", passed)
        self._score("verify_attempts", float(len(self._attempts)))
        if self._attempts:
            self._score("verify_first_pass", self._attempts[0].passed)

    def _child(self, name: str, kind: str, **facts: Any) -> Any:
        return self._context.run(self._root.start_observation, name=name, as_type=kind, **facts)

    def _start(self, key: tuple[str, str], name: str, kind: str, **facts: Any) -> None:
        if self._root is not None:
            self._open[key] = self._child(name, kind, **facts)

    def _end(self, key: tuple[str, str], **facts: Any) -> None:
        if (observation := self._open.pop(key, None)) is not None:
            observation.update(**facts).end()

    def _score(self, name: str, value: float | str, *, part: str = "", observation: str | None = None) -> None:
        """Send a score under a fixed id, so that a repeated turn replaces it."""
        kind = {bool: "BOOLEAN", float: "NUMERIC", str: "CATEGORICAL"}[type(value)]
        self.client.create_score(
            name=name, value=value, data_type=kind, trace_id=self.trace_id, observation_id=observation,
            score_id=score_id(self.trace_id, name, part),
        )  # fmt: skip

    def _call_facts(self, call: Generation) -> dict[str, Any]:
        """Return a model call in the form of a generation: chat messages, and the tools if there are any."""
        if not call.model:
            return {"usage_details": call.usage}
        messages = [{**message, "content": self._evidence(message["content"])} for message in call.messages]
        # Langfuse shows single values; send anything else as JSON.
        single = {k: v if isinstance(v, str | int | float) else json.dumps(v) for k, v in call.parameters.items()}
        reasoning = {"metadata": {"reasoning_tokens": call.reasoning_tokens}} if call.reasoning_tokens else {}
        return {
            "usage_details": call.usage,
            "model": call.model,
            "model_parameters": single,
            "input": {"tools": list(call.tools), "messages": messages} if call.tools else messages,
            **reasoning,
        }

    def _content(self, value: Any) -> Any:
        return content_of(value, send=self.send_content)

    def _evidence(self, value: Any) -> Any:
        """Redact text that may quote the sources, unless sending it is allowed."""
        return content_of(value, send=self.send_content and self._may_store)


def score_id(*parts: str) -> str:
    """Return the id of a score; sending it again replaces the first one."""
    return "-".join(filter(None, parts))


def content_of(value: Any, *, send: bool) -> Any:
    """Return a text or arguments as they may be sent: truncated, or only their length."""
    if not send:
        return {"length": len(value if isinstance(value, str) else str(value))}
    if not isinstance(value, str) or len(value) <= MAX_TEXT:
        return value
    whole_words = value[:MAX_TEXT].rsplit(None, 1)[:1]  # redaction follows, and might not recognize half a secret
    return f"{''.join(whole_words)}…"


def hash_id(text: str) -> str:
    """Return what is sent to Langfuse in place of a person's or a thread's id."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


@dataclass(slots=True, eq=False)
class Tracer:
    """Sends to Langfuse. ``version`` is that of the prompts; ``known`` matches the configured secrets."""

    connection: Connection
    _: KW_ONLY
    tag: str = "slack"
    version: str = ""
    send_content: bool = True
    known: re.Pattern[str] | None = None
    client: Any = field(default=None, init=False)
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _is_closed: bool = field(default=False, init=False)

    async def connect(self) -> None:
        """Load the SDK in a thread and open its client, once."""
        keys = self.connection.public_key and self.connection.secret_key
        if self.client is not None or self._is_closed or not (self.connection.enabled and keys):
            return

        def open_client() -> Any:
            from observability.langfuse.client import Client  # noqa: PLC0415 (a third of a second and 25 MB)

            return Client(self.connection, partial(redact, known=self.known))

        async with self._loading:
            if self.client is None and not self._is_closed:
                try:
                    self.client = await asyncio.to_thread(open_client)
                except (ImportError, OSError, RuntimeError, ValueError) as error:
                    log.warning("langfuse_not_opened", error_type=type(error).__name__)
                    self._is_closed = True

    async def turn(self, turn_id: str, *, thread: str, user: str, question: str) -> TurnTrace:
        """Begin the trace of a turn."""
        await self.connect()
        trace = TurnTrace(self.client, trace_id_of(turn_id), send_content=self.send_content)
        trace.begin(thread=thread, user=user, question=question, tag=self.tag, version=self.version)
        return trace

    async def feedback(
        self, turn_id: str, *, user: str, good: bool, reasons: Sequence[str] = (), comment: str = ""
    ) -> None:
        """Score an answer as a person rated it. Their second click replaces the first."""
        await self.connect()
        trace_id, person = trace_id_of(turn_id), hash_id(user)[:16]
        text = ": ".join(filter(None, (", ".join(reasons), comment if self.send_content else "")))
        self._score(
            name="user_feedback", value=float(good), data_type="BOOLEAN", trace_id=trace_id,
            score_id=score_id(trace_id, "user_feedback", person), comment=redact(text, known=self.known) or None,
        )  # fmt: skip

    async def aclose(self, *, timeout_s: float = SHUTDOWN_TIMEOUT_S) -> None:
        """Send the remaining data within ``timeout_s``. Data that a failing host did not accept by then is dropped."""
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
        return redact(content_of(text, send=self.send_content), known=self.known)

    @log_exceptions
    def _score(self, **facts: Any) -> None:
        self.client.create_score(**facts)
