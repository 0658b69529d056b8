"""Working record of one turn: sources, usage, listeners, the early draft. A source keeps its number within a turn.

The first draft starts together with the first decision, so that an easy question waits for one model call. It is not
used before the decision is ``respond``. After any other decision it is stopped, and its usage is counted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Final
from urllib.parse import urldefrag

import structlog

from agent.budget import Budget, Usage
from agent.knowledge.types import PATH
from agent.model.prompts import private_texts
from agent.model.protocol import Judge, Model, ModelError, Piece, ReplyKind, WriteContext, WriteStream
from agent.texts.catalogue import say
from agent.thread.conversation import Question, is_from_own_words, may_see, viewers_of
from agent.thread.state import StateNotSaved, ThreadState
from agent.tools.builtin.knowledge import SEARCH
from agent.tools.tool import Tool, ToolResult, error_of
from agent.turn.events import Emit, ModelEnd, ModelStart, StateUpdated, StepSeen
from agent.turn.live import LiveAnswer
from verification.judgement import ClaimKey, Judgement
from verification.rules.references import citations, normalise_citations
from verification.types import Draft, Source

log = structlog.get_logger()

MAX_SOURCES = 24  # maximum sources: more would only dilute the context for writing
MAX_THREAD_CHARS = 16_000  # the latest characters of people's messages: a pasted log must not crowd out the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A deployment's policy on answers."""

    general: str = "label"  # what to do if no source was found
    early_draft: bool = True  # the first draft starts together with the first decision
    link_hosts: frozenset[str] = frozenset()


Save = Callable[[ThreadState], Awaitable[ThreadState]]
"""Stores a state and returns it with its new version. Raises ``StateNotSaved``."""


@dataclass(slots=True, kw_only=True)
class JudgeRecord:
    """The judge's opinions in one turn."""

    # The attempt in which a claim was asked about, and the opinion: None if the judge said nothing usable.
    claims: dict[ClaimKey, tuple[int, asyncio.Future[Judgement | None]]] = field(default_factory=dict)
    replies: dict[str, ReplyKind | None] = field(default_factory=dict)  # of whole answers, by their text
    calls: int = 0
    lost: int = 0  # the attempt in which it could not be reached


DISCARDED: Final = "discarded"  # the `error` of a draft that was stopped because the decision was not to answer yet
_MAX_WAITING_PIECES: Final = 4_096  # a server that sends more before the decision is slowed down, not stored


