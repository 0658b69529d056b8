"""A cluster client that raises only ``RedisError``, so that callers wait out its outages like any other.

redis-py reports "no node can be reached" with another exception. During a fail-over a command can use a connection
that was just closed (seen: ``AttributeError`` because the writer was gone).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, cast

from redis.asyncio.cluster import ClusterNode, ClusterPipeline, ClusterPubSub, PipelineCommand, RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisClusterException

from bot.redis.connection import with_direct_writes

# Errors that redis-py raises while the cluster changes under it.
OUT_OF_STEP = (RedisClusterException, AttributeError, KeyError, OSError)


@contextmanager
def errors_as_outage() -> Iterator[None]:
    """Turn redis-py's other errors into a connection error."""
    try:
        yield
    except OUT_OF_STEP as error:
        message = f"the cluster cannot be used: {type(error).__name__}"
        raise RedisConnectionError(message) from error


def _raising_outages(method: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def call(*args: Any, **options: Any) -> Any:
        with errors_as_outage():
            return await method(*args, **options)

    return call


class Cluster(RedisCluster):
    """The client. ``made_of`` holds its nodes and settings, to make another one like it."""

    initialize = _raising_outages(RedisCluster.initialize)
    execute_command = _raising_outages(RedisCluster.execute_command)

    def __init__(self, *, nodes: list[tuple[str, int]], **settings: Any) -> None:
        self.made_of = {"nodes": nodes, **settings}
        super().__init__(startup_nodes=[ClusterNode(host, port) for host, port in nodes], **settings)
        # redis-py takes no class here; later nodes read this one
        own = with_direct_writes(self.connection_kwargs["connection_class"])
        self.connection_kwargs["connection_class"] = own
        for node in self.startup_nodes:
            node.connection_class = own

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> ClusterPipeline:  # noqa: ARG002 (redis-py's signature)
        """Pipeline of commands. Those of a transaction must live in one slot."""
        return Pipeline(self, transaction)  # type: ignore[abstract]  # an annotation of redis-py's base that it never sets

    def pubsub(self, *args: Any, **options: Any) -> ClusterPubSub:
        """Subscription. Every node hears what is published on any."""
        return Subscription(self, *args, **options)

    async def holder_of(self, key: str) -> ClusterNode:
        """Return the primary that holds this key, as far as the client knows."""
        if self.get_default_node() is None:  # the client has sent nothing yet, so it does not know the slots
            await self.initialize()
        with errors_as_outage():
            return cast("ClusterNode", self.get_node_from_key(key))

    async def on_one_connection(self, key: str, *commands: tuple[str | int, ...]) -> list[Any]:
        """Send these commands to the primary of ``key`` over one connection and return the replies."""
        holder = await self.holder_of(key)
        sent = [PipelineCommand(number, *command) for number, command in enumerate(commands)]
        with errors_as_outage():
            await holder.execute_pipeline(sent)
            for each in sent:
                if isinstance(each.result, Exception):
                    raise each.result
        return [each.result for each in sent]


class Pipeline(ClusterPipeline):
    """A pipeline that fails with ``RedisError``."""

    execute = _raising_outages(ClusterPipeline.execute)


class Subscription(ClusterPubSub):
    """A subscription that fails with ``RedisError``."""

    execute_command = _raising_outages(ClusterPubSub.execute_command)
    get_message = _raising_outages(ClusterPubSub.get_message)
