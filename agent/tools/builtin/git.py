"""``git_log`` and ``git_show`` over configured repositories, read only.

Nothing that a repository's own configuration names is run (hooks, pagers, filters), and e-mail addresses are left out.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which
from typing import Any, Final, NamedTuple

from agent.knowledge.sources.git import ENVIRONMENT, SAFE
from agent.tools.builtin.specs import parameter, spec_of
from agent.tools.tool import ToolFailed, ToolResult
from verification.types import Source

GIT_LOG: Final = "git_log"
GIT_SHOW: Final = "git_show"
LISTED: Final = parameter(GIT_LOG, "limit")["default"]
LISTED_MOST: Final = parameter(GIT_LOG, "limit")["maximum"]
SEPARATE_SOURCES: Final = 12  # a longer list is shared out over so many sources: a turn numbers only so many
OUTPUT_MOST: Final = 400_000  # bytes read of git's output; what goes beyond is cut and said so
SHOWN_MOST: Final = 15_000  # characters of one commit's changes

# No leading dash, no colon (``commit:path``), no white space; ``HEAD~3``, ``v1.2..v1.3``, ``feature/x@{1}`` pass.
_REF: Final = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9._/~^@{}+#-]{0,199}")
# Git itself takes any word for a date, and what it does not know for now.
_WHEN: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|yesterday|midnight|\d{1,4} (?:minute|hour|day|week|month|year)s?(?: ago)?",
    re.IGNORECASE,
)
_FORMAT: Final = "--format=%H%x00%cI%x00%s%x00%cI %an: %s%x00commit %H%nAuthor: %an%nDate: %cI%n%n%B"
_FIELDS: Final = 5
# A merge shows what it brought in, and no program of the repository's attributes prepares what is shown.
_PLAIN_CHANGES: Final = ("--diff-merges=first-parent", "--no-ext-diff", "--no-textconv")


class GitFailed(ToolFailed):
    """Git did not do it. The text holds neither input nor output."""

    hints = ("git_log without a ref lists the newest commits.",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """One repository. ``url`` is where a commit can be seen: ``{commit}`` and ``{repository}`` are filled in."""

    name: str
    folder: Path
    url: str = ""

    def link(self, commit: str) -> str:
        """The commit's address, or nothing where none is configured."""
        if not self.url:
            return ""
        url = self.url if "{commit}" in self.url else self.url.rstrip("/") + "/{commit}"
        return url.replace("{repository}", self.name).replace("{commit}", commit)


class Commit(NamedTuple):
    """One commit as git tells it by ``_FORMAT``. ``at`` is an ISO 8601 timestamp, ``text`` all of it in words."""

    id: str
    at: str
    subject: str
    line: str
    text: str


def repositories(folders: Sequence[Path], url: str = "") -> tuple[Repository, ...]:
    """The configured repositories by their folders' names; of two of one name the second gets a number."""
    named: dict[str, Repository] = {}
    for folder in folders:
        whole = folder.resolve()
        name, number = whole.name.removesuffix(".git") or whole.parent.name, 2
        while name in named:
            name, number = f"{whole.name}-{number}", number + 1
        named[name] = Repository(name=name, folder=whole, url=url)
    return tuple(named.values())


class GitLogTool:
    """Commits, newest first."""

    def __init__(self, repositories: Sequence[Repository]) -> None:
        self._repositories = repositories
        self.spec = spec_of(GIT_LOG, names=_names(repositories))

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """List; a source a commit, or a source for several where there are many."""
        limit = int(arguments.get("limit", LISTED))
        repository = _chosen(self._repositories, arguments)
        options = [_FORMAT, "-z", f"--max-count={limit + 1}", *_filters(arguments)]
        output, _ = await _git(repository, "log", options, _ref(arguments.get("ref", "HEAD")), _path(arguments))
        commits = list(_commits(output))
        if not commits:
            hint = "Widen the period, or leave author, words or path away."
            return ToolResult(content="No commit fits.", hints=(hint,))
        lines = [commit.line for commit in commits[:limit]]
        if len(commits) > limit:
            lines.append(f"There are more; these are the newest {limit}.")
        return ToolResult(content="\n".join(lines), sources=tuple(_sources(repository, commits[:limit])))


