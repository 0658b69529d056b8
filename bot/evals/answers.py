"""Asks the whole agent labelled questions, and counts the expected answers and refusals."""

import html
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter

from agent.json_data import string
from agent.model.protocol import Judge
from agent.outcome import OutcomeName
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import ThreadState
from agent.turn.events import TurnEvent
from bot.documents.open import corpus_of, make_vectors
from bot.errors import WrongUse
from bot.evals.rows import Row, Text, by_kind, percentile, read_rows, share, validate
from bot.evals.verify import verdict_on
from bot.settings import Settings
from bot.stores.turn_records import Recorder
from bot.turn.engine import Engine, open_engine
from bot.turn.observer import end_trace, open_tracer, reason_of, trace_event
from observability.langfuse.datasets import TO_BE_REFUSED, Experiment, Item, push_experiment, read_dataset
from observability.langfuse.tracing import Tracer, TurnTrace, trace_id_of
from verification.types import Draft, Source

# A label cannot foresee the positions of citations and bold text.
_CITATION = re.compile(r"\s?\[\d+(?:\s*[,;–-]\s*\d+)*\]")
_MARKS = re.compile(r"[*_`~\u200b]")
# A separate environment in Langfuse keeps these traces and scores apart from those of people's questions.
_USER = "eval"
FROM_LANGFUSE: Final = "langfuse:"  # before the name of a dataset


class LabelledQuestion(Row):
    """One labelled question. The reply must say the same as ``reference``, and contain the texts of ``expect``.

    Without both, Orion should refuse. Rows of one ``thread`` form a conversation.
    """

    question: str
    expect: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None
    thread: Text = ""
    kind: Text = ""
    reference: Text = ""

    @property
    def should_refuse(self) -> bool:
        """True if the documents contain no answer."""
        return self.expect is None and not self.reference


