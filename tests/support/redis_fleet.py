"""Real fleets on loopback: a cluster of three primaries, and a primary with a replica behind a Sentinel.

``cluster()`` and ``sentinel()`` yield a ``Fleet``: its ``url`` is a ``REDIS_URL``, ``fail_over`` kills (-9) the primary
that holds a key and returns when a replica has taken its place. Every server keeps its files in a directory of its own,
writes them before it answers, and is gone afterwards. Nothing is left listening beyond 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import RedisError

from bot.redis.server import find_server
from tests.support.waiting import wait_until

SLOTS = 16384
PRIMARIES = 3
SERVICE = "orion"
HOST = "127.0.0.1"


@dataclass(eq=False)
class Node:
    """One server process and where it listens."""

    port: int
    directory: Path
    options: list[str]
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Redis]:
        """A client of this server alone, quick to fail."""
        one_try = Retry(NoBackoff(), 0)
        async with Redis(host=HOST, port=self.port, decode_responses=True, socket_timeout=2, retry=one_try) as client:
            yield client

    async def ask(self, *command: str | int) -> Any:
        """Send one command; None without a reply."""
        async with self.client() as client:
            with suppress(RedisError, OSError):
                return await client.execute_command(*command)  # type: ignore[no-untyped-call]  # redis-py's own
        return None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self, primary: Node | None = None) -> None:
        """Over the files it left; as a replica of ``primary`` if one is named."""
        following = ["--replicaof", f"{HOST} {primary.port}"] if primary else []
        self.process = launch(self.directory, [*self.options, *following])


@dataclass(eq=False)
class Fleet:
    """Servers that are one Redis. ``primary_of`` finds who holds a key, ``successor`` who took over from a dead one."""

    url: str
    nodes: list[Node]
    primary_of: Callable[[str], Awaitable[Node]]
    taken_over: Callable[[Node], Awaitable[bool]]
    clustered: bool = False
    fallen: list[Node] = field(default_factory=list)

    async def fail_over(self, key: str = "") -> None:
        """Kill the primary that holds ``key``, and wait until all agree on its replica as the new one."""
        node = await self.primary_of(key)
        node.kill()
        self.fallen.append(node)
        await wait_until(lambda: self.taken_over(node), "a replica took over", timeout=30)

    async def restore(self) -> None:
        """Start the killed servers again, as replicas of those that took over, and wait until they have all data."""
        for node in self.fallen:
            node.start_again(None if self.clustered else await self.primary_of(""))
            await wait_until(partial(follows, node), f"{node.address} follows", timeout=30)
        self.fallen.clear()


def free_port() -> int:
    """A port that is closed, and that the system does not assign by itself."""
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port


def launch(directory: Path, options: list[str]) -> subprocess.Popen[bytes]:
    with (directory / "log").open("ab") as log:
        return subprocess.Popen([find_server(), *options], stdout=log, stderr=log, stdin=subprocess.DEVNULL)


@asynccontextmanager
async def node(root: Path, *more: str, config: str = "") -> AsyncIterator[Node]:
    """One server that answers. With ``config`` (a file's text) it gets that file and no other option but ``more``."""
    port = free_port()
    directory = root / str(port)
    directory.mkdir()
    options = ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--repl-diskless-sync-delay", "0"]
    if config:
        (directory / "config").write_text(config)
        options = [str(directory / "config")]
    options += ["--port", str(port), "--bind", HOST, "--dir", str(directory), *more]
    started = Node(port, directory, options, launch(directory, options))
    try:
        await wait_until(lambda: started.ask("PING"), f"{started.address} answers")
        yield started
    finally:
        started.kill()


async def follows(node: Node) -> bool:
    """Return True if this is a replica that has caught up with its primary."""
    role = await node.ask("ROLE")
    return bool(role) and role[0] in {"slave", "replica"} and role[3] == "connected"


@asynccontextmanager
async def cluster() -> AsyncIterator[Fleet]:
    """Three primaries with a third of the slots each, and a replica of each. They take some 3 s to agree."""
    options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1500"]
    async with AsyncExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="orion-cluster-"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        nodes: list[Node] = []
        for _ in range(2 * PRIMARIES):
            more = [*options, "--cluster-port", str(free_port())]
            nodes.append(await stack.enter_async_context(node(root, *more)))
        await _join(nodes)
        url = "redis+cluster://" + ",".join(one.address for one in nodes[:PRIMARIES])
        yield Fleet(
            url=url,
            nodes=nodes,
            clustered=True,
            primary_of=lambda key: _slot_owner(nodes, key),
            taken_over=lambda dead: _all_agree(nodes, dead),
        )


async def _join(nodes: list[Node]) -> None:
    """Make one cluster of them."""
    primaries = nodes[:PRIMARIES]
    for number, primary in enumerate(primaries):
        first, last = number * SLOTS // PRIMARIES, (number + 1) * SLOTS // PRIMARIES - 1
        await primary.ask("CLUSTER", "ADDSLOTSRANGE", first, last)
    for number, one in enumerate(nodes, 1):
        await one.ask("CLUSTER", "SET-CONFIG-EPOCH", number)
        bus = one.options[one.options.index("--cluster-port") + 1]
        await nodes[0].ask("CLUSTER", "MEET", HOST, one.port, bus)
    for primary, replica in zip(primaries, nodes[PRIMARIES:], strict=True):
        master_id = await primary.ask("CLUSTER", "MYID")
        replicate = partial(replica.ask, "CLUSTER", "REPLICATE", master_id)
        await wait_until(replicate, "the replica has its primary", timeout=30)
    for one in nodes:
        await wait_until(partial(_sees_all, one, len(nodes)), "the cluster is complete", timeout=30)
    for replica in nodes[PRIMARIES:]:
        await wait_until(partial(follows, replica), "the replica follows", timeout=30)


async def _sees_all(one: Node, count: int = 0) -> bool:
    """Return True if this node sees a whole cluster of ``count`` nodes (0: any number)."""
    info = await one.ask("CLUSTER INFO") or {}
    return info.get("cluster_state") == "ok" and count in {0, int(info["cluster_known_nodes"])}


async def _owner_by(witness: Node, slot: int) -> int | None:
    """The port of the primary that holds a slot, as one node sees it."""
    for address, facts in (await witness.ask("CLUSTER NODES") or {}).items():
        spans = [(int(span[0]), int(span[-1])) for span in facts["slots"]]
        if "master" in facts["flags"] and any(first <= slot <= last for first, last in spans):
            return None if "fail" in facts["flags"] else int(address.rpartition(":")[2])
    return None


async def _slot_owner(nodes: list[Node], key: str) -> Node:
    witness = next(one for one in nodes if one.alive)
    port = await _owner_by(witness, key_slot(key.encode()))
    return next(one for one in nodes if one.port == port)


async def _all_agree(nodes: list[Node], dead: Node) -> bool:
    """Return True if all live nodes see a whole cluster again, without the dead one."""
    for one in nodes:
        if one.alive and not await _sees_all(one):
            return False
        if one.alive and dead.port in {await _owner_by(one, slot) for slot in (0, SLOTS // 2, SLOTS - 1)}:
            return False
    return True


@asynccontextmanager
async def sentinel() -> AsyncIterator[Fleet]:
    """A primary and a replica, watched by one Sentinel that decides alone."""
    async with AsyncExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="orion-sentinel-"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        primary = await stack.enter_async_context(node(root))
        replica = await stack.enter_async_context(node(root))
        await replica.ask("REPLICAOF", HOST, primary.port)
        await wait_until(lambda: follows(replica), "the replica follows", timeout=30)
        config = (
            f"sentinel monitor {SERVICE} {HOST} {primary.port} 1\n"
            f"sentinel down-after-milliseconds {SERVICE} 500\n"
            f"sentinel failover-timeout {SERVICE} 3000\n"
        )
        watch = await stack.enter_async_context(node(root, "--sentinel", config=config))
        nodes = [primary, replica]
        knows = partial(watch.ask, "SENTINEL", "REPLICAS", SERVICE)
        await wait_until(knows, "the Sentinel knows the replica", timeout=30)
        yield Fleet(
            url=f"redis+sentinel://{watch.address}/{SERVICE}/0",
            nodes=nodes,
            primary_of=lambda _: _watched_primary(watch, nodes),
            taken_over=lambda dead: _has_new_primary(watch, nodes, dead),
        )


async def _watched_primary(watch: Node, nodes: list[Node]) -> Node:
    address = await watch.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
    return next(one for one in nodes if address and one.port == int(address[1]))


async def _has_new_primary(watch: Node, nodes: list[Node], dead: Node) -> bool:
    """Return True after the fail-over. Before, the Sentinel would promote a returning primary again."""
    rows = await watch.ask("SENTINEL", "MASTER", SERVICE) or []
    facts = rows if isinstance(rows, dict) else dict(zip(rows[::2], rows[1::2], strict=True))
    now = await _watched_primary(watch, nodes)
    role = await now.ask("ROLE") or [""]
    return now is not dead and facts.get("flags") == "master" and role[0] == "master"


async def cancellations_lost(redis: Redis, of: int = 200) -> int:
    """The number of cancellations that were lost, each made one step later in a loop of commands."""

    async def busy() -> None:
        task = asyncio.current_task()
        while task is not None and not task.cancelling():
            await redis.publish("nobody", "")

    lost = 0
    async with asyncio.TaskGroup() as group:
        for steps in range(of):
            task = group.create_task(busy())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            lost += not task.cancelled()
    return lost
