"""Takes in messages before Slack's ack: an event is parsed and stored, and cancels the turns that it replaces.

Parsing is pure and raises nothing but ``Ignored``. A mention in a channel may come as ``app_mention``, as ``message``
or as both. Both have the same ``msg:`` key, so the queue keeps one of them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, get_args

import structlog

from agent.json_data import mapping, objects, string
from agent.knowledge.slack_message import SlackMessage, read_message, shared_files
from agent.texts.catalogue import LANGUAGES, say
from agent.thread.conversation import ThreadKey
from bot.gates.stop import receive_stop, turn_at_head
from bot.install.workspaces import Workspaces
from bot.queue.claim import Cancel, Cancellation
from bot.queue.queue import SEEN_TTL_S
from bot.slack.history import is_own, sort_key
from bot.slack.message import (
    ADDRESSES_ORION,
    Access,
    Addressed,
    BotIdentity,
    Command,
    Files,
    Ignored,
    Incoming,
    Kind,
    ThreadMode,
)
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores, read_facts

# People write messages of these four subtypes. Joins, topics, pins, bot_message and the rest are not for Orion.
_SPOKEN: Final = frozenset({"", "file_share", "me_message", "thread_broadcast"})
_TS: Final = re.compile(r"\d{1,20}(\.\d{1,10})?")
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FILE_FIELDS: Final = (
    *("id", "name", "title", "mimetype", "filetype", "mode", "size", "file_access", "permalink"),
    *("subtype", "url_private", "url_private_download"),
)
_MAX_TOKEN_CHARS: Final = 4_000
_LINK: Final = re.compile(
    r"https://[\w.-]+\.slack(?:-gov)?\.com/(?:archives/\w+/p\d|(?:files|docs|lists)/\w+/F)"  # of a message or a file
)
_CHANNEL_TYPES: Final = {"D": "im", "G": "group"}
_COMMANDS: Final[Mapping[str, Command]] = {
    word: command
    for command in get_args(Command)
    for language in LANGUAGES
    for word in say(f"command_{command}", language).split("|")
}
"""The words that stop, mute and unmute Orion, in every language it speaks. Each counts only as a whole message."""
_AROUND_COMMANDS: Final = " \t\n\xa0,:;.!…-–—。！，：、"  # as in "@Orion, stop!"
DELETED: Final = "deleted"
LINK_WAIT_S: Final = 2.0  # Slack adds a linked message about a second after it sent the event
TWIN_WAIT_S: Final = 0.2  # an ``app_mention`` without files waits for the ``message`` event of the same message
log = structlog.get_logger()


@dataclass
class _Reading:
    """An event, the message it is about (the same except for edits and deletions), and its text."""

    event: Mapping[str, Any]
    message: Mapping[str, Any]
    own: BotIdentity
    access: Access

    @cached_property
    def content(self) -> SlackMessage:
        """The message's text and mentions. Orion's own messages are ignored without reading them."""
        return read_message(self.message, self.own.user)

    @cached_property
    def files(self) -> Sequence[Mapping[str, Any]]:
        """The files of the message and of those it shares."""
        return shared_files(self.message)


def parse_event(envelope: object, own: BotIdentity, access: Access) -> Incoming:
    """Return an Events API envelope as a message. Raises ``Ignored``. Follow-ups still need ``apply_thread_mode``."""
    event = mapping(envelope, "event")
    incoming = _parse(_Reading(event, event, own, access))
    # In a shared channel the envelope may name the other team, but the authorization is ours.
    ours = next(iter(objects(envelope, "authorizations")), {})
    team, thread = string(ours, "team_id") or string(envelope, "team_id"), incoming.thread
    ids, stamps = (team, thread.channel, incoming.user), (incoming.ts, thread.thread_ts)
    if not (all(map(_ID.fullmatch, ids)) and all(map(_TS.fullmatch, stamps))):
        raise Ignored(reason="malformed")
    event_id = string(envelope, "event_id")
    keys = [f"evt:{team}:{event_id}"] if event_id else []
    # A press of the stop button has no message. Both events of a mention have the same one.
    if incoming.kind != "stop" or incoming.text:
        version = "deleted" if incoming.kind == "delete" else incoming.edited_ts
        keys.append(":".join(filter(None, ("msg", team, thread.channel, incoming.ts, version))))
    shared, thread = mapping(envelope).get("is_ext_shared_channel"), replace(thread, team=team)
    incoming = replace(incoming, thread=thread, event_ids=tuple(keys), vouched=isinstance(shared, bool))
    external = shared and not access.allow_external
    refusal = "external_channel" if external else access.refusal(incoming.user, thread.channel)
    if not refusal:
        return incoming
    if incoming.addressed not in ADDRESSES_ORION or incoming.kind != "question":
        raise Ignored(reason=refusal)
    # The person gets a notice. What they wrote must not be stored.
    return replace(incoming, refused=refusal, text="", mentioned=frozenset(), attached=(), action_token="")


def event_of(place: ThreadKey, message: Mapping[str, Any], own: BotIdentity) -> dict[str, Any]:
    """Return the event that Slack would have sent for a message, whose current words count as the first ones."""
    mentioned = own.user in read_message(message).mentioned and not place.channel.startswith("D")
    event = {key: value for key, value in message.items() if key != "edited"}
    if event.get("thread_ts") == event["ts"]:  # a thread's first message had no replies when it was sent
        del event["thread_ts"]
    event |= {"type": "app_mention" if mentioned else "message", "channel": place.channel, "event_ts": message["ts"]}
    return {"type": "event_callback", "team_id": place.team, "event": event}


def apply_thread_mode(incoming: Incoming, thread_mode: ThreadMode) -> Incoming:
    """Raise ``Ignored`` for a follow-up unless Orion was addressed in its thread and not muted."""
    if incoming.refused:
        return incoming
    is_new = thread_mode in {"unknown", "lost"}
    if incoming.addressed == "mention":  # an edit that mentions Orion for the first time is a question
        return replace(incoming, kind="question") if incoming.kind == "edit" and is_new else incoming
    if incoming.addressed == "follow_up" and is_new:
        # If an earlier Redis lost the thread's data, a question counts until Slack says otherwise.
        lost = thread_mode == "lost" and incoming.kind == "question"
        if not lost:
            raise Ignored(reason="not_addressed")
        return replace(incoming, unproven=True)
    # An edit passes, because it may change a question that was answered before (``bot.turn.answer`` knows).
    if thread_mode == "muted" and incoming.kind in {"question", "mute"}:
        raise Ignored(reason="muted")
    return incoming


def attached_files(files: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return only the fields needed to read a message's files: previews and shares can be thirty times as long."""
    return tuple({name: one[name] for name in _FILE_FIELDS if one.get(name)} for one in files)


