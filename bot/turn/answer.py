"""Turns a message that passed the gates into a delivered answer.

A question goes this way (``Answering._answer_question``):
1. What an earlier try (another claim of the message) decided is in the outbox: post exactly that.
2. Else reserve tokens, read the thread and the files, and run the turn under a status, perhaps in a stream.
3. Put the decided answer into the outbox, then post it. Each call to Slack checks the lease first.
4. Save the thread's state and delete the outbox entry with the message.

While Redis is down, a turn ends at its next call to Redis or with its lease, and nothing is posted. An answer in the
outbox is posted as long as the lease lasts. A turn that did not end is still in its mailbox, or is stored there again.
"""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Final

import structlog

from agent.outcome import SILENT, Failed, Silent, TurnOutcome
from agent.quoting.small_talk import asks_about_orion, is_question
from agent.texts.catalogue import help_text, own_message, say
from agent.thread.conversation import Question, ThreadMessage
from agent.thread.state import (
    ThreadState,
    state_before_last_question,
    with_edited_message,
    with_posted,
    without_message,
)
from agent.turn.loop import state_after_silence, state_after_stop
from bot.delivery.answer_key import Badge
from bot.delivery.blocks import short_id
from bot.delivery.stream import AnswerStream
from bot.queue.claim import OK, Ending, LeaseLost, give_back, give_up
from bot.slack.files import has_opening_files
from bot.slack.history import StreamedMessage, sort_key
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import mark_of, read_facts
from bot.stores.turn_records import OutboxEntry, read_entry
from bot.turn.job import Job, TeamServices, load_earlier, load_previous_exchange
from bot.turn.observer import TurnObserver
from bot.turn.recovery import (
    MODEL_AWAY,
    delete_plan,
    end_streams,
    give_back_with_status,
    open_stream,
    retry_delay_s,
    send_stream,
)
from bot.turn.status import NOTICE_AGAIN_S, THINKING, Pace, WorkingStatus
from verification.text.language import detect_language

log = structlog.get_logger()

FAILURES: Final = frozenset({"failed", "out_of_budget"})  # outcomes that a person may report to an admin
NOT_ANSWERED: Final = FAILURES | {"refused"}  # outcomes that offer "Ask a human"
FIRST_STATUS_S: Final = 0.5  # a faster answer needs no status


