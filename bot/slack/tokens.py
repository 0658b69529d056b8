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


async def try_bot_token(client: AsyncWebClient, *, within_s: float = ANSWERS_WITHIN_S) -> Tried:
    """Ask who the bot token is."""
    return await _tried(client.auth_test(), within_s)


async def try_app_token(client: AsyncWebClient, app_token: str, *, within_s: float = ANSWERS_WITHIN_S) -> Tried:
    """Ask for a Socket Mode address; it is not used and runs out by itself."""
    return await _tried(client.apps_connections_open(app_token=app_token), within_s)


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
            tried = await try_bot_token(self.client, within_s=self.within_s)
            self._accepted = tried.state == "accepted" or (tried.state == "unreachable" and self._accepted)
        return self._accepted


async def _tried(call: Awaitable[AsyncSlackResponse], within_s: float) -> Tried:
    try:
        reply = await heard(call, within_s)
    except DeliveryFailed as failure:
        if failure.reason.startswith("http_"):
            return Tried(state="unreachable", reason="what answers there is not Slack")
        return Tried(state="refused" if failure.refused else "unreachable", reason=failure.reason)
    granted = str(reply.headers.get("x-oauth-scopes", "")).split(",")
    return Tried(
        state="accepted", reply=mapping(reply.data), scopes=frozenset(scope.strip() for scope in granted) - {""}
    )
