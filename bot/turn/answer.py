"""From a message that passed the gates to a delivered answer: run the turn, write down, deliver, save.

The outbox holds what is to be said before it is said; every outside effect checks the lease first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, Final

import structlog

from agent.quoting.small_talk import asks_about_orion
from agent.texts.catalogue import help_text, own_words, say
from agent.thread.conversation import AttachedFile, Question, ThreadKey
from agent.thread.state import ThreadState, before_latest, retold, unsaid, with_posted
from agent.tools.tool import Tool
from agent.turn.loop import stopped
from bot.delivery.answer_key import Mark
from bot.delivery.blocks import short_id
from bot.delivery.delivery import Delivery
from bot.delivery.stream import AnswerStream, Streams, streaming
from bot.queue.lease import LeaseLost
from bot.queue.queue import OK, Ending, give_up, retry_uncounted
from bot.slack.files import has_opening_files
from bot.slack.history import sort_key
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.facts import read_facts
from bot.stores.outbox import Entry, read_entry
from bot.stores.stores import Stores
from bot.timeouts import TurnTimeouts
from bot.turn.duplicates import look_again
from bot.turn.engine import Engine
from bot.turn.history import Earlier, said_before_in_chat, with_earlier
from bot.turn.job import Job
from bot.turn.observer import Observers
from bot.turn.retry_later import pause_s, rest, waiting_since
from bot.turn.status import MODEL_AWAY, THINKING, Pace, WorkingStatus
from bot.turn.stream_recovery import StreamedTurns, stream_before
from verification.text.language import detect

log = structlog.get_logger()

FAILURES: Final = frozenset({"failed", "out_of_budget"})  # outcomes that a person may want to ask an admin about

NOT_ANSWERED: Final = frozenset({"refused", "failed", "out_of_budget"})
"""Outcomes after which a human may be asked."""

FIRST_STATUS_S: Final = 0.5  # what is answered sooner needs no status
SHOWN_AFTER_S: Final = 2.0
"""A question that waited for so long may stand under a status: ``bot.turn.queue_position`` tells after three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveView:
    """What a person sees of a turn before its answer is whole."""

    status: WorkingStatus
    stream: AnswerStream | None
    before: str | None  # the stream that an earlier try began

    @property
    def streamed(self) -> str | None:
        """The same, now: this try may have begun one."""
        return self.stream.ts if self.stream and (self.stream.ts or self.stream.unsure) else self.before

    async def hold(self) -> None:
        """Show nothing more, and return when nothing is on its way."""
        await self.status.hold()
        if self.stream:
            await self.stream.stop_sending()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceLookups:
    """What only the workspace knows of whoever asks. ``offers_human``: whether anybody can be asked beside Orion."""

    offers_human: Callable[[ThreadKey], bool]
    language_of: Callable[[str, str], Awaitable[str | None]]
    files_of: Callable[
        [Incoming, Mapping[str, Any] | None, Mapping[str, Any] | None], Awaitable[tuple[AttachedFile, ...]]
    ]
    tools_of: Callable[[Incoming], Awaitable[tuple[Tool, ...]]]

    async def files(self, incoming: Incoming, earlier: Earlier) -> tuple[AttachedFile, ...]:
        """What came with the question, and with what opened its thread. Where Slack's limits forbid a look, a note."""
        unseen = (AttachedFile(name="", trouble="unseen"),)
        if earlier.limited:
            return unseen
        try:
            return await self.files_of(incoming, earlier.first, earlier.asked)
        except DeliveryFailed as failure:
            if not failure.again_s:
                raise
            return unseen


