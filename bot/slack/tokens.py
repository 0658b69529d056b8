"""Checks tokens by one harmless call each, and tells a refused token from a Slack that is away."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.slack.payload import mapping
from bot.slack.web_api import DeliveryFailed, heard

ANSWERS_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of it. ``reason`` is Slack's own word for a refusal, or the kind of trouble on the way."""

    state: Literal["accepted", "refused", "unreachable"]
    reason: str = ""
    reply: Mapping[str, Any] = field(default_factory=dict)
    scopes: frozenset[str] = frozenset()


async def try_token(call: Awaitable[AsyncSlackResponse], within_s: float = ANSWERS_WITHIN_S) -> Tried:
    """What Slack says to a harmless ``call``: ``auth_test``, or for an app token ``apps_connections_open``."""
    try:
        reply = await heard(call, within_s)
    except DeliveryFailed as failure:
        if failure.reason.startswith("http_"):  # Slack names its errors; a bare status is somebody else's
            return Tried(state="unreachable", reason="what answers there is not Slack")
        return Tried(state="refused" if failure.refused else "unreachable", reason=failure.reason)
    granted = str(reply.headers.get("x-oauth-scopes", "")).split(",")
    scopes = frozenset(scope.strip() for scope in granted) - {""}
    return Tried(state="accepted", reply=mapping(reply.data), scopes=scopes)


@dataclass(slots=True)
class TokenCheck:
    """Whether Slack still takes the bot token, asked at most once in ``every_s`` seconds.

    A Slack that is away says nothing about the token.
    """

    client: AsyncWebClient
    every_s: float = 60.0
    within_s: float = 2.0
    _asked: float = -math.inf
    _accepted: bool = True

    async def accepted(self) -> bool:
        """False once Slack refused it: it was revoked, or the app removed."""
        now = time.monotonic()
        if now - self._asked >= self.every_s:
            self._asked = now
            state = (await try_token(self.client.auth_test(), self.within_s)).state
            self._accepted = state == "accepted" or (state == "unreachable" and self._accepted)
        return self._accepted
