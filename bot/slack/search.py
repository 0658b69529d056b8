"""Slack's real-time search for one question, with the question's own action token. Only public channels."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from agent.json_data import objects, string
from agent.knowledge.slack_message import plain_text
from agent.tools.builtin.knowledge import SLACK_SEARCH, SLACK_SEARCH_ORIGIN, SlackSearchFailed
from agent.tools.tool import Tool, ToolResult, parameter, spec_of
from bot.slack.client import try_token
from bot.slack.manifest import SEARCH_SCOPE
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed, SlackCalls
from verification.types import Source

DEFAULT_MESSAGES: Final = parameter(SLACK_SEARCH, "limit")["default"]
METHOD: Final = "assistant.search.context"  # the SDK has no method for it (3.47)
SEARCH_TIMEOUT_S: Final = 10.0
GRANT_TIMEOUT_S: Final = 3.0
MAX_MESSAGE_CHARS: Final = 4_000
GRANT_TTL_S: Final = 3600.0  # of Slack's reply True if the workspace grants it
OUTAGE_TTL_S: Final = 60.0
_NOT_GRANTED: Final = frozenset(
    ("missing_scope", "access_denied", "unknown_method", "not_allowed_token_type", "team_access_not_granted")
)


@dataclass(slots=True, eq=False)
class SlackSearch:
    """Searches one workspace."""

    calls: SlackCalls
    clock: Callable[[], float] = time.monotonic
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _granted: bool = field(default=False, init=False)
    _known_until: float = field(default=0.0, init=False)

    async def tools(self, incoming: Incoming) -> tuple[Tool, ...]:
        """Return the tool for a question; none unless the workspace granted the search, and none in an outage."""
        async with self._asking:  # concurrent callers wait for one call
            if self.clock() >= self._known_until:
                tried = await try_token(self.calls.client, GRANT_TIMEOUT_S)
                ttl_s = GRANT_TTL_S if tried.state == "accepted" else OUTAGE_TTL_S
                self._granted, self._known_until = SEARCH_SCOPE in tried.scopes, self.clock() + ttl_s
        return (SlackSearchTool(self, incoming),) if self._granted else ()

    async def find(self, incoming: Incoming, query: str, limit: int) -> list[Source]:
        """Return at most ``limit`` messages for a query. Raises ``SlackSearchFailed``."""
        body = {
            "query": query,
            "action_token": incoming.action_token,  # a bot may search only with the token of an event
            "content_types": ["messages"],
            "channel_types": ["public_channel"],  # content of a private place must stay there
            "limit": limit,
        }
        try:
            reply = await self.calls.call_once(METHOD, body, timeout_s=SEARCH_TIMEOUT_S)
        except DeliveryFailed as failure:
            if failure.reason not in _NOT_GRANTED:
                raise SlackSearchFailed(why="Slack's search gave no answer.") from failure
            self._granted, self._known_until = False, self.clock() + GRANT_TTL_S
            raise SlackSearchFailed(why="The workspace does not let Orion search.") from failure
        evidence = [one for one in objects(reply, "results", "messages") if _is_evidence(one, incoming)]
        return [
            Source(
                id=0,
                title=" in #".join(
                    filter(None, (string(one, "author_name") or "Someone", string(one, "channel_name")))
                ),
                url=string(one, "permalink"),
                text=plain_text(string(one, "content"))[:MAX_MESSAGE_CHARS],
                origin=SLACK_SEARCH_ORIGIN,
                updated_at=_time(string(one, "message_ts")),
            )
            for one in evidence[:limit]
        ]


@dataclass(frozen=True)
class SlackSearchTool:
    """The tool for one question: it searches with that question's permissions."""

    search: SlackSearch
    incoming: Incoming
    spec = spec_of(SLACK_SEARCH)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Search, and return one source per message."""
        limit = int(arguments.get("limit", DEFAULT_MESSAGES))
        messages = await self.search.find(self.incoming, str(arguments["query"]), limit)
        return ToolResult(
            content="\n".join(source.title for source in messages) or "No message has these words.",
            sources=tuple(messages),
            hints=() if messages else ("Try other or fewer words.",),
        )


def _is_evidence(message: Mapping[str, Any], incoming: Incoming) -> bool:
    # Leave out the question itself, which proves nothing, and bots, which repeat each other.
    here = (string(message, "channel_id"), string(message, "message_ts")) == (incoming.thread.channel, incoming.ts)
    linked = string(message, "permalink").startswith(("https://", "http://"))
    return linked and not here and not message.get("is_author_bot") and bool(string(message, "content").strip())


def _time(ts: str) -> str:
    seconds = ts.partition(".")[0]
    if not seconds.isdecimal() or len(seconds) > 10:  # noqa: PLR2004 - digits of a date before the year 2286
        return ""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat(timespec="seconds")
