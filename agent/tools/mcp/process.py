"""Starts an MCP server as a process and exchanges lines with it, within limits of size and time."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

LINE_MOST: Final = 4_000_000  # the SDK's reader has no limit: a line without an end would take all memory
UNASKED_MOST: Final = 16_000_000
GRACE_S: Final = 1.0


class ChildServer:
    """A running process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._unasked = 0

    async def lines(self) -> AsyncIterator[bytes]:
        """Each line without its end, until the process closes its output or says too much."""
        out = self._process.stdout
        while out is not None:
            try:
                line = await out.readline()
            except ValueError:  # a line without end
                return
            self._unasked += len(line)
            if not line or self._unasked > UNASKED_MOST:
                return
            if said := line.strip():
                yield said

    async def say(self, line: bytes) -> None:
        """Writes a line. Raises ``OSError`` when nobody reads any more."""
        self._unasked = 0
        if self._process.stdin is None or self._process.stdin.is_closing():
            raise BrokenPipeError
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def stop(self) -> None:
        """Closes its input, then asks it to end, then ends it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            for asking in (0, signal.SIGTERM):  # 0 asks for nothing: that its input ended may be enough
                self._signal(asking)
                with suppress(TimeoutError):
                    async with asyncio.timeout(GRACE_S):
                        await self._drained()
                        return
        finally:
            self._signal(signal.SIGKILL)
        await self._drained()

    async def _drained(self) -> None:
        out = self._process.stdout
        while out is not None and not out.at_eof():
            await out.read(1 << 16)  # a full pipe must not keep it from ending
        await self._process.wait()

    def _signal(self, which: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, which)  # with whatever it started: it leads a group of its own


@asynccontextmanager
async def started(
    command: str, args: tuple[str, ...], *, env: Mapping[str, str], cwd: str = ""
) -> AsyncIterator[ChildServer]:
    """The process, stopped on leaving. Raises ``OSError`` when it cannot be started."""
    process = await asyncio.create_subprocess_exec(
        command,
        *args,
        env=env,  # nothing of Orion's own, which holds tokens
        cwd=cwd or None,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=LINE_MOST,
        start_new_session=True,  # ended with all that it started
    )
    server = ChildServer(process)
    try:
        yield server
    finally:
        await server.stop()
