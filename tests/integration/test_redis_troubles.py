"""A Redis that refuses: nothing is acknowledged, the log and the doctor say why, and work goes on afterwards."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, ReadOnlyError, RedisError, ResponseError
from structlog.testing import capture_logs
from structlog.typing import EventDict

from bot.doctor.checks import Check
from bot.doctor.doctor import examine
from bot.queue.claim import OK, Claimed, Ending, Lease
from bot.queue.queue import Mailbox
from bot.queue.worker import Worker
from bot.redis.client import client_of
from tests.support.orion_running import settings_in
from tests.support.redis_fleet import follows, free_port, node
from tests.support.services import UnusedHandler
from tests.support.waiting import wait_until


@asynccontextmanager
async def working(redis: Redis, handled: list[str]) -> AsyncIterator[Mailbox]:
    """A worker that answers everything, over this client."""

    class Noting(UnusedHandler):
        async def handle(self, claimed: Claimed, _lease: Lease) -> Ending:
            handled.append(claimed.body)
            return OK

    mailbox = Mailbox(redis)
    worker = Worker(mailbox, Noting())
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        try:
            yield mailbox
        finally:
            worker.stop()
    await mailbox.aclose()


async def expect_refusal(
    url: str, error: type[RedisError], mend: Callable[[], Awaitable[object]], cause: str = ""
) -> list[EventDict]:
    """Store nothing while Redis refuses, and answer once ``mend`` has run. Return the log, which names the cause."""
    handled = list[str]()
    with capture_logs() as logs:
        async with client_of(url) as redis, working(redis, handled) as mailbox:
            with pytest.raises(error):
                await mailbox.enqueue("T:C:1", "q", event_ids=["a"])
            if cause:
                await wait_until(lambda: any(cause in str(line.get("cause")) for line in logs), "the log says why")
            await mend()
            await mailbox.enqueue("T:C:1", "q", event_ids=["a"])
            await wait_until(lambda: handled == ["q"], "it was answered")
    return logs


async def redis_check(home: Path, url: str) -> Check:
    checks: Mapping[str, Check] = {check.name: check for check in await examine(settings_in(home, url), within_s=5)}
    return checks["Redis"]


async def test_a_wrong_password_is_reported_waited_out_and_never_shown(tmp_path: Path) -> None:
    async with node(tmp_path) as server, server.client() as admin:
        url = f"redis://:hunter2@{server.address}"
        await admin.config_set("requirepass", "other")
        check = await redis_check(tmp_path, url)
        assert (check.ok, "refuses the user or password" in check.detail) == (False, True)
        mend = partial(admin.config_set, "requirepass", "hunter2")
        logs = await expect_refusal(url, AuthenticationError, mend, "refuses the user or password")
        assert "hunter2" not in str(logs) + str(check)


async def test_a_read_only_replica_accepts_no_question_until_it_is_the_primary(tmp_path: Path) -> None:
    async with node(tmp_path) as primary, node(tmp_path) as replica:
        await replica.ask("REPLICAOF", "127.0.0.1", primary.port)
        await wait_until(partial(follows, replica), "the replica follows", timeout=30)
        url = f"redis://{replica.address}"
        check = await redis_check(tmp_path, url)
        assert (check.ok, "read-only replica" in check.detail) == (False, True)
        await expect_refusal(url, ReadOnlyError, partial(replica.ask, "REPLICAOF", "NO", "ONE"), "read-only replica")


async def test_a_full_redis_accepts_no_question_until_it_has_room(tmp_path: Path) -> None:
    async with node(tmp_path) as server, server.client() as admin:
        url = f"redis://{server.address}"
        await admin.config_set("maxmemory", 1)
        await expect_refusal(url, RedisError, partial(admin.config_set, "maxmemory", 0))
        await admin.config_set("maxmemory-policy", "allkeys-lru")
        check = await redis_check(tmp_path, url)
        assert (check.ok, "allkeys-lru" in check.detail) == (False, True)
        assert "noeviction" in check.remedy


async def test_a_redis_that_cannot_write_its_disk_accepts_no_question(tmp_path: Path) -> None:
    """A snapshot that cannot be written stops all writes, as a full disk does."""
    async with node(tmp_path) as server, server.client() as admin:
        await admin.config_set("save", "3600 1")
        (server.directory / "dump.rdb").mkdir()
        await admin.set("a", "b")
        await admin.bgsave()

        async def has_failed() -> bool:
            return bool((await admin.info("persistence"))["rdb_last_bgsave_status"] == "err")

        await wait_until(has_failed, "the snapshot failed")
        await expect_refusal(f"redis://{server.address}", ResponseError, partial(admin.config_set, "save", ""))


async def test_a_url_of_one_cluster_node_gets_a_hint(tmp_path: Path) -> None:
    async with node(tmp_path, "--cluster-enabled", "yes", "--cluster-port", str(free_port())) as server:
        await server.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)

        async def whole() -> bool:
            return "cluster_state:ok" in await server.ask("CLUSTER", "INFO")

        await wait_until(whole, "the cluster is complete")
        check = await redis_check(tmp_path, f"redis://{server.address}")
        assert (check.ok, "redis+cluster://" in check.remedy) == (False, True)
        assert (await redis_check(tmp_path, f"redis+cluster://{server.address}")).ok