@dataclass(slots=True, eq=False)
class Answering:
    """Answers the messages that passed the gates of ``bot.gates.flow.Flow``."""

    services: TeamServices

    async def answer(self, job: Job) -> Ending:
        """Carry out a message and return its ending for the mailbox. Raises ``LeaseLost``."""
        claimed = job.claimed
        log.info("turn_started", message_id=claimed.id, tries=claimed.tries, waited_s=round(job.claimed.waited_s, 3))
        try:
            return await self._dispatch(job)
        except DeliveryFailed as failure:
            log.warning("delivery_failed", reason=failure.reason, permanent=failure.permanent)
            if failure.permanent or job.claimed.waited_s > self.services.timeouts.slack_s:
                return give_up(failure.reason)
            return give_back(failure.again_s or self.services.timeouts.pause_s(job.claimed.waited_s))
        except (asyncio.CancelledError, LeaseLost) as error:
            if isinstance(error, LeaseLost) or not job.lease.is_held():
                await self.services.recheck_later(job)
                await self.services.store_again(job)
            raise
        finally:
            if claimed.tries > 1 and job.may_have_posted:  # a crashed worker may already have posted this
                await self.services.recheck_later(job)

    async def notify_given_up(self, job: Job, reason: str) -> None:
        """Tell the person that their message was given up, with an id from the log, unless it has an answer.

        If Orion cannot post in the thread, it sends them a direct message, without quoting the question. Raises
        ``DeliveryFailed`` if Slack is down.
        """
        incoming, delivery = job.incoming, self.services.delivery
        log.error("question_given_up", thread=job.claimed.thread, turn_id=job.turn_id, reason=reason)
        if incoming.kind == "delete":
            return  # the asker deleted the question: post nothing
        try:
            if entry := read_entry(job.facts.outbox):
                await self._deliver(job, entry)
            elif job.is_addressed and not any(
                posted.turn_id for posted in await delivery.reader.find_posts(job.place, incoming.ts)
            ):
                text = say("internal", job.language, id=short_id(job.turn_id))
                answer_key = replace(job.answer_key(), turn_id="", streamed=job.earlier_stream)
                await delivery.post_answer(job.place, own_message(text), answer_key)
            await delivery.end_session(job.place, job.lease.require)
        except DeliveryFailed as failure:
            log.warning("delivery_failed", reason=failure.reason, permanent=failure.permanent)
            if not failure.permanent:
                raise  # the message is kept, and a later try tells the person
            if job.is_addressed:
                try:
                    job.lease.require()
                    text = say("not_posted", job.language, id=short_id(job.turn_id))
                    await delivery.send_direct_message(incoming.user, text)
                except DeliveryFailed as refusal:
                    log.warning("person_not_told", reason=refusal.reason)

    async def _dispatch(self, job: Job) -> Ending:
        kind = job.incoming.kind
        if kind in {"question", "edit"}:
            return await self._answer_question(job)
        if kind == "delete":
            await self._delete_answer(job)
        elif kind in {"mute", "unmute"}:
            await self._post_text(job, say("muted" if kind == "mute" else "unmuted", await self._thread_language(job)))
        return OK  # ``bot.gates`` has carried out "stop" and "hand_off": neither has an answer of its own

    async def _post_text(self, job: Job, text: str) -> None:
        await self.services.delivery.post_own_text(job.place, text, job.incoming.ts, job.lease.require)

    async def _delete_answer(self, job: Job) -> None:
        """Delete the answer to a deleted question, and both from the thread's state."""
        ts, state = job.incoming.ts, job.facts.state
        if (after := without_message(state, ts)) != state:
            await self.services.stores.save(job.claimed, job.place, after)
        try:
            await self.services.delivery.delete_answer(
                job.place, ts, job.lease.require, posted=state.posted.get(ts, ())
            )
        except DeliveryFailed as failure:
            if failure.reason != "thread_not_found":  # an answer would have opened the thread
                raise

    async def _thread_language(self, job: Job) -> str | None:
        """For a message without words, return the language of the thread, else the person's."""
        return job.language or await self.services.people.cached_language(job.place.team, job.incoming.user)

    async def _answer_question(self, job: Job) -> Ending:
        try:
            entry = read_entry(job.facts.outbox)
            if not (entry or job.facts.is_wanted):
                return await self._drop_cancelled(job)
            if entry:
                # Clear the status or placeholder that the earlier try may have left.
                only_waited = await self.services.delivery.is_waiting_to_post(job.place, entry.answer, job.answer_key())
                result: OutboxEntry | Ending = await self._deliver(job, entry, may_exist=not only_waited)
                await self.services.delivery.end_session(job.place, job.lease.require)
                if not only_waited:
                    await self.services.recheck_later(job)
            else:
                async with self.services.stores.budgets.reserve(job.turn_id, job.incoming) as is_reserved:
                    if not is_reserved:  # running turns may leave enough of the budget
                        log.info("question_waits", because="budget_reserved", message_id=job.claimed.id)
                        return give_back(job.gate_wait_s)
                    result = await self._load_and_run(job)
        except asyncio.CancelledError:
            if not job.lease.stopped:
                raise
            result = await self._end_stopped(job)
        if not isinstance(result, OutboxEntry):
            return result
        await self.services.stores.save(job.claimed, job.place, result.state)
        return replace(OK, deletes_mark=mark_of(job.turn_id, "outbox"))

    async def _end_stopped(self, job: Job) -> OutboxEntry | Ending:
        """End a stopped turn: deliver an answer that was already decided, else post only "stopped"."""
        job = replace(job, facts=await read_facts(self.services.stores, job.incoming, job.turn_id))
        if entry := read_entry(job.facts.outbox):
            return await self._deliver(job, entry)
        await self.services.stores.save(
            job.claimed, job.place, state_after_stop(job.incoming.question(), job.facts.state)
        )
        await end_streams(self.services, job)
        await self._post_stopped(job)
        return OK

    async def _drop_cancelled(self, job: Job) -> Ending:
        """End a question that was stopped while it waited: confirm the stop and delete what was shown."""
        await end_streams(self.services, job)
        await self._post_stopped(job)
        with suppress(DeliveryFailed):
            await self.services.delivery.delete_answer(
                job.place, job.incoming.ts, job.lease.require, only_placeholders=True
            )
        await self.services.delivery.end_session(job.place, job.lease.require)
        return OK

    async def _post_stopped(self, job: Job) -> None:
        """Confirm a stop once, under the first question that it cancelled. A deleted question gets no message.

        Raises ``DeliveryFailed`` if a later try can do it.
        """
        ts, stop = job.incoming.ts, job.facts.stop_ts
        if not stop or job.facts.is_deleted:
            return
        if await self.services.stores.mailbox.mark(job.claimed, f"stopped:{stop}", ts) == ts:
            try:
                await self._post_text(job, say("stopped", job.language))
            except DeliveryFailed as failure:
                if not failure.permanent:
                    raise

    async def _load_and_run(self, job: Job) -> OutboxEntry | Ending:
        """Load the thread and the files, then run the turn. The status covers both: a file may take a while."""
        remembered = job.facts.state
        state = await self._state_before_edit(job, remembered) if job.incoming.kind == "edit" else remembered
        if state is None:
            if (after := with_edited_message(remembered, job.incoming.ts, job.incoming.text)) != remembered:
                await self.services.stores.save(job.claimed, job.place, after)
            return OK
        services, incoming = self.services, job.incoming
        if not (incoming.text or job.is_addressed):  # such as a picture that people show each other
            await self._stay_silent(job, state)
            return OK
        async with self._status(job).updating() as status:
            quotes = services.engine.model.quotes_only
            # Without a model, context would only repeat the previous thread's passages. A shared answer must not use
            # what was said in direct messages before.
            is_alone = quotes or bool(incoming.origin)
            context = () if is_alone else await load_previous_exchange(incoming, services.stores)
            earlier = await load_earlier(incoming, state, services.delivery.reader, job.facts.conversation)
            files = await services.read_files(incoming, earlier)
            brought = any(not (file.opening or file.trouble == "unseen") for file in files)
            text = incoming.text or await self._implied_text(job, earlier.state.history, brought=brought)
            about = asks_about_orion(text) if quotes and not files and incoming.kind != "edit" else ""
            if about or not text:
                await status.stop_updates()
                await self._post_text(job, help_text(about or await self._thread_language(job)))
                return OK
            question = replace(incoming.question(), addressed=job.is_addressed, text=text, files=files)
            before_question = replace(
                earlier.state,
                history=(*context, *earlier.state.history),
                opened_with_files=bool(files) and has_opening_files(files, incoming),
            )
            question, before_question = await services.prepare(question, before_question, job.facts.person)
            status.title = status.title and question.text  # with names in place of ids
            # The context is kept as it is in the history now, with names.
            job = replace(job, read=earlier.read, context=before_question.history[: len(context)])
            if job.earlier_stream.is_begun:
                await delete_plan(services, job, job.earlier_stream)
            stream = open_stream(services, job, status) if services.streams else None
            async with send_stream(services, job, stream) if stream else nullcontext():
                return await self._run_and_deliver(job, question, before_question, status, stream)

    async def _implied_text(self, job: Job, history: Sequence[ThreadMessage], *, brought: bool) -> str:
        """Return what a message without words asks for: about its file, or about what people said before it."""
        if brought:
            return say("file_summarise", await self._thread_language(job))
        last = history[-1].text if history and all(message.role == "user" for message in history) else ""
        if self.services.engine.model.quotes_only:  # it does not read the thread
            return last if is_question(last) else ""
        return last and "?"

    def _status(self, job: Job) -> WorkingStatus:
        """Return the status.

        It begins at once for a direct message, whose session needs it, and if the place in the queue may be shown. The
        direct message that opened the thread becomes its title in the person's list of conversations.
        """
        waited, direct = bool(job.failed_since), job.place.channel.startswith("D")
        is_shown = job.facts.has_notice or job.claimed.waited_s > NOTICE_AGAIN_S
        at_once = direct or job.claimed.tries > 1 or is_shown
        opens = direct and job.place.thread_ts == job.incoming.ts
        return WorkingStatus(
            self.services.delivery,
            job.place,
            job.answer_key(may_exist=waited or job.may_be_answered),
            Pace(first_s=0.0 if at_once else FIRST_STATUS_S),
            # A message that may be meant for other people gets a status only once Orion works on an answer.
            first="" if not job.is_addressed else MODEL_AWAY if waited else THINKING,
            title=job.incoming.text if opens else "",
        )

    async def _run_and_deliver(
        self, job: Job, question: Question, state: ThreadState, status: WorkingStatus, stream: AnswerStream | None
    ) -> OutboxEntry | Ending:
        claimed, services, stores = job.claimed, self.services, self.services.stores
        async with services.observers.turn(
            question, job.turn_id, services.engine, waited_s=claimed.waited_s, outage=bool(job.failed_since)
        ) as observer:
            observer.status, observer.stream, observer.lease = status, stream, job.lease
            outcome, after = await self._run_turn(job, question, state, observer)
            wait_s = retry_delay_s(job, outcome, services.timeouts) if isinstance(outcome, Failed) else None
            if isinstance(outcome, Failed) and wait_s is not None:
                observer.record_interruption(outcome.reason)
                await self._withdraw(job, status, stream)
                return await give_back_with_status(stores.mailbox, job, status, outcome, wait_s)
            if isinstance(outcome, Silent):
                await self._withdraw(job, status, stream)
                await self._stay_silent(job, job.without_context(after))
                observer.record_end(outcome)
                return OK
            decided = OutboxEntry(outcome=outcome.name, answer=outcome.answer, state=job.without_context(after))
            stored = await stores.mailbox.mark(claimed, mark_of(job.turn_id, "outbox"), written := decided.to_json())
            entry = decided if stored == written else read_entry(stored) or decided  # another worker was first
            async with observer.during_delivery(outcome):
                await _stop_updates(status, stream)
                try:
                    may_exist = entry is not decided or job.may_be_answered
                    entry = await self._deliver(job, entry, may_exist=may_exist, stream=stream)
                except DeliveryFailed as failure:
                    if failure.again_s:
                        status.keeps_text = True  # the answer waits under Slack's limits
                    if not failure.permanent:  # a later try posts the outbox entry without counting it
                        observer.record_end(outcome)
                    raise
                if _streamed_by(job, stream).state == "unknown":  # Slack may still begin the stream
                    await self.services.recheck_later(job)
            observer.record_end(outcome)
        return entry

    async def _run_turn(
        self, job: Job, question: Question, state: ThreadState, observer: TurnObserver
    ) -> tuple[TurnOutcome, ThreadState]:
        services, threads, stream = self.services, self.services.stores.threads, observer.stream
        async with services.stores.budgets.count_turn(job.incoming) as observer.counter:
            outcome, after = await services.engine.run(
                question,
                state,
                emit=observer,
                save=lambda state: threads.save(job.place, job.without_context(state), fence=job.claimed.fence),
                more=await services.search.tools(job.incoming) if job.incoming.action_token else (),
                stage=stream,
            )
        is_over = isinstance(outcome, Failed) and retry_delay_s(job, outcome, services.timeouts) is None
        if is_over and not (job.is_addressed or _streamed_by(job, stream).is_begun):  # people get no notice unasked
            return SILENT, state_after_silence(question, state, after.version)
        return outcome, after

    async def _withdraw(self, job: Job, status: WorkingStatus, stream: AnswerStream | None) -> None:
        """Stop the updates, and delete a plan that people saw."""
        await _stop_updates(status, stream)
        await delete_plan(self.services, job, _streamed_by(job, stream))

    async def _stay_silent(self, job: Job, state: ThreadState) -> None:
        """Save what people said to each other, and delete the answer to an earlier version of the message."""
        if posted := job.facts.state.posted.get(job.incoming.ts):
            await self.services.delivery.delete_answer(job.place, job.incoming.ts, job.lease.require, posted=posted)
        await self.services.stores.save(job.claimed, job.place, state)

    async def _deliver(
        self, job: Job, entry: OutboxEntry, *, may_exist: bool = True, stream: AnswerStream | None = None
    ) -> OutboxEntry:
        """Post what was decided. Return the entry with the ts of its messages."""
        badges: list[Badge] = ["partial"] if entry.outcome == "partial" else []
        if self.services.engine.model.quotes_only and entry.answer.sources and entry.answer.verified:
            badges.append("quotes")
        if entry.outcome in FAILURES:
            badges.append("failed")
        # No model has checked whether a quoted passage answers the question.
        unanswered = entry.outcome in NOT_ANSWERED or "quotes" in badges
        streamed = _streamed_by(job, stream)
        key = job.answer_key(*badges, may_exist=may_exist or streamed.is_begun)
        key = replace(key, language=key.language or detect_language(entry.answer.text))
        ask_human = (
            await self.services.handoff.in_channel(job.place).label(job.place, key.language) if unanswered else ""
        )
        answer_key = replace(key, ask_human=ask_human, stream=stream, streamed=streamed)
        messages = await self.services.delivery.post_answer(job.place, entry.answer, answer_key)
        return replace(entry, state=with_posted(entry.state, job.incoming.ts, messages))

    async def _state_before_edit(self, job: Job, state: ThreadState) -> ThreadState | None:
        """Return the thread's state before an edited message, or None if the edit needs no answer."""
        incoming = job.incoming
        if (before := state_before_last_question(state, incoming.ts)) is not None:
            return before
        # An edited message without an answer is a first question, unless another question came after it.
        question_stamps = (m.ts for m in state.history if m.role == "user" and m.addressed)
        if incoming.addressed == "follow_up" or any(sort_key(ts) >= sort_key(incoming.ts) for ts in question_stamps):
            return None
        muted = incoming.addressed != "mention" and await self.services.stores.thread_modes.get(job.place) == "muted"
        return None if muted else state


def _streamed_by(job: Job, stream: AnswerStream | None) -> StreamedMessage:
    """Return the message streamed by this try, or by an earlier one."""
    return stream.streamed if stream else job.earlier_stream


async def _stop_updates(status: WorkingStatus, stream: AnswerStream | None) -> None:
    """Send nothing more, and wait for running calls."""
    await status.stop_updates()
    if stream:
        await stream.stop_sending()