class EarlyDraft:
    """A stream that a separate task reads ahead. Its ``pieces`` yield the text so far, then the rest."""

    def __init__(self, progress: Progress, group: asyncio.TaskGroup) -> None:
        self._waiting: asyncio.Queue[Piece | None] = asyncio.Queue(_MAX_WAITING_PIECES)
        self.stream: WriteStream | None = None
        self.error: ModelError | None = None
        self._task = group.create_task(self._read(progress, progress.write_context()), name="early-draft")

    async def stop(self) -> None:
        """Stop reading. The connection is closed when this returns."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _read(self, progress: Progress, context: WriteContext) -> None:
        progress.emit(ModelStart(phase="write", model=progress.model.name, attempt=1))
        self.stream = progress.model.write(context)
        received, self.stream.pieces = self.stream.pieces, self._relay()
        try:
            async with aclosing(received) as pieces:
                async for piece in pieces:
                    await self._waiting.put(piece)
        except ModelError as error:
            self.error = error
        await self._waiting.put(None)

    async def _relay(self) -> AsyncGenerator[Piece]:
        try:
            received: list[Piece | None] = []
            while received[-1:] != [None]:
                received = [await self._waiting.get()]
                while not self._waiting.empty():
                    received.append(self._waiting.get_nowait())
                # Return all text that came meanwhile as one piece, because each piece costs its listeners the same.
                for channel, pieces in groupby(filter(None, received), key=itemgetter(0)):
                    yield channel, "".join(text for _, text in pieces)
        finally:
            await self.stop()
        if self.error:
            raise self.error


def _lines_pattern(text: str) -> re.Pattern[str]:
    blocks = map(re.escape, re.split(r"\n\s*\n", text.strip()))
    return re.compile(r"(?<![^\n])" + r"\s+".join(blocks) + r"(?![^\n])")


@dataclass(slots=True, kw_only=True)
class Progress:
    """The turn so far."""

    question: Question
    state: ThreadState
    model: Model
    tools: Mapping[str, Tool]
    budget: Budget
    emit: Emit
    policy: Policy = field(default_factory=Policy)
    save: Save | None = None
    judge: Judge | None = None
    judge_record: JudgeRecord = field(default_factory=JudgeRecord)
    live: LiveAnswer = field(default_factory=LiveAnswer)
    early: EarlyDraft | None = None
    used: Usage = field(default_factory=Usage)
    results: list[ToolResult] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    left_out: int = 0
    titles: dict[str, str] = field(default_factory=dict)  # of the plan's steps, as they may be shown
    revealed: tuple[StepSeen, ...] = ()  # the plan as it was shown last

    def add_result(self, result: ToolResult) -> None:
        """Keep a tool's result and number its sources."""
        before = len(self.sources) + self.left_out
        for source in result.sources:
            self.add_source(source)
        is_old = bool(result.sources) and len(self.sources) + self.left_out == before
        self.results.append(replace(result, found_nothing_new=is_old))

    def add_source(self, source: Source) -> None:
        """Number a source without what other sources have of its page, unless a reader of the answer may not see it."""
        if not source.text.strip():
            return
        if not may_see(source.audience, viewers_of(self.question)):
            log.warning("source_withheld", thread=str(self.question.thread), origin=source.origin)
            return
        if not (unlisted := self._without_listed(source)).text:
            return
        if len(self.sources) >= MAX_SOURCES:
            self.left_out += 1
            return
        self.sources.append(replace(unlisted, id=len(self.sources) + 1))

    def _without_listed(self, source: Source) -> Source:
        """Return the source with references to the sources that have parts of it; without text if they have it all."""
        page = urldefrag(source.url).url  # the fragment points to the passage that a search found
        document, references = source.title.partition(PATH)[0], {""}
        text, sections = source.text, source.sections
        for known in self.sources:
            if urldefrag(known.url).url != page:
                continue
            if known.text == source.text:
                return replace(source, text="")
            if known.origin == source.origin == "document" and known.title.partition(PATH)[0] == document:
                if _lines_pattern(source.text).search(known.text):
                    return replace(source, text="")
                if part := _lines_pattern(known.text).search(text):
                    references.add(reference := f"[{known.title}: see above]")
                    text = text[: part.start()] + reference + text[part.end() :]
                    start, less = part.start(), len(part[0]) - len(reference)
                    sections = tuple(
                        (at if at <= start else max(start, at - less), url, title) for at, url, title in sections
                    )
        is_listed = text != source.text and all(
            line.startswith("#") or line in references for line in text.splitlines()
        )
        return replace(source, text="" if is_listed else text, sections=sections)

    def add_thread_messages(self) -> None:
        """Add the messages between people in the thread as a source."""
        messages = [m for m in self.state.history if m.role == "user" and not m.addressed]
        lines: list[str] = []
        room = MAX_THREAD_CHARS
        for message in reversed(messages):
            author = self.question.names.get(message.user) or (f"Member {message.user}" if message.user else "Someone")
            lines.insert(0, f"{author}: {message.text}"[:room])
            room -= len(lines[0]) + 1
            if room <= 0:
                break
        title = "Earlier in this thread"
        if room <= 0:  # the title says that earlier messages were not read
            title += f" (its last {len(lines)} messages)" if len(lines) > 1 else " (part of its last message)"
        if lines:
            self.add_source(Source(id=0, title=title, text="\n".join(lines), origin="thread"))

    @property
    def places_away(self) -> list[str]:
        """Places that tools could not look into in the whole turn."""
        seen = {result.place for result in self.results if result.ok}
        away = dict.fromkeys(result.place for result in self.results if result.away and result.place)
        return [place for place in away if place not in seen]

    @property
    def documents_so_far(self) -> int | None:
        """Number of documents if the latest search ran while Orion was still reading them."""
        return next((each.documents_so_far for each in reversed(self.results) if each.tool == SEARCH), None)

    def write_context(self) -> WriteContext:
        """Return the context for the first draft of an answer."""
        return WriteContext(
            mission=self.state.mission,
            question=self.question,
            history=self.state.history,
            answers=self.state.answers,
            results=tuple(self.results),
            sources=tuple(self.sources),
            left_out=self.left_out,
        )

    def draft(self, text: str) -> Draft:
        """Return the text as a draft with everything known in this turn. If it cites a source, it is checked."""
        question, history, today = self.question, self.state.history, self.question.date_asked()
        asked = {number for each in citations(question.text) for number in each.ids}
        written = citations(normalise_citations(text, tuple(self.sources))[0])
        own = is_from_own_words(question.text) and all(asked.issuperset(each.ids) for each in written)
        asker = [m.text for m in history if m.role == "user" and m.user == question.user]
        return Draft(
            text=text,
            question=question.text,
            sources=tuple(self.sources),
            known_text="\n".join([*asker, *self.state.answers.values()]),
            context="\n".join([f"{today:%A} {today}", *(m.text for m in history if m.role == "assistant")]),
            mentions=question.mentioned,
            link_hosts=self.policy.link_hosts,
            private_texts=private_texts(),
            own_words=own,
            unsourced=not own and not self.sources,
            has_judge=self.judge is not None and bool(self.sources) and not own,
        )

    def record_model_call(self, end: ModelEnd) -> None:
        """Count the usage of a model call (at least one call, or none without a model), and emit its end."""
        least = 0 if self.model.quotes_only else 1
        end = replace(end, usage=replace(end.usage, model_calls=max(least, end.usage.model_calls)))
        self.used += end.usage
        self.emit(end)

    def exceeded_limit(self) -> str:
        """Return the name of the exceeded limit, or an empty text. The deadline is a time-out around the whole turn."""
        if self.used.model_calls >= self.budget.model_calls:
            return "model_calls"
        return "tokens" if self.used.tokens >= self.budget.tokens else ""

    def say(self, key: str, **gaps: str) -> str:
        """Return a text that people see, in the language of the question."""
        return say(key, self.question.reply_language, **gaps)

    def update(self, state: ThreadState, **changes: object) -> None:
        """Replace the state and emit the changes."""
        self.state = state
        self.emit(StateUpdated(changes=changes))

    async def store(self) -> None:
        """Save now, if the conversation is stored. If that fails, log it and continue."""

        async def save() -> None:
            if self.save is not None:
                self.state = await self.save(self.state)

        if error := await error_of(save):
            facts = {"thread": str(self.question.thread), "reason": type(error).__name__}
            log.warning("state_save_failed", **facts, exc_info=None if isinstance(error, StateNotSaved) else error)
