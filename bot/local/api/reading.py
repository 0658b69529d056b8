"""Reading methods: people, channels and their messages, shared files, search."""

import re
from collections.abc import Sequence
from typing import Final

from bot.local.api.call import MAX_PAGE_ITEMS, Call, Methods
from bot.local.model.errors import ApiError
from bot.local.model.messages import LocalMessage
from bot.local.model.roster import APP_ID, BOT_ID, BOT_USER, TEAM_ID, Channel, Json
from bot.local.workspace import SEARCH_SCOPE, WorkspaceState

HISTORY: Final = ("channels:history", "groups:history", "im:history", "mpim:history")
LISTING: Final = ("channels:read", "groups:read", "im:read", "mpim:read")
_KINDS: Final = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}

# Slack's own limit for a page of results.
MAX_FOUND: Final = 20
_WORD: Final = re.compile(r"\w{4,}")  # minimum letters: longer than "the" and "and"

methods = Methods()


def _in_window(message: LocalMessage, call: Call) -> bool:
    ts, oldest, latest = float(message.ts), float(call.text("oldest") or 0), float(call.text("latest") or "inf")
    return oldest <= ts <= latest if call.flag("inclusive") else oldest < ts < latest


def _page_of_messages(call: Call, messages: Sequence[LocalMessage], usual: int) -> Json:
    found, following = call.page(messages, usual)
    metadata = call.flag("include_all_metadata")
    return {
        "messages": [call.workspace.log.payload_of(one, metadata=metadata) for one in found],
        "has_more": bool(following),
        "response_metadata": {"next_cursor": following},
    }


@methods("conversations.history", *HISTORY)
def _history(call: Call) -> Json:
    timeline = call.workspace.log.timeline(call.own_channel().id)
    newest_first = [one for one in reversed(timeline) if _in_window(one, call)]
    return _page_of_messages(call, newest_first, 100)


@methods("conversations.replies", *HISTORY)
def _replies(call: Call) -> Json:
    """Return replies, oldest first. Each page has the thread's first message; a reply's ``ts`` gives only it."""
    channel, ts, log = call.own_channel(), call.required_text("ts"), call.workspace.log
    if log.root(channel.id, ts) != ts:
        return _page_of_messages(call, [log.visible(channel.id, ts)], MAX_PAGE_ITEMS)
    found = [one for one in log.thread(channel.id, ts) if one.ts == ts or _in_window(one, call)]
    return _page_of_messages(call, found, MAX_PAGE_ITEMS)


@methods("conversations.info", *LISTING)
def _info(call: Call) -> Json:
    return {"channel": call.channel().payload()}


@methods("conversations.list", *LISTING)
def _list(call: Call) -> Json:
    channels = call.workspace.roster.channels.values()
    return _page_of_channels(call, [one for one in channels if one.kind == "channel" or BOT_USER in one.members])


@methods("users.conversations", *LISTING)
def _user_conversations(call: Call) -> Json:
    both = {call.workspace.roster.member(call.text("user") or BOT_USER).id, BOT_USER}
    return _page_of_channels(call, [one for one in call.workspace.roster.channels.values() if both <= one.members])


def _page_of_channels(call: Call, channels: Sequence[Channel]) -> Json:
    kinds = {_KINDS[one.strip()] for one in call.text("types", "public_channel").split(",")}
    found, following = call.page([one for one in channels if one.kind in kinds], 100)
    return {"channels": [one.payload() for one in found], "response_metadata": {"next_cursor": following}}


@methods("assistant.search.context", SEARCH_SCOPE)
def _search(call: Call) -> Json:
    """Messages in public channels that share a word with the query, newest first. An event contains the token."""
    workspace, words = call.workspace, set(_WORD.findall(call.required_text("query").casefold()))
    if call.text("action_token") not in workspace.action_tokens:
        raise ApiError(error="invalid_action_token")
    public = [channel for channel in workspace.roster.channels.values() if channel.kind == "channel"]
    said = [message for channel in public for message in workspace.log.all_in(channel.id)]
    found = [message for message in said if not words.isdisjoint(_WORD.findall(message.text.casefold()))]
    found.sort(key=lambda message: float(message.ts), reverse=True)
    shown = [_result(workspace, message) for message in found[: min(int(call.text("limit") or MAX_FOUND), MAX_FOUND)]]
    return {"results": {"messages": shown}, "response_metadata": {"next_cursor": ""}}


def _result(workspace: WorkspaceState, message: LocalMessage) -> Json:
    author = workspace.roster.members.get(message.user)
    return {
        "author_user_id": message.user,
        "author_name": author.handle if author else message.bot_name,
        "team_id": workspace.team,
        "channel_id": message.channel,
        "channel_name": workspace.roster.channels[message.channel].name,
        "message_ts": message.ts,
        "content": message.text,
        "is_author_bot": bool(message.bot_id),
        "permalink": workspace.permalink(message),
    }


@methods("auth.test")
def _auth_test(call: Call) -> Json:
    workspace = call.workspace
    return {
        "url": f"{workspace.url}/",
        "team": workspace.name,
        "user": workspace.roster.members[BOT_USER].handle,
        "team_id": workspace.team,
        "user_id": BOT_USER,
        "bot_id": BOT_ID,
        "is_enterprise_install": False,
    }


@methods("apps.connections.open")
def _open_connection(call: Call) -> Json:
    host = call.workspace.url.removeprefix("http://")
    return {"url": f"ws://{host}/link/?ticket={call.workspace.sockets.new_ticket()}&app_id={APP_ID}"}


@methods("users.info", "users:read")
def _user_info(call: Call) -> Json:
    member = call.workspace.roster.member(call.required_text("user"))
    # The workspace's own id, unless the member comes from elsewhere.
    home = {"team_id": call.workspace.team} if member.team == TEAM_ID else {}
    locale = {"locale": member.locale} if call.flag("include_locale") else {}
    return {"user": member.payload() | home | locale}


@methods("usergroups.list", "usergroups:read")
def _user_groups(call: Call) -> Json:
    shared = {"team_id": TEAM_ID, "is_usergroup": True}
    users = call.workspace.roster.group_members if call.flag("include_users") else {}
    groups = [
        {"id": key, "name": name, "handle": name, **shared} | ({"users": sorted(users[key])} if key in users else {})
        for key, name in call.workspace.roster.groups.items()
    ]
    return {"usergroups": groups}


@methods("files.info", "files:read")
def _file_info(call: Call) -> Json:
    stored = call.workspace.files.get(call.required_text("file"))
    if stored is None:
        raise ApiError(error="file_not_found")
    return {"file": stored.payload, "comments": [], "response_metadata": {"next_cursor": ""}}