def _parse(reading: _Reading) -> Incoming:
    event = reading.event
    kind, subtype = string(event, "type"), string(event, "subtype")
    if kind == "agent_session_stopped":
        return Incoming(
            kind="stop", thread=_thread_key(event, {}), user=string(event, "user"),
            ts=string(event, "thread_ts") or string(event, "event_ts"), event_ts=string(event, "event_ts"),
            addressed="mention",  # the button addresses Orion like a mention
        )  # fmt: skip
    if kind not in {"message", "app_mention"}:
        raise Ignored(reason="not_a_message")
    if subtype == "message_changed":
        return _parse_edit(reading)
    if subtype == "message_deleted":
        return _parse_deletion(reading, mapping(event, "previous_message"), string(event, "deleted_ts"))
    if subtype not in _SPOKEN and not _is_allowed_bot(event, reading.access):
        raise Ignored(reason="subtype")
    incoming = _build_incoming(reading)
    return _check_follow_up(reading, incoming) if incoming.addressed == "follow_up" else incoming


def _check_follow_up(reading: _Reading, incoming: Incoming) -> Incoming:
    if incoming.kind == "stop":
        return incoming
    if incoming.mentioned or reading.content.calls_group:
        raise Ignored(reason="to_somebody_else")
    if string(reading.event, "thread_ts"):
        return incoming
    if incoming.channel_type not in {"channel", "group"}:
        raise Ignored(reason="not_addressed")
    return replace(incoming, addressed="overheard")


def _parse_edit(reading: _Reading) -> Incoming:
    """Read an edit by a person. Slack sends the same event when it unfurls a link or when Orion updates its answer."""
    names = ("message", "previous_message")
    after, before = (replace(reading, message=mapping(reading.event, name)) for name in names)
    subtype = string(after.message, "subtype")
    if subtype == "tombstone":  # a deleted message that has replies
        return _parse_deletion(reading, before.message, string(after.message, "ts"))
    if subtype not in _SPOKEN and not _is_allowed_bot(after.message, reading.access):
        raise Ignored(reason="subtype")  # such as the title of an agent's thread
    ids, earlier_ids = ([string(one, "id") for one in each.files] for each in (after, before))
    same, edited = after.content == before.content and ids == earlier_ids, string(after.message, "edited", "ts")
    grows = (after.content.shares and len(after.content.text) > len(before.content.text)) or len(ids) > len(earlier_ids)
    changed, posted = (sort_key(string(each, "ts"))[0] for each in (reading.event, after.message))
    if not edited and grows and changed - posted < SEEN_TTL_S:  # after that it would count as a new message
        # Slack adds a linked message or file a second later. The event counts as a fuller one of the same message.
        shown = {**reading.event, "subtype": "", **after.message, "event_ts": after.message.get("ts")}
        return _parse(replace(reading, event=shown, message=shown))
    if (before.message and same) or not edited:
        raise Ignored(reason="not_an_edit")
    return _build_incoming(after)


