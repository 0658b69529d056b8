"""Files made to take all time and memory: attached four at once, and lying in a folder of documents."""

from __future__ import annotations

import asyncio
import io
import re
import signal
import time
import zipfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import aiohttp
from docx import Document

from bot.local.model.limits import LENIENT
from bot.local.model.roster import VISITOR
from bot.local.server import LocalWorkspace
from tests.support.orion_running import CHANNEL, MENTION, answers, process, serve_environment, shown
from tests.support.waiting import wait_until

MAX_MORE = 400_000_000
STOPS_WITHIN_S = 15


def word(paragraphs: int, text: str) -> bytes:
    document, stream, result = Document(), io.BytesIO(), io.BytesIO()
    document.save(stream)
    body = f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" * paragraphs
    with zipfile.ZipFile(stream) as package, zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as changed:
        for name in package.namelist():
            changed.writestr(name, package.read(name).replace(b"<w:body>", f"<w:body>{body}".encode()))
    return result.getvalue()


def memory_of(process_id: int) -> int:
    """Resident bytes of a process and all below it."""
    total, found = 0, {process_id}
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if int(folder.name) == process_id or parent in found:
                found.add(int(folder.name))
                total += int((folder / "statm").read_text().split()[1]) * 4_096
        except OSError:
            continue
    return total


async def watch(port: int, process_id: int, ended: asyncio.Event) -> tuple[float, int]:
    """The longest time that /healthz took, and the most memory meanwhile."""
    slowest, most = 0.0, 0
    async with aiohttp.ClientSession() as client:
        while not ended.is_set():
            began = time.monotonic()
            async with client.get(f"http://127.0.0.1:{port}/healthz") as reply:
                assert reply.status == 200
            slowest, most = max(slowest, time.monotonic() - began), max(most, memory_of(process_id))
            with suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await ended.wait()
    return slowest, most


async def test_hostile_files_cost_neither_the_start_nor_the_answers_of_others(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    slow = b"<sup><b>" * 50_000
    (docs / "empty.docx").write_bytes(word(900_000, ""))
    (docs / "seats.md").write_text("# Seats\n\nThe team plan has forty seats.\n")
    (docs / "slow.html").write_bytes(slow)
    hostile = {"a.docx": word(6_000_000, ""), "b.docx": word(900_000, ""), "c.html": slow, "d.html": slow}
    opened = LocalWorkspace(docs=(docs,), strictness=LENIENT)
    await opened.start()
    try:
        environment = serve_environment(opened, tmp_path) | {"ORION_DOCS": str(docs)}
        async with process(["serve", "--port", "0"], environment, tmp_path / "log") as served:
            log = tmp_path / "log"
            await wait_until(lambda: "pages_open" in log.read_text(), "the port is open", 30)
            (port,) = map(int, re.findall(r'"port":(\d+),"event":"pages_open"', log.read_text()))
            await wait_until(lambda: "orion_started" in log.read_text(), "orion serve takes turns", 60)
            before, ended = memory_of(served.process_id), asyncio.Event()
            files = [opened.add_file(VISITOR, name, content) for name, content in hostile.items()]
            asked = [opened.post(VISITOR, CHANNEL, f"{MENTION} what is in this?", files=[file]) for file in files]
            plain = opened.post(VISITOR, CHANNEL, f"{MENTION} How many seats has the team plan?")
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(watch(port, served.process_id, ended))
                found = await opened.wait_for(partial(answers, opened, plain, plain), 60)
                assert "forty seats" in shown(found[0])
                for ts in asked:
                    await opened.wait_for(partial(answers, opened, ts, ts), 90)
                ended.set()
            slowest, most = watching.result()
            assert (slowest < 1, most - before < MAX_MORE) == (True, True), (slowest, most - before)
            file = opened.add_file(VISITOR, "e.html", slow + b" ")
            opened.post(VISITOR, CHANNEL, f"{MENTION} and this?", files=[file])
            began = time.monotonic()
            served.send_signal(signal.SIGTERM)
            assert await served.wait() == 0
            assert time.monotonic() - began < STOPS_WITHIN_S
    finally:
        await opened.stop()
