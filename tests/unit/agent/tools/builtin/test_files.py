"""Reading files inside roots: the asked lines, the ways out that are shut, and files that are no text."""

import os
import socket
import tracemalloc
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.actions import ToolCall
from agent.tools.builtin.files import (
    MAX_LISTED,
    MAX_READ_BYTES,
    MAX_TEXT_CHARS,
    FileReadTool,
    FileRefused,
    _open_below,
    _read_excerpt,
)
from agent.tools.tool import ToolResult, call_tool

HUGE = 2 << 30


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "logs"
    (made / "app").mkdir(parents=True)
    (made / "app" / "run.log").write_text("one\ntwo\nthree\nfour\n")
    (made / ".env").write_text("TOKEN=1")
    (tmp_path / "secret.txt").write_text("secret")
    return made


async def read(root: Path, path: str, **arguments: Any) -> ToolResult:
    asked = ToolCall(call_id="1", tool="file_read", input={"path": path, **arguments})
    return await call_tool({"file_read": FileReadTool([root])}, asked, timeout_s=60, max_chars=20_000)


async def text_of(root: Path, path: str, **arguments: Any) -> str:
    found = await read(root, path, **arguments)
    assert found.ok, found.error
    return found.sources[0].text


@pytest.mark.parametrize(
    ("arguments", "text", "title"),
    [
        ({}, "one\ntwo\nthree\nfour\n", "logs/app/run.log, lines 1 to 4"),
        ({"start_line": 2, "end_line": 3}, "two\nthree", "logs/app/run.log, lines 2 to 3"),
        ({"start_line": 4}, "four\n", "logs/app/run.log, lines 4 to 4"),
        ({"tail": 2}, "three\nfour", "logs/app/run.log"),
        ({"tail": 9}, "one\ntwo\nthree\nfour", "logs/app/run.log"),
    ],
)
async def test_the_asked_lines_become_a_source(root: Path, arguments: dict[str, Any], text: str, title: str) -> None:
    found = await read(root, "logs/app/run.log", **arguments)
    (source,) = found.sources
    assert (source.text, source.title, source.origin) == (text, title, "tool:file_read")
    assert source.updated_at.startswith("20")


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt", "logs/../../secret.txt", "app/../../secret.txt", "/etc/passwd", "out", "outside/secret.txt",
        "circle", ".env", "logs/.env", "a\0b", "nowhere.txt", "app/run.log/more", "x" * 3000,
    ],
)  # fmt: skip
async def test_nothing_outside_the_root_can_be_read(root: Path, path: str) -> None:
    (root / "out").symlink_to(root.parent / "secret.txt")
    (root / "outside").symlink_to(root.parent)
    (root / "circle").symlink_to(root / "circle")
    found = await read(root, path)
    assert not found.ok
    assert found.error
    assert not found.sources


async def test_a_link_that_stays_inside_is_followed(root: Path) -> None:
    """The path may leave the root's name out, or be whole."""
    assert await text_of(root, "app/run.log") == await text_of(root, str(root / "app" / "run.log"))
    wrong = await read(root, "app/run.log", start_line=3, end_line=2)
    assert wrong.error == "'end_line' must not be before 'start_line'."
    (root / "latest.log").symlink_to(root / "app" / "run.log")
    found = await read(root, "latest.log", tail=1)
    assert (found.sources[0].title, found.sources[0].text) == ("logs/app/run.log", "four")


def test_a_folder_swapped_for_a_link_grants_no_access(root: Path) -> None:
    """A folder may become a link between the lookup and the opening."""
    (root / "swapped").symlink_to(root.parent)
    with pytest.raises(FileRefused, match="cannot be opened"):
        _open_below(root, ("swapped", "secret.txt"))


async def test_pipes_and_sockets_are_named_and_do_not_hang(root: Path) -> None:
    os.mkfifo(root / "pipe")
    found = await read(root, "pipe")
    assert found.error == "That is a device, a pipe or a socket, not a file."
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{os.open(root, os.O_RDONLY)}/s")  # a socket's path is short
        assert not (await read(root, "s")).ok


async def test_a_two_gigabyte_log_is_read_at_the_requested_lines(root: Path) -> None:
    log = root / "huge.log"
    with log.open("wb") as file:
        file.write(b"first\n" * 3)
        file.seek(HUGE)
        file.write(b"\nlast but one\nlast\n")
    tracemalloc.start()
    try:
        assert await text_of(root, "huge.log", tail=2) == "last but one\nlast"
        assert await text_of(root, "huge.log", start_line=2, end_line=3) == "first\nfirst"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