def _parse_deletion(reading: _Reading, gone: Mapping[str, Any], ts: str) -> Incoming:
    incoming = _build_incoming(replace(reading, message={**gone, "ts": ts}))
    return replace(incoming, kind="delete", edited_ts="", text="")


def _build_incoming(reading: _Reading) -> Incoming:
    event, message, own = reading.event, reading.message, reading.own
    user, is_allowed_bot = string(message, "user"), _is_allowed_bot(message, reading.access)
    if is_own(message, own):
        raise Ignored(reason="self")
    if (user == "USLACKBOT" or (string(message, "bot_id") and not user)) and not is_allowed_bot:
        raise Ignored(reason="bot")
    # app_mention has no channel_type, but the first letter of the id shows it.
    channel_type = string(event, "channel_type") or _CHANNEL_TYPES.get(string(event, "channel")[:1], "channel")
    token = string(event, "action_token") or string(event, "assistant_thread", "action_token")
    content = reading.content
    addressed: Addressed = "direct" if channel_type == "im" else "follow_up"
    # Slack also reports a mention that is only quoted.
    reported = string(event, "type") == "app_mention" and own.user not in content.quoted
    if reported or own.user in content.mentioned:
        addressed = "mention"
    by_app = bool(string(message, "bot_id")) and not string(message, "client_msg_id")  # only Slack's clients set it
    through_app = by_app and not is_allowed_bot
    if through_app and addressed == "follow_up":
        raise Ignored(reason="bot")
    # Not every app_mention includes its files: if it has none, only the message itself can tell.
    no_files: Files = "unknown" if string(event, "type") == "app_mention" else "none"
    return Incoming(
        kind=_kind(reading),
        thread=_thread_key(event, message),
        user=user or string(message, "bot_id"),
        ts=string(message, "ts"),
        addressed=addressed,
        text=content.text,
        edited_ts=string(message, "edited", "ts"),
        event_ts=string(event, "event_ts") or string(message, "ts"),
        channel_type=channel_type,
        mentioned=content.mentioned - {own.user},
        files="some" if reading.files else no_files,
        links_message=bool(_LINK.search(content.text)) and not (content.shares or reading.files),
        attached=attached_files(reading.files),
        through_app=through_app,
        by_app=by_app,
        user_team=string(message, "user_team") or string(message, "team"),
        action_token=token if len(token) <= _MAX_TOKEN_CHARS else "",
    )


def _kind(reading: _Reading) -> Kind:
    command = _COMMANDS.get(reading.content.own_words.strip(_AROUND_COMMANDS).casefold())
    if command and not (reading.content.shares or reading.files):
        return command
    return "edit" if string(reading.message, "edited", "ts") else "question"


def _thread_key(event: Mapping[str, Any], message: Mapping[str, Any]) -> ThreadKey:
    """Return the thread of a message, or the one that it opens. Each direct message also opens one."""
    thread_ts = string(message, "thread_ts") or string(event, "thread_ts")
    ts = thread_ts or string(message, "ts") or string(event, "event_ts")
    return ThreadKey(team="", channel=string(event, "channel"), thread_ts=ts)


def _is_allowed_bot(message: Mapping[str, Any], access: Access) -> bool:
    names = {string(message, key) for key in ("bot_id", "user", "app_id")} - {""}
    return bool(names & access.allow_bots)


