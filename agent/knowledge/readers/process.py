"""Reads files in a child process, which is killed if a file takes too much time or memory.

The child gets one file at a time over a pipe and answers with JSON. It has an empty environment: a file
that takes over its parser finds no secrets there.
"""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import orjson

from agent.knowledge.readers.chunking import Chunk, chunk_document
from agent.knowledge.readers.document import MAX_CHARS, DocumentPart, ReadDocument, ReadLimits
from agent.knowledge.readers.reading import digest_of, format_of, parse_document
from agent.knowledge.readers.text import resolve_links
from agent.knowledge.types import ReadError

MAX_HERE_BYTES: Final = 20_000  # any text of this size is read quickly, so it needs no process
_NICE: Final = 5  # nice value: answers have priority over files
_SOFT_SHARE: Final = 0.7  # share of the time after which a reader returns what it has
_RESTART_RSS: Final = 60_000_000  # a child that has grown to this size is replaced
_MAX_REFUSED: Final = 100  # digests of files that killed their reader
_TREE: Final = Path(__file__).parents[3]
_STOPPING: Final = "was not read: Orion is stopping"


class FileLimits(NamedTuple):
    """Limits on reading one file. ``max_memory`` is in bytes, in addition to what the process has at its start."""

    timeout_s: float
    max_chars: int
    max_memory: int


# Both readers and the process of the sync together need less than 400 MB.
DOCUMENT_LIMITS: Final = FileLimits(timeout_s=30.0, max_chars=MAX_CHARS, max_memory=130_000_000)
ATTACHMENT_LIMITS: Final = FileLimits(timeout_s=10.0, max_chars=400_000, max_memory=90_000_000)


@dataclass(slots=True)
class TimeLeft:
    """Time that is left for several files together, without the time that they wait for each other."""

    seconds: float


class FileToRead(NamedTuple):
    """A file. ``name`` determines its format, ``url`` is the base of its links, and times are seconds since 1970.

    ``title`` replaces its own.
    """

    name: str
    data: bytes
    changed: float = 0.0
    committed: float = 0.0
    url: str = ""
    title: str = ""


class DocumentReader:
    """Reads files one at a time, from any thread. The process starts with the first file that needs it."""

    def __init__(self, limits: FileLimits = DOCUMENT_LIMITS) -> None:
        self._limits = limits
        self._child: _Child | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._refused: deque[tuple[str, ReadError]] = deque(maxlen=_MAX_REFUSED)  # by digest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, even in the middle of a read."""
        self._closed.set()
        if child := self._child:
            child.process.kill()
        with self._lock:  # a reading thread now releases the lock
            self._stop()

    def read(self, file: FileToRead, left: TimeLeft | None = None) -> tuple[ReadDocument, tuple[Chunk, ...]]:
        """Return a document and its chunks. Raises ``ReadError``. Blocks."""
        known = format_of(file.name)
        is_small = len(file.data) <= MAX_HERE_BYTES and known and not known.packed and known.name != "CSV"
        if known is None or is_small:  # a small CSV file can become a large table
            return _read(file, self._limits)
        with self._lock:
            reply = self._read_in_child(file, left or TimeLeft(self._limits.timeout_s))
        if "error" in reply:
            raise ReadError(reply["error"], trouble=reply["trouble"])
        fields = reply["document"]
        document = ReadDocument(**fields | {"parts": tuple(DocumentPart(**part) for part in fields["parts"])})
        return document, tuple(Chunk(**chunk) for chunk in reply["chunks"])

    def _read_in_child(self, file: FileToRead, left: TimeLeft) -> dict[str, Any]:
        digest = digest_of(file.data)
        if earlier := dict(self._refused).get(digest):
            raise ReadError(earlier.reason, trouble=earlier.trouble)
        if left.seconds <= 0:
            raise ReadError(reason="was not read: the other files of the message took too much time", trouble="slow")
        limits, began = self._limits._replace(timeout_s=min(self._limits.timeout_s, left.seconds)), time.monotonic()
        try:
            reply = self._ask(file, limits)
        except ReadError as error:
            self._stop()
            if not self._closed.is_set() and limits == self._limits:
                self._refused.append((digest, ReadError(error.reason, trouble=error.trouble)))
            raise
        finally:
            left.seconds -= time.monotonic() - began
        if reply["last"]:
            self._stop()
        return reply

    def _ask(self, file: FileToRead, limits: FileLimits) -> dict[str, Any]:
        if self._closed.is_set():
            raise ReadError(_STOPPING, temporary=True)
        child = self._child = self._child or _Child(limits.max_memory)
        ends = time.monotonic() + limits.timeout_s
        killer = threading.Timer(limits.timeout_s, child.process.kill)
        killer.start()
        try:
            child.pipe.send_bytes(orjson.dumps({**file._asdict(), "data": None, "limits": tuple(limits)}))
            child.pipe.send_bytes(file.data)
            reply: dict[str, Any] = orjson.loads(child.pipe.recv_bytes())
        except (OSError, EOFError, orjson.JSONDecodeError):
            if self._closed.is_set():
                raise ReadError(_STOPPING, temporary=True) from None
            if time.monotonic() >= ends:
                raise ReadError(reason=f"takes more than {limits.timeout_s:.2g} s to read", trouble="slow") from None
            reason = "cannot be read: its reader broke down (too much memory, or damaged)"
            raise ReadError(reason, trouble="big") from None
        else:
            return reply
        finally:
            killer.cancel()

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


