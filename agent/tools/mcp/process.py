"""Starts an MCP server as a process and exchanges lines with it, within limits of size and time."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from agent.tasks import background_tasks
from agent.tools.mcp.config import McpServer
from agent.tools.mcp.sanitize import to_one_line

MAX_LINE_BYTES: Final = 4_000_000  # the SDK's reader has no limit: an endless line would take all memory
MAX_UNREQUESTED_BYTES: Final = 16_000_000
MAX_ERROR_BYTES: Final = 4_096  # of the end of the error output
MAX_TROUBLE_CHARS: Final = 200
GRACE_S: Final = 1.0


@dataclass(slots=True)
class Link:
    """The link to one server. ``over`` is set when it broke.

    ``trouble`` is the latest hint at the problem: an HTTP status, or a line of the server's error output.
    """

    server: McpServer
    over: asyncio.Event = field(default_factory=asyncio.Event)
    trouble: str = ""

    def note(self, trouble: str) -> None:
        """Keep a hint at the problem, without the server's secrets."""
        self.trouble = to_one_line(self.server.without_secrets(trouble))[:MAX_TROUBLE_CHARS]


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
        """Write a line. Raises ``OSError`` if the process no longer reads."""
        self._unrequested = 0
        if self._process.stdin is None or self._process.stdin.is_closing():
            raise BrokenPipeError
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def read_errors(self, link: Link) -> None:
        """Note the latest line of its error output, until it is closed."""
        output, end = self._process.stderr, b""
        while output is not None and (piece := await output.read(MAX_ERROR_BYTES)):
            end = (end + piece)[-MAX_ERROR_BYTES:]
            link.note(end.decode(errors="replace").strip().rpartition("\n")[2])

    async def stop(self) -> None:
        """Close its input, then send SIGTERM, then SIGKILL."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            for asking in (0, signal.SIGTERM):  # 0 sends no signal: the end of its input may be enough
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
            await out.read(1 << 16)  # a full pipe must not prevent its exit
        await self._process.wait()

    def _signal(self, which: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, which)  # with its children: it leads its own process group


@asynccontextmanager
async def start_process(link: Link, env: Mapping[str, str]) -> AsyncIterator[ChildServer]:
    """Start the server's process, and stop it on leaving. Raises ``OSError`` if it cannot be started."""
    server = link.server
    process = await asyncio.create_subprocess_exec(
        server.command,
        *server.args,
        env=env,  # not Orion's own environment, which has tokens
        cwd=server.cwd or None,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=MAX_LINE_BYTES,
        start_new_session=True,  # ended with all its children
    )
    child = ChildServer(process)
    async with background_tasks() as tasks:
        reading = tasks.create_task(child.read_errors(link), name="mcp-errors")
        try:
            yield child
        finally:
            await child.stop()
            await asyncio.wait({reading}, timeout=GRACE_S)  # its last words say why it ended
            reading.cancel()
