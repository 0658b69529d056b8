"""Listens to a turn for its record, the status that people see, metrics, counters and traces. Counts once per turn."""

import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Final

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.budget import ModelCall, Usage
from agent.json_data import string
from agent.model.prompts import prompts_version
from agent.outcome import Failed, Refused, Silent, TurnOutcome
from agent.tasks import background_tasks
from agent.thread.conversation import Question
from agent.turn.events import Done, ModelEnd, ModelStart, PlanMoved, Token, ToolEnd, ToolStart, TurnEvent, Verification
from bot.delivery.stream import AnswerStream
from bot.queue.claim import Lease
from bot.settings import Settings
from bot.slack.web_api import DeliveryFailed
from bot.stores.limits import TurnTokens
from bot.stores.turn_records import Recorder, TurnRecords
from bot.turn.engine import Engine
from bot.turn.status import WorkingStatus, step_status, stream_tasks
from observability.langfuse.connection import Connection
from observability.langfuse.datasets import send_correction
from observability.langfuse.tracing import Generation, TracedAttempt, Tracer, TurnTrace
from observability.metrics import Metrics
from observability.redaction import known_secrets
from observability.stats import Stats, TurnFigures, increments

log = structlog.get_logger()

CHECKING: Final = "is checking the answer against its sources…"


@dataclass(slots=True, kw_only=True)
class Observers:
    """The watchers of one process."""

    metrics: Metrics
    stats: Stats
    records: TurnRecords
    tracer: Tracer
    per_team: bool = False  # True if several workspaces are served

    def stats_of(self, team: str) -> Stats:
        """Return the counters of one workspace, or of all turns if only one is served."""
        if not self.per_team:
            return self.stats
        return Stats(self.records.redis, prefix=f"{self.records.prefix}:{team}")

    @asynccontextmanager
    async def turn(
        self, question: Question, turn_id: str, engine: Engine, *, waited_s: float = 0.0, outage: bool = False
    ) -> AsyncIterator["TurnObserver"]:
        """Watch one turn, whose question waited ``waited_s`` in its mailbox, not for a worker after an ``outage``.

        Its trace is closed however it ends.
        """
        trace = await self.tracer.turn(turn_id, thread=str(question.thread), user=question.user, question=question.text)
        self.metrics.turns_running.inc()
        if not outage:
            self.metrics.queue_wait_seconds.observe(waited_s)
        observer = TurnObserver(observers=self, question=question, turn_id=turn_id, engine=engine, trace=trace)
        observer.recorder.timings["queued"] = waited_s * 1000
        try:
            yield observer
        finally:
            self.metrics.turns_running.dec()
            if not observer.over:
                observer.record_interruption()

    def slack_event(self, fate: str) -> None:
        """Count an event by the kind of message that was stored, or by the reason for ignoring it."""
        self.metrics.events.labels(fate).inc()

    async def feedback(self, turn_id: str, user: str, *, good: bool) -> None:
        """Store a person's rating of an answer, and send it as a score of the same trace."""
        first_dislike = await self.records.save_feedback(turn_id, user, good=good)
        await self.tracer.feedback(turn_id, user=user, good=good)
        if first_dislike:
            await self.correct(turn_id)

    async def correct(self, turn_id: str, answer: str = "") -> None:
        """Send Langfuse the answer that a person saved for a turn or, without one, that its answer is disliked."""
        if record := await self.records.load(turn_id):
            await send_correction(self.tracer, turn_id, string(record, "question"), answer)

    async def complaint(self, turn_id: str, user: str, *, reasons: Sequence[str], said: str) -> None:
        """Store a person's complaint about an answer, and send it as the comment of their score."""
        await self.records.save_complaint(turn_id, user, reasons=reasons, said=said)
        await self.tracer.feedback(turn_id, user=user, good=False, reasons=reasons, comment=said)


