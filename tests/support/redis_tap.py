"""A proxy before a real Redis that counts what a client asks of it: round trips, and the commands in each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

POLLING = frozenset({"BRPOP", "SUBSCRIBE", "PING", "CLIENT", "HELLO", "INFO", "SCRIPT"})
"""What an idle worker or a new connection asks, whether or not anybody was answered."""


@dataclass(slots=True)
class Tap:
    """``trips``: for each round trip the names of its commands, in order; polling is left out."""

    url: str = ""
    trips: list[list[str]] = field(default_factory=list)


@asynccontextmanager
async def tap_redis(redis_url: str, polled: frozenset[str]) -> AsyncIterator[Tap]:
    """A tap before the Redis at ``redis_url``. ``polled`` are the hashes of scripts that count as polling."""
    tap = Tap()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(redis_url)
        there = (
            await asyncio.open_unix_connection(parts.path)
            if parts.scheme == "unix"
            else await asyncio.open_connection(parts.hostname, parts.port)
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(there[0], writer))
            group.create_task(_listen(reader, there[1], tap, polled))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        tap.url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield tap
    finally:
        server.close()


async def _listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tap: Tap, polled: frozenset[str]) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 20):
            names = [name for name, first in _commands(data) if name not in POLLING and first not in polled]
            if names:
                tap.trips.append(names)
            writer.write(data)
    writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 20):
            writer.write(data)
    writer.close()


def _commands(data: bytes) -> list[tuple[str, str]]:
    """Name and first argument of each command in a chunk of the protocol."""
    found: list[tuple[str, str]] = []
    words: list[str] = []
    left = 0
    lines = iter(data.split(b"\r\n"))
    for line in lines:
        if line.startswith(b"*") and not left:
            left, words = int(line[1:] or 0), []
        elif line.startswith(b"$") and left:
            words.append(next(lines, b"").decode(errors="replace"))
            left -= 1
            if not left:
                found.append((words[0].upper(), words[1] if len(words) > 1 else ""))
    return found
