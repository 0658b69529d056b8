"""The forms of ``REDIS_URL``: one server, a primary behind Sentinels, a cluster. All clients raise ``RedisError`` only.

``impatient`` returns a second client of the same servers that answers in time or fails.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.exceptions import ClusterDownError, ReadOnlyError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from bot.redis.cluster import Cluster
from bot.redis.connection import with_direct_writes

CLUSTER, SENTINEL = "+cluster", "+sentinel"
REDIS_PORT, SENTINEL_PORT = 6379, 26379
SENTINEL_TIMEOUT_S = 1.0  # a dead Sentinel must not delay the next one: fail-over waits for it

# Settings of every client: replies are ``str``, short hiccups are retried, nothing hangs for long.
PATIENT: dict[str, Any] = {
    "decode_responses": True,
    "encoding_errors": "replace",  # one damaged entry must not fail a reply that holds others
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "health_check_interval": 30,
    "retry": Retry(ExponentialBackoff(cap=0.5, base=0.05), 3),
    # Without this each new connection reads redis-py's version from the disk to send it: most of its cost.
    "driver_info": None,
}
# A burst of events waits for one of these. A connection per event would cost more than its commands, and a file.
WAITING: dict[str, Any] = {"max_connections": 64, "timeout": 20}
REFUSING: dict[str, Any] = {"max_connections": 2_000}  # redis-py's own 100 are refused in a burst
# Causes for the log and `orion doctor`, by the first word of the reply or by the error's type.
PLAIN_CAUSES = {
    "AuthenticationError": "Redis refuses the user or password of REDIS_URL",
    "WRONGPASS": "Redis refuses the user or password of REDIS_URL",
    "NOAUTH": "Redis wants a password: put it into REDIS_URL",
    "NOPERM": "Redis does not let this user run what Orion needs: docs/operating.md lists commands, keys and channels",
    "NoPermissionError": "Redis does not let this user run what Orion needs: docs/operating.md lists them",
    "ReadOnlyError": "this Redis is a read-only replica: name the primary, or the Sentinels (redis+sentinel://…)",
    "MISCONF": "Redis cannot write to its disk (full?); nothing is acknowledged until it can",
    "OutOfMemoryError": "Redis is full (maxmemory); nothing is acknowledged until it has room",
    "MovedError": "this Redis is a node of a cluster: write redis+cluster://host:port,…",
    "MasterNotFoundError": "the Sentinels name no primary (a fail-over under way, or another service name)",
    "ClusterDownError": "the cluster is down or failing over",
    "ConnectionError": "Redis cannot be reached: is it up, and is REDIS_URL right?",
    "TimeoutError": "Redis does not answer in time",
}
# Errors that pass once Redis is back or has a primary again. Any other is a fault of the command or its caller.
OUTAGES = (RedisConnectionError, RedisTimeoutError, ReadOnlyError, ClusterDownError)


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[Redis]:
    """Open a client of what ``url`` names, without contacting it. Raises ``ValueError`` for an unknown form."""
    parts = urlsplit(url)
    if parts.scheme.endswith(CLUSTER):
        settings = _settings(parts, CLUSTER)
        cluster = Cluster(nodes=_hosts(parts, REDIS_PORT), **settings)
        try:
            # redis-py's two clients share all commands but no type. Only this line has to know.
            yield cast("Redis", cluster)
        finally:
            await cluster.aclose()
    elif parts.scheme.endswith(SENTINEL):
        async with _open_behind_sentinels(parts) as client:
            yield client
    else:
        pool = BlockingConnectionPool.from_url(url, **PATIENT, **WAITING)
        pool.connection_class = with_direct_writes(pool.connection_class)
        async with Redis.from_pool(pool) as client:
            yield client


@asynccontextmanager
async def _open_behind_sentinels(parts: SplitResult) -> AsyncIterator[Redis]:
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        message = "the service's name is missing"
        raise ValueError(message)
    settings = _settings(parts._replace(path=f"/{database}"), SENTINEL)
    over_tls = settings.pop("connection_class", None) is SSLConnection
    managed = SentinelManagedSSLConnection if over_tls else SentinelManagedConnection
    settings["connection_class"] = with_direct_writes(managed)
    quick = {"socket_timeout": SENTINEL_TIMEOUT_S, "socket_connect_timeout": SENTINEL_TIMEOUT_S}
    password = settings.pop("sentinel_password", None)
    guards = {**quick, "password": password, "retry": Retry(NoBackoff(), 0)}
    sentinels = Sentinel(_hosts(parts, SENTINEL_PORT), sentinel_kwargs=guards)  # type: ignore[no-untyped-call]  # redis-py's own
    for guard in sentinels.sentinels:
        guard.connection_pool.connection_class = with_direct_writes(guard.connection_pool.connection_class)
    async with sentinels, sentinels.master_for(service, **settings) as client:
        yield client


def _settings(parts: SplitResult, form: str) -> dict[str, Any]:
    """Settings in a URL except its hosts, as redis-py reads them for one server."""
    scheme = parts.scheme.removesuffix(form)
    if scheme not in {"redis", "rediss"}:
        message = "the scheme is none of redis and rediss"
        raise ValueError(message)
    query = dict(parse_qsl(parts.query))
    extra = {name: query.pop(name) for name in ("sentinel_password",) if name in query}
    user = parts.netloc.rpartition("@")[0]
    plain = urlunsplit((scheme, f"{user}@one" if user else "one", parts.path, urlencode(query), ""))
    read = {name: value for name, value in parse_url(plain).items() if name not in {"host", "port"}}
    if form == CLUSTER and read.pop("connection_class", None) is SSLConnection:
        read["ssl"] = True
    return {**PATIENT, **REFUSING, **extra, **read}


def _hosts(parts: SplitResult, port: int) -> list[tuple[str, int]]:
    """Parse ``host:port,host:port``. The port is optional."""
    named = [urlsplit(f"//{one.strip()}") for one in parts.netloc.rpartition("@")[2].split(",")]
    hosts = [(one.hostname or "", one.port or port) for one in named]
    if not all(host for host, _ in hosts):
        message = "a host is missing"
        raise ValueError(message)
    return hosts


def impatient(client: Redis, *, timeout_s: float) -> Redis:
    """Return a client of the same servers that answers within ``timeout_s`` or fails without a retry. Close it."""
    hasty = {"retry": Retry(NoBackoff(), 0), "socket_timeout": timeout_s, "socket_connect_timeout": timeout_s}
    if isinstance(client, Cluster):
        return cast("Redis", Cluster(**{**client.made_of, **hasty}))
    pool = client.connection_pool
    settings: dict[str, Any] = {**pool.connection_kwargs, **hasty}
    # This pool asks the Sentinels for the current primary. A plain one would keep the first.
    if isinstance(pool, SentinelConnectionPool):
        settings.pop("connection_pool")
        again = SentinelConnectionPool(  # type: ignore[no-untyped-call]  # redis-py's own
            pool.service_name, pool.sentinel_manager, connection_class=pool.connection_class, **settings
        )
        return Redis.from_pool(again)
    return Redis.from_pool(ConnectionPool(connection_class=pool.connection_class, **settings))


def plain_cause(error: RedisError) -> str:
    """Cause of an error in plain words, without its text, which may quote arguments or the URL."""
    first = "NOPERM" if "ACL failure in script" in str(error) else str(error).partition(" ")[0]
    kind = type(error).__name__
    return PLAIN_CAUSES.get(first) or PLAIN_CAUSES.get(kind) or kind
