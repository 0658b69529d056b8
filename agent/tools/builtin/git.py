"""``git_log`` and ``git_show`` over configured repositories, read only.

No program from a repository's own configuration is run (hooks, pagers, filters), and e-mail addresses are left out.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from agent.knowledge.sources.git import ENVIRONMENT, git_command, link_to
from agent.knowledge.types import ReadError
from agent.tools.tool import ToolFailed, ToolResult, parameter, spec_of
from verification.types import Source

GIT_LOG: Final = "git_log"
GIT_SHOW: Final = "git_show"
DEFAULT_COMMITS: Final = parameter(GIT_LOG, "limit")["default"]
MAX_LOG_SOURCES: Final = 12  # maximum sources: in a longer list several commits share one
MAX_OUTPUT_BYTES: Final = 400_000  # maximum bytes of git's output; the rest is cut, and the result says so
MAX_CHANGES_CHARS: Final = 15_000

# No leading dash, no colon (``commit:path``), no white space; ``HEAD~3``, ``v1.2..v1.3``, ``feature/x@{1}`` pass.
_REF: Final = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9._/~^@{}+#-]{0,199}")
# Git accepts any word as a date, and treats an unknown one as now.
_WHEN: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|yesterday|midnight|\d{1,4} (?:minute|hour|day|week|month|year)s?(?: ago)?",
    re.IGNORECASE,
)
_FORMAT: Final = "--format=%H%x00%cI%x00%s%x00%cI %an: %s%x00commit %H%nAuthor: %an%nDate: %cI%n%n%B"
_FIELDS: Final = 5
# Show the changes of merges, and run no program from the repository's attributes.
_PLAIN_CHANGES: Final = ("--diff-merges=first-parent", "--no-ext-diff", "--no-textconv")


class GitFailed(ToolFailed):
    """Git failed. The text contains neither input nor output."""

    hints = ("git_log without a ref lists the newest commits.",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """One repository. ``url`` is the address of a commit; ``{commit}`` and ``{repository}`` are filled in."""

    name: str
    folder: Path
    url: str = ""


class Commit(NamedTuple):
    """One commit as git prints it with ``_FORMAT``. ``at`` is an ISO 8601 timestamp, ``text`` the whole message."""

    id: str
    at: str
    subject: str
    line: str
    text: str


def repositories(folders: Sequence[Path], url: str = "") -> tuple[Repository, ...]:
    """Return the configured repositories by their folders' names. A second one of the same name gets a number."""
    named: dict[str, Repository] = {}
    for folder in folders:
        whole = folder.resolve()
        name, number = whole.name.removesuffix(".git") or whole.parent.name, 2
        while name in named:
            name, number = f"{whole.name}-{number}", number + 1
        named[name] = Repository(name=name, folder=whole, url=url)
    return tuple(named.values())


class _GitTool:
    name: ClassVar[str]

    def __init__(self, repositories: Sequence[Repository]) -> None:
        self._repositories = {repository.name: repository for repository in repositories}
        self._names = ", ".join(self._repositories)
        self.spec = spec_of(self.name, names=self._names)

    def _choose(self, arguments: Mapping[str, Any]) -> Repository:
        only = self._names if len(self._repositories) == 1 else ""
        chosen = self._repositories.get(arguments.get("repository", only))
        if chosen is None:
            raise GitFailed(why=f"Name the repository: {self._names}.")
        return chosen


