"""``assistant.threads.*``, ``agents.sessions.*`` and ``views.*``: what an agent app shows besides messages."""

from __future__ import annotations

from typing import Final

from bot.local.api.arguments import Arguments
from bot.local.api.places import member_of, own_channel, thread_root
from bot.local.api.streams import SESSION_STATES
from bot.local.model.agent_threads import ThreadId
from bot.local.model.errors import ApiError, invalid
from bot.local.model.roster import Json
from bot.local.workspace import Workspace

MOST_PROMPTS: Final = 4
MOST_LOADING_MESSAGES: Final = 10
SESSION_TITLE: Final = 200


def _thread(workspace: Workspace, arguments: Arguments) -> ThreadId:
    channel = own_channel(workspace, arguments, "channel_id")
    return channel.id, thread_root(workspace, channel, arguments.required("thread_ts"))


def set_status(workspace: Workspace, arguments: Arguments) -> Json:
    """``assistant.threads.setStatus``: an empty status takes it away."""
    thread = _thread(workspace, arguments)
    if arguments.values.get("status") is None:
        raise invalid(["missing required field: status"])
    messages = arguments.structure("loading_messages") or []
    if not isinstance(messages, list) or len(messages) > MOST_LOADING_MESSAGES:
        raise invalid(["no more than 10 items allowed [json-pointer:/loading_messages]"])
    workspace.threads.set_status(thread, arguments.text("status"), tuple(map(str, messages)))
    return {}


def set_title(workspace: Workspace, arguments: Arguments) -> Json:
    """``assistant.threads.setTitle``."""
    workspace.threads.rename(_thread(workspace, arguments), arguments.required("title"))
    return {}


def set_prompts(workspace: Workspace, arguments: Arguments) -> Json:
    """``assistant.threads.setSuggestedPrompts``: with a ``thread_ts`` an agent app's call does nothing, in silence."""
    channel = own_channel(workspace, arguments, "channel_id")
    prompts = arguments.objects("prompts", error="invalid_arguments")
    if not prompts or len(prompts) > MOST_PROMPTS:
        raise invalid(["between 1 and 4 items allowed [json-pointer:/prompts]"])
    if not all(prompt.get("title") and prompt.get("message") for prompt in prompts):
        raise invalid(["missing required field: title or message [json-pointer:/prompts]"])
    if "thread_ts" not in arguments:
        workspace.threads.suggest(channel.id, arguments.text("title"), prompts)
    return {}


def set_session(workspace: Workspace, arguments: Arguments) -> Json:
    """``agents.sessions.setStatus``: makes the session when there is none."""
    status, title = arguments.required("status"), arguments.text("title")
    if status not in SESSION_STATES:
        raise invalid(["must be one of the session states [json-pointer:/status]"])
    if len(title) > SESSION_TITLE:
        raise invalid(["must be less than 201 characters [json-pointer:/title]"])
    channel = own_channel(workspace, arguments, "channel_id")
    given = arguments.text("thread_ts")
    thread = (channel.id, thread_root(workspace, channel, given) if given else "")
    workspace.threads.set_session(thread, status, title)
    answer: Json = {"session": {"channel_id": thread[0], "thread_ts": thread[1], "status": status}}
    if "agent_session_stopped" not in workspace.setup.subscriptions:
        answer["warning"] = "missing_agent_session_stopped_event_subscription"
    return answer


def rename_session(workspace: Workspace, arguments: Arguments) -> Json:
    """``agents.sessions.rename``."""
    title = arguments.required("title")
    if len(title) > SESSION_TITLE:
        raise invalid(["must be less than 201 characters [json-pointer:/title]"])
    thread = _thread(workspace, arguments)
    if thread not in workspace.threads.sessions:
        raise ApiError(error="session_not_found")
    workspace.threads.rename(thread, title)
    return {}


def _view(arguments: Arguments) -> Json:
    view = arguments.structure("view")
    if not isinstance(view, dict):
        raise invalid(["missing required field: view"])
    return view


def open_view(workspace: Workspace, arguments: Arguments) -> Json:
    """``views.open``."""
    user = workspace.views.exchange(arguments.required("trigger_id"))
    return {"view": workspace.views.show(user, _view(arguments))}


def push_view(workspace: Workspace, arguments: Arguments) -> Json:
    """``views.push``: on top of the modal that is on screen."""
    user = workspace.views.exchange(arguments.required("trigger_id"))
    parents = [view_id for view_id, one in workspace.views.open.items() if one.user == user]
    if not parents:
        raise ApiError(error="not_found")
    return {"view": workspace.views.show(user, _view(arguments), parent=parents[-1])}


def update_view(workspace: Workspace, arguments: Arguments) -> Json:
    """``views.update``."""
    view_id, external_id = arguments.text("view_id"), arguments.text("external_id")
    if not view_id and not external_id:
        raise invalid(["missing required field: view_id"])
    return {"view": workspace.views.update(view_id, external_id, _view(arguments), arguments.text("hash"))}


def publish_view(workspace: Workspace, arguments: Arguments) -> Json:
    """``views.publish``: a person's App Home."""
    member = member_of(workspace, arguments.required("user_id"))
    return {"view": workspace.views.publish(member.id, _view(arguments), arguments.text("hash"))}


METHODS: Final = {
    "assistant.threads.setStatus": set_status,
    "assistant.threads.setTitle": set_title,
    "assistant.threads.setSuggestedPrompts": set_prompts,
    "agents.sessions.setStatus": set_session,
    "agents.sessions.rename": rename_session,
    "views.open": open_view,
    "views.push": push_view,
    "views.update": update_view,
    "views.publish": publish_view,
}
