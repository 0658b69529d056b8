"""Documents that a program prints, one JSON object per line; ``docs/knowledge.md`` has the fields.

The program runs inside the sync with a minimal environment and limits on time and output. Its standard input gets the
revisions that Orion remembers (one ``{"key": …, "revision": …}`` per line), so it can answer ``"unchanged": true``. A
failed run does not remove documents.
"""

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, RawIOBase
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any, Final

import orjson

from agent.knowledge.readers.document import clean
from agent.knowledge.readers.reading import parse_timestamp, read_bytes
from agent.knowledge.sources.file_rules import is_storable
from agent.knowledge.types import FETCHED, DocumentSource, IndexRun, NotModifiedError, Readable, ReadError
from agent.thread.conversation import NOBODY, parse_audience

MAX_LINE_BYTES: Final = 8_000_000
_MAX_OUTPUT_BYTES: Final = 2_000_000_000
_MAX_TITLE_CHARS: Final = 300
_CHUNK_BYTES: Final = 1 << 16
_NOTHING: Final = 'printed no document; its documents stay. A feed that has none prints {"empty": true}'
_TOO_SLOW: Final = "took too long and was ended; its documents stay"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSource(DocumentSource):
    """A program, or a file of such lines. The program gets only this ``environment``; ``timeout_s`` ends a run."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 1_800.0

    @property
    def key(self) -> str:
        """Prefix of the keys of all its documents."""
        return f"feed:{shlex.join(self.command)}"

    @property
    def name(self) -> str:
        """The file name without its suffix, put before the keys that people see."""
        return Path(self.command[-1]).stem

    def documents(self, run: IndexRun) -> Iterator[Readable]:
        """Yield every document that the feed names."""
        seen: set[str] = set()
        is_empty = False  # the program says so
        try:
            with tempfile.TemporaryDirectory(prefix="orion-feed-") as folder:
                prefix = f"{FETCHED}{self.key}/"
                known = {key.removeprefix(prefix): note for key, note in run.notes.items() if key.startswith(prefix)}
                for line in self._lines(Path(folder), known):
                    fields = None
                    with suppress(ValueError):
                        fields = orjson.loads(line) if len(line) <= MAX_LINE_BYTES else None
                    fields = fields if isinstance(fields, dict) else {}
                    is_empty = is_empty or fields.get("empty") is True
                    document = self._document(fields, line, Path(folder), run)
                    if document and document.key in seen:
                        run.failed.append((document.key, "is printed twice; only the first counts"))
                    elif document:
                        seen.add(document.key)
                        yield document
            has_earlier = any(key.startswith(f"{self.key}/") for key in run.known)
            reason = _NOTHING if has_earlier and not (seen or is_empty) else ""
        except ReadError as error:
            reason = error.reason
        if reason:
            run.missing.append(self.key)
            run.failed.append((self.key, reason))

    def _lines(self, folder: Path, revisions: dict[str, str]) -> Iterator[bytes]:
        """Yield the lines of the file, or of the program while it runs. Raises ``ReadError``."""
        only = Path(self.command[0])
        if len(self.command) == 1 and only.suffix in {".jsonl", ".ndjson"}:
            try:
                with only.open("rb") as stream:
                    yield from _read_lines(stream)
            except OSError as error:
                raise ReadError(reason=f"cannot be read ({error.strerror})") from error
            return
        with tempfile.TemporaryFile() as known, tempfile.TemporaryFile() as errors:
            known.writelines(orjson.dumps({"key": k, "revision": r}) + b"\n" for k, r in revisions.items())
            known.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - the admin's own program
                    self.command,
                    cwd=folder,
                    env=dict(self.environment),
                    stdin=known,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise ReadError(reason=f"cannot be started ({error.strerror})") from error
            ends = time.monotonic() + self.timeout_s
            with process:
                try:
                    output = _Output(process.stdout, ends)  # type: ignore[arg-type]  # it was asked for
                    yield from _read_lines(BufferedReader(output, _CHUNK_BYTES))
                    code = process.wait(max(0.0, ends - time.monotonic()))
                except subprocess.TimeoutExpired:
                    raise ReadError(_TOO_SLOW) from None
                finally:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)  # with all its children
            if code:
                raise ReadError(reason=f"ended with exit code {code}{_last_line(errors)}; its documents stay")

    def _document(self, fields: dict[str, Any], line: bytes, folder: Path, run: IndexRun) -> Readable | None:
        """Return the document of one line. A line that cannot be used is added to ``run.failed``."""
        key = str(fields.get("key") or "")
        if not key or not is_storable(key):
            if line.strip() and fields.get("empty") is not True:
                begin = line[:60].decode("utf-8", "replace")
                dots = "…" if len(line) > len(begin) else ""
                run.failed.append((self.key, f"printed a line that is not a document: {begin!a}{dots}"))
            return None
        audience = parse_audience(fields.get("audience"))
        if audience is None and fields.get("unchanged") is not True:
            run.failed.append((f"{self.name}/{key}", "names no audience that Orion knows, so no one sees it"))
        url, title = str(fields.get("url") or ""), str(fields.get("title") or (key if "text" in fields else ""))
        return Readable(
            id=run.unique_id(f"{self.name}/{key}", self.name),
            key=f"{self.key}/{key}",
            name=Path(str(fields.get("path") or fields.get("name") or "document.md")).name,
            source=self.key,
            read=partial(_read, fields, folder, run, f"{self.key}/{key}"),
            audience=audience or NOBODY,
            url=url if url.startswith(("https://", "http://")) and is_storable(url) else "",
            is_committed=True,
            title=" ".join(clean(title).split())[:_MAX_TITLE_CHARS],
        )


class _Output(RawIOBase):
    """A program's output. Raises ``ReadError`` if nothing more comes before ``ends``.

    Killing the program is not enough: a daemon that it started may keep the pipe open forever.
    """

    def __init__(self, pipe: IO[bytes], ends: float) -> None:
        self._pipe, self._ends = pipe, ends

    def readable(self) -> bool:
        """Return True, because a buffered reader asks."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the output so far."""
        if not wait([self._pipe.fileno()], max(0.0, self._ends - time.monotonic())):
            raise ReadError(_TOO_SLOW)
        return os.readv(self._pipe.fileno(), [buffer])


