"""A Redis that answers PING but would refuse a question: readiness and doctor say so. The documented ACL is enough."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from bot.doctor.doctor import examine
from bot.local.model.roster import VISITOR
from tests.support.orion_running import CHANNEL, MENTION, answers, running, settings_in
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

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
