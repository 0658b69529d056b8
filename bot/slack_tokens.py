"""Are the tokens good: one harmless call each, told as a value.

Promises: an end within ``ANSWERS_WITHIN_S``; Slack's own trouble is told apart from a token that Slack refuses. Must
never change anything, and never show a token.
"""

from __future__ import annotations

import asyncio
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


async def try_bot_token(client: AsyncWebClient) -> Tried:
    """Ask who the bot token is."""
    return await _tried(client.auth_test())


async def try_app_token(client: AsyncWebClient, app_token: str) -> Tried:
    """Ask for a Socket Mode address; it is not used and runs out by itself."""
    return await _tried(client.apps_connections_open(app_token=app_token))


async def _tried(call: Awaitable[Any]) -> Tried:
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            reply = await call
    except SlackClientError as error:
        return _refused(getattr(error, "response", None))
    except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: a body that is no JSON
        return Tried(state="unreachable", reason=type(error).__name__)
    granted = str(reply.headers.get("x-oauth-scopes", "")).split(",")
    data = reply.data if isinstance(reply.data, Mapping) else {}
    return Tried(state="accepted", reply=data, scopes=frozenset(scope.strip() for scope in granted) - {""})


def _refused(response: Any) -> Tried:
    """Slack's reply to a call that failed: a reply object, or a bare mapping where the body was no JSON."""
    status = response.get("status") if isinstance(response, dict) else getattr(response, "status_code", SERVER_ERROR)
    reason = response.get("error") if response is not None else None
    if not isinstance(reason, str) or not reason or reason in PASSING or (status or 0) >= SERVER_ERROR:
        return Tried(state="unreachable", reason=str(reason or f"HTTP {status}, not Slack's reply"))
    return Tried(state="refused", reason=reason)
