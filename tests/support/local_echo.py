"""The near end of the workspace's own tests: a plain Bolt app that knows nothing of Orion, and quick ways to call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.local.api.call import Call
from bot.local.api.router import METHODS
from bot.local.model.errors import ApiError
from bot.local.model.limits import LENIENT
from bot.local.server import LocalWorkspace
from bot.local.workspace import WorkspaceState

MENTION = "<@U0ORION>"
YOU = "U0YOU"
HELP = "C0HELP"
CHAT = "D0ORION"


def idle() -> WorkspaceState:
    """A workspace without a server."""
    return WorkspaceState(strictness=LENIENT)


def call(workspace: WorkspaceState, method: str, **arguments: Any) -> dict[str, Any]:
    """A Web API method as the server runs it once the token was accepted."""
    return METHODS[method][0](Call(workspace, arguments))


def refusal(workspace: WorkspaceState, method: str, **arguments: Any) -> str:
    """Slack's name for why a method call is refused."""
    with pytest.raises(ApiError) as caught:
        call(workspace, method, **arguments)
    return caught.value.error


def client_of(workspace: LocalWorkspace, token: str | None = None) -> AsyncWebClient:
    """Slack's own client against the workspace."""
    return AsyncWebClient(token=token or workspace.bot_token, base_url=workspace.api_url)


def modal(title: str = "Details") -> dict[str, Any]:
    """A modal that asks for a name."""
    return {
        "type": "modal",
        "callback_id": "details",
        "title": {"type": "plain_text", "text": title},
        "submit": {"type": "plain_text", "text": "Save"},
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": "*Why* this answer"}},
            {
                "type": "input",
                "block_id": "name",
                "label": {"type": "plain_text", "text": "Name"},
                "element": {"type": "plain_text_input", "action_id": "value"},
            },
        ],
    }


def answer_blocks(text: str) -> list[dict[str, Any]]:
    """A text with a button."""
    button = {"type": "button", "action_id": "open", "text": {"type": "plain_text", "text": "Details"}}
    return [{"type": "section", "text": {"type": "mrkdwn", "text": text}}, {"type": "actions", "elements": [button]}]


class EchoApp:
    """Answers each question with its own words, in the thread; shows a status before, opens a modal on a click."""

    def __init__(self, workspace: LocalWorkspace) -> None:
        self.app = AsyncApp(client=client_of(workspace))
        self.events: list[dict[str, Any]] = []
        self.bodies: list[dict[str, Any]] = []
        self.names: list[str] = []
        self.app.event("app_mention")(self._mention)
        self.app.event("message")(self._message)
        self.app.event("app_home_opened")(self._home)
        self.app.event("agent_session_stopped")(self._note)
        self.app.action("open")(self._open)
        self.app.view("details")(self._submit)

    async def _mention(self, event: dict[str, Any], client: AsyncWebClient, set_status: Any) -> None:
        self.events.append(event)
        thread = event.get("thread_ts") or event["ts"]
        await set_status("is thinking", loading_messages=["Looking it up…", "Checking…"])
        await self._answer(client, event, thread)

    async def _answer(self, client: AsyncWebClient, event: dict[str, Any], thread: str | None) -> None:
        text = f"You said: {event['text'].replace(MENTION, '').strip()}"
        payload = {"turn_id": "turn-1", "verified": True, "question_ts": event["ts"]}
        metadata = {"event_type": "orion_answer", "event_payload": payload}
        where = {"channel": event["channel"], "thread_ts": thread}
        await client.chat_postMessage(**where, text=text, blocks=answer_blocks(text), metadata=metadata)

    async def _message(self, event: dict[str, Any], client: AsyncWebClient) -> None:
        self.events.append(event)
        if event.get("channel_type") == "im" and not event.get("subtype"):
            await self._answer(client, event, event.get("thread_ts"))

    async def _home(self, event: dict[str, Any], client: AsyncWebClient) -> None:
        self.events.append(event)
        header = {"type": "header", "text": {"type": "plain_text", "text": "What I know"}}
        await client.views_publish(user_id=event["user"], view={"type": "home", "blocks": [header]})

    async def _note(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    async def _open(self, ack: Any, body: dict[str, Any], client: AsyncWebClient) -> None:
        await ack()
        self.bodies.append(body)
        await client.views_open(trigger_id=body["trigger_id"], view=modal())

    async def _submit(self, ack: Any, view: dict[str, Any], body: dict[str, Any]) -> None:
        self.bodies.append(body)
        name = view["state"]["values"]["name"]["value"]["value"]
        if not name:
            await ack(response_action="errors", errors={"name": "Please give a name."})
            return
        self.names.append(name)
        await ack()


@asynccontextmanager
async def echoing(workspace: LocalWorkspace) -> AsyncIterator[EchoApp]:
    """An echo app connected over Socket Mode."""
    echo = EchoApp(workspace)
    handler = AsyncSocketModeHandler(echo.app, workspace.app_token, ping_interval=1)
    await handler.connect_async()  # type: ignore[no-untyped-call]  # Bolt leaves it untyped
    try:
        await workspace.wait_for(lambda: workspace.connections)
        yield echo
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]  # likewise
