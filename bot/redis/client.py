"""The Redis clients: the forms of REDIS_URL, connections, and the wait for a replica.

``client_of`` opens one server, a primary behind Sentinels, or a cluster. All clients raise only ``RedisError``.
``impatient`` returns a second client of the same servers, which answers in time or fails.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.cluster import ClusterNode, ClusterPipeline, ClusterPubSub, PipelineCommand, RedisCluster
from redis.asyncio.connection import AbstractConnection, SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.exceptions import ClusterDownError, ReadOnlyError, RedisClusterException, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from bot.redis.damaged_keys import MendingRedis, mend_replies, send_mending

AnyConnection = TypeVar("AnyConnection", bound=AbstractConnection)
# Errors that redis-py raises while the cluster changes under it.
OUT_OF_STEP = (RedisClusterException, AttributeError, KeyError, OSError)
CLUSTER, SENTINEL = "+cluster", "+sentinel"
REDIS_PORT, SENTINEL_PORT = 6379, 26379
SENTINEL_TIMEOUT_S = 1.0  # a dead Sentinel must not delay the next one, because the fail-over waits for it
# Settings of all clients: replies are ``str``, short hiccups are retried, nothing hangs for long.
COMMON_SETTINGS: dict[str, Any] = {
    "decode_responses": True,
    "encoding_errors": "replace",  # one damaged entry must not fail a reply with other entries
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "health_check_interval": 30,
    "retry": Retry(ExponentialBackoff(cap=0.5, base=0.05), 3),
    # Without this each new connection reads redis-py's version from the disk to send it: most of its cost.
    "driver_info": None,
}
# Options of a pool. When all connections are in use, a caller waits for one: a burst of events shares them. A
# connection per event would cost more than its commands, and a file descriptor.
WAITING_POOL: dict[str, Any] = {"max_connections": 64, "timeout": 20}
REFUSING_POOL: dict[str, Any] = {"max_connections": 2_000}  # with redis-py's own 100, bursts are refused
# Causes for the log and `orion doctor`, by the first word of the reply or the type of the error.
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
# Errors that pass once Redis is back or has a primary again. A turn counts any other, such as a full Redis, as a crash.
OUTAGES = (RedisConnectionError, RedisTimeoutError, ReadOnlyError, ClusterDownError)
CONFIRM_TIMEOUT_S = 0.5  # Slack waits three seconds for its ack; a healthy replica needs a few milliseconds
REPLICA_COUNT_TTL_S = 10.0  # INFO per question would cost a round trip; it is fine to notice a new replica late
MARK_TTL_S = 60  # never read: the mark only has to be a later write


class DirectWrites(AbstractConnection):
    """Writes without ``asyncio.wait_for``, which can lose a cancellation (``bot.queue.claim``)."""

    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:  # noqa: FBT001, FBT002 (the signature is redis-py's)
        """Send, within ``socket_timeout`` seconds. Raises ``RedisError``."""
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        if check_health:
            await self.check_health()  # type: ignore[no-untyped-call]  # redis-py's own
        # A connection serves one caller at a time, so this is safe.
        seconds, self.socket_timeout = self.socket_timeout, None
        try:
            async with asyncio.timeout(seconds):
                await super().send_packed_command(command, check_health=False)
        except TimeoutError:
            message = "Timeout writing to socket"
            raise RedisTimeoutError(message) from None
        finally:
            self.socket_timeout = seconds


def with_direct_writes(connection_class: type[AnyConnection]) -> type[AnyConnection]:
    """Return this redis-py class with direct writes."""
    return type(connection_class.__name__, (DirectWrites, connection_class), {})


def raising_outages(method: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return the method with redis-py's other errors turned into a connection error."""

    async def call(*args: Any, **options: Any) -> Any:
        try:
            return await method(*args, **options)
        except OUT_OF_STEP as error:
            message = f"the cluster cannot be used: {type(error).__name__}"
            raise RedisConnectionError(message) from error

    return call


