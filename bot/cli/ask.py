"""`orion ask`: one turn of the real agent in the terminal, verified as in Slack. It can continue a thread."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import structlog

from agent.knowledge.types import Document
from agent.outcome import Refused, TurnOutcome
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import StateNotSaved, ThreadState
from agent.turn.events import Emit, TurnEvent
from bot.cli.output import FOUND_NONE, note
from bot.documents.open import available_documents, corpus_of, make_vectors
from bot.settings import Settings
from bot.stores.turn_records import Recorder, sources_json
from bot.turn.engine import open_engine

if TYPE_CHECKING:
    from agent.thread.store import ThreadStore

log = structlog.get_logger()

TRACE_TIMEOUT_S = 2.0  # a person is waiting for the prompt

Show = Callable[[dict[str, Any]], None]


async def ask(
    settings: Settings, question: str, *, docs: Sequence[Path] | None, thread: str, show: Show | None = None
) -> dict[str, Any]:
    """Answer one question, in the fields of the public contract. ``show`` gets the answer before its trace is sent."""
    started, recorder, turn_id = time.monotonic(), Recorder(), uuid4().hex
    place = ThreadKey(team="terminal", channel="terminal", thread_ts=thread or "once")
    asked = Question(thread=place, user="terminal", text=question, ts=f"{time.time():.6f}")
    # A question without a thread is its own session.
    session = str(place) if thread else f"{place}:{turn_id}"
    with structlog.contextvars.bound_contextvars(thread=str(place), turn_id=turn_id):
        async with listen(settings, asked, turn_id, session, recorder) as (emit, end):
            async with AsyncExitStack() as stack:
                engine = await stack.enter_async_context(open_engine(settings, corpus_of(settings, docs)))
                if docs is not None:  # a separate index, for which no running Orion computes vectors
                    await make_vectors(engine.meaning)
                recorder.timings["index"] = (time.monotonic() - started) * 1000
                store = await _store(settings, stack) if thread else None
                state = await store.load(place) if store else ThreadState()
                save = partial(store.save, place) if store else None
                outcome, state = await engine.run(asked, state, emit=emit, save=save)
                end(outcome)
                try:
                    if save is not None:
                        await save(state)
                except StateNotSaved as error:  # the answer is still valid
                    log.warning("conversation_not_kept", error_type=type(error).__name__)
                documents = await available_documents(engine.index)
            recorder.timings["total"] = (time.monotonic() - started) * 1000
            result = result_json(outcome, recorder, documents)
            if show:
                show(result)
            if docs and isinstance(outcome, Refused) and not documents:
                note(FOUND_NONE, "yellow")
    return result


async def _store(settings: Settings, stack: AsyncExitStack) -> "ThreadStore":
    # Redis's client takes a tenth of a second to import: only a question with a thread needs it.
    from agent.thread.store import ThreadStore
    from bot.redis.server import open_redis

    return ThreadStore(await stack.enter_async_context(open_redis(settings)))


@asynccontextmanager
async def listen(
    settings: Settings, asked: Question, turn_id: str, session: str, recorder: Recorder
) -> AsyncIterator[tuple[Emit, Callable[[TurnOutcome], None]]]:
    """Yield a listener for the turn's events and one for its end: the recorder and, with keys, a trace."""
    if not settings.sends_traces:
        yield recorder, lambda _outcome: None
        return
    from bot.turn.observer import end_trace, open_tracer, trace_event  # half a second

    tracer = open_tracer(settings, "terminal")
    trace = await tracer.turn(turn_id, thread=session, user=asked.user, question=asked.text)

    def emit(event: TurnEvent) -> None:
        recorder(event)
        trace_event(trace, event)

    try:
        yield emit, partial(end_trace, trace)
    finally:
        trace.end(outcome="interrupted")  # unless it has ended
        await tracer.aclose(timeout_s=TRACE_TIMEOUT_S)


def _path(source: Mapping[str, Any], documents: Sequence[Document]) -> str:
    """Return the path of the source's document; empty if there is none, or if it is ambiguous."""
    ids = [
        document.id
        for document in documents
        if document.updated_at == source["updated_at"]
        and (source["title"] == document.title or source["title"].startswith(f"{document.title} › "))
    ]
    return ids[0] if len(ids) == 1 else ""


def result_json(outcome: TurnOutcome, recorder: Recorder, documents: Sequence[Document]) -> dict[str, Any]:
    """Return an answer in the fields of the public contract."""
    answer, name = outcome.answer, outcome.name
    failed = any(violation.severity == "error" for violation in answer.violations)
    return {
        "answer": f"_{answer.label}_\n{answer.text}" if answer.label else answer.text,
        "outcome": name,
        "verified": not failed and name not in {"unsourced", "failed", "out_of_budget"},
        "attempts": answer.attempts,
        "repairs": list(map(asdict, answer.repairs)),
        "violations": list(map(asdict, answer.violations)),
        "sources": [{**source, "path": _path(source, documents)} for source in sources_json(answer, text=True)],
        "usage": recorder.usage,
        "timings_ms": recorder.timings_ms,
    }
