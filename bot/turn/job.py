"""A claimed message with its lease and facts, the services of its workspace, and the thread before it.

Orion's own state is completed from Slack's history, without messages that Slack does not let Orion read. A source is
stored with the audience that it had when it was found, but some people may have lost access since.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import structlog
from redis.exceptions import RedisError

from agent.json_data import compact_json, compress, decompress, mapping, objects, parse_json, parse_number
from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.slack_message import shared_files
from agent.knowledge.types import Document, KnowledgeAwayError
from agent.texts.catalogue import say
from agent.thread.conversation import AttachedFile, Question, ThreadKey, ThreadMessage, Viewers, may_see, viewers_of
from agent.thread.state import ThreadState
from bot.channel_settings import ChannelFile
from bot.delivery.answer_key import AnswerKey, Badge, Recheck
from bot.delivery.delivery import Delivery
from bot.delivery.stream import Streams
from bot.queue.claim import Claimed, Lease
from bot.queue.queue import SEEN_TTL_S
from bot.slack.directory import NOTICE_TTL_S, Memberships, Person, SlackDirectory
from bot.slack.files import Attachments
from bot.slack.hand_off_place import HandOffPlace
from bot.slack.history import NOT_STREAMED, STREAM_UNKNOWN, Conversation, StreamedMessage, ThreadReader, sort_key
from bot.slack.message import ADDRESSES_ORION, Access, Incoming
from bot.slack.search import SlackSearch
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Facts, Stores
from bot.stores.turn_records import sources_of
from bot.turn.engine import Engine, TurnTimeouts
from bot.turn.observer import Observers
from verification.text.language import detect_language
from verification.types import Source

log = structlog.get_logger()

_MAX_LANGUAGE_TEXTS: Final = 8  # each takes up to half a millisecond
_PATH: Final = " › "  # between a document's title and its headings


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierThread:
    """The thread before a question. ``first`` is Slack's message that opened it, if it was read.

    ``first`` is empty if the thread was not read, and None if it was not read but has files that matter. ``asked`` is
    the question's own message, if it was read too. ``limited``: Slack's limits prevented the reading. ``read`` is the
    conversation, stored for ``read_stored_conversation``.
    """

    state: ThreadState
    first: Mapping[str, Any] | None
    asked: Mapping[str, Any] | None = None
    limited: bool = False
    read: str = ""


async def load_earlier(
    incoming: Incoming, state: ThreadState, reader: ThreadReader, stored: str | None = None
) -> EarlierThread:
    """Load the thread before this question, as an earlier try ``stored`` it or from Slack.

    Raises ``DeliveryFailed`` while Slack is down. People do not wait for Slack's limits (one such call a minute for
    some apps).
    """
    place = incoming.thread
    opens, is_direct = place.thread_ts == incoming.ts, place.channel.startswith("D")
    # If Slack delivers a question late, an earlier turn may have read it as part of the thread.
    remembered = tuple(message for message in state.history if message.ts != incoming.ts)
    # A thread whose questions were all stopped has no answer and was not read completely.
    answered = any(message.role == "assistant" for message in remembered)
    knows = answered and (incoming.kind == "edit" or incoming.addressed != "mention" or is_direct)
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
    # Questions to Orion have their own turns, and Orion's answers are in the state.
    missed = [m for m in read.messages if m.role == "user" and not m.addressed and m.ts not in stamps]
    # Orion's own "Stopped." must not count as an answer.
    spoken = tuple(m for m in read.messages if m.role == "user" or not remembered)
    history = (*remembered, *missed) if answered else spoken or remembered
    # Packed for the next try: some apps may read one thread a minute.
    ends = [{"ts": one.get("ts", ""), "files": shared_files(one)} if one else {} for one in (read.first, read.asked)]
    packed = "" if limited else compress(compact_json([read.messages, *ends]))
    earlier = replace(state, history=history)
    return EarlierThread(state=earlier, first=read.first, asked=read.asked, limited=limited, read=packed)


def read_stored_conversation(stored: str | None) -> Conversation | None:
    """Unpack the conversation that an earlier try stored; None if it is missing or unreadable."""
    try:
        messages, first, asked = parse_json(decompress(stored or ""))
        messages = tuple(ThreadMessage(**one) for one in messages)
        return Conversation(messages=messages, first=mapping(first), asked=mapping(asked))
    except (ValueError, TypeError):
        return None


async def load_previous_exchange(incoming: Incoming, stores: Stores) -> tuple[ThreadMessage, ...]:
    """Load the person's last exchange in direct messages before one that opens a new thread, if it is recent."""
    before = await stores.direct_messages.previous_thread(incoming.thread, incoming.ts)
    history = (await stores.threads.load(before)).history if before else ()
    question_indexes = [index for index, message in enumerate(history) if message.role == "user" and message.addressed]
    return history[question_indexes[-1] :] if question_indexes else ()


