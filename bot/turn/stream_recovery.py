"""Record the streams of turns next to their outbox, so that the next worker can finish a stream in place.

A mark is written before a stream begins, and its ts right after.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

from agent.texts.catalogue import say
from bot.delivery.stream import AnswerStream
from bot.queue.queue import Mailbox
from bot.slack.history import NOT_STREAMED, STREAM_UNKNOWN, StreamedMessage
from bot.slack.web_api import DeliveryFailed
from bot.turn.job import Job
from bot.turn.services import TeamServices
from bot.turn.status import WorkingStatus


def earlier_stream(job: Job) -> StreamedMessage:
    """Return the message that an earlier delivery try of the turn streamed."""
    if job.facts.streams is None:
        return STREAM_UNKNOWN if job.claimed.tries > 1 else NOT_STREAMED
    return StreamedMessage("begun", job.facts.stream) if job.facts.stream else STREAM_UNKNOWN


@dataclass(frozen=True, slots=True)
class StreamMarks:
    """The marks of one turn's stream. Slack removes the status when the stream appears, so it is sent again."""

    mailbox: Mailbox
    job: Job
    status: WorkingStatus

    async def expect_start(self) -> None:
        """Mark that a stream may begin."""
        await self.mailbox.mark(self.job.claimed, self.job.mark("streams"), "begun")

    async def record_start(self, ts: str) -> None:
        """Mark the stream's ts."""
        await self.mailbox.mark(self.job.claimed, self.job.mark("stream"), ts)
        self.status.resend()


def open_stream(at: TeamServices, job: Job, before: StreamedMessage, status: WorkingStatus) -> AnswerStream | None:
    """Return a stream for this answer, or None if it must be posted. A stream begun ``before`` is finished instead.

    A bot without a user account gets a post: Slack shows streams to users, and would refuse the channel.
    """
    streams, first = at.streams, not before.is_begun and not job.may_be_answered
    without_account = job.incoming.user.startswith("B")
    if streams is None or without_account or not first or not streams.may_be_tried(job.place):
        return None
    return AnswerStream(
        streams=streams,
        place=job.place,
        user=job.incoming.user,
        user_team=job.incoming.user_team,
        lease_check=job.lease.require,
        record=StreamMarks(at.stores.mailbox, job, status),
    )


async def delete_plan(at: TeamServices, job: Job, streamed: StreamedMessage) -> None:
    """Delete a streamed plan without a word of an answer: its turn has ended, or continues elsewhere.

    An empty stream goes too: a step may still be on its way to it.
    """
    if streamed.ts:
        key = replace(job.answer_key(), streamed=streamed)
        with suppress(DeliveryFailed):
            await at.delivery.delete_streams(job.place, key, wordless=True)


async def end_streams(at: TeamServices, job: Job) -> None:
    """End the streams of a stopped question: with the note "stopped", deleted, or left for its edit."""
    streamed, stop = earlier_stream(job), job.facts.stop_ts
    if not streamed.is_begun:
        return
    await delete_plan(at, job, streamed)
    answer_key = replace(job.answer_key(), streamed=streamed)
    with suppress(DeliveryFailed):
        if job.facts.is_deleted:
            await at.delivery.delete_streams(job.place, answer_key)
        elif await at.delivery.end_streams(job.place, answer_key, say("stopped", job.language) if stop else ""):
            # The stream shows the note already: post no other.
            await at.stores.mailbox.mark(job.claimed, f"stopped:{stop}", f"stream:{job.incoming.ts}")
    if streamed.state == "unknown":  # Slack may still begin one
        await at.check_again(job)
