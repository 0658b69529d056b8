"""`orion doctor`: is this set-up going to work, and what to do about each thing that will not (H4).

Promises: every check ends in a sentence and, where something is wrong, a remedy; one that fails never stops the others.
Must never print a secret or change anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import aiohttp
from redis.asyncio import Redis
from redis.exceptions import RedisError
from slack_sdk.errors import SlackApiError

from agent.model import ModelError
from bot.embedded_redis import EmbeddedRedisError, connect
from bot.engine import corpus_of, open_engine
from bot.manifest import BOT_SCOPES
from bot.settings import Settings
from bot.slack_app import open_client
from bot.wrong_use import WrongUse

ANSWER_TOKENS = 16
LANGFUSE_TIMEOUT_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at. ``remedy`` says what to do when it is not ok."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


async def examine(settings: Settings) -> list[Check]:
    """Every check, in the order in which a message meets the parts."""
    checks = [check async for check in _slack(settings)]
    checks.append(await _redis(settings))
    checks += [check async for check in _answers(settings)]
    checks.append(await _langfuse(settings))
    return checks


async def _slack(settings: Settings) -> AsyncIterator[Check]:
    token = settings.slack_bot_token.get_secret_value()
    if not token:
        yield Check(
            name="Slack",
            ok=False,
            detail="SLACK_BOT_TOKEN is not set",
            remedy="Create an app from `orion manifest`, install it, and copy its bot token (xoxb-…).",
        )
        return
    yield await _authenticated(settings, token)
    if not settings.slack_app_token.get_secret_value() and not settings.slack_signing_secret.get_secret_value():
        yield Check(
            name="Slack events",
            ok=False,
            detail="neither SLACK_APP_TOKEN nor SLACK_SIGNING_SECRET is set",
            remedy="Set SLACK_APP_TOKEN (xapp-…) for Socket Mode, or SLACK_SIGNING_SECRET for HTTP.",
        )


async def _authenticated(settings: Settings, token: str) -> Check:
    async with open_client(token, api_url=settings.slack_api_url) as client:
        try:
            reply = await client.auth_test()
        except SlackApiError as error:
            reason = str(error.response["error"])
            return Check(
                name="Slack", ok=False, detail=f"the bot token was refused: {reason}", remedy="Reinstall the app."
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            detail = f"{settings.slack_api_url} cannot be reached ({type(error).__name__})"
            return Check(
                name="Slack", ok=False, detail=detail, remedy="Check the network, the proxy and SLACK_API_URL."
            )
    granted = {scope.strip() for scope in reply.headers.get("x-oauth-scopes", "").split(",")} - {""}
    missing = sorted(set(BOT_SCOPES) - granted) if granted else []
    if missing:
        detail = f"the app lacks the scopes {', '.join(missing)}"
        return Check(
            name="Slack", ok=False, detail=detail, remedy="Update the app from `orion manifest` and reinstall it."
        )
    return Check(name="Slack", ok=True, detail=f"signed in to {reply.get('team')} as {reply.get('user')}")


async def _redis(settings: Settings) -> Check:
    url = settings.redis_url.get_secret_value()
    try:
        async with connect(settings.home, url or None) as redis:
            return await _durable(redis, "REDIS_URL" if url else f"embedded under {settings.home}")
    except (RedisError, EmbeddedRedisError, ValueError) as error:
        detail = f"cannot be used ({type(error).__name__})"
        remedy = (
            "Check REDIS_URL: address, password, and that the server runs. Without REDIS_URL a private one is used."
        )
        return Check(name="Redis", ok=False, detail=detail, remedy=remedy)


async def _durable(redis: Redis, where: str) -> Check:
    """A question must be on disk before Slack is told that it arrived (H3)."""
    async with asyncio.timeout(LANGFUSE_TIMEOUT_S):
        await redis.ping()
        try:
            found = await redis.config_get("appendonly", "appendfsync")
        except RedisError:
            return Check(name="Redis", ok=True, detail=f"answers ({where}); its durability cannot be read")
    if (found.get("appendonly"), found.get("appendfsync")) != ("yes", "always"):
        detail = f"answers ({where}), but a crash can lose questions that Slack was told have arrived"
        return Check(name="Redis", ok=False, detail=detail, remedy="Set `appendonly yes` and `appendfsync always`.")
    return Check(name="Redis", ok=True, detail=f"answers ({where}), every change is on disk first")


async def _answers(settings: Settings) -> AsyncIterator[Check]:
    async with AsyncExitStack() as stack:
        try:
            engine = await stack.enter_async_context(open_engine(settings, corpus_of(settings)))
        except WrongUse as error:
            yield Check(name="Knowledge", ok=False, detail=str(error), remedy="Name folders that exist in ORION_DOCS.")
            return
        documents = await asyncio.to_thread(engine.index.documents)
        failed = "".join(f"; not read: {path} ({reason})" for path, reason in engine.report.failed)
        remedy = (
            "Set ORION_DOCS to your folders, or run `orion index DIR`." if not documents else "Mend or remove those."
        )
        ok = bool(documents) and not failed
        yield Check(name="Knowledge", ok=ok, detail=f"{len(documents)} documents{failed}", remedy=remedy)
        if not settings.uses_server:
            yield Check(name="Model", ok=True, detail="none configured: Orion quotes (set OPENAI_API_KEY for a model)")
            return
        try:
            await engine.model.generate("Reply with the word ok.", max_tokens=ANSWER_TOKENS, temperature=0.0)
        except ModelError as error:
            yield Check(
                name="Model", ok=False, detail=f"{engine.model.name}: {error.kind}", remedy=" ".join(error.hints)
            )
            return
        yield Check(name="Model", ok=True, detail=f"{engine.model.name} answers")


async def _langfuse(settings: Settings) -> Check:
    if not settings.langfuse_public_key:
        return Check(name="Langfuse", ok=True, detail="not configured: no traces are sent")
    secret = settings.langfuse_secret_key.get_secret_value()
    url = f"{settings.langfuse_host.rstrip('/')}/api/public/projects"
    auth = aiohttp.BasicAuth(settings.langfuse_public_key, secret)
    timeout = aiohttp.ClientTimeout(total=LANGFUSE_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(trust_env=True, timeout=timeout) as session,
            session.get(url, auth=auth) as reply,
        ):
            ok, detail = reply.ok, f"{settings.langfuse_host} answered {reply.status}"
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        ok, detail = False, f"{settings.langfuse_host} cannot be reached ({type(error).__name__})"
    return Check(
        name="Langfuse", ok=ok, detail=detail, remedy="Check the host and the two keys. Orion works without it."
    )
