"""``auth.*``, ``apps.*``, ``team.*``, ``users.*``, ``files.*``: who is who, and what they shared."""

from __future__ import annotations

from bot.local.api.call import Call, Methods
from bot.local.events.payloads import DOMAIN
from bot.local.model.errors import ApiError
from bot.local.model.roster import APP_ID, BOT_ID, BOT_USER, CREATED, TEAM_ID, Json, Member

methods = Methods()


@methods("api.test")
def _api_test(call: Call) -> Json:
    """Echoes its arguments, or fails with the error it is asked for."""
    if error := call.text("error"):
        raise ApiError(error)
    return {"args": {key: value for key, value in call.values.items() if key != "token"}}


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


@methods("team.info", "team:read")
def _team_info(call: Call) -> Json:
    setup, url = call.workspace.setup, f"{call.workspace.url}/"
    return {"team": {"id": setup.team, "name": setup.name, "domain": DOMAIN, "url": url, "email_domain": ""}}


def _described(call: Call, member: Member) -> Json:
    """The user object: of this workspace, unless the member comes from elsewhere."""
    home = {"team_id": call.workspace.setup.team} if member.team == TEAM_ID else {}
    return member.payload() | home


@methods("users.info", "users:read")
def _user_info(call: Call) -> Json:
    member = call.workspace.roster.member(call.required("user"))
    locale = {"locale": member.locale} if call.flag("include_locale") else {}
    return {"user": _described(call, member) | locale}


@methods("users.list", "users:read")
def _user_list(call: Call) -> Json:
    found, following = call.page(list(call.workspace.roster.members.values()), 1_000)
    return {
        "members": [_described(call, member) for member in found],
        "cache_ts": CREATED,
        "response_metadata": {"next_cursor": following},
    }


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
