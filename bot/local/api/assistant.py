"""``assistant.threads.*``, ``agents.sessions.*`` and ``views.*``: an agent app's views other than messages."""

from typing import Final

from bot.local.agent_views import SESSION_STATES, ThreadId
from bot.local.api.call import Call, Methods
from bot.local.model.errors import ApiError, invalid
from bot.local.model.roster import Json

MAX_PROMPTS: Final = 4  # these four are named on Slack's pages about the methods
MAX_LOADING_MESSAGES: Final = 10
MAX_TITLE_CHARS: Final = 200

methods = Methods()


def _thread(call: Call) -> ThreadId:
    channel = call.own_channel("channel_id")
    return channel.id, call.workspace.log.root(channel.id, call.required_text("thread_ts"))


@methods("assistant.threads.setStatus", "chat:write", "assistant:write")
def _set_status(call: Call) -> Json:
    thread = _thread(call)
    if "status" not in call:  # an empty one removes it
        raise invalid(["missing required field: status"])
    messages = call.structure("loading_messages") or []
    if not isinstance(messages, list) or len(messages) > MAX_LOADING_MESSAGES:
        raise invalid(["no more than 10 items allowed [json-pointer:/loading_messages]"])
    call.workspace.threads.set_status(thread, call.text("status"), list(map(str, messages)))
    return {}


@methods("assistant.threads.setSuggestedPrompts", "assistant:write")
def _set_prompts(call: Call) -> Json:
    channel = call.own_channel("channel_id")
    prompts = call.objects("prompts", error="invalid_arguments")
    if not prompts or len(prompts) > MAX_PROMPTS:
        raise invalid(["between 1 and 4 items allowed [json-pointer:/prompts]"])
    if not all(prompt.get("title") and prompt.get("message") for prompt in prompts):
        raise invalid(["missing required field: title or message [json-pointer:/prompts]"])
    if "thread_ts" not in call:  # as in Slack: with one, an agent app's call silently does nothing
        call.workspace.threads.suggest(channel.id, call.text("title"), prompts)
    return {}


def _title(call: Call) -> str:
    title = call.text("title")
    if len(title) > MAX_TITLE_CHARS:
        raise invalid(["must be less than 201 characters [json-pointer:/title]"])
    return title


@methods("agents.sessions.setStatus", "chat:write", "assistant:write")
def _set_session(call: Call) -> Json:
    status, title = call.required_text("status"), _title(call)
    if status not in SESSION_STATES:
        raise invalid(["must be one of the session states [json-pointer:/status]"])
    channel = call.own_channel("channel_id")
    thread = call.thread(channel)
    call.workspace.threads.set_session((channel.id, thread), status, title)
    return {"session": {"channel_id": channel.id, "thread_ts": thread, "status": status}}


@methods("agents.sessions.rename", "chat:write", "assistant:write")
def _rename_session(call: Call) -> Json:
    call.required_text("title")
    title, session = _title(call), call.workspace.threads.sessions.get(_thread(call))
    if session is None:
        raise ApiError(error="session_not_found")
    session.title = title
    return {}


def _view(call: Call) -> Json:
    view = call.structure("view")
    if not isinstance(view, dict):
        raise invalid(["missing required field: view"])
    return view


@methods("views.open")
def _open_view(call: Call) -> Json:
    views = call.workspace.views
    return {"view": views.show(views.exchange(call.required_text("trigger_id")), _view(call))}


@methods("views.publish")
def _publish_view(call: Call) -> Json:
    member = call.workspace.roster.member(call.required_text("user_id"))
    return {"view": call.workspace.views.publish(member.id, _view(call), call.text("hash"))}