@dataclass(slots=True, kw_only=True)
class TurnObserver:
    """Listens to one turn. ``status`` and ``stream`` show people its progress, ``counter`` counts its tokens."""

    observers: Observers
    question: Question
    turn_id: str
    engine: Engine
    trace: TurnTrace
    status: WorkingStatus | None = None
    stream: AnswerStream | None = None
    counter: TurnTokens | None = None
    lease: Lease | None = None
    recorder: Recorder = field(default_factory=Recorder)
    started: float = field(default_factory=time.monotonic)
    over: bool = False
    _is_meant: bool = False  # although it does not mention Orion
    _charged: int = 0
    _step: str = ""
    _tokens: dict[str, Usage] = field(default_factory=dict)

    def __call__(self, event: TurnEvent) -> None:
        """Pass one event to each watcher."""
        self.recorder(event)
        trace_event(self.trace, event)
        self._count(event)
        # Until Orion decides to answer, a message that does not mention it may be meant for other people.
        if is_meant := self._is_meant or self.question.addressed:
            self._show(event)
        self._is_meant = is_meant or _decides_to_answer(event)

    @asynccontextmanager
    async def during_delivery(self, outcome: TurnOutcome) -> AsyncIterator[None]:
        """Save the turn's record during its delivery, because people may ask for it right after."""
        self._elapsed_s()
        began = time.monotonic()
        async with background_tasks() as tasks:
            tasks.create_task(self._save_record(outcome))
            try:
                yield
            finally:
                self.recorder.timings["deliver"] = (time.monotonic() - began) * 1000

    async def _save_record(self, outcome: TurnOutcome) -> None:
        record = self.recorder.record(self.question, outcome, turn_id=self.turn_id, model=self.engine.model.name)
        try:
            await self.observers.records.save(record)
        except RedisError as error:
            log.warning("record_not_kept", error_type=type(error).__name__)

    def record_end(self, outcome: TurnOutcome) -> None:
        """Count the delivered turn, and score its trace."""
        self.over = True
        seconds, metrics = self._elapsed_s(), self.observers.metrics
        name = kind_of(outcome, quotes_only=self.engine.model.quotes_only)
        self.trace.end(outcome=name, reason=reason_of(outcome), answer=outcome.answer.text)
        log.info("turn_outcome", outcome=name, attempts=len(self.recorder.attempts), **self.recorder.timings_ms)
        if isinstance(outcome, Silent):
            self._count_figures()
            return
        metrics.turns.labels(name).inc()
        metrics.turn_seconds.labels(name).observe(seconds)
        errors = [[v["rule"] for v in a["violations"] if v["severity"] == "error"] for a in self.recorder.attempts]
        self._count_figures(
            outcome=name,
            reason=reason_of(outcome),
            errors=tuple(len(rules) for rules in errors),
            failed_rules=tuple(rule for rules in errors for rule in dict.fromkeys(rules)),
            repaired=any(repair.is_fault for repair in outcome.answer.repairs),
            latency_ms=seconds * 1000,
        )

    def record_interruption(self, reason: str = "") -> None:
        """End the trace of a turn that was stopped, crashed or is tried again, and count its tokens."""
        self.over = True
        error, stopped = sys.exception(), self.lease and self.lease.stopped
        what = error.reason if isinstance(error, DeliveryFailed) else type(error).__name__ if error else ""
        self.trace.end(outcome="interrupted", reason=reason or stopped or what)
        self._count_figures()

    def _count_figures(self, **of_outcome: Any) -> None:
        """Count the tokens of a turn, and other figures unless it was silent or interrupted."""
        tokens = {name: (n.prompt_tokens, n.cached_tokens, n.completion_tokens) for name, n in self._tokens.items()}
        usage = self.recorder.usage or asdict(sum(self._tokens.values(), Usage()))
        team = self.question.thread.team if self.observers.per_team else ""
        self.observers.stats.count(increments(TurnFigures(tokens=tokens, usage=usage, **of_outcome)), team=team)

    def _elapsed_s(self) -> float:
        """Return seconds since the turn began. Its total so far includes the wait in the mailbox."""
        seconds = time.monotonic() - self.started
        self.recorder.timings["total"] = seconds * 1000 + self.recorder.timings.get("queued", 0.0)
        return seconds

    def _count(self, event: TurnEvent) -> None:
        metrics, seconds = self.observers.metrics, self.recorder.last_s
        match event:
            case ModelEnd(phase=phase, usage=usage, error=error, call=call):
                metrics.model_seconds.labels(phase).observe(seconds)
                metrics.model_calls.labels(phase, error).inc()
                self._add_call(phase, usage, call)
                self._charge(usage.tokens)
            case ToolEnd(result=result):
                # The name comes from the model: an unknown one must not become a label.
                tool = result.tool if result.tool in self.engine.tool_names else "unknown"
                metrics.tool_seconds.labels(tool).observe(seconds)
                metrics.tool_calls.labels(tool, str(result.ok).lower()).inc()
                self._add_call(tool, result.usage, result.call)
            case Verification(attempt=attempt, verdict=verdict):
                if verdict.passed:
                    metrics.attempts.observe(attempt)
                for violation in verdict.violations:
                    metrics.violations.labels(violation.rule, violation.severity).inc()
                for repair in filter(attrgetter("is_fault"), verdict.repairs):
                    metrics.repairs.labels(repair.kind).inc(repair.count)
            case Done(usage=usage):  # includes usage without an event, because a tool may have called the model too
                self._charge(usage.tokens - self._charged)
            case _:
                pass

    def _add_call(self, phase: str, usage: Usage, call: ModelCall | None) -> None:
        """Add the tokens of a model call, if there was one, to those of its phase and of its model."""
        if call is None:
            return
        tokens, name = self.observers.metrics.model_tokens, call.model or self.engine.model.name
        tokens.labels(phase, "in").inc(usage.prompt_tokens)
        tokens.labels(phase, "out").inc(usage.completion_tokens)
        self._tokens[name] = self._tokens.get(name, Usage()) + usage

    def _charge(self, tokens: int) -> None:
        """Count tokens towards the limits of the day."""
        self._charged += tokens
        if self.counter and tokens:
            self.counter.add(tokens)

    def _show(self, event: TurnEvent) -> None:
        """Show people what Orion does, never what it is about to say."""
        status = self.status
        if status is None:
            return
        match event:
            case PlanMoved(steps=steps):
                self._step = step_status(steps, status.answer_key.language)
                if self._step:
                    status.show(self._step)
                if self.stream is not None:
                    self.stream.show_plan(stream_tasks(steps, status.answer_key.language))
            case ToolStart(call=call):
                looking = "is searching the documents…" if call.tool == "search" else "is looking something up…"
                status.show(self._step or looking)  # the purpose of the call says more
            # The first draft begins together with the decision, which may be to search.
            case (
                ModelEnd(phase="decide", output={"tool_calls": [{"function": {"name": "respond"}}]})
                | ModelStart(phase="write", attempt=2 | 3)
            ):
                is_retry = isinstance(event, ModelStart)
                status.show("is correcting the answer…" if is_retry else "is writing an answer…")
            case Verification() | ModelStart(phase="judge"):
                status.show(CHECKING)
            case _:
                pass


