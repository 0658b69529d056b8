"""``slack_search``: public channels, through Slack's real-time search. Of what it finds only links are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.tools.builtin.specs import parameter, spec_of
from agent.tools.tool import ToolFailed, ToolResult
from verification.types import Source

SLACK_SEARCH: Final = "slack_search"
ORIGIN: Final = f"tool:{SLACK_SEARCH}"
FOUND: Final = parameter(SLACK_SEARCH, "limit")["default"]
TEXT_MOST: Final = 4_000


class SlackSearchFailed(ToolFailed):
    """Slack did not search."""

    hints = ("Go on without it.",)


Find = Callable[[str, int], Awaitable[Sequence[Source]]]
"""Searches for words, at most so many messages. Raises ``SlackSearchFailed``."""


@dataclass(frozen=True)
class SlackSearchTool:
    """The tool for one question: ``find`` searches with what that question allows."""

    find: Find
    spec = spec_of(SLACK_SEARCH)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Search; one source a message."""
        found = await self.find(str(arguments["query"]), int(arguments.get("limit", FOUND)))
        return ToolResult(
            content="\n".join(source.title for source in found) or "Nobody wrote of it.",
            sources=tuple(found),
            hints=() if found else ("Try other or fewer words.",),
        )


def found_message(text: str, permalink: str, *, author: str, channel: str, at: str) -> Source:
    """The source that a message is. ``at`` is an ISO 8601 timestamp or empty."""
    title = f"{author or 'Someone'} in #{channel}" if channel else author or "Someone"
    return Source(id=0, title=title, url=permalink, text=text[:TEXT_MOST], origin=ORIGIN, updated_at=at)


def permalinks_only(sources: Iterable[Source]) -> tuple[Source, ...]:
    """The sources as a thread may keep them: of what Slack's search found, the link alone."""
    kept = map(without_slack_text, sources)  # Slack lets nobody store what its search found
    return tuple(replace(one, title="A message in Slack") if one.origin == ORIGIN else one for one in kept)


def without_slack_text(source: Source) -> Source:
    """The source as it may be stored until its answer stands: what Slack's search found is not."""
    return replace(source, text="") if source.origin == ORIGIN else source
