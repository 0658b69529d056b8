from typing import Any

from bot.local.model.limits import Strictness
from bot.local.page.people import PersonActions
from bot.local.workspace import WorkspaceState
from tests.support.local_echo import CHAT, HELP, YOU, call, idle, modal, refusal


async def test_the_status_shows_until_the_app_speaks_in_the_thread() -> None:
    workspace = idle()
    root = PersonActions(workspace).post(YOU, HELP, "question")
    status: dict[str, Any] = {"thread_ts": root, "status": "is searching", "loading_messages": ["a", "b"]}
    call(workspace, "assistant.threads.setStatus", channel_id=HELP, **status)
    assert workspace.threads.status_payloads() == [{"channel": HELP, **status}]
    call(workspace, "chat.postMessage", channel="C0GENERAL", text="elsewhere")
    assert workspace.threads.status_payloads()
    call(workspace, "chat.postMessage", channel=HELP, thread_ts=root, text="answer")
    assert not workspace.threads.status_payloads()


async def test_status_and_session_are_one_state_that_only_their_thread_ends() -> None:
    workspace = idle()
    ts = PersonActions(workspace).post(YOU, CHAT, "question")
    where = {"channel_id": CHAT, "thread_ts": ts}
    call(workspace, "assistant.threads.setStatus", **where, status="is searching")
    call(workspace, "chat.postMessage", channel=CHAT, text="a card of its own")
    assert workspace.threads.status_payloads()
    states = [workspace.threads.sessions[(CHAT, ts)].status]
    call(workspace, "assistant.threads.setStatus", **where, status="")
    states.append(workspace.threads.sessions[(CHAT, ts)].status)
    call(workspace, "assistant.threads.setStatus", **where, status="is reading")
    call(workspace, "agents.sessions.setStatus", **where, status="active", title="Releases")
    states.append(workspace.threads.sessions[(CHAT, ts)].status)
    assert (states, workspace.threads.status_payloads()) == (["processing", "active", "active"], [])


async def test_a_status_disappears_by_itself_or_when_set_empty() -> None:
    workspace = WorkspaceState(strictness=Strictness(status_seconds=0.01))
    ts = PersonActions(workspace).post(YOU, HELP, "question")
    call(workspace, "assistant.threads.setStatus", channel_id=HELP, thread_ts=ts, status="is searching")
    await workspace.feed.wait_for(lambda: not workspace.threads.statuses)
    lasting = idle()
    ts = PersonActions(lasting).post(YOU, HELP, "question")
    call(lasting, "assistant.threads.setStatus", channel_id=HELP, thread_ts=ts, status="is searching")
    call(lasting, "assistant.threads.setStatus", channel_id=HELP, thread_ts=ts, status="")
    assert not lasting.threads.status_payloads()
    call(lasting, "assistant.threads.setStatus", channel_id=HELP, thread_ts=ts, status="again")
    lasting.threads.close()


def test_suggested_prompts_apply_to_the_chat_and_are_ignored_for_a_thread() -> None:
    workspace = idle()
    prompts = [{"title": "Try", "message": "How?"}]
    method = "assistant.threads.setSuggestedPrompts"
    call(workspace, method, channel_id=CHAT, prompts=prompts, thread_ts="1.0")
    assert not workspace.threads.prompts
    call(workspace, method, channel_id=CHAT, prompts=prompts, title="Ask")
    assert workspace.threads.prompts == {CHAT: {"title": "Ask", "prompts": prompts}}


def test_a_trigger_opens_a_modal_only_once_and_in_time() -> None:
    workspace = idle()
    trigger = workspace.views.new_trigger(YOU)
    view = call(workspace, "views.open", trigger_id=trigger, view=modal())["view"]
    assert view["type"] == "modal"
    assert refusal(workspace, "views.open", trigger_id=trigger, view=modal()) == "exchanged_trigger_id"
    assert refusal(workspace, "views.open", trigger_id="nonsense", view=modal()) == "invalid_trigger_id"
    assert refusal(workspace, "views.open", trigger_id=workspace.views.new_trigger(YOU)) == "invalid_arguments"
    late = WorkspaceState(strictness=Strictness(trigger_seconds=-1))
    assert refusal(late, "views.open", trigger_id=late.views.new_trigger(YOU), view=modal()) == "expired_trigger_id"


def test_the_home_is_published_per_user_and_keeps_its_id() -> None:
    workspace = idle()
    home = {"type": "home", "blocks": [{"type": "divider"}]}
    first = call(workspace, "views.publish", user_id=YOU, view=home)["view"]
    again = call(workspace, "views.publish", user_id=YOU, view=home)["view"]
    assert again["id"] == first["id"]
    assert refusal(workspace, "views.publish", user_id="U404", view=home) == "user_not_found"
    PersonActions(workspace).open_home()
    event = workspace.deliveries.log[-1].event
    assert (event["type"], event["tab"], event["view"]["id"]) == ("app_home_opened", "home", first["id"])
    PersonActions(workspace).open_home(tab="messages")
    assert "view" not in workspace.deliveries.log[-1].event
