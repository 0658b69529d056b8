"""Builds the payloads Slack sends to an app: events, their envelope, and clicks."""

from __future__ import annotations

import re
import secrets
import time
from typing import Final

from bot.local.model.messages import Message
from bot.local.model.roster import APP_ID, BOT_USER, TEAM_ID, Channel, Json, Member

DOMAIN: Final = "local"
SUBSCRIBED: Final = frozenset(
    {
        "app_mention",
        "member_joined_channel",
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
        "app_home_opened",
        "agent_session_stopped",
        "app_context_changed",
    }
)
"""What an agent app's manifest subscribes to; others stay unsent unless a test asks for them."""

_SUBSCRIPTION: Final = {"channel": "message.channels", "group": "message.groups", "im": "message.im"}
_TOKEN: Final = re.compile(r"<(@|#)([A-Z0-9]+)(?:\|[^>]*)?>|<([^<>@#!|][^<>|]*)(?:\|([^<>]*))?>")


def identifier(prefix: str) -> str:
    """A fresh id such as ``Ev0A1B2C3D4E``."""
    return f"{prefix}0{secrets.token_hex(5).upper()}"


def subscription_of(channel: Channel) -> str:
    """The subscription that message events of this channel belong to."""
    return _SUBSCRIPTION.get(channel.kind, "message.mpim")


def envelope(event: Json, channel: Channel | None, token: str, team: str = TEAM_ID) -> Json:
    """The outer payload of an Events API delivery."""
    event_id = identifier("Ev")
    shared = channel is not None and channel.is_ext_shared
    return {
        "token": token,
        "team_id": team,
        "context_team_id": team,
        "context_enterprise_id": None,
        "api_app_id": APP_ID,
        "event": event,
        "type": "event_callback",
        "event_id": event_id,
        "event_time": int(time.time()),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": team,
                "user_id": BOT_USER,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": shared,
        "event_context": f"4-{event_id}",
    }


def message_event(shown: Json, channel: Channel) -> Json:
    """A ``message`` event for a new message, made from its API payload."""
    return {**shown, "channel": channel.id, "event_ts": shown["ts"], "channel_type": channel.kind}


def mention_event(shown: Json, channel: Channel) -> Json:
    """The ``app_mention`` twin: the same message without channel type, files and subtype."""
    left_out = ("files", "subtype", "reply_count", "reply_users", "reply_users_count", "latest_reply")
    kept = {key: value for key, value in shown.items() if key not in left_out}
    return {**kept, "type": "app_mention", "channel": channel.id, "event_ts": shown["ts"]}


def hidden_event(subtype: str, channel: Channel, ts: str, **facts: object) -> Json:
    """``message_changed`` (an edit, an update, a tombstone) or ``message_deleted``, with what each of them tells."""
    common = {
        "type": "message",
        "subtype": subtype,
        "hidden": True,
        "channel": channel.id,
        "channel_type": channel.kind,
    }
    return {**common, **facts, "ts": ts, "event_ts": ts}


def joined_event(user: str, channel: Channel, inviter: str, ts: str) -> Json:
    """``member_joined_channel``."""
    place = {"channel": channel.id, "channel_type": "C" if channel.kind == "channel" else "G", "team": TEAM_ID}
    return {"type": "member_joined_channel", "user": user, **place, "inviter": inviter, "event_ts": ts}


def reaction_event(kind: str, user: str, name: str, message: Message, ts: str) -> Json:
    """``reaction_added`` or ``reaction_removed``."""
    item = {"type": "message", "channel": message.channel, "ts": message.ts}
    return {
        "type": kind,
        "user": user,
        "reaction": name,
        "item": item,
        "item_user": message.user,
        "event_ts": ts,
    }


def home_opened_event(user: str, channel: str, tab: str, view: Json | None, ts: str) -> Json:
    """``app_home_opened``; ``view`` is what was published before, on the home tab only."""
    event: Json = {"type": "app_home_opened", "user": user, "channel": channel, "tab": tab, "event_ts": ts}
    return event | ({"view": view} if view and tab == "home" else {})


def stopped_event(user: str, channel: str, thread_ts: str, streams: list[str], ts: str) -> Json:
    """``agent_session_stopped``: a person pressed stop."""
    return {
        "type": "agent_session_stopped",
        "channel": channel,
        "thread_ts": thread_ts,
        "user": user,
        "streaming_message_ts": streams,
        "event_ts": ts,
    }


def interaction(kind: str, member: Member, token: str, trigger_id: str, team: str = TEAM_ID) -> Json:
    """What all interactive payloads share."""
    return {
        "type": kind,
        "user": {"id": member.id, "username": member.handle, "name": member.handle, "team_id": team},
        "api_app_id": APP_ID,
        "token": token,
        "trigger_id": trigger_id,
        "team": {"id": team, "domain": DOMAIN},
        "enterprise": None,
        "is_enterprise_install": False,
    }


def rich_text(text: str) -> list[Json]:
    """The ``rich_text`` block that Slack's composer adds to what a person typed."""
    elements: list[Json] = []
    position = 0
    for found in _TOKEN.finditer(text):
        if found.start() > position:
            elements.append({"type": "text", "text": unescape(text[position : found.start()])})
        elements.append(_rich_token(found))
        position = found.end()
    if position < len(text):
        elements.append({"type": "text", "text": unescape(text[position:])})
    section = {"type": "rich_text_section", "elements": elements}
    return [{"type": "rich_text", "block_id": secrets.token_urlsafe(3), "elements": [section]}]


def _rich_token(found: re.Match[str]) -> Json:
    sign, entity, url, label = found.groups()
    if sign == "@":
        return {"type": "user", "user_id": entity}
    if sign == "#":
        return {"type": "channel", "channel_id": entity}
    link = {"type": "link", "url": unescape(url)}
    return link | ({"text": unescape(label)} if label else {})


def unescape(text: str) -> str:
    """Slack's three entities back into characters."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
