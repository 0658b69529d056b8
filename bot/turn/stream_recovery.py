"""Which turns were streamed, written down beside their outbox, so that whoever takes one over finishes it in place.

That a stream may begin is noted before it does, its ts right after.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from agent.texts.catalogue import say
from bot.delivery.delivery import Delivery
from bot.delivery.stream import AnswerStream, Streams
from bot.queue.queue import Mailbox
from bot.slack.web_api import DeliveryFailed
from bot.turn.duplicates import look_again
from bot.turn.job import Job


def stream_before(job: Job) -> str | None:
    """The ts of a stream that an earlier try began; empty where one may stand unknown, None where there is none."""
    if job.facts.streams is None:
        return "" if job.claimed.tries > 1 else None
    return job.facts.stream or ""


@dataclass(frozen=True, slots=True)
class StreamedTurns:
    """The streams of one workspace's turns; without ``streams`` none is begun, and those that were are still ended."""

    mailbox: Mailbox
    delivery: Delivery
    streams: Streams | None

    def stage(self, job: Job, before: str | None, began: Callable[[], None]) -> AnswerStream | None:
        """Where this answer may be seen while it grows. A stream begun ``before`` is finished instead.

        ``began`` hears when it begins. An allowed bot without an account gets a post: Slack shows a stream to a person,
        and would refuse the channel.
        """
        streams, first = self.streams, before is None and not job.may_be_answered
        nobody = job.incoming.user.startswith("B")
        if streams is None or nobody or not first or not streams.may_be_tried(job.place):
            return None
        return AnswerStream(
            streams=streams,
            place=job.place,
            user=job.incoming.user,
            user_team=job.incoming.user_team,
            lease_check=job.lease.require,
            before=partial(self.mailbox.mark, job.claimed, job.mark("streams"), "begun"),
            note=partial(self.mailbox.mark, job.claimed, job.mark("stream")),
            began=began,
        )

    async def drop_plan(self, job: Job, streamed: str | None) -> None:
        """A plan without a word of an answer under it goes: nobody works on its steps any more, or not there.

        What is blank goes too: a step may still be on its way to it. None is told before its stream's ts is noted.
        """
        if streamed:
            key = replace(job.answer_key(), streamed=streamed)
            with suppress(DeliveryFailed):
                await self.delivery.delete_streams(job.place, key, wordless=True)

    async def end(self, job: Job) -> None:
        """The question was taken back: what was shown gets the note that says so, goes along, or waits for the edit."""
        streamed, stop = stream_before(job), job.facts.stop_ts
        if streamed is None:
            return
        await self.drop_plan(job, streamed)
        answer_key = replace(job.answer_key(), streamed=streamed)
        with suppress(DeliveryFailed):
            if job.facts.is_deleted:
                await self.delivery.delete_streams(job.place, answer_key)
            elif await self.delivery.end_streams(job.place, answer_key, say("stopped", job.language) if stop else ""):
                # It is said under what was shown: not once more.
                await self.mailbox.mark(job.claimed, f"stopped:{stop}", f"stream:{job.incoming.ts}")
        if not streamed:  # nobody knows whether Slack still begins one
            await look_again(self.mailbox, job)
