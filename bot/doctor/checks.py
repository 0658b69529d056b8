"""The checks of `orion doctor`: Slack, Redis, documents, models."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import aiohttp
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.exceptions import RedisError

from agent.json_data import mapping, objects, string
from agent.knowledge.types import KnowledgeAwayError
from bot.channel_settings import ChannelFile
from bot.documents.corpus import figures_of
from bot.documents.open import corpus_of, open_index
from bot.errors import WrongUse
from bot.install.identity import DEFAULT_PREFIX, find_prefix, list_orions
from bot.install.installations import Installations, UnreadableInstallation
from bot.install.workspaces import require_right_key, seal_of, teams_of
from bot.queue.queue import Mailbox
from bot.redis.client import plain_cause
from bot.redis.server import EVICTS, EVICTS_REMEDY, EmbeddedRedisError, eviction_policy, missing_command, open_redis
from bot.settings import Settings
from bot.slack.client import TokenTrial, open_client, try_token
from bot.slack.hand_off_place import find_fault
from bot.slack.manifest import OPTIONAL_SCOPES, REQUIRED_SCOPES, SEARCH_SCOPE, UPDATE_APP
from bot.slack.web_api import DeliveryFailed, SlackCalls
from bot.stores.limits import Pausing
from observability.loopback import proxy_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check. ``remedy`` says what to do if it is not ok."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


class Problem(NamedTuple):
    """A fault, and its remedy."""

    detail: str
    remedy: str


Finding = str | Problem
"""The state of a part; an empty text if there is nothing to report."""
Probe = Callable[[Settings, float], Coroutine[Any, Any, Finding | dict[str, Finding]]]
"""Examines one part, or several by name, for at most this many seconds."""


class CheckLine(NamedTuple):
    """A named check, which is left out if a variable in ``needs`` cannot be used."""

    name: str
    probe: Probe
    needs: frozenset[str] = frozenset()


NAMED: Final = 5  # at most this many faults are listed
SLACK_AWAY: Final = "Check the network, the proxy and SLACK_API_URL."
SCORES_SINCE: Final = (4, 59)  # the version of Langfuse that accepts scores as its SDK 5 sends them
_CERTIFICATE: Final = "Name the authority of its certificate in SSL_CERT_FILE. Orion works without Langfuse."
_LANGFUSE: Final = "Check LANGFUSE_BASE_URL and the two keys. Orion works without Langfuse."


async def check_bot_token(settings: Settings, within_s: float) -> Finding:
    """The account that Orion signs in as, and its scopes."""
    if settings.many_workspaces:
        return await _check_installations(settings, within_s)
    token = settings.slack_bot_token.get_secret_value()
    if not token:
        remedy = "Create an app from `orion manifest`, install it, and copy its bot token (xoxb-…)."
        return Problem("SLACK_BOT_TOKEN is not set", remedy)
    async with open_client(token, api_url=settings.slack_api_url) as client:
        tried = await try_token(client, within_s)
    if tried.state != "accepted":
        return _token_fault("SLACK_BOT_TOKEN", tried, settings, "Reinstall the app and copy its bot token (xoxb-…).")
    if not string(tried.reply, "team_id"):
        return Problem(f"{settings.slack_api_url} names no workspace: another server answers there", SLACK_AWAY)
    # Some Slack-compatible servers name no scopes: that is fine.
    if tried.scopes and (missing := sorted(REQUIRED_SCOPES - tried.scopes)):
        return Problem(f"the app lacks the scopes {', '.join(missing)}", UPDATE_APP)
    refused = sorted(OPTIONAL_SCOPES - tried.scopes) if tried.scopes else []
    without = f"; without the optional scopes {', '.join(refused)}" if refused else ""
    searches = "; slack_search may search public channels" if SEARCH_SCOPE in tried.scopes else ""
    return f"signed in to {tried.reply.get('team')} as {tried.reply.get('user')}{searches}{without}"


async def _check_installations(settings: Settings, within_s: float) -> Finding:
    try:
        allowed, seal = teams_of(settings), seal_of(settings)
        async with asyncio.timeout(within_s), open_redis(settings) as redis:
            kept = Installations(redis, seal, prefix=await find_prefix(redis, settings))
            await require_right_key(kept)
            teams = [team for team in await kept.teams() if not allowed or team in allowed]
            found = [one for team in teams if (one := await kept.find(team))]
    except WrongUse as error:
        return Problem(str(error), "Set what it names.")
    except UnreadableInstallation:
        remedy = "Put the earlier key back into ORION_ENCRYPTION_KEYS, after the new one."
        return Problem("ORION_ENCRYPTION_KEYS does not open the tokens of an installed workspace", remedy)
    except (EmbeddedRedisError, RedisError, TimeoutError):
        return Problem("the installed workspaces cannot be looked up without Redis", "Fix Redis first.")
    lacking = {one.name or one.team: REQUIRED_SCOPES - set(one.scopes.split(",")) for one in found if one.scopes}
    if told := [f"{name} lacks {', '.join(sorted(missing))}" for name, missing in lacking.items() if missing]:
        return Problem("; ".join(told[:NAMED]), "An admin of each installs Orion again, from /slack/install.")
    return f"{len(found)} workspace{'' if len(found) == 1 else 's'} installed Orion; others may at /slack/install"


async def check_events(settings: Settings, within_s: float) -> Finding:
    """The transport of events. If there is no bot token, only this is reported."""
    if not settings.slack_bot_token.get_secret_value() and not settings.many_workspaces:
        return ""
    token = settings.slack_app_token.get_secret_value()
    # Socket Mode serves one workspace. With several, events come over HTTP.
    if token and not settings.many_workspaces:
        async with open_client("", api_url=settings.slack_api_url) as client:
            tried = await try_token(client, within_s, app_token=token)
        remedy = "Make an app token (xapp-…) with the scope connections:write, and turn Socket Mode on."
        opens = "SLACK_APP_TOKEN opens Socket Mode"
        return opens if tried.state == "accepted" else _token_fault("SLACK_APP_TOKEN", tried, settings, remedy)
    if settings.slack_signing_secret.get_secret_value():
        return "SLACK_SIGNING_SECRET is set: HTTP mode"
    remedy = "Set SLACK_APP_TOKEN (xapp-…) for Socket Mode, or SLACK_SIGNING_SECRET for HTTP."
    return Problem("neither SLACK_APP_TOKEN nor SLACK_SIGNING_SECRET is set", remedy)


def _token_fault(variable: str, tried: TokenTrial, settings: Settings, remedy: str) -> Problem:
    if tried.state == "refused":
        return Problem(f"{variable} was refused: {tried.reason}", remedy)
    return Problem(f"{settings.slack_api_url} cannot be reached ({tried.reason})", SLACK_AWAY)


async def check_channels(settings: Settings, within_s: float) -> Finding:
    """Check the form of the channel settings, and that Orion is in each channel that they name."""
    file = ChannelFile(settings.channels, settings.listen)
    channels = file.channels
    if file.faults:
        return Problem("; ".join(file.faults), f"Correct {settings.channels}; the last good settings hold meanwhile.")
    places = [name.rpartition("/")[2] for name in channels] + [one.handoff for one in channels.values()]
    variable = f"ORION_LISTEN or {settings.channels.name}" if settings.listen else settings.channels.name
    return await check_places(places, variable, settings, within_s)


async def check_places(names: Sequence[str], variable: str, settings: Settings, within_s: float) -> Finding:
    """Check that Orion can reach the channels and groups in a setting."""
    token, named = settings.slack_bot_token.get_secret_value(), [*filter(None, names)]
    if not (named and token):
        return ""
    try:
        async with open_client(token, api_url=settings.slack_api_url) as client, asyncio.timeout(within_s):
            for name in named:
                # Do not retry, because a person is waiting.
                if wrong := await find_fault(SlackCalls(client, patience_s=0), name, variable):
                    return Problem(*wrong)
    except DeliveryFailed as failure:
        return Problem(f"Slack does not tell: {failure.reason}", UPDATE_APP if failure.permanent else SLACK_AWAY)
    except TimeoutError:
        return Problem("Slack did not answer in time", SLACK_AWAY)
    return f"{variable} reaches {', '.join(named)}"


async def check_redis(settings: Settings, within_s: float) -> Finding | dict[str, Finding]:
    """Redis: its answer, its version, its durability, the other Orions in it, and whether Orion is paused."""
    is_external = bool(settings.redis_url.get_secret_value())
    where = "REDIS_URL" if is_external else f"embedded under {settings.home}"
    try:
        async with asyncio.timeout(within_s), open_redis(settings) as opened:
            if wrong := await missing_command(opened):
                return Problem(wrong, "Install Redis 6.2 or newer, or Valkey.")
            prefix = DEFAULT_PREFIX
            with suppress(WrongUse):  # Slack refuses the token: its own check says so
                prefix = await find_prefix(opened, settings)
            async with aclosing(Mailbox(opened, prefix=prefix)) as mailbox:
                await mailbox.probe()
            others = [one.name for one in await list_orions(opened) if prefix not in {one.prefix, DEFAULT_PREFIX}]
            shared = f"also used by {', '.join(others[:NAMED])}; each has keys of its own" if others else ""
            durability, pause = await _check_durability(opened, where), await _check_pause(opened, prefix)
            return {"Redis": durability, "Shared Redis": shared, "Paused": pause}
    except (WrongUse, EmbeddedRedisError) as error:
        detail = str(error)
    except RedisError as error:
        detail = f"cannot be used ({plain_cause(error)})"
    except TimeoutError:
        detail = f"did not answer within {within_s:.0f} s"
    remedy = "Check REDIS_URL: address, password, and that the server runs. Without REDIS_URL a private one is used."
    return Problem(detail, remedy if is_external else "Name a folder for it in ORION_HOME, or a server in REDIS_URL.")


async def _check_durability(opened: Redis, where: str) -> Finding:
    """Check that a question is on disk before Slack gets its ack, and that it stays until it is answered."""
    await opened.ping()
    try:
        # Hosted servers often forbid CONFIG: then there is nothing to report.
        found = await opened.config_get("appendonly", "appendfsync")
        state = await opened.info("cluster")
    except RedisError:
        return f"answers ({where}); its durability cannot be read"
    if state.get("cluster_enabled") and not isinstance(opened, RedisCluster):
        remedy = "Write REDIS_URL as redis+cluster://host:port,host:port."
        return Problem(f"answers ({where}), but is one node of a cluster", remedy)
    if (found.get("appendonly"), found.get("appendfsync")) != ("yes", "always"):
        detail = f"answers ({where}), but a crash can lose questions that Slack was told have arrived"
        return Problem(detail, "Set `appendonly yes` and `appendfsync always`.")
    if policy := await eviction_policy(opened):
        return Problem(f"answers ({where}), but {EVICTS.format(policy=policy)}", EVICTS_REMEDY)
    return f"answers ({where}), every change is on disk first"


async def _check_pause(opened: Redis, prefix: str) -> Finding:
    pause = await Pausing(opened, prefix=prefix).current()
    if pause is None:
        return ""
    since = datetime.fromtimestamp(pause.since, UTC).isoformat(timespec="minutes")
    reason = f" ({pause.reason})" if pause.reason else ""
    detail = f"since {since}: no question is answered, questions are stored{reason}"
    return Problem(detail, "Let Orion go on with `orion resume`.")


async def check_knowledge(settings: Settings, within_s: float) -> Finding:
    """The documents, and the first few that could not be read."""
    try:
        corpus = corpus_of(settings)
        async with open_index(corpus, wait_s=within_s) as (index, _):
            known = await asyncio.to_thread(figures_of, index, corpus.names)
    except KnowledgeAwayError as error:
        remedy = "Check ORION_KNOWLEDGE_URL: address, user, password, and that PostgreSQL runs."
        return Problem(f"the shared index cannot be used ({error})", remedy)
    except WrongUse as error:
        remedy = "Name folders that exist in ORION_DOCS, and one that can be written in ORION_HOME."
        return Problem(str(error), remedy)
    waiting = [f"never read: {source.where}" for source in known.sources if not source.state.tried]
    unread = [f"not read: {line}" for source in known.sources for line in source.unread_lines]
    more = [f"{len(unread) - NAMED} more: `orion docs` names them"] if len(unread) > NAMED else []
    count = f"{known.documents} document{'' if known.documents == 1 else 's'}"
    detail = "; ".join([count, *waiting, *unread[:NAMED], *more])
    faults = (
        (waiting, "Run `orion index`, or let a running Orion do it: it reads web sites soon after its start."),
        (known.failures, "Fix or remove them."),
        (not known.documents, "Set ORION_DOCS to your folders, or run `orion index DIR`."),
    )
    return next((Problem(detail, remedy) for is_wrong, remedy in faults if is_wrong), detail)


async def check_langfuse(settings: Settings, within_s: float) -> Finding:
    """Langfuse: its address, its keys, a version that accepts scores, and the queue for disliked answers."""
    secret = settings.langfuse_secret_key.get_secret_value()
    keys = {"LANGFUSE_PUBLIC_KEY": settings.langfuse_public_key, "LANGFUSE_SECRET_KEY": secret}
    if not settings.langfuse_enabled or not any(keys.values()):
        return "not configured, or turned off by LANGFUSE_TRACING_ENABLED: no traces are sent"
    if missing := next((key for key, value in keys.items() if not value), None):
        return Problem(f"{missing} is not set: no traces are sent", "Set both keys, or neither.")
    # Use plain HTTP: the SDK takes a third of a second to import, and retries for longer than a person waits.
    host, queue = settings.langfuse_url, settings.langfuse_annotation_queue
    headers = {"Authorization": aiohttp.encode_basic_auth(settings.langfuse_public_key, secret)}
    timeout = aiohttp.ClientTimeout(total=within_s)
    try:
        async with (
            aiohttp.ClientSession(proxy=proxy_for(host), timeout=timeout, headers=headers) as session,
            session.get(f"{host}/api/public/projects", allow_redirects=False) as reply,
            session.get(f"{host}/api/public/health", allow_redirects=False) as health,
            session.get(f"{host}/api/public/annotation-queues/{queue}", allow_redirects=False) as queued,
        ):
            status, projects = reply.status, objects(await _json_of(reply), "data")
            version = string(await _json_of(health), "version")
    except (aiohttp.ClientError, OSError, ValueError) as error:  # a time-out is an OSError, ValueError a host's name
        remedy = _CERTIFICATE if isinstance(error, aiohttp.ClientSSLError) else _LANGFUSE
        return Problem(f"{host} cannot be reached ({type(error).__name__})", remedy)
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    update = "Update Langfuse to 4.59 or newer for the pass rate, feedback and other scores."
    name_queue = "Put the id of a queue for traces into LANGFUSE_ANNOTATION_QUEUE, or leave it empty."
    faults = (
        (status >= HTTPStatus.MULTIPLE_CHOICES, f"answered {status}", _LANGFUSE),  # the SDK follows no redirect either
        (not projects, "does not answer as Langfuse does", _LANGFUSE),  # a sign-in page, or another server
        (() < numbers < SCORES_SINCE, f"runs version {version}: it takes traces, but refuses scores", update),
        (queue and queued.status == HTTPStatus.NOT_FOUND, f"has no annotation queue {queue}", name_queue),
    )
    found = next((Problem(f"{host} {detail}", remedy) for is_wrong, detail, remedy in faults if is_wrong), None)
    return found or f"{host} accepts the keys" + (f" (version {version})" if version else "")


async def _json_of(reply: aiohttp.ClientResponse) -> Mapping[str, Any]:
    """Return a reply's JSON object; empty if it is another text."""
    with suppress(ValueError):
        return mapping(await reply.json(content_type=None))
    return {}
