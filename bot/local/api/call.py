"""One Web API call: its arguments from query string, form or JSON body, and the workspace objects that they name."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from aiohttp import web

from bot.local.model.errors import ApiError, invalid
from bot.local.model.messages import LocalMessage
from bot.local.model.roster import BOT_ID, BOT_USER, Channel, Json
from bot.local.workspace import WorkspaceState

Item = TypeVar("Item")

MAX_PAGE_ITEMS: Final = 1_000  # entries per page of results, even if ``limit`` asks for more


class Call:
    """A call of a method. Raises ``ApiError`` with Slack's name for a fault, and ``ValueError`` for a wrong number."""

    def __init__(self, workspace: WorkspaceState, values: Mapping[str, Any]) -> None:
        self.workspace = workspace
        self.values = values

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def text(self, name: str, default: str = "") -> str:
        """The argument as text."""
        return str(self.values[name]) if name in self else default

    def required_text(self, name: str) -> str:
        """The argument as text that must not be empty."""
        if value := self.text(name):
            return value
        raise invalid([f"missing required field: {name}"])

    def flag(self, name: str) -> bool:
        """Return whether the argument is true."""
        return self.text(name).lower() in ("1", "true")  # JSON's true is "True" as text

    def structure(self, name: str, *, error: str = "invalid_arguments") -> Any:
        """The argument as JSON, which is a string in forms."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ApiError(error) from None

    def objects(self, name: str, *, error: str) -> list[Json]:
        """The argument as a list of JSON objects; empty when absent."""
        if self.values.get(name) in (None, ""):
            return []
        value = self.structure(name, error=error)
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise ApiError(error)
        return value

    def page(self, items: Sequence[Item], usual: int) -> tuple[Sequence[Item], str]:
        """One page of ``items`` (``usual`` many without a ``limit``), and the next cursor (empty at the end)."""
        first = int(base64.b64decode(self.text("cursor")) or 0)
        end = first + min(int(self.text("limit") or 0) or usual, MAX_PAGE_ITEMS)
        # It is opaque, so that apps cannot calculate with it.
        return items[first:end], base64.b64encode(str(end).encode()).decode() if end < len(items) else ""

    def channel(self, name: str = "channel") -> Channel:
        """Return the channel that the argument names. Private places without the app count as missing."""
        channel = self.workspace.roster.channel(self.required_text(name))
        if channel.kind != "channel" and BOT_USER not in channel.members:
            raise ApiError(error="channel_not_found")
        return channel

    def own_channel(self, name: str = "channel") -> Channel:
        """The channel named by the argument. Raises ``ApiError`` if the app is not a member of it."""
        channel = self.channel(name)
        if BOT_USER not in channel.members:
            raise ApiError(error="not_in_channel")
        return channel

    def own_message(self, error: str) -> LocalMessage:
        """The app's message that ``ts`` names. Raises ``ApiError``: ``error`` if it is another's."""
        message = self.workspace.log.visible(self.own_channel().id, self.required_text("ts"))
        if message.bot_id != BOT_ID:
            raise ApiError(error)
        return message

    def thread(self, channel: Channel) -> str:
        """The root of the thread that ``thread_ts`` names, if any."""
        given = self.text("thread_ts")
        return self.workspace.log.root(channel.id, given) if given else ""


Answer = Callable[[Call], Json]


class Methods(dict[str, tuple[Answer, tuple[str, ...]]]):
    """Web API methods by name, with scopes that each suffice. Calling it returns the decorator for a method."""

    def __call__(self, name: str, *scopes: str) -> Callable[[Answer], Answer]:
        """Add the decorated function as the method ``name``."""

        def add(answer: Answer) -> Answer:
            self[name] = answer, scopes
            return answer

        return add


async def read_values(request: web.Request) -> dict[str, Any]:
    """Query string, form fields and JSON body of a request, merged."""
    values: dict[str, Any] = dict(request.query)
    if request.content_type != "application/json":
        form = await request.post()
        return values | {key: value for key, value in form.items() if isinstance(value, str)}
    try:
        body = json.loads(await request.text() or "{}")
    except (ValueError, RecursionError):
        raise ApiError(error="invalid_json") from None
    if not isinstance(body, dict):
        raise ApiError(error="json_not_object")
    return values | body