def _read_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines; of a line that is too long only the start. Raises ``ReadError``."""
    total, goes_on = 0, False
    while line := stream.readline(MAX_LINE_BYTES + 1):
        total += len(line)
        if total > _MAX_OUTPUT_BYTES:
            raise ReadError(reason="printed too much and was ended; its documents stay")
        if not goes_on:
            yield line
        goes_on = not line.endswith(b"\n")


def _read(fields: dict[str, Any], folder: Path, run: IndexRun, key: str) -> tuple[bytes, float]:
    """Return the document's bytes and the time of its last change; remember its revision. Raises ``ReadError``."""
    if fields.get("unchanged") is True:
        if key not in run.known:
            raise ReadError(reason="is called unchanged, but was never read")
        raise NotModifiedError(0)
    changed = parse_timestamp(str(fields.get("updated")))
    if isinstance(fields.get("path"), str):
        file = (folder / fields["path"]).resolve()
        if not file.is_relative_to(folder.resolve()):
            raise ReadError(reason="names a file outside the folder that the feed was given")
        data, _ = read_bytes(file)
    elif isinstance(fields.get("text"), str):
        data = fields["text"].encode("utf-8", "replace")
    else:
        raise ReadError(reason="has neither text nor path")
    run.new_notes[f"{FETCHED}{key}"] = str(fields.get("revision") or "")
    return data, changed


def _last_line(errors: IO[bytes]) -> str:
    """Return the last line of the program's error output, to append to a reason."""
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - _CHUNK_BYTES))
    lines = errors.read().decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f" ({last[:200]})" if last else ""
