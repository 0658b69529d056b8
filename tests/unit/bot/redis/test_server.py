"""The server that Orion runs itself, and what Orion needs of any Redis."""

import asyncio
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pydantic import SecretStr
from redis import Redis as Blocking
from redis.asyncio import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from structlog.testing import capture_logs

from bot.app import open_orion
from bot.doctor.doctor import examine
from bot.documents.open import corpus_of
from bot.errors import WrongUse
from bot.queue.queue import Mailbox
from bot.redis.server import (
    EmbeddedRedisError,
    connect,
    eviction_policy,
    find_server,
    probe_server,
    server_binaries,
)
from tests.support.orion_running import settings_in
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def old_server() -> Iterator[Path]:
    """A server that knows as little as Redis 6.0, and evicts."""
    directory = Path(tempfile.mkdtemp(prefix="orion-t-"))
    path, config = directory / "redis.sock", directory / "conf"
    config.write_text(
        f'port 0\nunixsocket {path}\nsave ""\ndir {directory}\nmaxmemory-policy allkeys-lru\nrename-command GETEX ""\n'
    )
    with subprocess.Popen([find_server(), config], stdout=subprocess.DEVNULL) as server:
        try:
            with Blocking(unix_socket_path=str(path), retry=Retry(ConstantBackoff(0.02), 500)) as probe:
                probe.ping()
            yield path
        finally:
            server.kill()
    shutil.rmtree(directory)


async def test_a_redis_below_6_2_is_refused_with_a_remedy(old_server: Path, tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path, f"unix://{old_server}", slack_api_url="http://127.0.0.1:9/api/", slack_bot_token=SecretStr("xoxb-1")
    )
    with pytest.raises(WrongUse, match=r"lacks GETEX: Orion needs Redis 6\.2 or newer, or Valkey\. Install"):
        async with open_orion(settings, corpus_of(settings), concurrency=1, socket=False):
            raise AssertionError
    told = {check.name: check for check in await examine(settings, within_s=5)}["Redis"]
    assert (told.ok, "lacks GETEX" in told.detail) == (False, True)
    async with Redis.from_url(f"unix://{old_server}", decode_responses=True) as old:
        assert await eviction_policy(old) == "allkeys-lru"


async def test_a_server_that_still_loads_its_log_is_recognised(tmp_path: Path, redis_socket: Path) -> None:
    async def loading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while commands := (await reader.read(4096)).count(b"*"):
            writer.write(b"-LOADING Redis is loading the dataset in memory\r\n" * commands)
        writer.close()

    path = tmp_path / "s"
    async with await asyncio.start_unix_server(loading, path):
        assert await probe_server(path) == "loading"
    assert await probe_server(redis_socket) == "ready"
    assert await probe_server(tmp_path / "nobody") == "silent"


# A process that uses the home named first, says which server it got, and stays until its input is closed.
USER = """
import asyncio, pathlib, structlog, sys
from bot.redis.server import connect

async def main():
    async with connect(pathlib.Path(sys.argv[1])) as redis:
        await redis.incr("users")
        print((await redis.info("server"))["process_id"], flush=True)
        await asyncio.to_thread(sys.stdin.read)

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
asyncio.run(main())
"""


@contextmanager
def user(home: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", USER, str(home)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process


def reported_pid(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


async def pid_of(redis: Redis) -> int:
    return int((await redis.info("server"))["process_id"])


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Path]:
    """A home folder. A server that a failed test left in it is ended by a last client."""
    yield tmp_path / "home"
    async with connect(tmp_path / "home"):
        pass


async def test_confirmed_data_is_restored_for_its_owner_alone(home: Path) -> None:
    async with connect(home) as redis:
        await redis.set("question", "ä")
        settings = {name: (await redis.config_get(name))[name] for name in ("appendfsync", "maxmemory-policy", "port")}
        assert settings == {"appendfsync": "always", "maxmemory-policy": "noeviction", "port": "0"}
        folder = home / "redis"
        assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "redis.sock")] == [0o700, 0o700]
    async with connect(home) as redis:
        assert await redis.get("question") == "ä"


async def test_one_server_per_home_and_only_the_last_leaver_ends_it(home: Path) -> None:
    async with connect(home) as first:
        pid = await pid_of(first)
        async with connect(home) as second:
            assert await pid_of(second) == pid
        assert await pid_of(first) == pid
        with user(home) as process:
            assert reported_pid(process) == pid
            process.communicate()
        assert await first.get("users") == "1"
    await wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the server is gone")