class GitShowTool:
    """One commit with what it changed."""

    def __init__(self, repositories: Sequence[Repository]) -> None:
        self._repositories = repositories
        self.spec = spec_of(GIT_SHOW, names=_names(repositories))

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Show; one source with the message and the changes."""
        repository = _chosen(self._repositories, arguments)
        options = [_FORMAT + "%x00", "--stat=100", "--patch", *_PLAIN_CHANGES]
        commit = f"{_ref(arguments['commit'])}^{{commit}}"
        output, cut = await _git(repository, "show", options, commit, _path(arguments))
        *fields, changes = output.split("\0", _FIELDS)
        shown = next(_commits("\0".join(fields)), None)
        if shown is None:
            raise GitFailed(why="There is no such commit.")
        cut = cut or len(changes) > SHOWN_MOST
        note = " Its changes are cut off; name a path to see those of one file." if cut else ""
        text = f"{shown.text}\n\n{changes.strip()[:SHOWN_MOST]}"
        source = replace(_source(repository, [shown]), text=text, origin=f"tool:{GIT_SHOW}")
        return ToolResult(content=shown.line + note, sources=(source,))


async def answers(repository: Repository) -> str:
    """Nothing when the folder is a repository that git can read, else what is wrong."""
    try:
        await _git(repository, "rev-parse", ["--git-dir"], "", "")
    except GitFailed as failure:
        return str(failure)
    return ""


def _names(repositories: Sequence[Repository]) -> str:
    return ", ".join(repository.name for repository in repositories)


def _chosen(repositories: Sequence[Repository], arguments: Mapping[str, Any]) -> Repository:
    wanted = arguments.get("repository", repositories[0].name if len(repositories) == 1 else "")
    for repository in repositories:
        if repository.name == wanted:
            return repository
    raise GitFailed(why=f"Name the repository: {_names(repositories)}.")


def _filters(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in ("since", "until"):
        if value := arguments.get(name, "").strip():
            if not _WHEN.fullmatch(value):
                raise GitFailed(why=f"'{name}' must be a date such as 2026-11-16, or such as '2 weeks ago'.")
            yield f"--{name}={value}"
    for name, option in (("author", "author"), ("words", "grep")):
        if value := arguments.get(name, ""):
            yield f"--{option}={_plain(value)}"  # joined to its option a value can be nothing else
    yield from ("--regexp-ignore-case", "--fixed-strings")


def _plain(value: str) -> str:
    if "\0" in value:
        raise GitFailed(why="A value holds a character that no name can have.")
    return value


def _ref(value: str) -> str:
    if not _REF.fullmatch(value):
        raise GitFailed(why="That is no name of a commit, branch, tag or range.")
    return value


def _path(arguments: Mapping[str, Any]) -> str:
    return _plain(str(arguments.get("path", "")))


async def _git(repository: Repository, command: str, options: list[str], ref: str, path: str) -> tuple[str, bool]:
    """What git prints, and whether it was cut. Raises ``GitFailed``."""
    program = which("git")
    if program is None:
        raise GitFailed(why="Git is not installed where Orion runs.")
    safe = (*SAFE, "-c", f"safe.directory={repository.folder}", "-C", str(repository.folder))
    # A ref or a path that looks like an option is none.
    asked = ["--end-of-options", ref, "--", *filter(None, [path])] if ref else []
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, *safe, command, *options, *asked),
            env=ENVIRONMENT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise GitFailed(why="Git could not be started.") from error
    try:
        output = bytearray()  # up to one byte more than is wanted, so that a cut can be told
        while process.stdout and len(output) <= OUTPUT_MOST and (read := await process.stdout.read(1 << 16)):
            output += read
        if len(output) <= OUTPUT_MOST and await process.wait() != 0:
            raise GitFailed(why="Git found nothing of that name, or cannot read the repository.")
    finally:
        with suppress(ProcessLookupError):  # it ended by itself
            process.kill()
        await process.wait()
    return output[:OUTPUT_MOST].decode("utf-8", "replace"), len(output) > OUTPUT_MOST


def _commits(output: str) -> Iterator[Commit]:  # the last one, if it was cut off, is left out
    fields = output.split("\0")
    for start in range(0, len(fields) - _FIELDS + 1, _FIELDS):
        commit, at, subject, line, text = fields[start : start + _FIELDS]
        commit = commit.strip()
        yield Commit(commit, at, subject, f"{commit[:10]} {line}", text.strip())


def _sources(repository: Repository, commits: Sequence[Commit]) -> Iterator[Source]:
    size = -(-len(commits) // SEPARATE_SOURCES)
    for start in range(0, len(commits), size):
        yield _source(repository, commits[start : start + size])


def _source(repository: Repository, commits: Sequence[Commit]) -> Source:
    newest = commits[0]
    title = f"{repository.name} {newest.id[:10]}: {newest.subject}"
    if len(commits) > 1:
        title = f"{repository.name}: {len(commits)} commits from {commits[-1].at[:10]} to {newest.at[:10]}"
    return Source(
        id=0,
        title=title,
        url=repository.link(newest.id),
        text="\n\n".join(commit.text for commit in commits),
        origin=f"tool:{GIT_LOG}",
        updated_at=newest.at,
    )
