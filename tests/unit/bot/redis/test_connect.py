"""What Orion needs of a Redis, with a real server that lacks it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from redis import Redis as Blocking
from redis.asyncio import Redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from bot.app import open_orion
from bot.doctor.doctor import examine
from bot.documents.open import corpus_of
from bot.errors import WrongUse
from bot.redis.connect import eviction_policy, missing_command
from bot.redis.embedded import find_server, probe_server
from tests.support.orion_running import settings_in


@pytest.fixture(scope="module")
def old_server() -> Iterator[Path]:
    """A server that knows as little as Redis 6.0, and evicts."""
    directory = Path(tempfile.mkdtemp(prefix="orion-t-"))
    path, config = directory / "redis.sock", directory / "conf"
    config.write_text(
        f'port 0\nunixsocket {path}\nsave ""\ndir {directory}\nmaxmemory-policy allkeys-lru\n'
        'rename-command GETEX ""\nrename-command GETDEL ""\n'
    )
    with subprocess.Popen([find_server(), config], stdout=subprocess.DEVNULL) as server:
        try:
            with Blocking(unix_socket_path=str(path), retry=Retry(ConstantBackoff(0.02), 500)) as probe:
                probe.ping()
            yield path
        finally:
            server.kill()
    shutil.rmtree(directory)


async def test_redis_below_6_2_is_refused_with_what_to_do(old_server: Path, tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path, f"unix://{old_server}", slack_api_url="http://127.0.0.1:9/api/", slack_bot_token=SecretStr("xoxb-1")
    )
    with pytest.raises(WrongUse, match=r"lacks GETEX: Orion needs Redis 6\.2 or newer, or Valkey\. Install"):
        async with open_orion(settings, corpus_of(settings), concurrency=1, socket=False):
            raise AssertionError
    told = {check.name: check for check in await examine(settings, within_s=5)}["Redis"]
    assert (told.ok, "lacks GETEX" in told.detail) == (False, True)


async def test_what_a_redis_can_do_and_evicts_is_found_out(old_server: Path, redis_client: Redis) -> None:
    async with Redis.from_url(f"unix://{old_server}", decode_responses=True) as old:
        assert (bool(await missing_command(old)), await eviction_policy(old)) == (True, "allkeys-lru")
    assert (await missing_command(redis_client), await eviction_policy(redis_client)) == ("", "")


async def test_server_that_still_reads_its_log_is_known(tmp_path: Path, redis_socket: Path) -> None:
    async def loading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while commands := (await reader.read(4096)).count(b"*"):
            writer.write(b"-LOADING Redis is loading the dataset in memory\r\n" * commands)
        writer.close()

    path = tmp_path / "s"
    async with await asyncio.start_unix_server(loading, path):
        assert await probe_server(path) == "loading"
    assert await probe_server(redis_socket) == "ready"
    assert await probe_server(tmp_path / "nobody") == "silent"