async def test_a_line_deep_in_a_file_is_found(root: Path) -> None:
    (root / "long.log").write_text("".join(f"line {n}\n" for n in range(1, 300_001)))
    assert await text_of(root, "long.log", start_line=299_998, end_line=299_999) == "line 299998\nline 299999"
    for beyond in (300_001, 900_000):
        assert (await read(root, "long.log", start_line=beyond)).error == f"It has fewer than {beyond} lines."


async def test_a_long_result_is_cut_with_a_note(root: Path) -> None:
    (root / "long.log").write_text("".join(f"line {n}\n" for n in range(1, 30_001)))
    found = await read(root, "long.log")
    assert len(found.sources[0].text) == MAX_TEXT_CHARS
    assert found.content.endswith("There is more of it: ask for other lines.")
    assert "There is more" not in (await read(root, "long.log", end_line=3)).content
    assert "There is more" in (await read(root, "long.log", tail=5000)).content
    (root / "one-line.txt").write_text("ä" * MAX_READ_BYTES)
    assert set(await text_of(root, "one-line.txt")) == {"ä"}
    assert set(await text_of(root, "one-line.txt", tail=1)) == {"ä"}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Grüße".encode(), "Grüße"),
        ("Grüße".encode("utf-8-sig"), "Grüße"),
        ("Grüße\r\nund\r\n".encode("utf-16"), "Grüße\nund\n"),
        ("Grüße".encode("cp1252"), "Grüße"),
        ("休暇は20日です。".encode("cp932"), "休暇は20日です。"),
        (b"", ""),
    ],
)
async def test_files_in_bad_encodings_are_read_or_reported(root: Path, data: bytes, text: str) -> None:
    (root / "a.txt").write_bytes(data)
    assert await text_of(root, "a.txt") == text


@pytest.mark.parametrize("data", [b"\x7fELF\0\0\0text", b"\x81\x8d\x8f\x90\x9d" * 9])
async def test_binary_files_with_text_suffixes_are_reported(root: Path, data: bytes) -> None:
    (root / "notes.txt").write_bytes(data)
    found = await read(root, "notes.txt")
    assert not found.ok
    assert found.error.startswith(("It is binary", "It is not UTF-8"))


async def test_lines_of_wide_text_are_read(root: Path) -> None:
    (root / "w.txt").write_bytes("a\nb\nc\n".encode("utf-16"))
    assert await text_of(root, "w.txt", start_line=2, end_line=2) == "b"
    assert await text_of(root, "w.txt", tail=1) == "c"
    (root / "long.txt").write_text("".join(f"line {number}\n" for number in range(9_000)), encoding="utf-16")
    last = await read(root, "long.txt", tail=2)
    assert (last.sources[0].text, "There is more" in last.content) == ("line 8998\nline 8999", True)
    assert "There is more" in (await read(root, "long.txt", start_line=2_500)).content


async def test_a_folder_listing_includes_broken_links(root: Path) -> None:
    (root / "app" / "self").symlink_to(root / "app" / "self")
    (root / "app" / "gone").symlink_to(root / "no")
    for number in range(MAX_LISTED):
        (root / f"f{number:04}.txt").touch()
    found = await read(root, "logs")
    names = found.sources[0].text.split("\n")
    assert (names[:2], len(names)) == (["app/", "f0000.txt"], MAX_LISTED)
    assert "There is more" in found.content
    assert (await read(root, "app")).sources[0].text.split("\n") == ["gone", "run.log", "self"]


LINE = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs", "Cc"]), max_size=8)


@given(st.lists(LINE, max_size=12), st.integers(1, 14), st.integers(1, 14))
def test_any_range_of_any_file_is_those_lines(lines: list[str], first: int, last: int) -> None:
    data = "\n".join(lines).encode()
    try:
        found = _read_excerpt(BytesIO(data), len(data), {"start_line": first, "end_line": last})
    except FileRefused:
        assert last < first or first > len(lines) or not "\n".join(lines[first - 1 :])
    else:
        assert found.text.removeprefix("\ufeff") == "\n".join(lines[first - 1 : last]).removeprefix("\ufeff")