@dataclass(frozen=True, slots=True)
class Intake:
    """Stores messages in the queue, and carries out an admin's "pause" and "resume" at once, but only once."""

    stores: Stores
    cancel: Cancel
    access: Access
    workspaces: Workspaces
    admins: frozenset[str] = frozenset()
    _twins: set[tuple[str, str]] = field(default_factory=set)  # channels that send two events for each mention

    async def store_or_carry_out(self, incoming: Incoming) -> bool:
        """Store the message, or carry out a stop or an order. Return whether it was new. Raises ``RedisError``."""
        stores, thread = self.stores, str(incoming.thread)
        order, reason = admin_order(incoming, self.admins)
        if order:
            return await self._carry_out(incoming, order, reason)
        if incoming.kind == "stop":
            await receive_stop(incoming, stores, self.cancel, self.access)
            return True
        if incoming.kind == "delete":  # stored too, so that its answer is deleted
            await stores.cancellations.record_deletion(incoming)
            running = turn_at_head(await stores.mailbox.list_messages(thread))
            if running and running[1].ts == incoming.ts:
                await self.cancel(Cancellation(thread=thread, reason=DELETED, message_id=running[0]))
                await stores.mailbox.make_due_now(thread)  # even if the turn waits for the end of an outage
        await stores.save_token(incoming)
        new = await self._enqueue(incoming)
        if new and incoming.kind == "edit":
            await self._cancel_outdated_turn(incoming)
        # Do this for a repeated event too: the first one may have failed before this line.
        async with stores.redis.pipeline(transaction=False) as pipe:
            if incoming.addressed != "overheard":
                stores.served.record(pipe, incoming.thread, incoming.ts)
            stores.direct_messages.record(pipe, incoming.thread, incoming.ts)
            stores.thread_modes.record_message(pipe, incoming, new=new)
            await pipe.execute()
        return new

    async def _enqueue(self, incoming: Incoming) -> bool:
        """Add the message to the queue, held back if a fuller event about it is about to come. Return if it was new."""
        thread, place = str(incoming.thread), (incoming.thread.team, incoming.thread.channel)
        mailbox, files_known = self.stores.mailbox, incoming.files != "unknown"
        if incoming.addressed == "mention" and files_known:  # this channel sends a ``message`` event for each one, too
            self._twins.add(place)
        twin_wait_s = TWIN_WAIT_S if place in self._twins and not files_known else 0.0
        event_ids = incoming.event_ids or (f"ts:{incoming.thread}:{incoming.ts}",)
        new = await mailbox.enqueue(
            thread,
            incoming.to_json(),
            fuller=files_known and not incoming.links_message,
            slack_ts=incoming.event_ts or incoming.ts,
            event_ids=event_ids,
            hold_s=LINK_WAIT_S if incoming.links_message else twin_wait_s,
        )
        if incoming.edited_ts and incoming.addressed in ADDRESSES_ORION:  # the first version's event may come late
            first = event_ids[-1].removesuffix(f":{incoming.edited_ts}")
            await self.stores.redis.set(mailbox.key(thread, "seen", first), "", ex=SEEN_TTL_S, nx=True)
        return new

    async def _carry_out(self, incoming: Incoming, order: str, reason: str) -> bool:
        """Carry out an admin's order, even while messages wait in that chat. Return whether it was new."""
        stores = self.stores
        if await stores.cancellations.was_handled(incoming):
            return False
        await (stores.pausing.pause(reason) if order == "pause" else stores.pausing.resume())
        if not await stores.cancellations.mark_handled(incoming):
            return False
        log.info("admin_order", order=order)
        try:
            team_bot = await self.workspaces.of(incoming.thread.team)
            language = await team_bot.people.notice_language(incoming)
            text = say("paused_now" if order == "pause" else "resumed_now", language)
            await team_bot.delivery.post_own_text(incoming.thread, text, incoming.ts)
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", reason=failure.reason)
        return True

    async def _cancel_outdated_turn(self, incoming: Incoming) -> None:
        """Cancel the turn for the words before an edit, unless another message was asked after them."""
        thread = str(incoming.thread)
        stored = await self.stores.mailbox.list_messages(thread)
        running = turn_at_head(stored)
        messages = (Incoming.from_body(one.body) for one in stored)
        alone = all(one and one.ts == incoming.ts for one in messages)
        if not (running and alone) or running[1].edited_ts == incoming.edited_ts:
            return
        facts = await read_facts(self.stores, incoming, "")
        if not (facts.pause or facts.exhausted):  # else the edit gets no answer, and the turn's is the only one
            await self.cancel(Cancellation(thread=thread, reason="edited", message_id=running[0]))


def admin_order(incoming: Incoming, admins: frozenset[str]) -> tuple[str, str]:
    """Return the order (``pause`` or ``resume``) and its reason; two empty texts for any other message.

    ``pause: REASON`` gives a reason. An app cannot give orders in a person's name.
    """
    typed = incoming.kind == "question" and incoming.channel_type == "im" and not incoming.by_app
    if not typed or incoming.user not in admins:
        return "", ""
    word, colon, reason = incoming.text.partition(":")
    order = word.strip(" .!`").casefold()
    if order == "pause":
        return order, reason.strip()
    return (order, "") if order == "resume" and not colon else ("", "")
