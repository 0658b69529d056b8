"""The thread before a question, and the sources of earlier turns that may still be seen.

Orion's own state is completed from Slack's history. Messages that Slack does not let Orion read are left out. A source
is stored with the audience that it had when it was found: the document may have been closed to some people since.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from agent.json_data import compact_json, compress, decompress, objects, parse_json
from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.slack_message import shared_files
from agent.knowledge.types import Document, KnowledgeAwayError
from agent.thread.conversation import ThreadMessage, Viewers, may_see
from agent.thread.state import SavedFindings, ThreadState
from bot.slack.history import Conversation, ThreadReader, sort_key
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores
from bot.stores.turn_records import sources_of
from verification.types import Source

log = structlog.get_logger()

_PATH: Final = " › "  # between a document's title and its headings


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


async def load_earlier(
    incoming: Incoming, state: ThreadState, reader: ThreadReader, stored: str | None = None
) -> EarlierThread:
    """Load the thread before this question, as an earlier delivery try ``stored`` it or from Slack.

    Raises ``DeliveryFailed`` while Slack is away. People do not wait for its limits (one such call a minute for some
    apps).
    """
    place = incoming.thread
    opens, in_chat = place.thread_ts == incoming.ts, place.channel.startswith("D")
    # If Slack delivers a question late, an earlier turn may have read it as part of the thread.
    remembered = tuple(message for message in state.history if message.ts != incoming.ts)
    # A thread whose questions were all stopped has no answer and was not read completely.
    answered = any(message.role == "assistant" for message in remembered)
    knows = answered and (incoming.kind == "edit" or incoming.addressed != "mention" or in_chat)
    if opens or knows:
        unread: Mapping[str, Any] | None = None if state.opened_with_files and not opens else {}
        return EarlierThread(state=replace(state, history=remembered), first=unread)
    read, limited = read_stored_conversation(stored), False
    if read is None:
        last = max((message.ts for message in remembered if answered), key=sort_key, default="")
        try:
            read = await reader.read_conversation(place, before=incoming.ts, after=last)
        except DeliveryFailed as failure:
            if not (failure.permanent or failure.again_s):
                raise
            log.warning("thread_not_read", reason=failure.reason)
            read, limited = Conversation(messages=(), first={}), bool(failure.again_s)
    stamps = {message.ts for message in remembered}
    # Questions to Orion have turns of their own, and Orion's answers are in the state.
    missed = [m for m in read.messages if m.role == "user" and not m.addressed and m.ts not in stamps]
    # Orion's own "Stopped." must not count as an answer.
    spoken = tuple(m for m in read.messages if m.role == "user" or not remembered)
    history = (*remembered, *missed) if answered else spoken or remembered
    # Packed for the next delivery try: some apps may read one thread a minute.
    ends = [{"ts": one.get("ts", ""), "files": shared_files(one)} if one else {} for one in (read.first, read.asked)]
    packed = "" if limited else compress(compact_json([read.messages, *ends]))
    earlier = replace(state, history=history)
    return EarlierThread(state=earlier, first=read.first, asked=read.asked, limited=limited, read=packed)


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


@dataclass(frozen=True, slots=True)
class Visibility:
    """Knows the audiences of one index. While it cannot be read, no document is visible."""

    index: KnowledgeIndex

    async def visible_sources(self, sources: Sequence[Source], viewers: Viewers) -> tuple[Source, ...]:
        """Return the sources that all viewers may see now."""
        documents: Iterable[Document] = ()
        if any(source.origin == "document" for source in sources):
            try:
                documents = await asyncio.to_thread(self.index.documents)
            except KnowledgeAwayError as error:
                log.warning("audiences_not_read", cause=str(error))
        return tuple(source for source in sources if _is_visible(source, documents, viewers))

    async def visible_record(self, record: Mapping[str, Any], viewers: Viewers) -> dict[str, Any]:
        """Return a turn's record without the sources and passages that a viewer may not see now.

        If a source is removed, so are the sentences left out of the answer: they may quote it, and were
        not checked.
        """
        sources = sources_of(record)
        visible = {source.id for source in await self.visible_sources(sources, viewers)}
        hidden: dict[str, Any] = {} if len(visible) == len(sources) else {"objected": []}
        return {
            **record,
            "attempts": [{**attempt, **hidden} for attempt in objects(record, "attempts")],
            "sources": [source for source in objects(record, "sources") if source.get("id") in visible],
            "claims": [
                {**claim, "passages": [one for one in objects(claim, "passages") if one.get("source") in visible]}
                for claim in objects(record, "claims")
            ],
        }

    async def visible_findings(self, findings: SavedFindings, viewers: Viewers) -> SavedFindings:
        """Return a thread's findings without sources that its viewers may no longer see."""
        visible = await self.visible_sources(findings.sources, viewers)
        if len(visible) < len(findings.sources):
            log.info("findings_hidden", count=len(findings.sources) - len(visible))
        return replace(findings, sources=visible)


def _is_visible(source: Source, documents: Iterable[Document], viewers: Viewers) -> bool:
    if source.origin != "document":
        return may_see(source.audience, viewers)
    url = source.url.partition("#")[0]
    same = [
        one
        for one in documents
        if (source.title == one.title or source.title.startswith(one.title + _PATH))
        and not (url and one.url and url != one.url.partition("#")[0])
    ]
    return bool(same) and all(may_see(one.audience, viewers) for one in same)
