"""`orion ask`.

One turn of the real agent in the terminal, verified as in Slack. With a thread name it goes on there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import structlog

from agent.knowledge.types import Document
from agent.outcome import Cancelled, Refused, TurnOutcome, outcome_name
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import StateNotSaved, ThreadState
from agent.thread.store import ThreadStore
from agent.turn.events import Emit, TurnEvent
from agent.turn.progress import Save, keep_in_memory
from bot.documents.open import corpus_of, known_documents
from bot.documents.vectors import make_vectors
from bot.redis.connect import open_redis
from bot.settings import Settings
from bot.stores.turn_records import Recorder, repairs_json, sources_json, violations_json
from bot.turn.engine import open_engine

if TYPE_CHECKING:  # importing it is worth half a second
    from observability.langfuse.tracing import TurnTrace

log = structlog.get_logger()

EXIT_ANSWERED = 0
EXIT_OTHER = 3
TERMINAL_USER = "terminal"
NO_DOCUMENTS = "name folders: orion ask … --docs DIR, ORION_DOCS, or orion index DIR"


Show = Callable[[dict[str, Any]], None]


def _show_later(_result: dict[str, Any]) -> None:
    """Whoever asked has the result in the end."""


async def ask(
    settings: Settings, question: str, *, docs: Sequence[Path] | None, thread: str, show: Show = _show_later
) -> dict[str, Any]:
    """One question, answered; the result has the fields of the outside contract.

    ``show`` has it first: before its trace is sent, which may take two seconds.
    """
    started = time.monotonic()
    recorder = Recorder()
    asked = Question(thread=_thread(thread), user=TERMINAL_USER, text=question, ts=f"{time.time():.6f}")
    turn_id = uuid4().hex
    async with AsyncExitStack() as sending:
        sending.enter_context(structlog.contextvars.bound_contextvars(thread=str(asked.thread), turn_id=turn_id))
        trace = await _trace(settings, sending, asked, turn_id)
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(open_engine(settings, corpus_of(settings, docs)))
            if docs is not None:  # an index of its own, which no running Orion completes
                await make_vectors(engine.meaning)
            recorder.timings["index"] = (time.monotonic() - started) * 1000
            store = await _store(settings, stack) if thread else None
            state = await store.load(asked.thread) if store else ThreadState()
            emit = _told_to(recorder, trace)
            outcome, state = await engine.run(asked, state, emit=emit, save=_saving(store, asked.thread))
            if trace:
                from bot.turn.observer import end_trace

                end_trace(trace, outcome)
            if store:
                await _keep(store, asked.thread, state)
            documents = await known_documents(engine.index)
            if isinstance(outcome, Refused) and not documents:
                log.error("no_documents", remedy=NO_DOCUMENTS)  # nothing else at a terminal tells a miss from this
        recorder.timings["total"] = (time.monotonic() - started) * 1000
        result = _result(outcome, recorder)
        for source in result["sources"]:
            source["path"] = _path(source, documents)
        show(result)
    return result


async def _trace(settings: Settings, stack: AsyncExitStack, asked: Question, turn_id: str) -> TurnTrace | None:
    """The question's trace, where there are keys for one. A question without a thread is a session of its own."""
    if not (settings.langfuse_public_key and settings.langfuse_secret_key.get_secret_value()):
        return None
    from bot.cli.terminal_traces import traced

    alone = asked.thread == _thread("")
    session = f"{asked.thread}:{turn_id}" if alone else str(asked.thread)
    return await stack.enter_async_context(traced(settings, asked, turn_id, session=session))


def _told_to(recorder: Recorder, trace: TurnTrace | None) -> Emit:
    if trace is None:
        return recorder
    from bot.turn.observer import trace_event

    def heard(event: TurnEvent) -> None:
        recorder(event)
        trace_event(trace, event)

    return heard


async def _store(settings: Settings, stack: AsyncExitStack) -> ThreadStore:
    return ThreadStore(await stack.enter_async_context(open_redis(settings)))


async def _keep(store: ThreadStore, thread: ThreadKey, state: ThreadState) -> None:
    """The answer stands, whether or not the conversation can be kept."""
    try:
        await store.save(thread, state)
    except StateNotSaved as error:
        log.warning("conversation_not_kept", error_type=type(error).__name__)


def _saving(store: ThreadStore | None, thread: ThreadKey) -> Save:
    if store is None:
        return keep_in_memory

    async def save(state: ThreadState) -> ThreadState:
        return await store.save(thread, state)

    return save


def _thread(name: str) -> ThreadKey:
    return ThreadKey(team="terminal", channel="terminal", thread_ts=name or "once")


def _path(source: Mapping[str, Any], documents: Sequence[Document]) -> str:
    """Where the source's document lies; empty where it is none, or two look alike."""
    ids = [
        document.id
        for document in documents
        if document.updated_at == source["updated_at"]
        and (source["title"] == document.title or source["title"].startswith(f"{document.title} › "))
    ]
    return ids[0] if len(ids) == 1 else ""


def _result(outcome: TurnOutcome, recorder: Recorder) -> dict[str, Any]:
    answer = None if isinstance(outcome, Cancelled) else outcome.answer
    name = outcome_name(outcome)
    failed = any(violation.severity == "error" for violation in answer.violations) if answer else True
    return {
        "answer": _shown(answer.text, answer.label) if answer else "",
        "outcome": name,
        "verified": not failed and name not in {"unsourced", "failed", "out_of_budget"},
        "attempts": answer.attempts if answer else 0,
        "repairs": repairs_json(answer.repairs) if answer else [],
        "violations": violations_json(answer.violations) if answer else [],
        "sources": sources_json(answer, text=True) if answer else [],
        "usage": recorder.usage,
        "timings_ms": recorder.timings_ms,
    }


def _shown(text: str, label: str) -> str:
    return f"_{label}_\n{text}" if label else text


def exit_code(result: dict[str, Any]) -> int:
    """0 for answered and partial, 3 for any other outcome."""
    return EXIT_ANSWERED if result["outcome"] in {"answered", "partial"} else EXIT_OTHER
