"""A process that is talked to in lines: its output is bounded, and it always ends."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from agent.tools.mcp.config import McpServer
from agent.tools.mcp.transport import MAX_LINE_BYTES, ChildServer, ServerLink, start_process

PATH = {"PATH": "/usr/bin:/bin"}


def start(command: str, *args: str, cwd: str = "") -> AbstractAsyncContextManager[ChildServer]:
    return start_process(ServerLink(McpServer(name="a", command=command, args=args, cwd=cwd)), PATH)


async def test_lines_go_out_and_come_back_without_empty_ones() -> None:
    async with start("cat") as child:
        await child.say(b"one\n\ntwo")
        lines = child.lines()
        assert [await anext(lines), await anext(lines)] == [b"one", b"two"]
    with pytest.raises(BrokenPipeError):
        await child.say(b"three")
    assert [line async for line in lines] == []


async def test_line_without_end_is_the_end() -> None:
    async with start("sh", "-c", f"head -c {MAX_LINE_BYTES + 1000} /dev/zero; echo; echo more") as child:
        assert [line async for line in child.lines()] == []


async def test_what_cannot_be_started_says_so() -> None:
    with pytest.raises(FileNotFoundError):
        async with start("/nowhere/at/all"):
            pass
