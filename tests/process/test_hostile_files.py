"""Files made to take all time and memory: attached five at once, while a sync reads others in a folder of documents."""

import asyncio
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import aiohttp
from docx import Document
from openpyxl import Workbook
from pptx import Presentation

from bot.local.model.limits import LENIENT
from bot.local.model.roster import VISITOR
from bot.local.server import LocalWorkspace
from tests.support.documents import bytes_of, replace_in_package
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, answers, process, serve_environment, text_of
from tests.support.waiting import wait_until

MAX_MORE = 400_000_000
STOPS_WITHIN_S = 15
SLOW = b"<meta " * 1_000_000  # seconds for a parser of HTML
MANY = 1_100_000  # elements; a million may be read


def word(paragraphs: int) -> bytes:
    return replace_in_package(
        bytes_of(Document().save), "word/document.xml", b"<w:body>", b"<w:body>" + b"<w:p/>" * paragraphs
    )


def workbook() -> bytes:
    rows = b'<sheetData><row r="1">' + b'<c t="inlineStr"><is><t>a</t></is></c>' * MANY + b"</row></sheetData>"
    return replace_in_package(bytes_of(Workbook().save), "xl/worksheets/sheet1.xml", b"<sheetData></sheetData>", rows)


def slides() -> bytes:
    presentation = Presentation()
    presentation.slides.add_slide(presentation.slide_layouts[5])
    text = b"<a:p/>" * 300_000
    return replace_in_package(
        bytes_of(presentation.save), "ppt/slides/slide1.xml", b"</p:txBody>", text + b"</p:txBody>"
    )


def pdf() -> bytes:
    """A page that draws a form ten times, which draws another ten times, nine levels deep."""
    draw, form = b"/X Do " * 10, b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X %d 0 R>>>>"
    streams = [b"<<", *(form % number for number in range(6, 15)), b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]"]
    resources = b"/Resources<</XObject<</X 5 0 R>>>>"
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>"]
    objects += [b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R" + resources + b">>"]
    objects += [b"%s/Length %d>>stream\n%s\nendstream" % (head, len(draw), draw) for head in streams]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, text) for number, text in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer<</Root 1 0 R>>"


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a.docx": lambda: word(MANY),
    "b.xlsx": workbook,
    "c.pptx": slides,
    "d.pdf": pdf,
    "e.ipynb": lambda: b'{"cells":[' + b",".join([b'{"source":"a"}'] * 50_000) + b"]}",
}


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


async def test_hostile_files_delay_neither_the_start_nor_other_answers(tmp_path: Path) -> None:
    docs, log = tmp_path / "docs", tmp_path / "log"
    docs.mkdir()
    (docs / "empty.docx").write_bytes(word(300_000))
    (docs / "seats.md").write_text("# Seats\n\nThe team plan has forty seats.\n")
    async with LocalWorkspace(docs=(docs,), strictness=LENIENT) as opened:
        environment = serve_environment(opened, tmp_path, ORION_SYNC_MINUTES="0.02") | {"ORION_DOCS": str(docs)}
        async with process(["serve", "--port", "0"], environment, log) as served:
            await wait_until(lambda: "orion_started" in log.read_text(), "orion serve takes turns", 60)
            (port,) = map(int, re.findall(r'"port":(\d+),"event":"pages_open"', log.read_text()))
            await wait_until(lambda: "knowledge_sync_ended" in log.read_text(), "the first sync has ended", 60)
            before, ended = memory_of(served.process_id), asyncio.Event()
            for number in range(2):
                (docs / f"{number}.docx").write_bytes(word(580_000 + number))
            files = [opened.add_file(VISITOR, name, make()) for name, make in HOSTILE.items()]
            asked = [opened.post(VISITOR, CHANNEL, f"{MENTION} what is in this?", files=[file]) for file in files]
            plain = opened.post(VISITOR, DIRECT, "How many seats has the team plan?")
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(watch(port, served.process_id, ended))
                found = await opened.wait_for(partial(answers, opened, plain, plain, DIRECT), 60)
                assert "forty seats" in text_of(found[0])
                for ts in asked:
                    await opened.wait_for(partial(answers, opened, ts, ts), 90)
                ended.set()
            slowest, most = watching.result()
            assert (slowest < 1, most - before < MAX_MORE) == (True, True), (slowest, most - before)
            file = opened.add_file(VISITOR, "slow.html", SLOW + b" ")
            opened.post(VISITOR, CHANNEL, f"{MENTION} and this?", files=[file])
            await opened.wait_for(lambda: any(call.method == "assistant.threads.setStatus" for call in opened.calls))
            began = time.monotonic()
            served.send_signal(signal.SIGTERM)
            assert await served.wait() == 0
            assert time.monotonic() - began < STOPS_WITHIN_S