class GitLogTool(_GitTool):
    """Commits, newest first."""

    name = GIT_LOG

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """List commits. Each one is a source; if there are many, several share one."""
        limit, ref = int(arguments.get("limit", DEFAULT_COMMITS)), arguments.get("ref", "HEAD")
        repository = self._choose(arguments)
        options = [_FORMAT, "-z", f"--max-count={limit + 1}", *_filters(arguments)]
        output, _ = await _run_git(repository, "log", options, ref, arguments.get("path", ""))
        commits = list(_parse_commits(output))
        if not commits:
            hints = ("Widen the period, or leave out author, words or path.",)
            return ToolResult(content="No commit fits.", hints=hints)
        listed = commits[:limit]
        more = [f"There are more; these are the newest {limit}."] if len(commits) > limit else []
        size = -(-len(listed) // MAX_LOG_SOURCES)  # maximum number of commits in a source
        groups = (listed[start : start + size] for start in range(0, len(listed), size))
        content = "\n".join([*(commit.line for commit in listed), *more])
        return ToolResult(content=content, sources=tuple(_source(repository, group) for group in groups))


class GitShowTool(_GitTool):
    """One commit with its changes."""

    name = GIT_SHOW

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Show a commit. Returns one source with the message and the changes."""
        repository = self._choose(arguments)
        options = [_FORMAT + "%x00", "--stat=100", "--patch", *_PLAIN_CHANGES]
        commit, path = f"{arguments['commit']}^{{commit}}", arguments.get("path", "")
        output, cut = await _run_git(repository, "show", options, commit, path)
        *fields, changes = output.split("\0", _FIELDS)
        shown = next(_parse_commits("\0".join(fields)), None)
        if shown is None:
            raise GitFailed(why="There is no such commit.")
        cut = cut or len(changes) > MAX_CHANGES_CHARS
        note = " Its changes are cut off; name a path to see those of one file." if cut else ""
        text = f"{shown.text}\n\n{changes.strip()[:MAX_CHANGES_CHARS]}"
        source = replace(_source(repository, [shown]), text=text, origin=f"tool:{GIT_SHOW}")
        return ToolResult(content=shown.line + note, sources=(source,))


def _filters(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in ("since", "until"):
        if value := arguments.get(name, "").strip():
            if not _WHEN.fullmatch(value):
                raise GitFailed(why=f"'{name}' must be a date such as 2026-11-16, or such as '2 weeks ago'.")
            yield f"--{name}={value}"
    for name, option in (("author", "author"), ("words", "grep")):
        if value := arguments.get(name, ""):
            yield f"--{option}={value}"  # joined to its option, it cannot be taken for another option
    yield from ("--regexp-ignore-case", "--fixed-strings")


async def _run_git(repository: Repository, command: str, options: list[str], ref: str, path: str) -> tuple[str, bool]:
    """Return git's output and whether it was cut. Raises ``GitFailed``."""
    if ref and not _REF.fullmatch(ref.removesuffix("^{commit}")):
        raise GitFailed(why="That is not a name of a commit, branch, tag or range.")
    if "\0" in "".join([*options, path]):
        raise GitFailed(why="A value has a character that no name can have.")
    # A ref or a path that looks like an option must not be taken for one.
    asked = ["--end-of-options", ref, "--", *filter(None, [path])] if ref else []
    null, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    try:
        line = git_command(repository.folder, command, *options, *asked)
        process = await asyncio.create_subprocess_exec(*line, env=ENVIRONMENT, stdin=null, stdout=pipe, stderr=null)
    except (ReadError, OSError) as error:
        raise GitFailed(why="Git is not installed where Orion runs, or cannot be started.") from error
    try:
        output = bytearray()  # one extra byte shows that the output was cut
        while process.stdout and len(output) <= MAX_OUTPUT_BYTES and (read := await process.stdout.read(1 << 16)):
            output += read
        if len(output) <= MAX_OUTPUT_BYTES and await process.wait() != 0:
            raise GitFailed(why="Git found nothing of that name, or cannot read the repository.")
    finally:
        with suppress(ProcessLookupError):  # it has ended
            process.kill()
        await process.wait()
    return output[:MAX_OUTPUT_BYTES].decode("utf-8", "replace"), len(output) > MAX_OUTPUT_BYTES


def _parse_commits(output: str) -> Iterator[Commit]:  # without the last one if it was cut
    fields = output.split("\0")
    for start in range(0, len(fields) - _FIELDS + 1, _FIELDS):
        commit, at, subject, line, text = fields[start : start + _FIELDS]
        commit = commit.strip()
        yield Commit(commit, at, subject, f"{commit[:10]} {line}", text.strip())


def _source(repository: Repository, commits: Sequence[Commit]) -> Source:
    newest = commits[0]
    title = f"{repository.name} {newest.id[:10]}: {newest.subject}"
    if len(commits) > 1:
        title = f"{repository.name}: {len(commits)} commits from {commits[-1].at[:10]} to {newest.at[:10]}"
    return Source(
        id=0,
        title=title,
        url=link_to(repository.url, commit=newest.id, repository=repository.name),
        text="\n\n".join(commit.text for commit in commits),
        origin=f"tool:{GIT_LOG}",
        updated_at=newest.at,
    )