def _decides_to_answer(event: TurnEvent) -> bool:
    match event:
        case ModelEnd(phase="decide", output={"tool_calls": [{"function": {"name": name}}, *_]}):
            return bool(name != "no_reply")
        case _:
            return False


def trace_event(trace: TurnTrace, event: TurnEvent) -> None:
    """Put one event of a turn on its trace."""
    match event:
        case ModelStart(phase=phase, attempt=attempt, call_id=call_id):
            trace.model_start(phase=phase, attempt=attempt, call_id=call_id)
        case Token():
            trace.first_token()
        case ModelEnd(phase=phase, output=output, usage=usage, error=error, call=call, call_id=call_id):
            trace.model_end(phase=phase, output=output, call=_generation(call, usage), error=error, call_id=call_id)
        case ToolStart(call=tool_call):
            trace.tool_start(tool_call.call_id, tool=tool_call.tool, arguments=tool_call.input)
        case ToolEnd(result=done):
            call_made = _generation(done.call, done.usage) if done.call else None
            trace.tool_end(done.call_id, ok=done.ok, content=done.content, error=done.error, call=call_made)
        case Verification(attempt=number, draft=draft, verdict=verdict):
            issues = [
                {"rule": v.rule, "severity": v.severity, "words": v.words, "detail": v.detail}
                for v in verdict.violations
            ]
            repairs = {repair.kind: repair.count for repair in verdict.repairs if repair.is_fault}
            about: dict[str, Any] = {"text": verdict.text, "passed": verdict.passed, "repairs": repairs}
            trace.attempt(TracedAttempt(number=number, draft=draft, issues=issues, **about))
        case _:
            pass


