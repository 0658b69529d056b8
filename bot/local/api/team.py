"""``auth.*``, ``apps.*``, ``team.*``, ``users.*``, ``bots.*``, ``files.*``: who is who, and what they shared."""

from __future__ import annotations

from typing import Final

from bot.local.api.arguments import Arguments
from bot.local.api.conversations import page
from bot.local.api.places import member_of
from bot.local.events.payloads import DOMAIN
from bot.local.model.errors import ApiError
from bot.local.model.roster import APP_ID, BOT_ID, BOT_USER, CREATED, TEAM_ID, Json, Member
from bot.local.workspace import Workspace


def api_test(workspace: Workspace, arguments: Arguments) -> Json:  # noqa: ARG001 - one signature for all methods
    """``api.test``: echoes its arguments, or fails with the error it is asked for."""
    if error := arguments.text("error"):
        raise ApiError(error)
    return {"args": {key: value for key, value in arguments.values.items() if key != "token"}}


def auth_test(workspace: Workspace, arguments: Arguments) -> Json:  # noqa: ARG001 - one signature for all methods
    """``auth.test``."""
    return {
        "url": f"{workspace.url}/",
        "team": workspace.setup.name,
        "user": workspace.roster.members[BOT_USER].handle,
        "team_id": workspace.setup.team,
        "user_id": BOT_USER,
        "bot_id": BOT_ID,
        "is_enterprise_install": False,
    }


def open_connection(workspace: Workspace, arguments: Arguments) -> Json:  # noqa: ARG001 - one signature for all methods
    """``apps.connections.open``: a WebSocket URL that works once."""
    host = workspace.url.removeprefix("http://")
    ticket = workspace.sockets.new_ticket()
    return {"url": f"ws://{host}/link/?ticket={ticket}&app_id={APP_ID}"}


def team_info(workspace: Workspace, arguments: Arguments) -> Json:  # noqa: ARG001 - one signature for all methods
    """``team.info``."""
    return {
        "team": {
            "id": workspace.setup.team,
            "name": workspace.setup.name,
            "domain": DOMAIN,
            "url": f"{workspace.url}/",
            "email_domain": "",
        }
    }


def _described(workspace: Workspace, member: Member) -> Json:
    """The user object: of this workspace, unless the member comes from elsewhere."""
    home = {"team_id": workspace.setup.team} if member.team == TEAM_ID else {}
    return {**member.payload(), **home}


def user_info(workspace: Workspace, arguments: Arguments) -> Json:
    """``users.info``."""
    member = member_of(workspace, arguments.required("user"))
    locale = {"locale": member.locale} if arguments.flag("include_locale") else {}
    return {"user": {**_described(workspace, member), **locale}}


def user_groups(workspace: Workspace, arguments: Arguments) -> Json:  # noqa: ARG001 - one signature for all methods
    """``usergroups.list``."""
    return {"usergroups": [group.payload() for group in workspace.roster.groups.values()]}


def user_list(workspace: Workspace, arguments: Arguments) -> Json:
    """``users.list``."""
    found, following = page(list(workspace.roster.members.values()), arguments, 1_000)
    return {
        "members": [_described(workspace, member) for member in found],
        "cache_ts": CREATED,
        "response_metadata": {"next_cursor": following},
    }


def file_info(workspace: Workspace, arguments: Arguments) -> Json:
    """``files.info``."""
    stored = workspace.files.get(arguments.required("file"))
    if stored is None:
        raise ApiError(error="file_not_found")
    return {"file": stored.payload, "comments": [], "response_metadata": {"next_cursor": ""}}


METHODS: Final = {
    "api.test": api_test,
    "auth.test": auth_test,
    "apps.connections.open": open_connection,
    "team.info": team_info,
    "users.info": user_info,
    "users.list": user_list,
    "usergroups.list": user_groups,
    "files.info": file_info,
}
