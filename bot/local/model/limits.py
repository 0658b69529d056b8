"""Sizes and call rates of the workspace, with Slack's error names. A figure that Slack does not document says so."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from bot.local.model.block_limits import block_faults, text_length
from bot.local.model.errors import ApiError, invalid
from bot.local.model.roster import Json

TEXT_KEPT: Final = 40_000  # longer texts are cut, with the warning ``message_truncated``
UPDATE_TEXT: Final = 4_000  # without blocks in ``chat.update``: undocumented, reported as ``msg_too_long``
MARKDOWN: Final = 12_000  # of all ``markdown`` blocks of a payload together (Slack's page on that block)
BLOCKS_TEXT: Final = 13_200  # all text of blocks: undocumented, measured by others (``msg_blocks_too_long``)
MESSAGE_BLOCKS: Final = 50  # Slack's page on blocks: 50 in a message, 100 in a modal or App Home
VIEW_BLOCKS: Final = 100
METADATA_BYTES: Final = 16_000  # undocumented; answers ``metadata_too_large`` beyond


_TIERS: Final = {
    20: (
        *("chat.startStream", "chat.stopStream", "conversations.list", "usergroups.list"),
        *("users.list", "reactions.remove"),
    ),
    50: (
        *("conversations.replies", "conversations.history", "conversations.info", "chat.update", "chat.delete"),
        *("agents.sessions.setStatus", "agents.sessions.rename"),
        *("conversations.open", "reactions.add", "reactions.get", "team.info"),
    ),
    100: (
        *("chat.appendStream", "chat.postEphemeral", "users.info", "views.open", "views.publish", "files.info"),
        *("views.push", "views.update", "conversations.members", "assistant.threads.setTitle"),
    ),
}
"""Methods by their documented calls a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strictness:
    """The rates and times in force, times in seconds."""

    rates: bool = True
    post_burst: int = 5  # posts to one channel before the rate of one a second holds; Slack says only "short bursts"
    post_per_second: float = 1.0
    calls_a_minute: dict[str, int] = field(
        default_factory=lambda: {method: calls for calls, methods in _TIERS.items() for method in methods}
    )
    stream_seconds: float = 300.0  # undocumented: seen by many (python-slack-sdk #1859)
    status_seconds: float = 120.0  # Slack's page on ``assistant.threads.setStatus``
    trigger_seconds: float = 3.0  # as Slack's page on modals says
    ack_seconds: float = 3.0  # Slack's page on the Events API, as for the retries
    retry_delays: tuple[float, ...] = (0.0, 60.0, 300.0)  # at once, a minute and five minutes later


LENIENT = Strictness(rates=False)  # Slack's sizes and names, but no call rates: for tests that ask quickly


def check_blocks(blocks: list[Json]) -> None:
    """Refuses blocks of a message. Raises ``ApiError``: ``invalid_blocks`` or ``msg_blocks_too_long``."""
    if faults := block_faults(blocks, limit=MESSAGE_BLOCKS):
        raise invalid(faults, error="invalid_blocks")
    markdown = sum(len(block["text"]) for block in blocks if block["type"] == "markdown")
    if markdown > MARKDOWN or text_length(blocks) > BLOCKS_TEXT:
        raise ApiError(error="msg_blocks_too_long")


def check_markdown(text: str) -> None:
    """Refuses a ``markdown_text`` over its limit. Raises ``ApiError``: ``msg_too_long``."""
    if len(text) > MARKDOWN:
        raise ApiError(error="msg_too_long")


def check_metadata(value: Any) -> Json:
    """The metadata of a message, judged."""
    if not isinstance(value, dict):
        raise ApiError(error="invalid_metadata_format")
    event_type, payload = value.get("event_type"), value.get("event_payload")
    if not isinstance(event_type, str) or not event_type or not isinstance(payload, dict):
        raise ApiError(error="invalid_metadata_schema")
    if len(json.dumps(value).encode()) > METADATA_BYTES:
        raise ApiError(error="metadata_too_large")
    return {"event_type": event_type, "event_payload": payload}


@dataclass(slots=True)
class RateLimiter:
    """Counts calls and says when to come back. ``clock`` gives seconds that only rise."""

    strictness: Strictness
    clock: Callable[[], float] = time.monotonic
    _tokens: dict[str, tuple[float, float]] = field(default_factory=dict)

    def charge(self, method: str, channel: str) -> None:
        """Counts one call. Raises ``ApiError``: ``ratelimited`` (HTTP 429) with the seconds to wait."""
        if not self.strictness.rates:
            return
        if method == "chat.postMessage":
            self._take(f"post:{channel}", self.strictness.post_burst, self.strictness.post_per_second)
        elif calls := self.strictness.calls_a_minute.get(method):
            self._take(method, calls, calls / 60)

    def _take(self, key: str, burst: int, per_second: float) -> None:
        now = self.clock()
        tokens, since = self._tokens.get(key, (burst, now))
        tokens = min(burst, tokens + (now - since) * per_second)
        if tokens < 1:
            # Rounded first: the dust of a division must not cost the app a second more.
            wait = max(1, math.ceil(round((1 - tokens) / per_second, 6)))
            raise ApiError(error="ratelimited", status=429, retry_after=wait)
        self._tokens[key] = (tokens - 1, now)