def end_trace(trace: TurnTrace, outcome: TurnOutcome) -> None:
    """Put the end of a turn on its trace."""
    trace.end(outcome=kind_of(outcome), reason=reason_of(outcome), answer=outcome.answer.text)


def kind_of(outcome: TurnOutcome, *, quotes_only: bool = False) -> str:
    """Return the outcome as the log, metrics, counters and traces name it, with more kinds than people see."""
    if outcome.name == "answered" and not outcome.answer.sources:
        return "unsourced"  # for example a greeting: there was nothing to verify
    if outcome.name == "answered" and quotes_only:
        return "quoted"  # nothing was written that could fail
    if reason_of(outcome) == "still_reading":
        return "still_reading"  # the documents: people were asked to come back
    return outcome.name


def reason_of(outcome: TurnOutcome) -> str:
    """Return the reason of a failed or refused turn; empty for others."""
    return outcome.reason if isinstance(outcome, Failed | Refused) else ""


def open_tracer(settings: Settings, place: str = "") -> Tracer:
    """Return the connection to Langfuse, a no-op without keys. The caller closes it.

    ``place`` is where questions are asked, if not in Slack: an environment and a tag in Langfuse.
    """
    connection = Connection(
        public_key=settings.langfuse_public_key,
        secret_key=settings.langfuse_secret_key.get_secret_value(),
        host=settings.langfuse_url,
        environment=place or settings.langfuse_environment,
        release=settings.langfuse_release,
        sample_rate=settings.langfuse_sample_rate,
        enabled=settings.langfuse_enabled,
        debug=settings.langfuse_debug,
        timeout_s=settings.langfuse_timeout_s,
        flush_at=settings.langfuse_flush_at,
        flush_interval_s=settings.langfuse_flush_interval_s,
        annotation_queue=settings.langfuse_annotation_queue,
    )
    return Tracer(
        connection,
        tag=place or "slack",
        version=prompts_version(),
        send_content=settings.trace_content,
        known=known_secrets(settings.secrets),
    )


def _generation(call: ModelCall, usage: Usage) -> Generation:
    return Generation(
        model=call.model,
        messages=call.messages,
        tools=call.tools,
        parameters=call.parameters,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


@asynccontextmanager
async def open_observers(settings: Settings, redis: Redis, *, prefix: str = "orion") -> AsyncIterator[Observers]:
    """The watchers of one process. On leaving, the remaining data is sent within a deadline."""
    stats, records = Stats(redis, prefix=prefix), TurnRecords(redis, prefix=prefix)
    tracer = open_tracer(settings)
    async with background_tasks() as tasks:
        writing = tasks.create_task(stats.keep_writing(), name="stats")
        try:
            per_team = settings.many_workspaces
            yield Observers(metrics=Metrics(), stats=stats, records=records, tracer=tracer, per_team=per_team)
        finally:
            writing.cancel()
            await tracer.aclose()
