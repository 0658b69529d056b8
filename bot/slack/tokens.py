"""Checks tokens by one harmless call each, and tells a refused token from a Slack that is away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

ANSWERS_WITHIN_S = 5.0
SERVER_ERROR = 500
PASSING = frozenset({"ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"})


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


class TokenCheck:
    """Whether Slack still takes the bot token, asked at most once in ``every_s`` seconds.

    A Slack that is away says nothing about the token.
    """

    def __init__(self, client: AsyncWebClient, *, every_s: float = 60.0, within_s: float = 2.0) -> None:
        self._client = client
        self._every_s = every_s
        self._within_s = within_s
        self._asked = -every_s
        self._accepted = True

    async def accepted(self) -> bool:
        """False once Slack refused it: it was revoked, or the app removed."""
        now = time.monotonic()
        if now - self._asked >= self._every_s:
            self._asked = now
            tried = await try_bot_token(self._client, within_s=self._within_s)
            self._accepted = tried.state == "accepted" or (tried.state == "unreachable" and self._accepted)
        return self._accepted


async def _tried(call: Awaitable[Any], within_s: float) -> Tried:
    try:
        async with asyncio.timeout(within_s):
            reply = await call
    except SlackClientError as error:
        return _refused(getattr(error, "response", None))
    except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: a body that is no JSON
        return Tried(state="unreachable", reason=type(error).__name__)
    granted = str(reply.headers.get("x-oauth-scopes", "")).split(",")
    data = reply.data if isinstance(reply.data, Mapping) else {}
    return Tried(state="accepted", reply=data, scopes=frozenset(scope.strip() for scope in granted) - {""})


def _refused(response: Any) -> Tried:
    """Slack's reply to a call that failed; whatever else answers at this address is not Slack."""
    data = getattr(response, "data", None)
    reason = data.get("error") if isinstance(data, Mapping) else None
    if not isinstance(reason, str) or not reason:
        return Tried(state="unreachable", reason="what answers there is not Slack")
    passing = reason in PASSING or getattr(response, "status_code", 0) >= SERVER_ERROR
    return Tried(state="unreachable" if passing else "refused", reason=reason)
