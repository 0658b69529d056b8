"""``auth.*``, ``apps.*``, ``users.*``, ``usergroups.*``, ``files.*``: who is who, and what they shared."""

from __future__ import annotations

from bot.local.api.call import Call, Methods
from bot.local.model.errors import ApiError
from bot.local.model.roster import APP_ID, BOT_ID, BOT_USER, TEAM_ID, Json

methods = Methods()


@methods("auth.test")
def _auth_test(call: Call) -> Json:
    setup = call.workspace.setup
    return {
        "url": f"{call.workspace.url}/",
        "team": setup.name,
        "user": call.workspace.roster.members[BOT_USER].handle,
        "team_id": setup.team,
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
    member = call.workspace.roster.member(call.required("user"))
    # Its own workspace's id, unless the member comes from elsewhere.
    home = {"team_id": call.workspace.setup.team} if member.team == TEAM_ID else {}
    locale = {"locale": member.locale} if call.flag("include_locale") else {}
    return {"user": member.payload() | home | locale}


@methods("usergroups.list", "usergroups:read")
def _user_groups(call: Call) -> Json:
    shared = {"team_id": TEAM_ID, "is_usergroup": True}
    groups = call.workspace.roster.groups
    return {"usergroups": [{"id": key, "name": name, "handle": name, **shared} for key, name in groups.items()]}


@methods("files.info", "files:read")
def _file_info(call: Call) -> Json:
    stored = call.workspace.files.get(call.required("file"))
    if stored is None:
        raise ApiError(error="file_not_found")
    return {"file": stored.payload, "comments": [], "response_metadata": {"next_cursor": ""}}
