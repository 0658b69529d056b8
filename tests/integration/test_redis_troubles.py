"""A Redis that refuses, is restricted or emptied: nothing is lost or answered twice, and log and doctor say why."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, ReadOnlyError, RedisError, ResponseError
from structlog.testing import capture_logs
from structlog.typing import EventDict

from bot.doctor.checks import Check
from bot.doctor.doctor import examine
from bot.local.model.roster import VISITOR
from bot.queue.claim import OK, Claimed, Ending, Lease
from bot.queue.queue import Mailbox
from bot.queue.worker import Worker
from bot.redis.client import client_of
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import CHANNEL, MENTION, answers, posts, running, settings_in, text_of, whispers
from tests.support.paths import ROOT
from tests.support.redis_fleet import follows, free_port, node
from tests.support.scripted_orion import LIMIT, quiet, with_server
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


ACL = re.search(r"^ACL SETUSER orion (.*)$", (ROOT / "docs/operating.md").read_text(), re.MULTILINE)


async def acl(redis: Redis, *words: str) -> Any:
    return await redis.execute_command("ACL", *words)  # type: ignore[no-untyped-call]  # redis-py's own


@pytest.fixture
async def as_user(redis_client: Redis, redis_url: str) -> AsyncIterator[str]:
    yield redis_url.replace("unix://", "unix://orion:pw@")
    await acl(redis_client, "DELUSER", "orion")
    await redis_client.config_set("maxmemory", 0)


async def test_a_user_of_the_documented_acl_can_do_everything(
    as_user: str, tmp_path: Path, redis_client: Redis
) -> None:
    assert ACL is not None
    rules = ACL[1].replace(">PASSWORD", ">pw").split()
    await acl(redis_client, "SETUSER", "orion", "reset", *rules)
    await acl(redis_client, "LOG", "RESET")
    settings = settings_in(tmp_path, as_user)
    async with running(settings) as setting:
        assert (await setting.orion.checks())["redis"]
        ts = setting.workspace.post(VISITOR, CHANNEL, f"{MENTION} How many requests per minute may one API key send?")
        await wait_until(lambda: answers(setting.workspace, ts, ts), "it is answered")
    refused = {entry["object"] for entry in await acl(redis_client, "LOG")}
    assert refused <= {"{orion:0}:dead"}  # a key of the version before, which this user cannot have written
    found = {check.name: check for check in await examine(settings, within_s=5)}["Redis"]
    assert "a crash can lose questions" in found.detail  # the test's server saves nothing: it could be asked that much


RIGHTS = "on >pw ~orion:* &orion:* +@all"
FAULTS = {
    "no scripts": f"{RIGHTS} -@scripting",
    "only loaded scripts": f"{RIGHTS} -script|load",
    "other keys": "on >pw ~other:* &* +@all",
    "no channel": "on >pw ~* resetchannels +@all",
    "no streams": f"{RIGHTS} -xadd",
    "no insertion into lists": f"{RIGHTS} -linsert",
    "no waiting": f"{RIGHTS} -brpop",
    "reads only": "on >pw ~* &* +@read +@connection +@scripting",
    "memory is full": RIGHTS,
}


def test_probe_calls_every_command_of_the_scripts() -> None:
    scripts = {path.name: path.read_text() for path in (ROOT / "bot/queue/lua").glob("*.lua")}
    probe = scripts.pop("probe.lua")
    used = set(re.findall(r"redis\.p?call\('([A-Z]+)'", "".join(scripts.values()))) - {"TIME", "SCAN"}
    assert used == set(re.findall(r"{'([A-Z]+)'", probe))


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_redis_that_refuses_writes_is_not_ready_even_if_it_answers_ping(
    fault: str, as_user: str, tmp_path: Path, redis_client: Redis
) -> None:
    await redis_client.script_flush()
    await acl(redis_client, "SETUSER", "orion", "reset", *FAULTS[fault].split())
    async with running(settings_in(tmp_path, as_user), part="front", mode="http") as setting:
        if fault == "memory is full":
            await redis_client.config_set("maxmemory", 1)
        assert await setting.orion.redis.ping()
        assert not (await setting.orion.checks())["redis"]
        found = {check.name: check for check in await examine(settings_in(tmp_path, as_user), within_s=5)}["Redis"]
        assert not found.ok
        assert "full" in found.detail if fault == "memory is full" else "docs/operating.md" in found.detail


SENTENCE = "Each API key may make 600 requests a minute [1]."
LONG = f"<thinking>It is [1].</thinking><answer>{SENTENCE}\n\n{SENTENCE}\n\n{SENTENCE}</answer>"


@pytest.mark.parametrize("streams", [False, True])
async def test_a_question_in_progress_when_redis_is_emptied_is_answered_once(
    tmp_path: Path, redis_url: str, redis_client: Redis, monkeypatch: pytest.MonkeyPatch, *, streams: bool
) -> None:
    monkeypatch.setattr("bot.turn.recovery.RECHECK_AT_S", (0.0,))
    gate = asyncio.Event()
    async with ScriptedOpenAI(decisions=lambda _: RESPOND, drafts=lambda _: says(LONG, before_end=gate)) as server:
        settings = with_server(tmp_path, redis_url, server).model_copy(update={"streams": streams})
        async with running(settings) as setting:
            ts = setting.ask(f"{MENTION} {LIMIT}")
            await server.wait_for_requests(2)
            calls = setting.workspace.calls
            if streams:
                await setting.workspace.wait_for(lambda: any(call.method == "chat.appendStream" for call in calls))
            await redis_client.flushall()
            gate.set()
            answer = await setting.answer_to(ts)
            assert "600 requests" in text_of(answer)
            await wait_until(lambda: quiet(setting), "nothing is left to do")
            assert [post["ts"] for post in posts(setting.workspace, CHANNEL)] == [answer["ts"]]


async def test_a_question_that_a_backup_brings_back_is_not_answered_again(
    tmp_path: Path, redis_url: str, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.gates.flow.AGED_S", 0.0)
    settings = settings_in(tmp_path, redis_url)
    async with running(settings, part="front") as front:
        ts = front.ask(f"{MENTION} {LIMIT}")
        await wait_until(lambda: is_stored(redis_client), "the question is stored")
        backup = {key: await redis_client.dump(key) or b"" for key in await redis_client.keys()}
        for _ in range(2):
            async with running(settings, inhabited=front.workspace, part="worker") as setting:
                answer = await front.answer_to(ts)
                await wait_until(lambda: quiet(setting), "nothing is left to do")
            await redis_client.flushall()
            for key, value in backup.items():
                await redis_client.restore(key, 0, value)
        assert [post["ts"] for post in posts(front.workspace, CHANNEL)] == [answer["ts"]]
        assert len([call for call in front.workspace.calls if call.method in {"chat.postMessage", "chat.update"}]) == 1


async def is_stored(redis: Redis) -> bool:
    return bool(await redis.keys("*:mb:*"))


async def test_a_click_on_an_answer_whose_record_is_gone_says_so(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with running(settings_in(tmp_path, redis_url)) as setting:
        answer = await setting.answer_to(setting.ask(f"{MENTION} {LIMIT}"))
        await wait_until(lambda: quiet(setting), "the turn is over")
        await redis_client.flushall()
        for count, button in enumerate(("orion_feedback", "orion_not_helpful"), 1):
            await setting.workspace.click(CHANNEL, answer["ts"], button)
            await setting.workspace.wait_for(lambda: whispers(setting)[count - 1 :])  # noqa: B023 - waits at once
        assert {text for _, text in whispers(setting)} == {"I no longer have the record of this answer."}
