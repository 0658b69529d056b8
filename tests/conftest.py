"""Fixtures of all tests: a real Valkey on a unix socket, and a hook that keeps every test on this machine.

``redis_client`` and ``redis_url`` start each test on an empty database; each pytest process has a server of its own.
``no_leaked_keys`` is opt-in: it fails a test that leaves keys behind which nothing will ever remove.
"""

import gc
import ipaddress
import logging
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis
from hypothesis import HealthCheck, settings
from redis.asyncio import Redis

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
from bot.redis.client import client_of
from bot.redis.server import find_server
from tests.support.orion_command import Terminal, open_terminal
from tests.support.postgres_server import PostgresUnavailableError, postgres

# A machine that runs two suites at once is slow now and then; what must be fast is shown by the bench, not by a test.
# The same examples in every run, so that a change is judged by what it changes; "explore" looks further:
# --hypothesis-profile=explore draws 10,000 new examples for each test that does not name a number of its own.
settings.register_profile(
    "orion", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("orion"), derandomize=False, max_examples=10_000)
settings.load_profile("orion")

# A suite started in the background of a shell ignores Ctrl-C, and so would every process it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Exempt loaded objects from garbage collection, which would distort tests of linear time."""
    gc.collect()
    gc.freeze()


class NetworkForbiddenError(RuntimeError):
    """A test tried to leave this machine. Not an ``OSError``: code for outages would swallow that."""


def is_local(host: object) -> bool:
    """Return True if a host is this machine. Names other than localhost count as remote."""
    if isinstance(host, bytes):
        host = host.decode()
    if host in (None, "", "localhost", "0.0.0.0", "::"):  # noqa: S104 (compared with, never bound)
        return True
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


def forbid_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: connections and look-ups beyond loopback and unix sockets fail."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and arguments[0].family != socket.AF_UNIX:
        host = arguments[1][0]
    else:
        return
    if not is_local(host):
        message = f"tests stay on this machine, but this one wanted {host!r} ({event})"
        raise NetworkForbiddenError(message)


@pytest.fixture(scope="session", autouse=True)
def _network_guard() -> None:
    # An audit hook works below asyncio, aiohttp, redis and httpx alike, and replaces no function.
    sys.addaudithook(forbid_network)


SPEAK_FROM_THREADS = (
    "langfuse",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk._shared_internal",
)


@pytest.fixture(autouse=True)
def _no_word_from_earlier_tests() -> Iterator[None]:
    """Threads of an earlier test say nothing in this one: a dead Langfuse leaves some that still try."""
    earlier = frozenset(threading.enumerate()) - {threading.main_thread()}

    def of_this_test(_: logging.LogRecord) -> bool:
        return threading.current_thread() not in earlier

    loggers = [logging.getLogger(name) for name in SPEAK_FROM_THREADS]
    for logger in loggers:
        logger.addFilter(of_this_test)
    yield
    for logger in loggers:
        logger.removeFilter(of_this_test)


@pytest.fixture(scope="session")
def redis_socket() -> Iterator[Path]:
    """A Valkey of this pytest process alone. The directory is short: a socket's path has little more than 100 bytes."""
    directory = Path(tempfile.mkdtemp(prefix="orion-t-"))
    path = directory / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no", "--dir", str(directory)]
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen([find_server(), *options], stdout=log, stderr=log) as server,
    ):
        try:
            with redis.Redis(
                unix_socket_path=str(path), retry=redis.retry.Retry(redis.backoff.ConstantBackoff(0.02), 500)
            ) as probe:
                probe.ping()
            yield path
        finally:
            server.kill()
    shutil.rmtree(directory)


@pytest.fixture
def redis_url(redis_socket: Path) -> str:
    """``REDIS_URL`` of an empty database."""
    with redis.Redis(unix_socket_path=str(redis_socket)) as client:
        client.flushall()
    return f"unix://{redis_socket}"


@pytest.fixture
async def redis_client(redis_url: str) -> AsyncIterator[Redis]:
    """The product's own client on an empty database."""
    async with client_of(redis_url) as client:
        yield client


@pytest.fixture
async def no_leaked_keys(redis_client: Redis) -> AsyncIterator[list[str]]:
    """After the test every key must have a TTL. The list takes glob patterns of keys that may stay."""
    allowed: list[str] = []
    yield allowed
    leaked = [
        key
        async for key in redis_client.scan_iter(count=1000)
        if await redis_client.ttl(key) == -1 and not any(fnmatchcase(key, pattern) for pattern in allowed)
    ]
    assert leaked == [], "these keys have no TTL and would stay forever"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL of this pytest process alone; each test has a schema of its own."""
    with ExitStack() as stack:
        try:
            url = stack.enter_context(postgres())
        except PostgresUnavailableError as error:
            pytest.skip(f"PostgreSQL does not run here: {error}")
        yield url


@pytest.fixture
def index(tmp_path: Path) -> Iterator[KnowledgeIndex]:
    """An empty document index. What must hold in PostgreSQL too is tested over ``each_index``."""
    with closing(SqliteIndex.open(tmp_path / "home" / "knowledge.db")) as in_file:
        yield in_file


@pytest.fixture(params=["sqlite", "postgres"])
def each_index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeIndex]:
    """An empty document index, once of each kind: the contract that both keep."""
    if request.param == "sqlite":
        with closing(SqliteIndex.open(tmp_path / "home" / "knowledge.db")) as in_file:
            yield in_file
        return
    url, schema = request.getfixturevalue("postgres_url"), f"test_{uuid4().hex[:12]}"
    shared = PostgresIndex(url, schema=schema)
    yield shared
    with shared.session() as session:
        session.execute(f"DROP SCHEMA {schema} CASCADE")
    shared.close()


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A person's terminal in a folder of its own."""
    yield from open_terminal(tmp_path, capsys, monkeypatch)
