"""Documents of a Git repository at a ref, as committed, with links to the line.

Orion runs no program from the repository's settings and fetches nothing.
"""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from shutil import which
from typing import IO, Final
from urllib.parse import quote

from agent.knowledge.readers.reading import check_size, format_of
from agent.knowledge.sources.file_rules import FILE_NAME, Audiences, is_document, is_storable
from agent.knowledge.types import IndexRun, Readable, ReadError
from agent.thread.conversation import PUBLIC

_WAIT_S: Final = 120.0
_FILE: Final = ("100644", "100755")
# The repository's own settings may not start a program, and missing objects are not fetched.
_SAFE: Final = (
    "--no-optional-locks",
    "--no-pager",
    "--literal-pathspecs",
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"),
    *("-c", "log.showSignature=false", "-c", "protocol.allow=never", "-c", "core.quotePath=false"),
    *("-c", "i18n.logOutputEncoding=UTF-8", "-c", "log.mailmap=false", "-c", "color.ui=false"),
)
# Git gets neither Orion's environment, which contains tokens, nor the host's git settings.
ENVIRONMENT: Final = {
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",  # a password cannot be typed here
    "GIT_NO_LAZY_FETCH": "1",  # Orion fetches nothing: a mirror does that
    "GIT_NO_REPLACE_OBJECTS": "1",
}


def git_command(folder: Path, *command: str) -> list[str]:
    """Return a command line of Git in this folder. Raises ``ReadError`` if Git is not installed."""
    program = which("git")
    if program is None:
        raise ReadError(reason="cannot be read: Git is not installed where Orion runs")
    place = str(folder.resolve())
    return [program, *_SAFE, "-c", f"safe.directory={place}", "-C", place, *command]


def link_to(url: str, **values: str) -> str:
    """Fill in ``{name}`` in a configured address. Append the first value if the address has no place for it."""
    first = next(iter(values))
    if url and f"{{{first}}}" not in url:
        url = f"{url.rstrip('/')}/{{{first}}}"
    for name, value in values.items():
        url = url.replace(f"{{{name}}}", quote(value))
    return url


Blob = tuple[str, int]  # an object's name and its size in bytes
Pipes = tuple[IO[bytes], IO[bytes]]  # into a running `cat-file --batch`, and out of it


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """A repository, a ref, and the folder of the documents. ``url`` with ``{repository}``, ``{ref}``, ``{path}``."""

    repository: Path
    ref: str = "HEAD"
    folder: str = ""
    url: str = ""

    @property
    def key(self) -> str:
        """Prefix of the keys of all its documents."""
        return f"git:{self.repository.resolve()}@{self.ref}"

    @property
    def part(self) -> str:
        """The folder inside the repository."""
        return self.folder

    @property
    def name(self) -> str:
        """Name of the repository as people know it."""
        return self.repository.resolve().name.removesuffix(".git")

    def documents(self, run: IndexRun) -> Iterator[Readable]:
        """Yield every document at the ref."""
        try:
            entries = self._entries()
            changed = self.commit_times(set(entries))
        except ReadError as error:
            run.missing.append(self.key)
            run.failed.append((f"{self.repository} at {self.ref}", error.reason))
            return
        with self._process("cat-file", "--batch") as process:
            pipes: Pipes = (process.stdin, process.stdout)  # type: ignore[assignment]  # both were requested
            audiences = self._audiences(entries, pipes, run)
            for path, blob in entries.items():
                pure = PurePosixPath(path)
                if not (pure.is_relative_to(self.folder) and is_document(pure, self.key, run)):
                    continue
                if not is_storable(path):
                    run.failed.append((ascii(path), "has a name that is not UTF-8"))
                    continue
                known = format_of(pure.name)
                above = (audiences[folder] for folder in pure.parents if folder in audiences)
                yield Readable(
                    id=run.unique_id(path, self.name),
                    key=f"{self.key}/{path}",
                    name=pure.name,
                    audience=next(above, PUBLIC),
                    source=self.key,
                    url=link_to(self.url, path=path, repository=self.name, ref=self.ref),
                    place="line" if known and known.keeps_lines else "",
                    is_committed=True,
                    read=partial(_read, pipes, pure, blob, changed.get(path, 0.0)),
                )
            with suppress(OSError):
                pipes[0].close()

    def _entries(self) -> dict[str, Blob]:
        options = ("-r", "-z", "--long", "--full-tree", "--end-of-options", self.ref)
        command = git_command(self.repository, "ls-tree", *options)
        try:
            done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, timeout=_WAIT_S, check=True)  # noqa: S603 - git by its path, with arguments of our own
        except (OSError, subprocess.SubprocessError) as error:
            raise ReadError(reason="is not a Git repository, or has no such branch, tag or commit") from error
        found: dict[str, Blob] = {}
        for line in filter(None, done.stdout.decode("utf-8", "surrogateescape").split("\0")):
            about, _, path = line.partition("\t")
            mode, kind, blob, size = about.split()
            if kind == "blob" and mode in _FILE:
                found[path] = (blob, int(size) if size.isdigit() else 0)  # "BAD": the object is damaged or gone
        return found

    def commit_times(self, paths: set[str]) -> dict[str, float]:
        """Return the time of the last commit of each of these paths, in seconds since 1970."""
        found: dict[str, float] = {}
        shown = ("--format=@%ct", "--name-only", "--no-renames", "-m", "--first-parent")
        with self._process("log", *shown, "--end-of-options", self.ref, "--", self.folder or ".") as process:
            at = 0.0
            for raw in process.stdout or ():
                line = raw.decode("utf-8", "surrogateescape").rstrip("\n")
                if line.startswith("@") and line[1:].isdigit():
                    at = float(line[1:])
                elif line in paths:
                    found.setdefault(line, at)
                if len(found) == len(paths):
                    break  # the rest of the history does not matter
            process.kill()
        return found

    def _audiences(self, entries: Mapping[str, Blob], pipes: Pipes, run: IndexRun) -> dict[PurePosixPath, str]:
        """Return the audiences in the tree's audience files, by folder; an invalid file hides its folder."""
        found: dict[PurePosixPath, str] = {}
        for path, blob in entries.items():
            if PurePosixPath(path).name == FILE_NAME:
                data = b""
                with suppress(ReadError):
                    data, _ = _read(pipes, PurePosixPath(path), blob, 0.0)
                found[PurePosixPath(path).parent] = Audiences(failed=run.failed).parse(f"{self.name}/{path}", data)
        return found

    def _process(self, *command: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(git_command(self.repository, *command), env=ENVIRONMENT, stdin=pipe, stdout=pipe)  # noqa: S603 - as above


def _read(pipes: Pipes, path: PurePosixPath, blob: Blob, changed: float) -> tuple[bytes, float]:
    """Return the committed bytes of a file and the time of its last commit. Raises ``ReadError``."""
    name, size = blob
    check_size(path.name, size)
    asked, contents = pipes
    msg = "cannot be read from its repository"
    try:
        asked.write(f"{name}\n".encode())
        asked.flush()
        head = contents.readline().split()
        if len(head) != 3 or head[1] != b"blob":  # noqa: PLR2004 - name, kind, size
            raise ReadError(msg, temporary=True)
        data = contents.read(int(head[2]))
        contents.read(1)
    except OSError as error:
        raise ReadError(msg, temporary=True) from error
    return data, changed
