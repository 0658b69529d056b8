"""``slack_search``: public channels, through Slack's real-time search. Only the links of its results are kept."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.tools.builtin.specs import parameter, spec_of
from agent.tools.tool import ToolFailed, ToolResult
from verification.types import Source

SLACK_SEARCH: Final = "slack_search"
ORIGIN: Final = f"tool:{SLACK_SEARCH}"
DEFAULT_MESSAGES: Final = parameter(SLACK_SEARCH, "limit")["default"]
MAX_MESSAGE_CHARS: Final = 4_000


class SlackSearchFailed(ToolFailed):
    """Slack's search failed."""

    hints = ("Go on without it.",)
    away = "slack"


Find = Callable[[str, int], Awaitable[Sequence[Source]]]
"""Search for words and return at most that many messages. Raises ``SlackSearchFailed``."""


@dataclass(frozen=True)
class SlackSearchTool:
    """The tool for one question: ``find`` searches with what that question allows."""

    find: Find
    spec = spec_of(SLACK_SEARCH)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Search. Returns one source per message."""
        messages = await self.find(str(arguments["query"]), int(arguments.get("limit", DEFAULT_MESSAGES)))
        return ToolResult(
            content="\n".join(source.title for source in messages) or "No message has these words.",
            sources=tuple(messages),
            hints=() if messages else ("Try other or fewer words.",),
        )


def message_source(text: str, permalink: str, *, author: str, channel: str, at: str) -> Source:
    """Return a message as a source. ``at`` is an ISO 8601 timestamp or empty."""
    title = f"{author or 'Someone'} in #{channel}" if channel else author or "Someone"
    return Source(id=0, title=title, url=permalink, text=text[:MAX_MESSAGE_CHARS], origin=ORIGIN, updated_at=at)


def permalinks_only(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return the sources as a thread may keep them: results of Slack's search without text and title."""
    stored = map(without_slack_text, sources)  # Slack's terms forbid storing search results
    return tuple(replace(one, title="A message in Slack") if one.origin == ORIGIN else one for one in stored)


def without_slack_text(source: Source) -> Source:
    """Return the source without its text if Slack's search found it: that may not be stored."""
    return replace(source, text="") if source.origin == ORIGIN else source