Result = Literal["answered", "refused", "wrong", "error"]
"""Answered as expected, refused as expected, neither, or no verdict (the model, the documents or a budget failed)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalReply:
    """The reply to one question. ``failed_rules`` are the rules that a draft broke, once per attempt."""

    asked: LabelledQuestion
    outcome: OutcomeName
    text: str
    ms: float = 0.0
    reason: str = ""
    sources: tuple[Source, ...] = ()
    attempts: int = 0
    failed_rules: tuple[str, ...] = ()
    says_reference: bool = True

    @property
    def as_expected(self) -> bool:
        """True if it was rightly refused, or answered from the sources with all expected texts."""
        if self.asked.should_refuse:
            return self.outcome == "refused"
        shown, texts = plain(self.text), self.asked.expect or ()
        is_answered = self.outcome in {"answered", "partial"}
        return is_answered and self.says_reference and all(plain(text) in shown for text in texts)

    @property
    def is_judged(self) -> bool:
        """True if it counts in the pass rate: its answer passed, partly passed, or failed verification."""
        return self.outcome in {"answered", "partial"} or (self.outcome, self.reason) == ("failed", "verification")

    @property
    def result(self) -> Result:
        """The result in one word."""
        if self.as_expected:
            return "refused" if self.asked.should_refuse else "answered"
        broken = self.outcome in {"failed", "out_of_budget"} and not self.is_judged
        return "error" if broken else "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRun:
    """One run over a file. ``pushed`` describes its upload to Langfuse; empty without keys."""

    file: str
    model: str
    began: datetime
    replies: tuple[EvalReply, ...]
    pushed: str = ""

    def figures(self) -> dict[str, Any]:
        """Return the report as JSON-ready values."""
        return {"file": self.file, "model": self.model, **count_results(self.replies)}


async def ask_all(settings: Settings, path: Path, docs: Path) -> EvalRun:
    """Ask every question of a file, or of the dataset ``langfuse:NAME``, about ``docs``. Raises ``WrongUse``."""
    corpus, began, tracer = corpus_of(settings, [docs]), datetime.now(UTC), open_tracer(settings, _USER)
    name = f"{path.stem} {began.isoformat(timespec='milliseconds')}"
    replies: list[EvalReply] = []
    states: dict[str, ThreadState] = {}
    try:
        questions = await _read_questions(path, tracer)
        turn_ids = [f"{name} {number}" for number in range(len(questions))]
        async with open_engine(settings, corpus) as engine:
            await make_vectors(engine.meaning)  # otherwise the first questions would be asked without search by meaning
            for asked, turn_id in zip(questions, turn_ids, strict=True):
                # Rows of one thread continue each other; a single row starts a new one.
                thread = asked.thread or f"only {asked.id}"
                place = ThreadKey(team=_USER, channel=_USER, thread_ts=thread)
                question = Question(thread=place, user=_USER, text=asked.question, ts=f"{time.time():.6f}")
                trace = await tracer.turn(turn_id, thread=str(place), user=_USER, question=asked.question)
                reply, states[thread] = await _ask(engine, asked, question, states.get(thread, ThreadState()), trace)
                replies.append(reply)
        items = list(map(_item, replies, turn_ids))
        about, figures = {"model": engine.model.name, "file": path.name}, count_results(replies)
        shares = {shown: figures[shown] for shown in ("answered_share", "refused_share", "p50_ms", "p95_ms")}
        shares["as_expected_share"] = share(_right(replies), len(replies))
        # Only now, so that no figure waits for Langfuse (decision 16).
        pushed = await push_experiment(
            tracer, Experiment(dataset=path.stem, run=name, items=items, shares=shares, about=about)
        )
    finally:
        await tracer.aclose(timeout_s=1.0)  # a Langfuse that hangs must not delay the report
    return EvalRun(file=path.name, model=engine.model.name, began=began, replies=tuple(replies), pushed=pushed)


async def _read_questions(path: Path, tracer: Tracer) -> list[LabelledQuestion]:
    dataset = str(path).removeprefix(FROM_LANGFUSE)
    if dataset == str(path):
        return list(read_rows(path, LabelledQuestion))
    try:
        items = await read_dataset(tracer, dataset)
    except LookupError as error:
        raise WrongUse(why=f"The dataset {dataset} cannot be read: {error}.") from None
    rows = []
    for item in items:
        expected, kind = item.expected_output, string(item.metadata, "kind")
        label = {"reference": expected} if isinstance(expected, str) and expected != TO_BE_REFUSED else {}
        expect = expected if isinstance(expected, list) else None
        row = {"id": item.id, "question": item.input, "expect": expect, "kind": kind, **label}
        rows.append(validate(TypeAdapter(LabelledQuestion), row, f"{path}, item {item.id}"))
    return rows


async def _says(reply: str, asked: LabelledQuestion, judge: Judge | None) -> bool:
    """Return whether the reply says everything in the reference; without a judge, in the same words."""
    if judge is None or plain(asked.reference) in plain(reply):
        return plain(asked.reference) in plain(reply)
    source = Source(id=1, title="The reply", text=_CITATION.sub("", reply))
    cited = "\n\n".join(f"{line} [1]" for line in asked.reference.splitlines() if line.strip())
    verdict = await verdict_on(Draft(text=cited, sources=(source,), question=asked.question), judge)
    return bool(verdict.claims) and all(claim.supported == "yes" for claim in verdict.claims)


async def _ask(
    engine: Engine, asked: LabelledQuestion, question: Question, state: ThreadState, trace: TurnTrace
) -> tuple[EvalReply, ThreadState]:
    recorder = Recorder()

    def listen(event: TurnEvent) -> None:
        recorder(event)
        trace_event(trace, event)

    began = time.perf_counter()
    outcome, state = await engine.run(question, state, emit=listen)
    spent = (time.perf_counter() - began) * 1000
    end_trace(trace, outcome)
    errors = [[v["rule"] for v in one["violations"] if v["severity"] == "error"] for one in recorder.attempts]
    return EvalReply(
        asked=asked,
        outcome=outcome.name,
        text=outcome.answer.text,
        ms=spent,
        reason=reason_of(outcome),
        sources=outcome.answer.sources,
        attempts=len(errors),
        failed_rules=tuple(rule for rules in errors for rule in dict.fromkeys(rules)),
        says_reference=not asked.reference or await _says(outcome.answer.text, asked, engine.judge),
    ), state


def _item(reply: EvalReply, turn_id: str) -> Item:
    """Return the question as Langfuse shows it, with the id of its turn's trace."""
    asked, names = reply.asked, ("outcome", "attempts", "failed_rules")
    facts = {name: getattr(reply, name) for name in names} | {"ms": round(reply.ms), "trace": trace_id_of(turn_id)}
    expect = asked.expect or ((asked.reference,) if asked.reference else None)
    return Item(
        id=asked.id, question=asked.question, expect=expect, answer=reply.text,
        as_expected=reply.as_expected, kind=asked.kind, facts=facts,
    )  # fmt: skip


def count_results(replies: Sequence[EvalReply]) -> dict[str, Any]:
    """Count the replies that answered and refused as expected, by kind, and list the others."""
    answerable = [reply for reply in replies if not reply.asked.should_refuse]
    absent = [reply for reply in replies if reply.asked.should_refuse]
    times = [reply.ms for reply in replies]
    return {
        "rows": len(replies),
        "should_answer": len(answerable),
        "answered_as_expected": _right(answerable),
        "answered_share": share(_right(answerable), len(answerable)),
        "should_refuse": len(absent),
        "refused_as_expected": _right(absent),
        "refused_share": share(_right(absent), len(absent)),
        "outcomes": dict(sorted(Counter(reply.outcome for reply in replies).items())),
        "kinds": {
            kind: {"rows": len(each), "as_expected": _right(each)}
            for kind, each in by_kind(replies, lambda reply: reply.asked.kind).items()
        },
        "not_as_expected": [{"id": r.asked.id, "outcome": r.outcome} for r in replies if not r.as_expected],
        "p50_ms": round(percentile(times, 0.5), 1),
        "p95_ms": round(percentile(times, 0.95), 1),
    }


def _right(replies: Iterable[EvalReply]) -> int:
    return sum(reply.as_expected for reply in replies)


def plain(text: str) -> str:
    """Return the text as a reader sees it: no citations, marks, escapes, doubled spaces or upper case."""
    bare = _MARKS.sub("", _CITATION.sub("", text))
    return " ".join(html.unescape(bare).split()).casefold()