def spoken_language(text: str, history: Sequence[ThreadMessage]) -> str | None:
    """Return the language of a message that shows one ("Warum?" does not), else of an earlier question or answer."""
    earlier = sorted(history, key=lambda one: one.role == "user")  # questions last
    texts = (text, *(one.text for one in reversed(earlier) if one.addressed))
    return next(filter(None, map(detect_language, texts[:_MAX_LANGUAGE_TEXTS])), None)


async def visible_sources(index: KnowledgeIndex, sources: Sequence[Source], viewers: Viewers) -> tuple[Source, ...]:
    """Return the sources that all viewers may see now. While the index cannot be read, no document is visible."""
    documents: Iterable[Document] = ()
    if any(source.origin == "document" for source in sources):
        try:
            documents = await asyncio.to_thread(index.documents)
        except KnowledgeAwayError as error:
            log.warning("audiences_not_read", cause=str(error))
    return tuple(source for source in sources if _is_visible(source, documents, viewers))


async def visible_record(index: KnowledgeIndex, record: Mapping[str, Any], viewers: Viewers) -> dict[str, Any]:
    """Return a turn's record without the sources and passages that a viewer may not see now.

    Without one of them, the sentences left out of the answer are removed too: they may quote it, unchecked.
    """
    sources = sources_of(record)
    visible = {source.id for source in await visible_sources(index, sources, viewers)}
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


MAX_NEW_AGE_S: Final = 3_600  # an older question may be a repetition, from a dead letter or after a lost Redis
MIN_GATE_WAIT_S: Final = 2.0
MAX_GATE_WAIT_S: Final = 15.0


