"""Files are read in a process that is killed when one takes too much, and that leaks nothing into the next."""

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from docx import Document

from agent.knowledge.readers.process import (
    ATTACHMENT_LIMITS,
    MAX_HERE_BYTES,
    DocumentReader,
    FileToRead,
    TimeLeft,
)
from agent.knowledge.types import ReadError
from tests.support.documents import bytes_of, replace_in_package, slow_workbook, workbook

LONG = FileToRead("long.txt", b"Forty seats. " * MAX_HERE_BYTES)


ROW = b'<row><c t="inlineStr"><is><t>Forty seats</t></is></c></row>'
SLOW = FileToRead("slow.xlsx", slow_workbook())


def word(body: str = "") -> bytes:
    document = Document()
    document.add_paragraph("Forty seats")
    return replace_in_package(bytes_of(document.save), "word/document.xml", b"</w:body>", f"{body}</w:body>".encode())


def child_of(reader: DocumentReader) -> Any:
    return reader._child and reader._child.process  # what only /proc tells of


def test_one_process_reads_many_files_and_knows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with DocumentReader() as reader:
        document, chunks = reader.read(FileToRead("a.docx", word()))
        assert (document.text, chunks[0].text) == ("Forty seats\n", "Forty seats")
        first = child_of(reader)
        assert reader.read(LONG)[1]
        assert child_of(reader) is first
        assert Path(f"/proc/{first.pid}/environ").read_bytes() == b"LC_ALL=C.UTF-8\0"
    assert first.wait(10) != 0


def test_small_text_needs_no_process_unless_it_may_make_a_large_table() -> None:
    with DocumentReader() as reader:
        assert reader.read(FileToRead("a.md", b"# T\n\nSee [b](b.md).", url="https://a.example/x/a.md"))[1][0].text == (
            "# T\n\nSee [b](https://a.example/x/b.md)."
        )
        assert child_of(reader) is None
        assert reader.read(FileToRead("a.csv", b"a,b\n1,2\n"))[1]
        assert child_of(reader) is not None


def test_a_slow_file_is_refused_once_and_the_next_one_is_read() -> None:
    with DocumentReader(ATTACHMENT_LIMITS._replace(timeout_s=2.0)) as reader:
        for _ in range(4):
            with pytest.raises(ReadError, match="takes more than 2 s"):
                reader.read(SLOW)
        assert child_of(reader) is None
        began = time.monotonic()
        with pytest.raises(ReadError) as raised:
            reader.read(SLOW)
        assert raised.value.trouble == "slow"
        assert time.monotonic() - began < 1
        assert "Forty seats" in reader.read(FileToRead("a.docx", word()))[0].text


def test_files_are_read_until_their_shared_time_limit_is_used_up() -> None:
    with DocumentReader(ATTACHMENT_LIMITS) as reader:
        left = TimeLeft(1.0)
        with pytest.raises(ReadError, match="takes more than 1 s"):
            reader.read(SLOW, left=left)
        with pytest.raises(ReadError, match="the other files of the message"):
            reader.read(LONG, left=left)
        left = TimeLeft(60.0)
        assert reader.read(LONG, left=left)[1]
        assert 0 < left.seconds < 60
        with pytest.raises(ReadError, match="takes more than 2 s"):  # it was not refused for good
            reader.read(SLOW, left=TimeLeft(2.0))


def test_a_file_that_needs_too_much_memory_is_refused_with_the_reason() -> None:
    with DocumentReader(ATTACHMENT_LIMITS) as reader:
        with pytest.raises(ReadError, match="needs more memory") as raised:
            reader.read(FileToRead("a.docx", word("<w:p/>" * 900_000)))
        assert raised.value.trouble == "big"
        assert reader.read(LONG)[1]


def test_elements_and_characters_are_limited() -> None:
    with DocumentReader() as reader, pytest.raises(ReadError, match="more than 1,000,000 elements"):
        reader.read(FileToRead("a.docx", word("<w:p/>" * 2_100_000)))
    with DocumentReader(ATTACHMENT_LIMITS) as reader:
        document, chunks = reader.read(FileToRead("a.txt", b"word " * 100_000))
        assert (len(document.text), document.cut) == (400_000, "is read in part only: it is too long")
        assert 400_000 >= sum(len(chunk.text) for chunk in chunks) > 390_000


@pytest.mark.parametrize(
    "file",
    [
        FileToRead(
            "a.html", b"<script>" + b"x" * 2_000_000 + b"</script>" + b"<p>Forty seats and more words</p>" * 180_000
        ),
        FileToRead("a.xlsx", workbook(ROW * 300_000, b"</sheetData>")),
    ],
)
def test_long_page_or_sheet_is_read_as_far_as_the_limits_allow(file: FileToRead) -> None:
    with DocumentReader(ATTACHMENT_LIMITS._replace(timeout_s=60)) as reader:
        document, _ = reader.read(file)
        assert "only: it is too long" in document.cut
        assert len(document.text) > 390_000


UNCLOSED = {
    "md": ["<!--", "{%", "{{<", "{{ x", "<%", "`", "```\n", "[a](", "*a ", "> ", "- ", "|a", "---\n", "<a "],
    "markdown": [
        "x" + "`" * 9_000,
        "`" * 9_000 + "x",
        "# x" + " " * 9_000 + "y",
        "---\na: b" + " " * 9_000 + "c\n---\nx",
    ],
    "mdx": ["{/*", "<A ", "import "],
    "html": ["<sup>", "<sub><b>", "<!--", "<title", "<div>", "<table><tr><td>", "<p>", "&#", "<meta "],
    "html.erb": ["<%", "{{"],
    "rst": ["=\n", "a\n===\n"],
}


def test_unclosed_markup_takes_little_time_in_orions_process() -> None:
    began = time.process_time()
    with DocumentReader() as reader:
        for suffix, marks in UNCLOSED.items():
            for mark in marks:
                with suppress(ReadError):
                    reader.read(FileToRead(f"a.{suffix}", mark.encode() * (MAX_HERE_BYTES // len(mark))))
        assert child_of(reader) is None
    assert time.process_time() - began < 10


def test_closing_a_reader_ends_its_current_read() -> None:
    reader = DocumentReader()
    ended: list[str] = []

    def read() -> None:
        with pytest.raises(ReadError) as raised:
            reader.read(SLOW)
        ended.append(raised.value.reason)

    thread = threading.Thread(target=read)
    thread.start()
    while child_of(reader) is None:
        time.sleep(0.01)
    reader.close()
    thread.join(10)
    assert ended == ["was not read: Orion is stopping"]
