"""The trace of one turn in Langfuse, and the scores on it.

Nothing in here fails or slows a turn: every public call stands behind a wall, and what it sends leaves later. Without
keys each call is a no-op.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, cast

import structlog

from observability.langfuse.sender import Observation
from observability.redaction import redact

if TYPE_CHECKING:
    from observability.langfuse.connection import Tracer
    from observability.langfuse.sender import Sender

log = structlog.get_logger()

P = ParamSpec("P")
NAME: Final = "turn"
"""What a trace and its root are called; charts read it."""
# The longest text sent; what a person wants to read in a trace is shorter.
MAX_TEXT: Final = 50_000
# Langfuse takes no more, and only ASCII, for session and user.
MAX_ID: Final = 200
KINDS: Final = {
    **dict.fromkeys(("search", "list_documents", "get_document", "web_search", "slack_search"), "retriever"),
    "llm_generate": "generation",
}
"""Langfuse's type of a tool that is more than a tool."""
DISCARDED: Final = "discarded"
"""The ``error`` of a draft that nobody wanted yet: no fault of anybody's."""
NOT_KEPT: Final = frozenset({"slack_search"})
"""What these bring may be kept nowhere: of a turn that asked them, what the model was shown leaves as lengths."""
# Which outcomes say whether verification passed; a failed one does only when verification was the reason.
_PASSED: Final = {"answered": True, "partial": False}


