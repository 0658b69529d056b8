"""``assistant.search.context``: real-time search in public channels, with the action token of an event."""

from __future__ import annotations

import re
from typing import Final

from bot.local.api.call import Call, Methods
from bot.local.model.errors import ApiError
from bot.local.model.messages import Message
from bot.local.model.roster import Json
from bot.local.workspace import SEARCH_SCOPE, Workspace

# Slack's own limit for a page of results.
MOST: Final = 20
_WORD: Final = re.compile(r"\w{4,}")  # longer than "the" and "and"

methods = Methods()


@methods("assistant.search.context", SEARCH_SCOPE)
def _search(call: Call) -> Json:
    """Messages that share a word with the query, the newest first."""
    workspace, words = call.workspace, _words(call.required("query"))
    if call.text("action_token") not in workspace.action_tokens:
        raise ApiError(error="invalid_action_token")
    public = [channel for channel in workspace.roster.channels.values() if channel.kind == "channel"]
    said = [message for channel in public for message in workspace.log.all_in(channel.id)]
    found = [message for message in said if words & _words(message.text)]
    found.sort(key=lambda message: float(message.ts), reverse=True)
    shown = [_shown(workspace, message) for message in found[: min(call.number("limit", MOST), MOST)]]
    return {"results": {"messages": shown}, "response_metadata": {"next_cursor": ""}}


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _shown(workspace: Workspace, message: Message) -> Json:
    author = workspace.roster.members.get(message.user)
    return {
        "author_user_id": message.user,
        "author_name": author.handle if author else message.bot_name,
        "team_id": workspace.setup.team,
        "channel_id": message.channel,
        "channel_name": workspace.roster.channels[message.channel].name,
        "message_ts": message.ts,
        "content": message.text,
        "is_author_bot": bool(message.bot_id),
        "permalink": f"{workspace.url}/archives/{message.channel}/p{message.ts.replace('.', '')}",
    }
