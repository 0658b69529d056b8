"""The folder ORION_ANSWERS: one Markdown file for each saved answer, committed if the folder is a Git working tree."""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from shutil import which
from typing import Final, Literal

import structlog

from agent.knowledge.saved_answer import MAX_ANSWER_CHARS, MAX_QUESTION_CHARS, SavedAnswer
from agent.knowledge.sources.answers import AnswerFolder
from verification import Draft, Source, check

log = structlog.get_logger()

GIT_TIMEOUT_S: Final = 20.0
Fault = Literal["empty", "long", "secret", "broadcast", "injection"]
_RULES: Final[dict[str, Fault]] = {"no_secrets": "secret", "no_broadcast": "broadcast", "no_injection": "injection"}


def find_fault(answer: SavedAnswer) -> Fault | None:
    """Return why an answer may not be saved; None if it may."""
    text = f"{answer.question}\n\n{answer.answer}"
    if not (answer.question.strip() and answer.answer.strip()):
        return "empty"
    if len(answer.question) > MAX_QUESTION_CHARS or len(answer.answer) > MAX_ANSWER_CHARS:
        return "long"
    # The text is its own source here: an instruction counts as one only if a source contains it.
    verdict = check(Draft(text=text, sources=(Source(id=1, title=answer.question, text=text),)))
    return next((_RULES[each.rule] for each in verdict.errors if each.rule in _RULES), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBook:
    """Saved answers as files. Methods block, and raise ``OSError`` if the folder cannot be written."""

    folder: Path

    def write(self, answer: SavedAnswer, *, replaces: str = "") -> list[Path]:
        """Write an answer in place of the one with the key ``replaces``. Return the changed files.

        Raises ``FileExistsError`` if another answer to this question has the same audience. An identical answer is
        written again.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._file(answer.key)
        descriptor, name = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".part")
        part = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(answer.to_markdown())
                stream.flush()
                os.fsync(stream.fileno())
            part.chmod(0o644)
            if replaces == answer.key or self.find(answer.key) == answer:
                part.replace(file)
                return [file]
            file.hardlink_to(part)  # only one of two workers writes
        finally:
            part.unlink(missing_ok=True)
        old = self._file(replaces) if replaces else file
        if old == file or not old.exists():
            return [file]
        old.unlink()
        return [file, old]

    def delete(self, key: str) -> list[Path]:
        """Delete an answer. Return its file, or nothing if there was none."""
        file = self._file(key)
        existed = file.exists()
        file.unlink(missing_ok=True)
        return [file] if existed else []

    def answers(self) -> dict[str, SavedAnswer]:
        """Return the saved answers by the names of their files."""
        found = AnswerFolder(folder=self.folder).answers()
        return {file.stem: answer for file, answer in found if isinstance(answer, SavedAnswer)}

    def find(self, key: str) -> SavedAnswer | None:
        """Return one answer."""
        return self.answers().get(key)

    def overdue(self, today: date) -> list[SavedAnswer]:
        """Return the answers whose review is due, the longest overdue first."""
        due = [answer for answer in self.answers().values() if answer.is_overdue(today)]
        return sorted(due, key=lambda answer: answer.review or today)

    def _file(self, key: str) -> Path:
        return self.folder / f"{Path(key).name}.md"

    def commit(self, subject: str, files: list[Path]) -> bool:
        """Commit only these files; other changes in the working tree stay as they are.

        Return False if Git refuses the commit.
        """
        git = which("git")
        if git is None or not files or not self._git(git, "rev-parse", "--is-inside-work-tree"):
            return True
        paths = ["--", *(str(file.resolve()) for file in files)]
        author = ("-c", "user.name=Orion", "-c", "user.email=orion@localhost")
        message = ("--quiet", "--no-verify", "--only", "-m", " ".join(subject.split())[:72])
        done = self._git(git, "add", "--all", *paths) and (
            self._git(git, "diff", "--cached", "--quiet", *paths) or self._git(git, *author, "commit", *message, *paths)
        )
        if not done:
            remedy = "The file is written; commit it by hand."
            log.warning("answer_not_committed", folder=str(self.folder.resolve()), remedy=remedy)
        return done

    def _git(self, git: str, *command: str) -> bool:
        try:
            ended = subprocess.run(  # noqa: S603 - arguments are ours, paths come after --
                [git, "-C", str(self.folder), *command],
                capture_output=True,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=GIT_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return ended.returncode == 0
