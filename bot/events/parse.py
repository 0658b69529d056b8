"""Which Slack events count, and as what. Pure: an event goes in, a message to store or a reason to ignore it comes out.

``read`` decides all that the payload alone can tell; ``settle`` decides the rest from the thread's mode. Neither ever
raises, whatever JSON arrives: what cannot be understood is ``Ignored("malformed")``.
A mention in a channel may come as ``app_mention``, as ``message`` or as both; both carry the same ``msg:`` key, so the
queue keeps one of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, get_args

from agent.texts.catalogue import LANGUAGES, say
from agent.thread.conversation import ThreadKey
from bot.slack.history import is_own
from bot.slack.message import (
    Access,
    Addressed,
    BotIdentity,
    Command,
    Files,
    Ignored,
    Incoming,
    Kind,
    Refused,
    ThreadMode,
)
from bot.slack.payload import mapping, objects, string
from bot.slack.text import is_shared_message, plain_text, whole_text

# Joins, topics, pins, bot_message and the rest say nothing to Orion; these four are a person speaking.
_SPOKEN: Final = frozenset({"", "file_share", "me_message", "thread_broadcast"})
_TS: Final = re.compile(r"\d{1,20}(\.\d{1,10})?")
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_USER_MENTION: Final = re.compile(r"<@([A-Za-z0-9_-]+)(?:\|[^<>]*)?>")
_GROUP_MENTION: Final = re.compile(r"<!(?:subteam\^|here|channel|everyone)")
_FILE_FIELDS: Final = (
    *("id", "name", "title", "mimetype", "mode", "size", "file_access", "permalink"),
    *("url_private", "url_private_download"),
)
_MAX_TOKEN_CHARS: Final = 4_000
_CHANNEL_TYPES: Final = {"D": "im", "G": "group"}
_COMMANDS: Final[Mapping[str, Command]] = {
    word: command
    for command in get_args(Command)
    for language in LANGUAGES
    for word in say(f"command_{command}", language).split("|")
}
"""The words that stop, mute and unmute Orion, in every language it speaks. Each counts only as a whole message."""


def parse_event(envelope: object, own: BotIdentity, access: Access) -> Incoming | Ignored:
    """An Events API envelope as a message, or why it is ignored. Follow-ups still need ``settle``."""
    event = mapping(envelope, "event")
    kind = string(event, "type")
    if kind == "agent_session_stopped":
        found: Incoming | Ignored = _parse_stop(event)
    elif kind not in {"message", "app_mention"}:
        return Ignored(reason="not_a_message")
    elif string(event, "subtype") == "message_changed":
        found = _parse_edit(event, own, access)
    elif string(event, "subtype") == "message_deleted":
        found = _parse_deletion(event, mapping(event, "previous_message"), string(event, "deleted_ts"), own, access)
    else:
        found = _parse_message(event, own, access)
    return found if isinstance(found, Ignored) else _complete(envelope, found, access)


def apply_thread_mode(incoming: Incoming, thread_mode: ThreadMode) -> Incoming | Ignored:
    """What only the thread's mode can tell: follow-ups count where Orion was addressed and not muted.

    An edit that mentions Orion where it was never addressed is a first question: nothing was asked before. A question
    in a thread that may have been lost with an earlier Redis counts until Slack says otherwise.
    """
    if incoming.addressed == "mention":
        first = incoming.kind == "edit" and thread_mode in {"unknown", "lost"}
        return replace(incoming, kind="question") if first else incoming
    if incoming.addressed == "follow_up" and thread_mode == "lost" and incoming.kind == "question":
        return replace(incoming, unproven=True)
    if incoming.addressed == "follow_up" and thread_mode in {"unknown", "lost"}:
        return Ignored(reason="not_addressed")
    # An edit goes on: it may be of a question that was answered before (``bot.turn.answer`` knows).
    if thread_mode == "muted" and incoming.kind in {"question", "help", "mute"}:
        return Ignored(reason="muted")
    return incoming


def _team_id(envelope: object) -> str:
    # In a channel shared between workspaces the envelope's team may be the other one: the authorization is ours.
    ours = next(iter(objects(envelope, "authorizations")), {})
    return string(ours, "team_id") or string(envelope, "team_id")


def _complete(envelope: object, incoming: Incoming, access: Access) -> Incoming | Ignored:
    """Fills in the team and the keys, and refuses what access forbids."""
    team, thread = _team_id(envelope), incoming.thread
    ids, stamps = (team, thread.channel, incoming.user), (incoming.ts, thread.thread_ts)
    if not (all(map(_ID.fullmatch, ids)) and all(map(_TS.fullmatch, stamps))):
        return Ignored(reason="malformed")
    event_id = string(envelope, "event_id")
    keys = (event_id and f"evt:{team}:{event_id}", _message_key(team, incoming))
    shared = mapping(envelope).get("is_ext_shared_channel")
    incoming = replace(
        incoming,
        thread=replace(thread, team=team),
        event_ids=tuple(filter(None, keys)),
        vouched=isinstance(shared, bool),
    )
    external = shared and not access.allow_external
    refusal = "external_channel" if external else access.refusal(incoming.user, thread.channel)
    return Refused(reason=refusal, incoming=incoming) if refusal else incoming


def _message_key(team: str, incoming: Incoming) -> str:
    """The key both events of one mention share; a button press has none."""
    if incoming.kind == "stop" and not incoming.text:
        return ""
    version = "deleted" if incoming.kind == "delete" else incoming.edited_ts
    return ":".join(filter(None, ("msg", team, incoming.thread.channel, incoming.ts, version)))


def _parse_stop(event: Mapping[str, Any]) -> Incoming:
    return Incoming(
        kind="stop",
        thread=_thread_key(event, {}),
        user=string(event, "user"),
        ts=string(event, "thread_ts") or string(event, "event_ts"),
        addressed="mention",  # the button names Orion as plainly as a mention does
        event_ts=string(event, "event_ts"),
    )


def _parse_message(event: Mapping[str, Any], own: BotIdentity, access: Access) -> Incoming | Ignored:
    if string(event, "subtype") not in _SPOKEN and not _is_allowed_bot(event, access):
        return Ignored(reason="subtype")
    incoming = _build_incoming(event, event, own, access)
    if isinstance(incoming, Ignored):
        return incoming
    if incoming.kind != "stop" and _addresses_another(incoming, event):
        return Ignored(reason="to_somebody_else")
    if incoming.kind != "stop" and incoming.addressed == "follow_up" and not string(event, "thread_ts"):
        return Ignored(reason="not_addressed")
    return incoming


def _addresses_another(incoming: Incoming, message: Mapping[str, Any]) -> bool:
    """Whether a message that does not mention Orion mentions another person, or a group."""
    named = bool(incoming.mentioned or _GROUP_MENTION.search(string(message, "text")))
    return incoming.addressed == "follow_up" and named


def _parse_edit(event: Mapping[str, Any], own: BotIdentity, access: Access) -> Incoming | Ignored:
    """An edit by a person. Slack sends the same event when it unfurls a link or when Orion updates its answer."""
    message, before = mapping(event, "message"), mapping(event, "previous_message")
    if string(message, "subtype") == "tombstone":  # a deleted message that has replies
        return _parse_deletion(event, before, string(message, "ts"), own, access)
    same = before and string(before, "text") == string(message, "text")
    if same or not string(message, "edited", "ts"):
        return Ignored(reason="not_an_edit")
    incoming = _build_incoming(event, message, own, access)
    if isinstance(incoming, Incoming) and incoming.kind == "edit" and _was_bare_mention(before, own):
        if _addresses_another(incoming, message):
            return Ignored(reason="to_somebody_else")
        return replace(incoming, kind="question" if incoming.text else "help")
    return incoming


def _was_bare_mention(message: Mapping[str, Any], own: BotIdentity) -> bool:
    """Whether a message was only a mention: it got the greeting, and no turn stands behind it."""
    raw = string(message, "text")
    return own.user in _USER_MENTION.findall(raw) and not plain_text(raw, own.user)


def _parse_deletion(
    event: Mapping[str, Any], gone: Mapping[str, Any], ts: str, own: BotIdentity, access: Access
) -> Incoming | Ignored:
    incoming = _build_incoming(event, {**gone, "ts": ts}, own, access)
    return incoming if isinstance(incoming, Ignored) else replace(incoming, kind="delete", edited_ts="", text="")


def _build_incoming(
    event: Mapping[str, Any], message: Mapping[str, Any], own: BotIdentity, access: Access
) -> Incoming | Ignored:
    """``event`` says where, ``message`` says what: one and the same but for edits and deletions."""
    if reason := _reject_author(message, own, access):
        return Ignored(reason=reason)
    raw = string(message, "text")
    named = frozenset(_USER_MENTION.findall(raw))
    # app_mention comes without a channel_type: the first letter of the id tells.
    channel_type = string(event, "channel_type") or _CHANNEL_TYPES.get(string(event, "channel")[:1], "channel")
    token = string(event, "action_token") or string(event, "assistant_thread", "action_token")
    addressed = _addressing(event, named, own, channel_type)
    through_app = _is_posted_by_app(message, access)
    if through_app and addressed == "follow_up":
        return Ignored(reason="bot")
    return Incoming(
        kind=_kind(message, raw, own),
        thread=_thread_key(event, message),
        user=string(message, "user") or string(message, "bot_id"),
        ts=string(message, "ts"),
        addressed=addressed,
        text=whole_text(message, own.user),
        edited_ts=string(message, "edited", "ts"),
        event_ts=string(event, "event_ts") or string(message, "ts"),
        channel_type=channel_type,
        mentioned=named - {own.user},
        files=_file_status(event, message),
        # What is needed of a file to read it; previews and shares may be thirty times as long.
        attached=tuple(
            {name: one[name] for name in _FILE_FIELDS if one.get(name)} for one in objects(message, "files")
        ),
        through_app=through_app,
        user_team=string(message, "user_team") or string(message, "team"),
        action_token=token if len(token) <= _MAX_TOKEN_CHARS else "",
    )


def _file_status(event: Mapping[str, Any], message: Mapping[str, Any]) -> Files:
    # Not every app_mention brings its files: where none are there, only the message itself can tell.
    if any(objects(message, "files")):
        return "some"
    return "unknown" if string(event, "type") == "app_mention" else "none"


def _kind(message: Mapping[str, Any], raw: str, own: BotIdentity) -> Kind:
    own_words = plain_text(raw, own.user)
    command = _COMMANDS.get(own_words.strip().rstrip(".!。！").casefold())
    if command and not _has_attachment(message):
        return command
    if string(message, "edited", "ts"):
        return "edit"
    return "question" if own_words or _has_attachment(message) else "help"


def _has_attachment(message: Mapping[str, Any]) -> bool:
    """Whether a message has something beside its own words: a file, or a message that was shared with it."""
    return any(objects(message, "files")) or any(map(is_shared_message, objects(message, "attachments")))


def _addressing(event: Mapping[str, Any], named: frozenset[str], own: BotIdentity, channel_type: str) -> Addressed:
    if own.user in named or string(event, "type") == "app_mention":
        return "mention"
    return "direct" if channel_type == "im" else "follow_up"


def _thread_key(event: Mapping[str, Any], message: Mapping[str, Any]) -> ThreadKey:
    """The thread a message stands in, else the one it opens: in a direct chat, too, each message opens its own."""
    found = string(message, "thread_ts") or string(event, "thread_ts")
    thread_ts = found or string(message, "ts") or string(event, "event_ts")
    return ThreadKey(team="", channel=string(event, "channel"), thread_ts=thread_ts)


def _is_allowed_bot(message: Mapping[str, Any], access: Access) -> bool:
    names = {string(message, key) for key in ("bot_id", "user", "app_id")} - {""}
    return bool(names & access.allow_bots)


def _reject_author(message: Mapping[str, Any], own: BotIdentity, access: Access) -> str:
    if is_own(message, own):
        return "self"
    user = string(message, "user")
    nobody = user == "USLACKBOT" or (string(message, "bot_id") and not user)
    return "bot" if nobody and not _is_allowed_bot(message, access) else ""


def _is_posted_by_app(message: Mapping[str, Any], access: Access) -> bool:
    """Whether an app posted it in somebody's name. Only Slack's own clients give a message a ``client_msg_id``."""
    by_app = bool(string(message, "bot_id")) and not string(message, "client_msg_id")
    return by_app and not _is_allowed_bot(message, access)
