"""A process that is talked to in lines: what it says is bounded, and it never stays behind."""

from __future__ import annotations

import pytest

from agent.tools.mcp.process import MAX_LINE_BYTES, start_process

PATH = {"PATH": "/usr/bin:/bin"}


async def test_last_line_of_the_error_output_is_noted() -> None:
    notes: list[str] = []
    script = "echo one >&2; echo two >&2; exit 3"
    async with start_process("sh", ("-c", script), env=PATH, note=notes.append) as child:
        assert [line async for line in child.lines()] == []
    assert notes[-1].endswith("two")


async def test_lines_go_out_and_come_back_without_empty_ones() -> None:
    async with start_process("cat", (), env=PATH, note=print) as child:
        await child.say(b"one\n\ntwo")
        lines = child.lines()
        assert [await anext(lines), await anext(lines)] == [b"one", b"two"]
    with pytest.raises(BrokenPipeError):
        await child.say(b"three")
    assert [line async for line in lines] == []


async def test_line_without_end_is_the_end() -> None:
    script = f"head -c {MAX_LINE_BYTES + 1000} /dev/zero; echo; echo more"
    async with start_process("sh", ("-c", script), env=PATH, note=print) as child:
        assert [line async for line in child.lines()] == []


async def test_process_that_does_not_listen_is_asked_to_end() -> None:
    async with start_process("sleep", ("600",), env=PATH, note=print, cwd="/") as child:
        pass
    assert [line async for line in child.lines()] == []


async def test_what_cannot_be_started_says_so() -> None:
    with pytest.raises(FileNotFoundError):
        async with start_process("/nowhere/at/all", (), env={}, note=print):
            pass
