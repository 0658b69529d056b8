"""The tokens by which Slack lets Orion search for one question, kept for minutes, apart from the message (D3)."""

from __future__ import annotations

from typing import Final

from redis.asyncio import Redis

from bot.slack.message import Incoming

KEPT_S: Final = 600
"""Slack takes a token for some minutes only."""


class ActionTokens:
    """Over one Redis."""

    def __init__(self, redis: Redis, *, prefix: str = "orion") -> None:
        self._redis = redis
        self._prefix = prefix

    def key(self, incoming: Incoming) -> str:
        """Where the token of this version of a message stands."""
        return f"{self._prefix}:action_token:{incoming.thread}:{incoming.ts}:{incoming.edited_ts}"

    async def keep(self, incoming: Incoming) -> None:
        """Keep the token that came with an event, if one did."""
        if incoming.action_token:
            await self._redis.set(self.key(incoming), incoming.action_token, ex=KEPT_S)