def walled(method: Callable[P, None]) -> Callable[P, None]:
    """One of the four walls: a fault of tracing is an event in the log and the turn goes on. Without keys, a no-op."""

    @wraps(method)
    def behind(*args: P.args, **kwargs: P.kwargs) -> None:
        owner: Any = args[0]
        if owner.sender is None:
            return
        try:
            method(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 (one of the four walls: tracing never ends a turn)
            log.warning("trace_failed", part=method.__name__, error_type=type(error).__name__)

    return behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """What a trace shows of a violation: the text in question and what is wrong with it."""

    rule: str
    severity: str
    words: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One judged draft. ``text`` is the draft after repair; ``repairs`` maps a kind of repair to how often."""

    number: int
    draft: str
    text: str
    passed: bool
    issues: Sequence[Issue] = ()
    repairs: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What one model call was asked, and the tokens it took.

    ``messages``, ``tools`` and ``parameters`` are as OpenAI spells them. ``cached_tokens`` are part of the prompt's,
    ``reasoning_tokens`` of the completion's.
    """

    model: str = ""
    messages: Sequence[Mapping[str, str]] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def usage(self) -> dict[str, int]:
        """Tokens by the kinds that Langfuse has prices for; together they are the total."""
        kinds = {
            "input": self.prompt_tokens - self.cached_tokens,
            "input_cached_tokens": self.cached_tokens,
            "output": self.completion_tokens - self.reasoning_tokens,
            "output_reasoning_tokens": self.reasoning_tokens,
        }
        told = {kind: count for kind, count in kinds.items() if count or kind in {"input", "output"}}
        return {**told, "total": self.prompt_tokens + self.completion_tokens}


class TurnTrace:
    """The trace of one turn. Made by ``Tracer.turn``; every call returns at once and never raises."""

    def __init__(self, tracer: Tracer, trace_id: str) -> None:
        self.sender = tracer.sender
        self.trace_id = trace_id
        self._tracer = tracer
        self._common: dict[str, Any] = {}
        self._root: Observation | None = None
        self._open: dict[tuple[str, str], Observation] = {}
        self._spoke = False
        self._keeps_found = True
        self._attempts: list[Attempt] = []

    @walled
    def begin(self, *, thread: str, user: str, question: str) -> None:
        """The turn starts. ``user`` is hashed; ``thread`` becomes the session."""
        self._common = {
            "session.id": _ascii(thread),
            "user.id": hashlib.sha256(user.encode()).hexdigest(),
            "langfuse.trace.name": NAME,
            "langfuse.trace.tags": [self._tracer.tag],
            **self._tracer.about,
        }
        self._root = self._observation(NAME, "agent", {"input": self._content(question)})

    @walled
    def model_start(self, *, phase: str, model: str, attempt: int = 0, call_id: str = "") -> None:
        """A model call begins; ``phase`` is ``decide``, ``write`` or ``judge``."""
        self._spoke = self._spoke and phase != "write"
        self._start((phase, call_id), phase, "generation", {"model.name": model, "metadata.attempt": attempt})

    @walled
    def first_token(self) -> None:
        """Text of the draft that is being written arrived; only the first time counts."""
        generation = self._open.get(("write", ""))
        if generation is not None and not self._spoke:
            self._spoke = True
            generation.facts["completion_start_time"] = datetime.now(UTC).isoformat()

    @walled
    def model_end(self, *, phase: str, output: str, asked: Generation, error: str = "", call_id: str = "") -> None:
        """A model call ended; ``error`` is the kind of failure, ``discarded``, or empty."""
        level = {"level": "DEFAULT" if error == DISCARDED else "ERROR", "status_message": error} if error else {}
        self._end((phase, call_id), {"output": self._content(output), **self._asked(asked), **level})

    @walled
    def tool_start(self, call_id: str, *, tool: str, arguments: Mapping[str, Any]) -> None:
        """A tool call begins."""
        self._start(("tool", call_id), tool, KINDS.get(tool, "tool"), {"input": self._found(dict(arguments))})
        self._keeps_found = self._keeps_found and tool not in NOT_KEPT

    @walled
    def tool_end(
        self, call_id: str, *, ok: bool, content: str, error: str = "", asked: Generation | None = None
    ) -> None:
        """A tool call ended. ``asked`` is what the tool asked a model, if it is one of those that do."""
        level = {} if ok else {"level": "WARNING", "status_message": "failed"}
        told = self._asked(asked) if asked else {}
        self._end(("tool", call_id), {"output": self._found(content or error), **told, **level})

    @walled
    def attempt(self, attempt: Attempt) -> None:
        """A draft was judged: one guardrail observation, with its own score."""
        if self._root is None:
            return
        facts = {
            "input": self._content(attempt.draft),
            "output": self._content(attempt.text),
            "metadata.attempt": attempt.number,
            "metadata.passed": attempt.passed,
            "metadata.repairs": dict(attempt.repairs or {}),
            "metadata.issues": [self._issue(issue) for issue in attempt.issues],
            "level": "DEFAULT" if attempt.passed else "WARNING",
        }
        guardrail = self._observation("verify", "guardrail", facts)
        self._ended(guardrail)
        self._attempts.append(attempt)
        self._score(
            "verify_attempt_pass", float(attempt.passed), "BOOLEAN", part=str(attempt.number), observation=guardrail.id
        )
        for rule in sorted({issue.rule for issue in attempt.issues if issue.severity == "error"}):
            self._score("verify_failure", rule, "CATEGORICAL", part=f"{attempt.number}-{rule}")

    @walled
    def end(self, *, outcome: str, reason: str = "", answer: str = "") -> None:
        """The turn is over; what is still open is closed. ``verify_pass`` stays unset where nothing was judged."""
        root, self._root = self._root, None
        if root is None:  # only the first end counts
            return
        for key in tuple(self._open):
            self._end(key, {})
        root.facts |= {
            "output": self._content(answer),
            "metadata.outcome": outcome,
            "metadata.reason": reason,
            "metadata.attempts": len(self._attempts),
            **({"level": "ERROR", "status_message": reason} if outcome == "failed" else {}),
        }
        self._ended(root)
        # Scores by outcome and by first draft exist for the dashboard: Langfuse cannot count what metadata says.
        self._score("turn_outcome", outcome, "CATEGORICAL")
        passed = False if (outcome, reason) == ("failed", "verification") else _PASSED.get(outcome)
        if passed is not None:
            self._score("verify_pass", float(passed), "BOOLEAN")
            self._score("verify_attempts", float(len(self._attempts)), "NUMERIC")
        if passed is not None and self._attempts:
            self._score("verify_first_pass", float(self._attempts[0].passed), "BOOLEAN")

    def _observation(self, name: str, kind: str, facts: dict[str, Any]) -> Observation:
        parent = self._root.id if self._root else ""
        return Observation(
            name=name, trace_id=self.trace_id, parent_id=parent, common=self._common, facts={"type": kind, **facts}
        )

    def _start(self, key: tuple[str, str], name: str, kind: str, facts: dict[str, Any]) -> None:
        if self._root is not None:
            self._open[key] = self._observation(name, kind, facts)

    def _end(self, key: tuple[str, str], facts: dict[str, Any]) -> None:
        observation = self._open.pop(key, None)
        if observation is not None:
            observation.facts |= facts
            self._ended(observation)

    def _ended(self, observation: Observation) -> None:
        observation.ended_ns = time.time_ns()
        cast("Sender", self.sender).put(observation)

    def _score(
        self, name: str, value: float | str, kind: str, *, part: str = "", observation: str | None = None
    ) -> None:
        """One score; its id is fixed, so that a turn begun anew replaces it."""
        self._tracer.score(name, value, kind=kind, trace_id=self.trace_id, part=part, observation=observation)

    def _issue(self, issue: Issue) -> dict[str, str]:
        told = self._tracer.send_content and self._keeps_found  # a detail may say what stands in a source
        words = {"words": _clipped(issue.words), "detail": _clipped(issue.detail)} if told else {}
        return {"rule": issue.rule, "severity": issue.severity, **words}

    def _content(self, value: Any) -> Any:
        return content_of(value, send=self._tracer.send_content)

    def _asked(self, asked: Generation) -> dict[str, Any]:
        """A model call as a generation has it: chat messages as they are, with the tools beside them if there are."""
        facts: dict[str, Any] = {"usage_details": asked.usage}
        if asked.model:
            messages = [{**message, "content": self._found(message["content"])} for message in asked.messages]
            tools = {"tools": list(asked.tools), "messages": messages} if asked.tools else messages
            # Langfuse shows single values; anything else goes as JSON.
            single = {k: v if isinstance(v, str | int | float) else json.dumps(v) for k, v in asked.parameters.items()}
            facts |= {"model.name": asked.model, "model.parameters": single, "input": tools}
        return facts

    def _found(self, value: Any) -> Any:
        """The same for what may hold the words of what was found."""
        return content_of(value, send=self._tracer.send_content and self._keeps_found)


def content_of(value: Any, *, send: bool) -> Any:
    """A text, or arguments, as they may leave: redacted, or only how long they are."""
    if not send:
        return {"length": len(value if isinstance(value, str) else str(value))}
    return redact(_clipped(value) if isinstance(value, str) else value)


def _ascii(text: str) -> str:
    """``text`` where Langfuse takes it as an id, else a hash of it."""
    fits = text.isascii() and len(text) <= MAX_ID
    return text if fits else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
