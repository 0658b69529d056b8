"""What was said in a thread before a question: as Orion remembers it, completed by what Slack has.

Whoever mentions Orion is understood by all that stands in the thread. What Slack does not let Orion read is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from agent.packing import compact, packed, unpacked
from agent.thread.conversation import Message
from agent.thread.state import ThreadState
from bot.slack.history import Conversation, ThreadReader, sort_key
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores
from bot.turn.job import Job

log = structlog.get_logger()

_LIMITED: Final = Conversation(messages=(), first={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The thread before a question. ``first`` is the message that opened it as Slack has it, if that was read.

    It is empty where the thread was not read, and None where it was not but has files that a question may be about.
    ``asked`` is the question's own message, if it was read along. ``limited``: Slack's limits kept it from being read.
    ``read`` is what was read, as ``kept_reading`` reads it back.
    """

    state: ThreadState
    first: Mapping[str, Any] | None
    asked: Mapping[str, Any] | None = None
    limited: bool = False
    read: str = ""


async def with_earlier(job: Job, state: ThreadState, reader: ThreadReader) -> Earlier:
    """The thread as it stands before this question. Raises ``DeliveryFailed`` while Slack is away.

    Slack's limits (one such call a minute for some apps) are no reason to keep a person waiting.
    """
    incoming = job.incoming
    opens, in_chat = job.place.thread_ts == incoming.ts, job.place.channel.startswith("D")
    unread: Mapping[str, Any] | None = None if state.opened_with_files and not opens else {}
    # A question that Slack brought late: whoever read the thread before it came took it for something said earlier.
    known = tuple(message for message in state.history if message.ts != incoming.ts)
    # Of questions that were all stopped nothing came, and the thread was not remembered.
    remembered = any(message.role == "assistant" for message in known)
    knows = remembered and (incoming.kind == "edit" or incoming.addressed != "mention" or in_chat)
    if opens or knows:
        return Earlier(state=replace(state, history=known), first=unread)
    last = max((message.ts for message in known if remembered), key=sort_key, default="")
    stamps = {message.ts for message in known}
    read = kept_reading(job.facts.thread) or await _read(job, reader, after=last)
    # What was asked of Orion has a turn of its own; what Orion said, it remembers.
    missed = [m for m in read.messages if m.role == "user" and not m.addressed and m.ts not in stamps]
    # ... of which "Stopped." would count as an answer that said what it had not read.
    heard = tuple(m for m in read.messages if m.role == "user" or not known)
    history = (*known, *missed) if remembered else heard or known
    limited = read is _LIMITED
    kept = "" if limited else _to_keep(read)
    found = replace(state, history=history)
    return Earlier(state=found, first=read.first, asked=read.asked, limited=limited, read=kept)


def _to_keep(read: Conversation) -> str:
    """A reading, for a next try of the same turn: some apps may read one thread a minute."""
    ends = [{"ts": one.get("ts", ""), "files": one.get("files", [])} if one else {} for one in (read.first, read.asked)]
    return packed(compact([read.messages, *ends]))


def kept_reading(stored: str | None) -> Conversation | None:
    """What an earlier try read of the thread, if it was kept and can be read."""
    try:
        messages, first, asked = json.loads(unpacked(stored or ""))
        return Conversation(messages=tuple(Message(**one) for one in messages), first=first, asked=asked)
    except (ValueError, TypeError):
        return None


async def said_before_in_chat(incoming: Incoming, stores: Stores) -> tuple[Message, ...]:
    """The exchange before a message that opens a thread in a direct chat, if it is not half an hour old."""
    before = await stores.direct_chats.previous_thread(incoming.thread, incoming.ts)
    history = (await stores.threads.load(before)).history if before else ()
    asked = [index for index, message in enumerate(history) if message.role == "user" and message.addressed]
    return history[asked[-1] :] if asked else ()


async def _read(job: Job, reader: ThreadReader, after: str) -> Conversation:
    try:
        return await reader.read_conversation(job.place, before=job.incoming.ts, after=after)
    except DeliveryFailed as failure:
        if not (failure.permanent or failure.again_s):
            raise
        log.warning("thread_not_read", reason=failure.reason)
        return _LIMITED if failure.again_s else Conversation(messages=(), first={})
