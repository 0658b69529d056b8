"""Load the messages of a thread before a question: Orion's own state, completed from Slack's history.

Messages that Slack does not let Orion read are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from agent.knowledge.slack_message import shared_files
from agent.packing import compact_json, compress, decompress, parse_json
from agent.thread.conversation import ThreadMessage
from agent.thread.state import ThreadState
from bot.slack.history import Conversation, ThreadReader, sort_key
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores
from bot.turn.job import Job

log = structlog.get_logger()

_LIMITED: Final = Conversation(messages=(), first={})


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierThread:
    """The thread before a question. ``first`` is Slack's message that opened it, if it was read.

    ``first`` is empty if the thread was not read, and None if it was not read but has files that matter. ``asked`` is
    the question's own message, if it was read too. ``limited``: Slack's limits prevented the reading. ``read`` is the
    conversation as stored for ``read_stored_conversation``.
    """

    state: ThreadState
    first: Mapping[str, Any] | None
    asked: Mapping[str, Any] | None = None
    limited: bool = False
    read: str = ""


async def load_earlier(job: Job, state: ThreadState, reader: ThreadReader) -> EarlierThread:
    """Load the thread before this question. Raises ``DeliveryFailed`` while Slack is away.

    Do not make people wait for Slack's limits (one such call a minute for some apps).
    """
    incoming = job.incoming
    opens, in_chat = job.place.thread_ts == incoming.ts, job.place.channel.startswith("D")
    unread: Mapping[str, Any] | None = None if state.opened_with_files and not opens else {}
    # If Slack delivers a question late, an earlier turn may have read it as part of the thread.
    remembered_messages = tuple(message for message in state.history if message.ts != incoming.ts)
    # A thread whose questions were all stopped has no answer and was not read completely.
    remembered = any(message.role == "assistant" for message in remembered_messages)
    knows = remembered and (incoming.kind == "edit" or incoming.addressed != "mention" or in_chat)
    if opens or knows:
        return EarlierThread(state=replace(state, history=remembered_messages), first=unread)
    last = max((message.ts for message in remembered_messages if remembered), key=sort_key, default="")
    stamps = {message.ts for message in remembered_messages}
    read = read_stored_conversation(job.facts.thread) or await _read_thread(job, reader, after=last)
    # Questions to Orion have turns of their own, and Orion's answers are in the state.
    missed = [m for m in read.messages if m.role == "user" and not m.addressed and m.ts not in stamps]
    # Orion's own "Stopped." must not count as an answer.
    spoken = tuple(m for m in read.messages if m.role == "user" or not remembered_messages)
    history = (*remembered_messages, *missed) if remembered else spoken or remembered_messages
    limited = read is _LIMITED
    packed = "" if limited else _pack_conversation(read)
    earlier = replace(state, history=history)
    return EarlierThread(state=earlier, first=read.first, asked=read.asked, limited=limited, read=packed)


def _pack_conversation(read: Conversation) -> str:
    """Pack a conversation for the next delivery try: some apps may read one thread a minute."""
    ends = [{"ts": one.get("ts", ""), "files": shared_files(one)} if one else {} for one in (read.first, read.asked)]
    return compress(compact_json([read.messages, *ends]))


def read_stored_conversation(stored: str | None) -> Conversation | None:
    """Unpack the conversation that an earlier delivery try stored; None if it is missing or unreadable."""
    try:
        messages, first, asked = parse_json(decompress(stored or ""))
        return Conversation(messages=tuple(ThreadMessage(**one) for one in messages), first=first, asked=asked)
    except (ValueError, TypeError):
        return None


async def load_chat_context(incoming: Incoming, stores: Stores) -> tuple[ThreadMessage, ...]:
    """Load the latest exchange of a direct chat before a message that opens a new thread, if it is recent."""
    before = await stores.direct_chats.previous_thread(incoming.thread, incoming.ts)
    history = (await stores.threads.load(before)).history if before else ()
    question_indexes = [index for index, message in enumerate(history) if message.role == "user" and message.addressed]
    return history[question_indexes[-1] :] if question_indexes else ()


async def _read_thread(job: Job, reader: ThreadReader, after: str) -> Conversation:
    try:
        return await reader.read_conversation(job.place, before=job.incoming.ts, after=after)
    except DeliveryFailed as failure:
        if not (failure.permanent or failure.again_s):
            raise
        log.warning("thread_not_read", reason=failure.reason)
        return _LIMITED if failure.again_s else Conversation(messages=(), first={})