@dataclass(slots=True, eq=False)
class Answering:
    """Handles messages for the worker."""

    engine: Engine
    delivery: Delivery
    _: KW_ONLY
    stores: Stores
    observers: Observers
    lookups: WorkspaceLookups
    timeouts: TurnTimeouts = field(default_factory=TurnTimeouts)
    streams: Streams | None = None

    @property
    def _streamed(self) -> StreamedTurns:
        return StreamedTurns(self.stores.mailbox, self.delivery, self.streams)

    async def answer(self, job: Job) -> Ending:
        """Do what the message asks. Returns how the message ends in its mailbox. Raises ``LeaseLost``."""
        claimed = job.claimed
        log.info("turn_started", message_id=claimed.id, tries=claimed.tries, waited_s=round(job.claimed.waited_s, 3))
        try:
            return await self._do(job)
        except DeliveryFailed as failure:
            log.warning("delivery_failed", reason=failure.reason, permanent=failure.permanent)
            if failure.permanent or job.claimed.waited_s > self.timeouts.slack_s:
                return give_up(failure.reason)
            return retry_uncounted(failure.again_s or self.timeouts.pause_s(job.claimed.waited_s))
        except (asyncio.CancelledError, LeaseLost):
            if not job.lease.is_held():
                await look_again(self.stores.mailbox, job)
            raise
        finally:
            if claimed.tries > 1 and job.begun:  # whoever died over it may have said the same
                await look_again(self.stores.mailbox, job)

    async def notify_given_up(self, job: Job, reason: str) -> None:
        """A message was given up: its person is told, with an id that the log knows, unless an answer stands.

        Raises ``DeliveryFailed`` where Slack is away.
        """
        incoming, lease = job.incoming, job.lease
        log.error("question_given_up", thread=job.claimed.thread, turn_id=job.turn_id, reason=reason)
        if incoming.kind == "delete":
            return  # whoever took a question back wants to hear nothing of it
        try:
            if entry := read_entry(job.facts.outbox):
                await self._deliver(job, entry)
            elif not any(posted.turn_id for posted in await self.delivery.reader.find_posts(job.place, incoming.ts)):
                text = say("internal", job.language, id=short_id(job.turn_id))
                answer_key = replace(job.answer_key(), turn_id="", streamed=stream_before(job))
                await self.delivery.answer(job.place, own_words(text), answer_key)
            await self.delivery.sessions.end(job.place, lease.require)
        except DeliveryFailed as failure:
            log.warning("delivery_failed", reason=failure.reason, permanent=failure.permanent)
            if not failure.permanent:
                raise  # the message is kept, and its person told by a later try
            await self._tell_in_person(job)

    async def _tell_in_person(self, job: Job) -> None:
        """The place is closed to Orion: the person is told in their direct chat, without a word of the question."""
        try:
            job.lease.require()
            await self.delivery.send_direct_message(
                job.incoming.user, say("not_posted", job.language, id=short_id(job.turn_id))
            )
        except DeliveryFailed as failure:
            log.warning("person_not_told", reason=failure.reason)

    async def _do(self, job: Job) -> Ending:
        kind = job.incoming.kind
        if kind in {"question", "edit", "help"}:  # a bare mention may bring a file
            return await self._question(job)
        if kind == "delete":
            await self._take_back(job)
        elif kind in {"mute", "unmute"}:
            await self._say(job, say("muted" if kind == "mute" else "unmuted", await self._spoken(job)))
        return OK  # "stop" and "hand_off" were taken care of by ``bot.gates``: neither has an answer of its own

    async def _say(self, job: Job, text: str) -> None:
        await self.delivery.post_own_text(job.place, text, job.incoming.ts, job.lease.require)

    async def _take_back(self, job: Job) -> None:
        """Delete the answer to a deleted question, and what the thread's memory holds of both."""
        ts, state = job.incoming.ts, job.facts.state
        if (after := unsaid(state, ts)) != state:
            await self._save(job, after)
        try:
            await self.delivery.delete_answer(job.place, ts, job.lease.require, posted=state.posted.get(ts, ()))
        except DeliveryFailed as failure:
            if failure.reason != "thread_not_found":  # it would have opened the thread: nothing was answered yet
                raise

    async def _spoken(self, job: Job) -> str | None:
        """The language of a thread where the message itself has none: of what was asked last, else of its person."""
        asked = [message.text for message in job.facts.state.history if message.role == "user" and message.addressed]
        return detect(asked[-1]) if asked else await self.lookups.language_of(job.place.team, job.incoming.user)

    async def _question(self, job: Job) -> Ending:
        try:
            entry = read_entry(job.facts.outbox)
            if not (entry or job.facts.is_wanted):
                return await self._let_go(job)
            found = await (self._finish(job, entry) if entry else self._answer(job))
        except asyncio.CancelledError:
            if not job.lease.stopped:
                raise
            return await self._interrupted(job)
        return await self._saved(job, found) if isinstance(found, Entry) else found

    async def _saved(self, job: Job, entry: Entry) -> Ending:
        """The answer stands: its thread is saved, and nobody needs the outbox's entry any more."""
        await self._save(job, entry.state)
        return replace(OK, settles=job.mark("outbox"))

    async def _finish(self, job: Job, entry: Entry) -> Entry:
        """Deliver what an earlier try decided, and take away the status, or placeholder, that it may have left."""
        only_waited = await self.delivery.is_waiting_to_post(job.place, entry.answer, job.answer_key())
        entry = await self._deliver(job, entry, may_exist=not only_waited)
        await self.delivery.sessions.end(job.place, job.lease.require)
        if not only_waited:
            await look_again(self.stores.mailbox, job)
        return entry

    async def _interrupted(self, job: Job) -> Ending:
        """A person took the question back. What was decided by then is finished; else nothing is said but "stopped"."""
        job = replace(job, facts=await read_facts(self.stores, job.incoming, job.turn_id))
        if entry := read_entry(job.facts.outbox):
            return await self._saved(job, await self._deliver(job, entry))
        await self._save(job, stopped(job.incoming.question(), job.facts.state))
        await self._streamed.end(job)
        await self._say_stopped(job)
        return OK

    async def _let_go(self, job: Job) -> Ending:
        """The question was taken back while it waited: whoever stopped it is told; what was shown goes."""
        await self._streamed.end(job)
        await self._say_stopped(job)
        with suppress(DeliveryFailed):
            await self.delivery.delete_placeholders(job.place, job.answer_key())
        await self.delivery.sessions.end(job.place, job.lease.require)
        return OK

    async def _say_stopped(self, job: Job) -> None:
        """Once for a stop, under the first question that it took back; of a deleted one nothing is said."""
        ts, stop = job.incoming.ts, job.facts.stop_ts
        if not stop or job.facts.is_deleted:
            return
        if await self.stores.mailbox.mark(job.claimed, f"stopped:{stop}", ts) == ts:
            with suppress(DeliveryFailed):
                await self._say(job, say("stopped", job.language))

    async def _answer(self, job: Job) -> Entry | Ending:
        """Run the turn under a status that shows from the first moment: fetching a file may take a while too."""
        remembered = job.facts.state
        state = await self._known_state(job, remembered)
        if state is None:
            if (after := retold(remembered, job.incoming.ts, job.incoming.text)) != remembered:
                await self._save(job, after)
            return OK
        waited = bool(waiting_since(job))
        first = MODEL_AWAY if waited else THINKING
        answer_key = job.answer_key(may_exist=waited or job.may_be_answered)
        status = WorkingStatus(self.delivery, job.place, answer_key, self._pace(job), first, _title(job))
        async with status.shown():
            quotes = self.engine.model.quotes_only
            # Who only quotes would show what it found for the thread before once more.
            context = () if quotes else await said_before_in_chat(job.incoming, self.stores)
            job = replace(job, context=context)
            earlier = await with_earlier(job, state, self.delivery.reader)
            job = replace(job, read=earlier.read)
            files = await self.lookups.files(job.incoming, earlier)
            brought = any(not (file.opening or file.trouble == "unseen") for file in files)
            text = job.incoming.text or (say("file_summarise", await self._spoken(job)) if brought else "")
            about = asks_about_orion(text) if quotes and not files and job.incoming.kind != "edit" else ""
            if about or not text:
                await status.hold()
                await self._say(job, help_text(about or await self._spoken(job)))
                return OK
            question = replace(job.incoming.question(), text=text, files=files)
            history = (*job.context, *earlier.state.history)
            known = replace(earlier.state, history=history, opened_with_files=has_opening_files(files, job.incoming))
            before = stream_before(job)
            await self._streamed.drop_plan(job, before)
            async with streaming(self._streamed.stage(job, before, status.again)) as stream:
                return await self._turn(job, question, known, LiveView(status=status, stream=stream, before=before))

    def _pace(self, job: Job) -> Pace:
        """In a direct chat the status begins the session that the answer names; who waited sees one already."""
        at_once = job.place.channel.startswith("D") or job.claimed.tries > 1 or job.claimed.waited_s > SHOWN_AFTER_S
        return Pace(first_s=0.0 if at_once else FIRST_STATUS_S, late_s=self.timeouts.late_s)

    async def _turn(self, job: Job, question: Question, state: ThreadState, live_view: LiveView) -> Entry | Ending:
        status, budgets = live_view.status, self.stores.budgets
        with self.observers.turn(question, job.turn_id, self.engine) as observer:
            observer.waited(job.claimed.waited_s)
            observer.status, observer.stream = status, live_view.stream
            more = await self.lookups.tools_of(job.incoming)
            async with budgets.count_turn(job.turn_id, job.incoming):
                outcome, after = await self.engine.run(
                    question, state, emit=observer, save=partial(self._keep, job), more=more, stage=live_view.stream
                )
            if (wait_s := pause_s(job, outcome, self.timeouts)) is not None:
                await live_view.hold()
                await self._streamed.drop_plan(job, live_view.streamed)
                return await rest(self.stores.mailbox, job, status, outcome, wait_s)
            decided = Entry(outcome=outcome.name, answer=outcome.answer, state=job.kept(after))
            entry = await self._write_down(job, decided)
            async with observer.delivering(outcome):
                await live_view.hold()
                known = entry is not decided or job.may_be_answered
                try:
                    entry = await self._deliver(job, entry, may_exist=known, live_view=live_view)
                except DeliveryFailed as failure:
                    if failure.again_s:
                        status.stand()
                    if not failure.permanent:  # a later try delivers what the outbox holds, and counts nothing
                        await observer.ended(outcome)
                    raise
                if live_view.streamed == "":  # a stream nobody knows of may begin after all
                    await look_again(self.stores.mailbox, job)
            await observer.ended(outcome)
        return entry

    async def _write_down(self, job: Job, entry: Entry) -> Entry:
        """Into the outbox, once. What stands there counts, also if another worker wrote it before us."""
        written = entry.to_json()
        stands = await self.stores.mailbox.mark(job.claimed, job.mark("outbox"), written)
        return entry if stands == written else read_entry(stands) or entry

    async def _deliver(
        self, job: Job, entry: Entry, *, may_exist: bool = True, live_view: LiveView | None = None
    ) -> Entry:
        """Say what was decided. Returns the entry with where it stands now."""
        marks: list[Mark] = ["partial"] if entry.outcome == "partial" else []
        if self.engine.model.quotes_only and entry.answer.sources and entry.answer.verified:
            marks.append("quotes")
        if entry.outcome in FAILURES:
            marks.append("failed")
        # Whether a quoted passage answers, nobody has read.
        unanswered = entry.outcome in NOT_ANSWERED or "quotes" in marks
        ask_human = unanswered and self.lookups.offers_human(job.place)
        streamed = live_view.streamed if live_view else stream_before(job)
        key = job.answer_key(*marks, may_exist=may_exist or streamed is not None)
        answer_key = replace(
            key, ask_human=ask_human, stream=live_view.stream if live_view else None, streamed=streamed
        )
        messages = await self.delivery.answer(job.place, entry.answer, answer_key)
        return replace(entry, state=with_posted(entry.state, job.incoming.ts, messages))

    async def _known_state(self, job: Job, state: ThreadState) -> ThreadState | None:
        """The thread as the turn meets it; None when an edit is of no interest any more."""
        incoming = job.incoming
        if incoming.kind != "edit":
            return state
        if (before := before_latest(state, incoming.ts)) is not None:
            return before
        # An edit of a message that never got an answer is a first question, if nothing was asked after it.
        asked = (m.ts for m in state.history if m.role == "user" and m.addressed)
        if incoming.addressed == "follow_up" or any(sort_key(ts) >= sort_key(incoming.ts) for ts in asked):
            return None
        muted = incoming.addressed != "mention" and await self.stores.thread_modes.get(job.place) == "muted"
        return None if muted else state

    async def _keep(self, job: Job, state: ThreadState) -> ThreadState:
        return await self.stores.threads.save(job.place, job.kept(state), fence=job.claimed.fence)

    async def _save(self, job: Job, state: ThreadState) -> None:
        await self.stores.save(job.claimed, job.place, state)


def _title(job: Job) -> str:
    """What a person's list of conversations calls this one: the question that opened it."""
    opens = job.place.thread_ts == job.incoming.ts and job.place.channel.startswith("D")
    return " ".join(job.incoming.text.split()) if opens else ""
