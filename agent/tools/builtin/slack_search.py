"""Messages that ``slack_search`` found in public channels, as sources. Only their links are kept."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from agent.tools.tool import ToolFailed
from verification.types import Source

SLACK_SEARCH: Final = "slack_search"
ORIGIN: Final = f"tool:{SLACK_SEARCH}"
MAX_MESSAGE_CHARS: Final = 4_000


class SlackSearchFailed(ToolFailed):
    """Slack's search failed."""

    hints = ("Go on without it.",)
    away = True


def message_source(text: str, permalink: str, *, author: str, channel: str, at: str) -> Source:
    """Return a message as a source. ``at`` is an ISO 8601 timestamp or empty."""
    title = f"{author or 'Someone'} in #{channel}" if channel else author or "Someone"
    return Source(id=0, title=title, url=permalink, text=text[:MAX_MESSAGE_CHARS], origin=ORIGIN, updated_at=at)


def permalinks_only(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return the sources as a thread may store them: results of Slack's search without text and title."""
    stored = map(without_slack_text, sources)  # Slack's terms forbid storing search results
    return tuple(replace(one, title="A message in Slack") if one.origin == ORIGIN else one for one in stored)


def without_slack_text(source: Source) -> Source:
    """Return the source without its text if it comes from Slack's search: such text may not be stored."""
    return replace(source, text="") if source.origin == ORIGIN else source