async def test_several_processes_at_once_start_one_server(home: Path) -> None:
    with user(home) as a, user(home) as b, user(home) as c:
        pids = {await asyncio.to_thread(reported_pid, process) for process in (a, b, c)}
        for process in (a, b, c):
            process.communicate()
    assert len(pids) == 1


async def test_the_server_survives_a_killed_parent_and_is_found_again(home: Path) -> None:
    with user(home) as process:
        pid = await asyncio.to_thread(reported_pid, process)
        assert os.getpgid(pid) != os.getpgid(process.pid)  # Ctrl-C in the parent's terminal does not reach it
        os.killpg(process.pid, signal.SIGKILL)
    async with connect(home) as redis:
        assert await pid_of(redis) == pid
        assert await redis.get("users") == "1"


async def test_a_full_disk_refuses_questions_until_there_is_room(home: Path) -> None:
    """A limit on the size of files simulates a full disk. A server inherits it at its start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        async with connect(home) as redis:
            mailbox, kept = Mailbox(redis), 0
            with suppress(RedisError):
                while kept < 30:
                    await mailbox.enqueue("T:C:1", "x" * 20_000, event_ids=[str(kept)])
                    kept += 1
            assert 0 < kept < 30
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

            async def is_taken() -> bool:
                with suppress(RedisError):
                    return await mailbox.enqueue("T:C:1", "after", event_ids=["after"])
                return False

            await wait_until(is_taken, "the question is taken")
            assert (await mailbox.depth()).messages == kept + 1
            await mailbox.aclose()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("last_words", "cause"),
    [("# Can't recover from AOF write error. Exiting...", "cannot write to its disk"), ("", "killed or crashed")],
)
async def test_a_killed_server_restarts_with_all_confirmed_data_and_the_cause_is_logged(
    home: Path, last_words: str, cause: str
) -> None:
    async with connect(home) as redis:
        for number in range(100):
            await redis.rpush("list", number)
        os.kill(await pid_of(redis), signal.SIGKILL)
        with (home / "redis" / "server.log").open("a") as log:
            log.write(last_words)
        with capture_logs() as logs:
            assert await redis.llen("list") == 100
    (died,) = [line for line in logs if line["event"] == "embedded_redis_died"]
    assert cause in died["cause"]
    assert died["free_bytes"] > 0


async def test_a_home_path_too_long_for_a_socket_gets_a_short_path_that_others_find(tmp_path: Path) -> None:
    home = tmp_path / ("deep" * 30)
    async with connect(home) as redis:
        pid, socket = await pid_of(redis), Path((home / "redis" / "socket").read_text())
        assert len(str(socket)) < 60
        with user(home) as process:
            assert await asyncio.to_thread(reported_pid, process) == pid
            process.communicate()
    assert not socket.parent.exists()
    async with connect(home) as redis:
        assert await redis.get("users") == "1"


async def test_files_that_cannot_be_read_give_a_clear_error(tmp_path: Path) -> None:
    async with connect(tmp_path) as redis:
        await redis.set("a", "b")
    for path in (tmp_path / "redis" / "appendonlydir").glob("*.manifest"):
        path.write_text("garbage\n")
    with pytest.raises(EmbeddedRedisError, match=r"ended at once\. The end of its log: .*manifest"):
        async with connect(tmp_path):
            pass


async def test_a_home_folder_that_cannot_be_written_gives_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "redis" / "server.log").mkdir(parents=True)
    with pytest.raises(EmbeddedRedisError, match=r"(?s)could not be started: .*log file"):
        async with connect(tmp_path):
            pass


def test_the_bundled_server_comes_first_and_one_on_path_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "redis-server"
    own.write_text("#!/bin/sh\nexit 0\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    bundled, on_path = server_binaries()
    assert bundled.name == "valkey-server"
    assert on_path == own
    assert find_server() == bundled


def test_a_server_binary_that_does_not_run_here_is_skipped(tmp_path: Path) -> None:
    foreign, broken, good = tmp_path / "foreign", tmp_path / "broken", tmp_path / "good"
    foreign.write_bytes(b"\x7fELF of another machine")
    broken.write_text("#!/bin/sh\nexit 127\n")
    good.write_text("#!/bin/sh\nexit 0\n")
    for path in (foreign, broken, good):
        path.chmod(0o755)
    assert find_server([foreign, broken, tmp_path / "missing", good]) == good
    with pytest.raises(EmbeddedRedisError, match=r"apt-get install redis-server.*REDIS_URL"):
        find_server([foreign, broken])
