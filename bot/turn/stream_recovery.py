"""Which turns were streamed, written down beside their outbox, so that whoever takes one over finishes it in place.

Promises: that a stream may begin is noted before it does, its ts right after; a turn is streamed once, on its first
try; one that was taken back leaves no stream that nobody ends. Must never be asked for the text: Slack has it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from redis.exceptions import RedisError

from agent.texts.catalogue import say
from bot.delivery.delivery import Delivery
from bot.delivery.stream import AnswerStream, Audience, Streams
from bot.queue.queue import Mailbox
from bot.slack.web_api import DeliveryFailed
from bot.stores.cancellations import Cancellations
from bot.turn.duplicates import DuplicateChecker, PendingCheck
from bot.turn.job import Work


class StreamedTurns:
    """The streams of one workspace's turns; without ``streams`` none is begun, and those that were are still ended."""

    def __init__(
        self, mailbox: Mailbox, delivery: Delivery, cancellations: Cancellations, streams: Streams | None = None
    ) -> None:
        self._mailbox = mailbox
        self._delivery = delivery
        self._cancellations = cancellations
        self._streams = streams
        self._duplicate_checker = DuplicateChecker(mailbox, delivery, cancellations)

    async def ts_of(self, work: Work) -> str | None:
        """The ts of a stream begun for this message; empty where one may stand unknown, None where there is none."""
        thread = work.claimed.thread
        if await self._mailbox.marked(thread, work.streams) is None:
            return "" if work.claimed.tries > 1 else None
        return await self._mailbox.marked(thread, work.stream) or ""

    def stage(self, work: Work, before: str | None, began: Callable[[], None]) -> AnswerStream | None:
        """Where this answer may be seen while it grows. A stream begun ``before`` is finished instead.

        ``began`` hears when it begins. An allowed bot without an account gets a post: Slack shows a stream to a person,
        and would refuse the channel.
        """
        streams, first = self._streams, before is None and not work.may_be_answered
        nobody = work.incoming.user.startswith("B")
        if streams is None or nobody or not first or not streams.may_be_tried(work.place):
            return None
        return AnswerStream(
            streams=streams,
            audience=Audience(place=work.place, user=work.incoming.user, lease_check=work.lease.require),
            before=partial(self._mailbox.mark, work.claimed, work.streams, "begun"),
            note=partial(self._mailbox.mark, work.claimed, work.stream),
            began=began,
        )

    async def drop_plan(self, work: Work, streamed: str | None) -> None:
        """A plan without a word of an answer under it goes: nobody works on its steps any more, or not there.

        What is blank goes too: a step may still be on its way to it. None is told before its stream's ts is noted.
        """
        if streamed:
            with suppress(DeliveryFailed):
                await self._delivery.drop_streams(
                    work.place, replace(work.answer_key(), streamed=streamed), wordless=True
                )

    async def end(self, work: Work) -> None:
        """The question was taken back: what was shown gets the note that says so, goes along, or waits for the edit."""
        streamed = await self.ts_of(work)
        if streamed is None:
            return
        await self.drop_plan(work, streamed)
        answer_key = replace(work.answer_key(), streamed=streamed)
        stop = await self._cancellations.stopped_at(work.incoming)
        with suppress(DeliveryFailed):
            if await self._cancellations.gone(work.incoming):
                await self._delivery.drop_streams(work.place, answer_key)
            elif await self._delivery.end_streams(
                work.place, answer_key, say("stopped", work.language) if stop else ""
            ):
                # It is said under what was shown: not once more.
                await self._mailbox.mark(work.claimed, f"stopped:{stop}", f"stream:{work.incoming.ts}")
        if not streamed:  # nobody knows whether Slack still begins one
            with suppress(RedisError):
                await self._duplicate_checker.note(
                    work.claimed, PendingCheck(place=work.place, question_ts=work.incoming.ts)
                )
