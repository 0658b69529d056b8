"""Builds the payloads Slack sends to an app: message events, their envelope, and the composer's blocks for a text."""

import re
import secrets
import time
from typing import Final

from agent.knowledge.slack_message import unescape_wire
from bot.local.model.roster import APP_ID, BOT_USER, Channel, Json

DOMAIN: Final = "local"
_TOKEN: Final = re.compile(r"(<[@#][A-Z0-9]+(?:\|[^>]*)?>|<[^<>@#!|][^<>|]*(?:\|[^<>]*)?>)")


def identifier(prefix: str) -> str:
    """A fresh id such as ``Ev0A1B2C3D4E``."""
    return f"{prefix}0{secrets.token_hex(5).upper()}"


def envelope(event: Json, channel: Channel, team: str) -> Json:
    """The outer payload of an Events API delivery."""
    install = {"user_id": BOT_USER, "is_bot": True, "is_enterprise_install": False}
    return {
        "team_id": team,
        "api_app_id": APP_ID,
        "event": event,
        "type": "event_callback",
        "event_id": identifier("Ev"),
        "event_time": int(time.time()),
        "authorizations": [{"enterprise_id": None, "team_id": team, **install}],
        "is_ext_shared_channel": channel.is_ext_shared,
    }


def message_event(shown: Json, channel: Channel) -> Json:
    """A ``message`` event for a new message, made from its API payload."""
    return {**shown, "channel": channel.id, "event_ts": shown["ts"], "channel_type": channel.kind}


def mention_event(shown: Json, channel: Channel) -> Json:
    """The ``app_mention`` twin: the same message without channel type, files and subtype."""
    # Slack often lists the files only in the message event (decision 8).
    left_out = ("files", "subtype", "reply_count", "reply_users", "latest_reply")
    kept = {key: value for key, value in shown.items() if key not in left_out}
    return {**kept, "type": "app_mention", "channel": channel.id, "event_ts": shown["ts"]}


def with_block_ids(blocks: list[Json]) -> list[Json]:
    """Return the blocks, each with an id: Slack generates one if the app gave none."""
    return [{**block, "block_id": block.get("block_id") or secrets.token_urlsafe(4)} for block in blocks]


def rich_text(text: str) -> list[Json]:
    """The ``rich_text`` block that Slack's composer adds to what a person typed."""
    elements = [_rich_element(part) for part in _TOKEN.split(text) if part]
    return with_block_ids([{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}])


def _rich_element(part: str) -> Json:
    if not _TOKEN.fullmatch(part):
        return {"type": "text", "text": unescape_wire(part)}
    target, _, label = part[1:-1].partition("|")
    if target.startswith("@"):
        return {"type": "user", "user_id": target[1:]}
    if target.startswith("#"):
        return {"type": "channel", "channel_id": target[1:]}
    return {"type": "link", "url": unescape_wire(target)} | ({"text": unescape_wire(label)} if label else {})
