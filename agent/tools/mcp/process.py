"""Starts an MCP server as a process and exchanges lines with it, within limits of size and time."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from agent.tasks import background_tasks

MAX_LINE_BYTES: Final = 4_000_000  # the SDK's reader has no limit: an endless line would take all memory
MAX_UNREQUESTED_BYTES: Final = 16_000_000
MAX_ERROR_BYTES: Final = 4_096  # of the error output, its end
GRACE_S: Final = 1.0


class ChildServer:
    """A running process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._unrequested = 0

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield each line without its end, until the process closes its output or sends too much."""
        out = self._process.stdout
        while out is not None:
            try:
                line = await out.readline()
            except ValueError:  # a line without end
                return
            self._unrequested += len(line)
            if not line or self._unrequested > MAX_UNREQUESTED_BYTES:
                return
            if said := line.strip():
                yield said

    async def say(self, line: bytes) -> None:
        """Write a line. Raises ``OSError`` if the process does not read any more."""
        self._unrequested = 0
        if self._process.stdin is None or self._process.stdin.is_closing():
            raise BrokenPipeError
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def read_errors(self, note: Callable[[str], None]) -> None:
        """Call ``note`` with the latest line of its error output, until it is closed."""
        output, end = self._process.stderr, b""
        while output is not None and (piece := await output.read(MAX_ERROR_BYTES)):
            end = (end + piece)[-MAX_ERROR_BYTES:]
            note(end.decode(errors="replace").strip().rpartition("\n")[2])

    async def stop(self) -> None:
        """Close its input, then send SIGTERM, then SIGKILL."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            for asking in (0, signal.SIGTERM):  # 0 sends nothing: the end of its input may be enough
                self._signal(asking)
                with suppress(TimeoutError):
                    async with asyncio.timeout(GRACE_S):
                        await self._wait_for_end()
                        return
        finally:
            self._signal(signal.SIGKILL)
        await self._wait_for_end()

    async def _wait_for_end(self) -> None:
        out = self._process.stdout
        while out is not None and not out.at_eof():
            await out.read(1 << 16)  # a full pipe must not keep it from ending
        await self._process.wait()

    def _signal(self, which: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, which)  # with its children: it leads a process group of its own


@asynccontextmanager
async def start_process(
    command: str, args: tuple[str, ...], *, env: Mapping[str, str], note: Callable[[str], None], cwd: str = ""
) -> AsyncIterator[ChildServer]:
    """Start the process, and stop it on leaving. ``note`` gets what it last wrote to its error output.

    Raises ``OSError`` if it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        command,
        *args,
        env=env,  # not Orion's own environment, which has tokens
        cwd=cwd or None,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=MAX_LINE_BYTES,
        start_new_session=True,  # ended with all its children
    )
    server = ChildServer(process)
    async with background_tasks() as tasks:
        reading = tasks.create_task(server.read_errors(note), name="mcp-errors")
        try:
            yield server
        finally:
            await server.stop()
            await asyncio.wait({reading}, timeout=GRACE_S)  # its last words say why it ended
            reading.cancel()