class Cluster(RedisCluster):
    """The client of a cluster. ``made_of`` keeps its nodes and settings, so that another one can be made."""

    initialize = raising_outages(RedisCluster.initialize)
    _execute_once = raising_outages(RedisCluster.execute_command)

    def __init__(self, *, nodes: list[tuple[str, int]], **settings: Any) -> None:
        self.made_of = {"nodes": nodes, **settings}
        super().__init__(startup_nodes=[ClusterNode(host, port) for host, port in nodes], **settings)
        # redis-py does not accept a class here; later nodes read this one
        own = with_direct_writes(self.connection_kwargs["connection_class"])
        self.connection_kwargs["connection_class"] = own
        for node in self.startup_nodes:
            node.connection_class = own

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute a command. Retry it once if it hits a damaged key. Raises ``RedisError``."""
        return await send_mending(cast("Redis", self), self._execute_once, args, options)

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> ClusterPipeline:  # noqa: ARG002 (redis-py's signature)
        """Pipeline of commands. The keys of a transaction must be in one slot."""
        return Pipeline(self, transaction)  # type: ignore[abstract]  # an annotation of redis-py's base that it never sets

    def pubsub(self, *args: Any, **options: Any) -> ClusterPubSub:
        """Subscription. Every node gets what is published on any node."""
        return Subscription(self, *args, **options)

    @raising_outages
    async def holder_of(self, key: str) -> ClusterNode:
        """Return the primary that has this key, as far as the client knows."""
        if self.get_default_node() is None:  # the client has sent nothing yet, so it does not know the slots
            await self.initialize()
        return cast("ClusterNode", self.get_node_from_key(key))

    @raising_outages
    async def on_one_connection(self, key: str, *commands: tuple[str | int, ...]) -> list[Any]:
        """Send these commands to the primary of ``key`` over one connection and return the replies."""
        holder = await self.holder_of(key)
        sent = [PipelineCommand(number, *command) for number, command in enumerate(commands)]
        await holder.execute_pipeline(sent)
        for each in sent:
            if isinstance(each.result, Exception):
                raise each.result
        return [each.result for each in sent]


class Pipeline(ClusterPipeline):
    """A pipeline that fails with ``RedisError``."""

    _execute_once = raising_outages(ClusterPipeline.execute)

    async def execute(self, raise_on_error: bool = True, allow_redirections: bool = True) -> list[Any]:  # noqa: FBT001, FBT002 (the signature is redis-py's)
        """Execute the commands, and those that met a damaged key once more. Raises ``RedisError``."""
        queue: Any = getattr(self._execution_strategy, "_command_queue")  # noqa: B009 - redis-py names no public one
        try:
            # redis-py retries a pipeline during a fail-over only if its errors may be raised.
            replies = await self._execute_once(not self._transaction, allow_redirections)
        except ResponseError as error:
            replies = [command.result for command in queue]
            if error not in replies:  # it is the cluster's, and no command was executed
                raise
        commands = [(command.args, command.kwargs) for command in queue]
        return await mend_replies(cast("Redis", self.cluster_client), commands, replies, raise_on_error=raise_on_error)


class Subscription(ClusterPubSub):
    """A subscription that fails with ``RedisError``."""

    execute_command = raising_outages(ClusterPubSub.execute_command)
    get_message = raising_outages(ClusterPubSub.get_message)


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[Redis]:
    """Open a client for ``url`` without connecting. Raises ``ValueError`` for an unknown form."""
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
        pool = BlockingConnectionPool.from_url(url, **COMMON_SETTINGS, **WAITING_POOL)
        pool.connection_class = with_direct_writes(pool.connection_class)
        async with MendingRedis.from_pool(pool) as client:
            yield client


@asynccontextmanager
async def _open_behind_sentinels(parts: SplitResult) -> AsyncIterator[Redis]:
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        message = "the service's name is missing"
        raise ValueError(message)
    query = dict(parse_qsl(parts.query))
    password = query.pop("sentinel_password", None)
    settings = _settings(parts._replace(path=f"/{database}", query=urlencode(query)), SENTINEL)
    over_tls = settings.pop("connection_class", None) is SSLConnection
    managed = SentinelManagedSSLConnection if over_tls else SentinelManagedConnection
    settings["connection_class"] = with_direct_writes(managed)
    quick = {"socket_timeout": SENTINEL_TIMEOUT_S, "socket_connect_timeout": SENTINEL_TIMEOUT_S}
    sentinel_settings = {**quick, "password": password, "retry": Retry(NoBackoff(), 0)}
    sentinels = Sentinel(_hosts(parts, SENTINEL_PORT), sentinel_kwargs=sentinel_settings)  # type: ignore[no-untyped-call]  # redis-py's own
    for sentinel in sentinels.sentinels:
        sentinel.connection_pool.connection_class = with_direct_writes(sentinel.connection_pool.connection_class)
    async with sentinels, sentinels.master_for(service, MendingRedis, **settings) as client:
        yield client


def _settings(parts: SplitResult, form: str) -> dict[str, Any]:
    """Settings in a URL except its hosts, as redis-py reads them for one server."""
    scheme = parts.scheme.removesuffix(form)
    if scheme not in {"redis", "rediss"}:
        message = "the scheme is none of redis and rediss"
        raise ValueError(message)
    user = parts.netloc.rpartition("@")[0]
    plain = urlunsplit((scheme, f"{user}@one" if user else "one", parts.path, parts.query, ""))
    read = {name: value for name, value in parse_url(plain).items() if name not in {"host", "port"}}
    if form == CLUSTER and read.pop("connection_class", None) is SSLConnection:
        read["ssl"] = True
    return {**COMMON_SETTINGS, **REFUSING_POOL, **read}


def _hosts(parts: SplitResult, port: int) -> list[tuple[str, int]]:
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
        return MendingRedis.from_pool(again)
    return MendingRedis.from_pool(ConnectionPool(connection_class=pool.connection_class, **settings))


def plain_cause(error: RedisError) -> str:
    """Return the cause of an error in plain words, without its text, which may quote arguments or the URL."""
    first = "NOPERM" if "ACL failure in script" in str(error) else str(error).partition(" ")[0]
    kind = type(error).__name__
    return PLAIN_CAUSES.get(first) or PLAIN_CAUSES.get(kind) or kind


class NotReplicated(RedisError):  # noqa: N818 - a fact, not an error: the write is stored, but on one server only
    """No replica has the write yet, so a fail-over now would lose it."""


@dataclass(frozen=True, slots=True, eq=False)
class Replication:
    """Waits for replicas. ``clock`` returns seconds of a clock that never goes back."""

    redis: Redis
    within_s: float = CONFIRM_TIMEOUT_S
    clock: Callable[[], float] = time.monotonic
    _replicas: dict[str, tuple[float, int]] = field(default_factory=dict, init=False)
    _asking: set[str] = field(default_factory=set, init=False)

    async def confirm(self, shard: str) -> None:
        """Wait until a replica, if one is connected, has everything written to this shard. Raises ``NotReplicated``.

        Write a mark first: a replica that has this later write also has the earlier one from any connection.
        """
        if not await self._has_replicas(shard):
            return
        mark = f"{shard}:replicated"
        # Wait for one replica, not a majority: each ack would take longer, and Slack waits only three seconds (decision
        # 6).
        commands = ("SET", mark, "1", "EX", MARK_TTL_S), ("WAIT", 1, round(self.within_s * 1000))
        if isinstance(self.redis, Cluster):  # WAIT counts what its own connection wrote
            replies = await self.redis.on_one_connection(mark, *commands)
        else:
            async with self.redis.pipeline(transaction=False) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                replies = await pipe.execute()
        if int(replies[-1]) > 0:
            return
        self._replicas.pop(shard, None)
        if await self._has_replicas(shard):
            raise NotReplicated

    async def _has_replicas(self, shard: str) -> bool:
        """Return whether the server of this shard has replicas; False if it does not say."""
        counted_at, count = self._replicas.get(shard, (-math.inf, 0))
        is_known = counted_at > -math.inf  # then only one caller asks again: a burst would ask hundreds of times
        if self.clock() - counted_at > REPLICA_COUNT_TTL_S and not (is_known and shard in self._asking):
            client = self.redis
            self._asking.add(shard)
            try:
                where: dict[str, Any] = (
                    {"target_nodes": await client.holder_of(shard)} if isinstance(client, Cluster) else {}
                )
                info: Any = await client.info("replication", **where)
                count = int(info.get("connected_slaves", 0))
            except ResponseError:
                count = 0
            finally:
                self._asking.discard(shard)
            self._replicas[shard] = self.clock(), count
        return count > 0
