"""What was said in a thread before a question: as Orion remembers it, completed by what Slack has (A2).

Promises: whoever mentions Orion is understood by all that stands in the thread, also by what was said to others, or
while Orion was told to keep quiet; a thread that is not remembered is read whole. Must never fail a question because
its thread cannot be read: what Slack does not let Orion read is left out.
"""

from __future__ import annotations

from dataclasses import replace

import structlog

from agent.conversation import Message
from agent.thread_state import ThreadState
from bot.slack_calls import DeliveryFailed
from bot.thread_reader import ThreadReader, sort_key
from bot.work import Work

log = structlog.get_logger()


async def with_earlier(work: Work, state: ThreadState, reader: ThreadReader) -> ThreadState:
    """The thread as it stands before this question. Raises ``DeliveryFailed`` while Slack is away."""
    letter = work.letter
    if letter.kind == "edit":
        return state
    # A question that Slack brought late: whoever read the thread before it came took it for something said earlier.
    known = tuple(message for message in state.history if message.ts != letter.ts)
    if work.place.thread_ts == letter.ts:
        return replace(state, history=known)
    if not known:
        return replace(state, history=await _read(work, reader))
    if letter.addressed != "mention" or letter.thread.channel.startswith("D"):
        return replace(state, history=known)
    last = max((message.ts for message in known), key=sort_key)
    stamps = {message.ts for message in known}
    said = await _read(work, reader, after=last)
    # What was asked of Orion has a turn of its own; what Orion said, it remembers.
    missed = [m for m in said if m.role == "user" and not m.addressed and m.ts not in stamps]
    return replace(state, history=(*known, *missed))


async def _read(work: Work, reader: ThreadReader, after: str = "") -> tuple[Message, ...]:
    try:
        return await reader.messages(work.place, before=work.letter.ts, after=after)
    except DeliveryFailed as failure:
        if not failure.permanent:
            raise
        log.warning("thread_not_read", reason=failure.reason)
        return ()
