"""`orion doctor`: checks the set-up and says what to do about each fault (H4).

All checks run at once, each within ``within_s`` seconds; one that fails stops no other. Nothing is changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import aiohttp
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.exceptions import RedisError

from agent.knowledge.types import KnowledgeAwayError
from agent.model.protocol import ModelError
from bot.doctor.check import Check
from bot.doctor.context import context_check
from bot.doctor.semantic import semantic_check
from bot.doctor.tools import tool_checks
from bot.documents.figures import KnowledgeFigures, figures_of
from bot.documents.open import corpus_of, open_index
from bot.errors import WrongUse
from bot.gates.handoff import reach
from bot.install.connect import seal_of, teams_of
from bot.install.installations import Installations
from bot.redis.connect import open_redis
from bot.redis.embedded import EmbeddedRedisError
from bot.redis.requirements import EVICTS, EVICTS_REMEDY, eviction_policy, too_old
from bot.redis.url import plain_cause
from bot.settings import Settings, unknown_names, unread_lines
from bot.slack.client import open_client
from bot.slack.manifest import BOT_SCOPES, SEARCH_SCOPE
from bot.slack.tokens import Tried, try_app_token, try_bot_token
from bot.slack.web_api import DeliveryFailed, SlackCalls
from bot.stores.pause import Pausing
from bot.turn.engine import open_model
from observability.loopback import is_loopback

# Enough for a word; more would only be paid for.
ANSWER_TOKENS = 16
NAMED = 5
"""So many documents that were not read are named."""
ANSWERS_WITHIN_S = 12.0
"""Enough for a model that has to be loaded first, short enough to be waited for."""
SLACK_AWAY = "Check the network, the proxy and SLACK_API_URL."


async def examine(
    settings: Settings, *, faults: Mapping[str, str] | None = None, within_s: float = ANSWERS_WITHIN_S
) -> list[Check]:
    """Every check, in the order in which a message meets the parts. ``within_s`` bounds each wait for somebody else.

    ``faults`` say what is wrong with variables that cannot be used: what depends on one of them is not looked at.
    """
    wrong = faults or {}
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(check(settings, within_s), name=check.__name__)
            for check, needed in _CHECKS.items()
            if not needed & wrong.keys()
        ]
    return [*_settings(wrong), *(check for task in tasks for check in task.result())]


def _settings(wrong: Mapping[str, str]) -> list[Check]:
    """A line for each setting that cannot be used, is none, or is not understood; Orion starts in spite of the last."""
    mend = "Mend it in the environment or in .env; Orion does not start with it."
    found = [Check(name="Settings", ok=False, detail=f"{name} {what}", remedy=mend) for name, what in wrong.items()]
    for number in unread_lines():
        remedy = "Write NAME=value, or # in front of a remark."
        found.append(Check(name="Settings", ok=False, detail=f".env, line {number} is not understood", remedy=remedy))
    for name, nearest in unknown_names().items():
        remedy = "See the README for the names." if nearest == "none" else f"Is {nearest} meant?"
        found.append(Check(name="Settings", ok=False, detail=f"{name} is no setting of Orion", remedy=remedy))
    return found


async def _bot_token(settings: Settings, within_s: float) -> list[Check]:
    if settings.many_workspaces:
        return [await _installed(settings, within_s)]
    token = settings.slack_bot_token.get_secret_value()
    if not token:
        remedy = "Create an app from `orion manifest`, install it, and copy its bot token (xoxb-…)."
        return [Check(name="Slack", ok=False, detail="SLACK_BOT_TOKEN is not set", remedy=remedy)]
    async with open_client(token, api_url=settings.slack_api_url) as client:
        tried = await try_bot_token(client, within_s=within_s)
    if tried.state != "accepted":
        remedy = "Reinstall the app and copy its bot token (xoxb-…)."
        return [_not_accepted("Slack", "SLACK_BOT_TOKEN", tried, settings, remedy)]
    # Some Slack-compatible servers name no scopes: that is no fault.
    missing = sorted(set(BOT_SCOPES) - tried.scopes) if tried.scopes else []
    if missing:
        remedy = "Update the app from `orion manifest` and reinstall it."
        return [Check(name="Slack", ok=False, detail=f"the app lacks the scopes {', '.join(missing)}", remedy=remedy)]
    searches = "; slack_search may search public channels" if SEARCH_SCOPE in tried.scopes else ""
    detail = f"signed in to {tried.reply.get('team')} as {tried.reply.get('user')}{searches}"
    return [Check(name="Slack", ok=True, detail=detail)]


async def _installed(settings: Settings, within_s: float) -> Check:
    """The workspaces that installed Orion, and what each has granted."""
    try:
        teams_of(settings)
        seal = seal_of(settings)
        async with asyncio.timeout(within_s), open_redis(settings) as redis:
            installations = Installations(redis, seal)
            found = [one for team in await installations.teams() if (one := await installations.find(team))]
    except WrongUse as error:
        return Check(name="Slack", ok=False, detail=str(error), remedy="Set what it names.")
    except (EmbeddedRedisError, RedisError, TimeoutError):
        detail = "the installed workspaces cannot be looked up without Redis"
        return Check(name="Slack", ok=False, detail=detail, remedy="Mend Redis first.")
    lacking = {
        one.name or one.team: sorted(set(BOT_SCOPES) - set(one.scopes.split(","))) for one in found if one.scopes
    }
    if told := [f"{name} lacks {', '.join(missing)}" for name, missing in lacking.items() if missing]:
        remedy = "An admin of each installs Orion again, from /slack/install."
        return Check(name="Slack", ok=False, detail="; ".join(told[:NAMED]), remedy=remedy)
    named = f"{len(found)} workspace{'' if len(found) == 1 else 's'} installed Orion; others may at /slack/install"
    return Check(name="Slack", ok=True, detail=named)


async def _events(settings: Settings, within_s: float) -> list[Check]:
    """How events will arrive. Without a bot token that one is to be mended first."""
    if not settings.slack_bot_token.get_secret_value() and not settings.many_workspaces:
        return []
    token = settings.slack_app_token.get_secret_value()
    # Socket Mode is for one workspace: many send their events over HTTP.
    if token and not settings.many_workspaces:
        async with open_client("", api_url=settings.slack_api_url) as client:
            tried = await try_app_token(client, token, within_s=within_s)
        if tried.state == "accepted":
            return [Check(name="Slack events", ok=True, detail="SLACK_APP_TOKEN opens Socket Mode")]
        remedy = "Make an app token (xapp-…) with the scope connections:write, and turn Socket Mode on."
        return [_not_accepted("Slack events", "SLACK_APP_TOKEN", tried, settings, remedy)]
    if settings.slack_signing_secret.get_secret_value():
        return [Check(name="Slack events", ok=True, detail="SLACK_SIGNING_SECRET is set: HTTP mode")]
    detail = "neither SLACK_APP_TOKEN nor SLACK_SIGNING_SECRET is set"
    remedy = "Set SLACK_APP_TOKEN (xapp-…) for Socket Mode, or SLACK_SIGNING_SECRET for HTTP."
    return [Check(name="Slack events", ok=False, detail=detail, remedy=remedy)]


def _not_accepted(name: str, variable: str, tried: Tried, settings: Settings, remedy: str) -> Check:
    if tried.state == "refused":
        return Check(name=name, ok=False, detail=f"{variable} was refused: {tried.reason}", remedy=remedy)
    detail = f"{settings.slack_api_url} cannot be reached ({tried.reason})"
    return Check(name=name, ok=False, detail=detail, remedy=SLACK_AWAY)


async def _redis(settings: Settings, within_s: float) -> list[Check]:
    where = "REDIS_URL" if settings.redis_url.get_secret_value() else f"embedded under {settings.home}"
    try:
        async with asyncio.timeout(within_s), open_redis(settings) as redis:
            if wrong := await too_old(redis):
                return [Check(name="Redis", ok=False, detail=wrong, remedy="Install Redis 6.2 or newer, or Valkey.")]
            return [await _durable(redis, where), *await _paused(redis)]
    except (WrongUse, EmbeddedRedisError) as error:
        detail = str(error)
    except RedisError as error:
        detail = f"cannot be used ({plain_cause(error)})"
    except TimeoutError:
        detail = f"did not answer within {within_s:.0f} s"
    remedy = "Check REDIS_URL: address, password, and that the server runs. Without REDIS_URL a private one is used."
    return [Check(name="Redis", ok=False, detail=detail, remedy=remedy)]


async def _durable(redis: Redis, where: str) -> Check:
    """A question must be on disk before Slack is told that it arrived, and stay until it is answered (H3)."""
    await redis.ping()
    try:
        # Hosted servers often forbid CONFIG: then nothing can be said, and nothing is.
        found = await redis.config_get("appendonly", "appendfsync")
        stands = {**await redis.info("replication"), **await redis.info("cluster")}
    except RedisError:
        return Check(name="Redis", ok=True, detail=f"answers ({where}); its durability cannot be read")
    if stands.get("role") == "slave":
        remedy = "Name the primary in REDIS_URL, or the Sentinels: redis+sentinel://host:26379/service/0."
        return Check(name="Redis", ok=False, detail=f"answers ({where}), but is a read-only replica", remedy=remedy)
    if stands.get("cluster_enabled") and not isinstance(redis, RedisCluster):
        remedy = "Write REDIS_URL as redis+cluster://host:port,host:port."
        return Check(name="Redis", ok=False, detail=f"answers ({where}), but is one node of a cluster", remedy=remedy)
    if (found.get("appendonly"), found.get("appendfsync")) != ("yes", "always"):
        detail = f"answers ({where}), but a crash can lose questions that Slack was told have arrived"
        return Check(name="Redis", ok=False, detail=detail, remedy="Set `appendonly yes` and `appendfsync always`.")
    if policy := await eviction_policy(redis):
        detail = f"answers ({where}), but {EVICTS.format(policy=policy)}"
        return Check(name="Redis", ok=False, detail=detail, remedy=EVICTS_REMEDY)
    return Check(name="Redis", ok=True, detail=f"answers ({where}), every change is on disk first")


async def _paused(redis: Redis) -> list[Check]:
    """Nothing to say unless Orion is paused."""
    pause = await Pausing(redis).now()
    if pause is None:
        return []
    since = datetime.fromtimestamp(pause.since, UTC).isoformat(timespec="minutes")
    detail = f"since {since}: nobody is answered, questions are kept" + (f" ({pause.reason})" if pause.reason else "")
    return [Check(name="Paused", ok=False, detail=detail, remedy="Let Orion go on with `orion resume`.")]


async def _knowledge(settings: Settings, within_s: float) -> list[Check]:
    try:
        # Vectors have a check of their own, which may wait for a model to be loaded.
        corpus = replace(corpus_of(settings), semantic="")
        async with open_index(corpus, wait_s=within_s) as (index, _):
            known = await asyncio.to_thread(figures_of, index, corpus.names)
    except KnowledgeAwayError as error:
        remedy = "Check ORION_KNOWLEDGE_URL: address, user, password, and that PostgreSQL runs."
        detail = f"the shared index cannot be used ({error})"
        return [Check(name="Knowledge", ok=False, detail=detail, remedy=remedy)]
    except WrongUse as error:
        remedy = "Name folders that exist in ORION_DOCS, and one that can be written in ORION_HOME."
        return [Check(name="Knowledge", ok=False, detail=str(error), remedy=remedy)]
    return [_held(known)]


def _held(known: KnowledgeFigures) -> Check:
    """What there is to answer from, with the first of what was not read."""
    unread = [f"; not read: {path} ({reason})" for source in known.sources for path, reason in source.state.failed]
    more = known.failures - len(unread[:NAMED])
    waiting = [f"; never read: {source.where}" for source in known.sources if not source.state.tried]
    detail = f"{known.documents} document{'' if known.documents == 1 else 's'}{''.join(unread[:NAMED] + waiting)}"
    remedy = "Set ORION_DOCS to your folders, or run `orion index DIR`."
    if unread or known.documents:
        remedy = "Mend or remove those."
    if waiting:
        remedy = "Run `orion index`, or let a running Orion do it: it reads web sites soon after its start."
    return Check(
        name="Knowledge",
        ok=bool(known.documents) and not unread and not waiting,
        detail=detail + (f"; {more} more: `orion docs` names them" if more else ""),
        remedy=remedy,
    )


async def _model(settings: Settings, within_s: float) -> list[Check]:
    if not settings.uses_server:
        return [Check(name="Model", ok=True, detail="none configured: Orion quotes (set OPENAI_API_KEY for a model)")]
    answers = await _model_answers("Model", settings, within_s)
    return [answers, *(await context_check(settings, within_s) if answers.ok else ())]


async def _write_model(settings: Settings, within_s: float) -> list[Check]:
    """The model that writes, where it is another one: without it no answer would ever be written."""
    if not settings.uses_server or settings.write_model in {"", settings.model_name}:
        return []
    writer = settings.model_copy(update={"model": settings.write_model, "write_model": ""})
    return [await _model_answers("Write model", writer, within_s)]


async def _judge(settings: Settings, within_s: float) -> list[Check]:
    """The second model. Without its answer every sentence that is no quotation would be cut out."""
    if not settings.judge and settings.uses_server:
        remedy = "Leave ORION_JUDGE away: without a judge only numbers, dates, names and quotes are checked."
        return [Check(name="Judge", ok=True, detail=f"turned off. {remedy}", remedy=remedy)]
    if settings.judge_model in {"", settings.model_name}:
        return []
    if not settings.uses_server:
        remedy = "Set OPENAI_API_KEY or OPENAI_BASE_URL, or leave ORION_JUDGE_MODEL away."
        return [Check(name="Judge", ok=False, detail="ORION_JUDGE_MODEL is set, but no model server", remedy=remedy)]
    judge = settings.model_copy(update={"model": settings.judge_model, "write_model": ""})
    return [await _model_answers("Judge", judge, within_s)]


async def _model_answers(name: str, settings: Settings, within_s: float) -> Check:
    try:
        async with asyncio.timeout(within_s), open_model(settings) as model:
            await model.generate("Reply with the word ok.", max_tokens=ANSWER_TOKENS, temperature=0.0)
    except ModelError as error:
        if error.kind != "TokenLimitError":  # a model that reasons first may use up so few: it answers all the same
            detail, remedy = f"{settings.model_name}: {error.detail}", " ".join(error.hints)
            return Check(name=name, ok=False, detail=detail, remedy=remedy)
    except TimeoutError:
        detail = f"{settings.model_name} did not answer within {within_s:.0f} s"
        remedy = "Check OPENAI_BASE_URL and that its server is up."
        return Check(name=name, ok=False, detail=detail, remedy=remedy)
    return Check(name=name, ok=True, detail=f"{settings.model_name} answers")


async def _handoff(settings: Settings, within_s: float) -> list[Check]:
    """Whether the people behind "Ask a human" can be reached."""
    token = settings.slack_bot_token.get_secret_value()
    if not (settings.handoff and token):
        return []
    try:
        async with open_client(token, api_url=settings.slack_api_url) as client, asyncio.timeout(within_s):
            wrong = await reach(SlackCalls(client, patience_s=0), settings.handoff)
    except DeliveryFailed as failure:
        remedy = "Update the app from `orion manifest` and reinstall it." if failure.permanent else SLACK_AWAY
        return [Check(name="Hand-off", ok=False, detail=f"Slack does not tell: {failure.reason}", remedy=remedy)]
    except TimeoutError:
        return [Check(name="Hand-off", ok=False, detail="Slack did not answer in time", remedy=SLACK_AWAY)]
    detail, remedy = wrong or (f"ORION_HANDOFF reaches {settings.handoff}", "")
    return [Check(name="Hand-off", ok=not wrong, detail=detail, remedy=remedy)]


async def _langfuse(settings: Settings, within_s: float) -> list[Check]:
    secret = settings.langfuse_secret_key.get_secret_value()
    keys = {"LANGFUSE_PUBLIC_KEY": settings.langfuse_public_key, "LANGFUSE_SECRET_KEY": secret}
    if not any(keys.values()):
        return [Check(name="Langfuse", ok=True, detail="not configured: no traces are sent")]
    if missing := next((key for key, value in keys.items() if not value), None):
        detail, remedy = f"{missing} is not set: no traces are sent", "Set both keys, or neither."
        return [Check(name="Langfuse", ok=False, detail=detail, remedy=remedy)]
    # By plain HTTP: the SDK takes half a second to import and tries again for longer than anybody waits.
    url = f"{settings.langfuse_host.rstrip('/')}/api/public/projects"
    headers = {"Authorization": aiohttp.encode_basic_auth(settings.langfuse_public_key, secret)}
    timeout = aiohttp.ClientTimeout(total=within_s)
    try:
        async with (
            aiohttp.ClientSession(trust_env=not is_loopback(url), timeout=timeout) as session,
            session.get(url, headers=headers) as reply,
        ):
            ok, detail = reply.ok, f"{settings.langfuse_host} answered {reply.status}"
    except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
        ok, detail = False, f"{settings.langfuse_host} cannot be reached ({type(error).__name__})"
    remedy = "Check LANGFUSE_HOST and the two keys. Orion works without it."
    return [Check(name="Langfuse", ok=ok, detail=detail, remedy=remedy)]


_CHECKS: Final[Mapping[Callable[[Settings, float], Coroutine[Any, Any, list[Check]]], frozenset[str]]] = {
    _bot_token: frozenset({"SLACK_API_URL"}),
    _events: frozenset({"SLACK_API_URL"}),
    _redis: frozenset(),
    _knowledge: frozenset(),
    semantic_check: frozenset({"ORION_SEMANTIC"}),
    tool_checks: frozenset(),
    _model: frozenset({"OPENAI_BASE_URL"}),
    _write_model: frozenset({"OPENAI_BASE_URL"}),
    _judge: frozenset({"OPENAI_BASE_URL"}),
    _langfuse: frozenset({"LANGFUSE_HOST"}),
    _handoff: frozenset({"SLACK_API_URL"}),
}
"""Every check, with the variables without which it would say nothing true."""