class _Child:
    """The process and the pipe to it. It is killed when this object is dropped."""

    def __init__(self, max_memory: int) -> None:
        self.pipe, theirs = Pipe()
        command = [sys.executable, *(["-B"] if sys.dont_write_bytecode else []), "-m", __name__, str(max_memory)]
        self.process = subprocess.Popen(  # noqa: S603 - this module, with arguments of our own
            command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=_TREE, env={"LC_ALL": "C.UTF-8"},
            start_new_session=True,  # a Ctrl-C at the terminal is for the parent process
        )  # fmt: skip
        theirs.close()
        self.end = weakref.finalize(self, _end, self.process, self.pipe)


def _end(process: subprocess.Popen[bytes], pipe: Connection) -> None:
    process.kill()
    process.wait()
    pipe.close()


def _read(file: FileToRead, limits: FileLimits) -> tuple[ReadDocument, tuple[Chunk, ...]]:
    soft = ReadLimits(ends=time.monotonic() + limits.timeout_s * _SOFT_SHARE, max_chars=limits.max_chars)
    document = parse_document(file.name, file.data, changed=file.changed, committed=file.committed, limits=soft)
    document = resolve_links(replace(document, title=file.title or document.title), file.url)
    return document, chunk_document(document)


def main() -> None:
    """Read files until the pipe is closed. The process is killed if a file needs too much time or memory."""
    pipe = Connection(os.dup(0))
    if at_start := _memory()[0]:  # otherwise only the time is limited
        resource.setrlimit(resource.RLIMIT_AS, (at_start + int(sys.argv[1]),) * 2)
    sys.modules["numpy"] = None  # type: ignore[assignment]  # openpyxl would load it, which takes 120 MB
    os.nice(_NICE)
    is_last = False
    with suppress(EOFError):
        while not is_last:
            head = orjson.loads(pipe.recv_bytes())
            limits = FileLimits(*head.pop("limits"))
            signal.setitimer(signal.ITIMER_REAL, limits.timeout_s + 1)  # this ends the process even without its parent
            file = FileToRead(**head | {"data": pipe.recv_bytes()})
            try:
                document, chunks = _read(file, limits)
                reply: dict[str, Any] = {"document": asdict(document), "chunks": list(map(asdict, chunks))}
            except ReadError as error:
                reply = {"error": error.reason, "trouble": error.trouble}
            except MemoryError:
                reply = {"error": "needs more memory to read than one file may take", "trouble": "big"}
                is_last = True
            signal.setitimer(signal.ITIMER_REAL, 0)
            is_last = is_last or _memory()[1] > _RESTART_RSS
            pipe.send_bytes(orjson.dumps({**reply, "last": is_last}))


def _memory() -> tuple[int, int]:
    """Return the address space and the resident memory of this process in bytes; zeros without /proc."""
    with suppress(OSError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
        return int(pages[0]) * os.sysconf("SC_PAGE_SIZE"), int(pages[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0, 0


if __name__ == "__main__":
    main()