@dataclass(slots=True, kw_only=True)
class Job:
    """A claimed message and everything derived from it. ``facts`` are as old as the claim.

    ``channel_language`` is set for its channel. ``context`` is the last exchange in direct messages before this one
    opened a new thread. ``read`` is the conversation from Slack, which is stored if the message has to be given back.
    """

    claimed: Claimed
    lease: Lease
    incoming: Incoming
    facts: Facts = field(default_factory=Facts)
    channel_language: str = ""
    context: tuple[ThreadMessage, ...] = ()
    read: str = ""
    turn_id: str = field(init=False)
    place: ThreadKey = field(init=False)  # the thread of the answer
    is_addressed: bool = field(init=False)  # by a mention, a direct message, or as an answer to Orion's question
    language: str | None = field(init=False)  # of the channel, else of the thread; None for English or if unclear
    failed_since: float = field(init=False)  # seconds since 1970 at which a service first failed for it; 0.0: none has
    earlier_stream: StreamedMessage = field(init=False)  # that an earlier try of the turn began
    may_be_answered: bool = field(init=False)  # Slack may have a message for it: tried, edited or asked long ago
    may_have_posted: bool = field(init=False)  # an earlier try may: answers and streams are recorded before they show
    _is_new: bool = field(init=False)

    def __post_init__(self) -> None:
        incoming, facts, is_repeated = self.incoming, self.facts, self.claimed.tries > 1
        pending, since = facts.state.pending_question, facts.failed_since
        self.turn_id, self.place = incoming.turn_id, incoming.thread
        answers = pending is not None and pending.user == incoming.user
        self.is_addressed = incoming.addressed in ADDRESSES_ORION or answers
        self.language = self.channel_language or spoken_language(incoming.text, facts.state.history)
        # An admin's pause in between restarts the wait: ``enqueued_at`` includes it.
        self.failed_since = max(parse_number(since), self.claimed.enqueued_at) if since else 0.0
        if facts.stream_begun is None:
            self.earlier_stream = STREAM_UNKNOWN if is_repeated else NOT_STREAMED
        else:
            self.earlier_stream = StreamedMessage("begun", facts.stream_ts) if facts.stream_ts else STREAM_UNKNOWN
        self._is_new = not incoming.edited_ts and time.time() - sort_key(incoming.ts)[0] <= MAX_NEW_AGE_S
        self.may_be_answered = is_repeated or not self._is_new
        asks_nothing = incoming.kind not in {"question", "edit"}
        self.may_have_posted = bool(asks_nothing or facts.outbox or facts.stream_begun)

    def without_context(self, state: ThreadState) -> ThreadState:
        """Return the state to save: messages of another thread belong to that thread."""
        return replace(state, history=tuple(one for one in state.history if one not in self.context))

    @property
    def gate_wait_s(self) -> float:
        """Seconds until a waiting message is checked again, growing with its wait."""
        return min(MAX_GATE_WAIT_S, max(MIN_GATE_WAIT_S, self.claimed.waited_s / 4))

    def answer_key(self, *badges: Badge, may_exist: bool = True) -> AnswerKey:
        """Return the identity that makes the answer unique in Slack."""
        posted = self.facts.state.posted.get(self.incoming.ts, ())
        return AnswerKey(
            question_ts=self.incoming.ts,
            turn_id=self.turn_id,
            may_exist=may_exist,
            lease_check=self.lease.require,
            badges=badges,
            language=self.language,
            share_to=self.incoming.origin,
            posted=posted,
            # The records name the previous answer's messages, not those of this turn's earlier try.
            posted_is_complete=not self.may_have_posted and (bool(posted) or self._is_new),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamServices:
    """The services that are the same for every message of a workspace.

    ``handoff`` is where people are asked. Without ``streams`` every answer is posted. ``saves_answers``: a folder for
    answers is configured.
    """

    engine: Engine
    stores: Stores
    observers: Observers
    delivery: Delivery
    people: SlackDirectory
    memberships: Memberships
    attachments: Attachments
    search: SlackSearch
    handoff: HandOffPlace
    channels: ChannelFile
    access: Access = field(default_factory=Access)
    timeouts: TurnTimeouts = field(default_factory=TurnTimeouts)
    streams: Streams | None = None
    saves_answers: bool = False

    async def read_files(self, incoming: Incoming, earlier: EarlierThread) -> tuple[AttachedFile, ...]:
        """Return the files of the question and of the thread's first message; a marker if Slack's limits forbid it."""
        unseen = (AttachedFile(name="", trouble="unseen"),)
        if earlier.limited:
            return unseen
        if incoming.files == "none" and earlier.first is not None and not shared_files(earlier.first):
            return ()
        try:
            return await self.attachments.read_all(incoming, earlier.first, earlier.asked)
        except DeliveryFailed as failure:
            if not failure.again_s:
                raise
            return unseen

    async def prepare(
        self, question: Question, state: ThreadState, asker: Person | None
    ) -> tuple[Question, ThreadState]:
        """Add names and the channel's settings; remove sources that the answer's readers may no longer see."""
        settings = self.channels.of(question.thread.team, question.thread.channel)
        speaks = f"Write every answer in the language with the code {settings.language}." if settings.language else ""
        question = replace(
            question,
            memberships=await self.memberships.of(question),
            instruction=" ".join(filter(None, (settings.instruction, speaks))),
            documents=settings.documents,
            language=settings.language or spoken_language(question.text, state.history) or "",
        )
        question, history = await self.people.add_names(question, state.history, asker)
        if found := state.found:
            visible = await visible_sources(self.engine.index, found.sources, viewers_of(question))
            if len(visible) < len(found.sources):
                log.info("findings_hidden", count=len(found.sources) - len(visible))
            found = replace(found, sources=visible)
        return question, replace(state, history=history, found=found)

    async def recheck_later(self, job: Job) -> None:
        """Leave a recheck of this question, once for each try.

        Two workers had it, and the slower one may still post, or Slack may still begin a stream for it. Unlike
        ``Delivery.recheck_later`` this does not wait for Redis.
        """
        recheck = Recheck(place=job.place, question_ts=job.incoming.ts)
        key = f"recheck:{job.claimed.id}:{job.claimed.fence.token}"
        with suppress(RedisError):  # the next worker adds it
            await self.stores.mailbox.enqueue(recheck.thread, recheck.to_json(), event_ids=[key])

    async def store_again(self, job: Job) -> bool:
        """Store a message whose lease is lost, and return True, if Redis was emptied.

        Otherwise its event ids are known for a day.
        """
        claimed, event_ids = job.claimed, job.incoming.event_ids
        if event_ids and claimed.waited_s < SEEN_TTL_S / 2:
            slack_ts = claimed.id.partition("/")[0]
            with suppress(RedisError):
                if await self.stores.mailbox.enqueue(
                    claimed.thread, claimed.body, event_ids=event_ids, slack_ts=slack_ts
                ):
                    log.warning("question_stored_again", message_id=claimed.id)
                    return True
        return False

    async def notify_person(self, incoming: Incoming, text: str) -> DeliveryFailed | None:
        """Post a text that only the author sees. Return the failure if Slack did not accept it."""
        place = incoming.thread
        if place.thread_ts == incoming.ts:  # Slack shows no ephemeral message in a thread without replies
            place = replace(place, thread_ts=place.channel)
        try:
            await self.delivery.post_ephemeral(place, incoming.user, text)
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", reason=failure.reason)
            return failure
        return None

    async def notify_person_once(self, incoming: Incoming, name: str, subject: str) -> DeliveryFailed | None:
        """Post the text ``name`` the same way, once a day for each subject. A failed post may be tried again."""
        redis, key = self.people.redis, self.people.key("told", incoming.thread.team, f"{incoming.user}:{subject}")
        if not await redis.set(key, "1", nx=True, ex=NOTICE_TTL_S):
            return None
        failure = await self.notify_person(incoming, say(name, await self.people.notice_language(incoming)))
        if failure:
            await redis.delete(key)
        return failure
