"""The folder ORION_ANSWERS: one Markdown file for each saved answer, committed if the folder is a Git working tree."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
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
_RULES: Final[dict[str, Fault]] = {
    "no_secrets": "secret",
    "no_broadcast": "broadcast",
    "no_injection": "injection",
}


def find_fault(answer: SavedAnswer) -> Fault | None:
    """Return why an answer may not be saved; None if it may."""
    text = f"{answer.question}\n\n{answer.answer}"
    if not (answer.question.strip() and answer.answer.strip()):
        return "empty"
    if len(answer.question) > MAX_QUESTION_CHARS or len(answer.answer) > MAX_ANSWER_CHARS:
        return "long"
    # The text is its own source here: an instruction counts as one only if a source holds it.
    verdict = check(Draft(text=text, sources=(Source(id=1, title=answer.question, text=text),)))
    return next((_RULES[each.rule] for each in verdict.errors if each.rule in _RULES), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBook:
    """Saved answers as files. Methods block, and raise ``OSError`` if the folder cannot be written."""

    folder: Path

    def save(self, answer: SavedAnswer, *, replaces: str = "") -> bool:
        """Write an answer in place of the one with the key ``replaces``. Return whether Git has it, if there is Git."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._file(answer.key)
        descriptor, name = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".part")
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(answer.to_markdown())
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(file)
        changed = [file]
        if replaces and replaces != answer.key and (old := self._file(replaces)).exists():
            old.unlink()
            changed.append(old)
        return self._commit(f"Save answer: {answer.question}", changed)

    def withdraw(self, key: str) -> bool:
        """Delete an answer. Return whether there was one."""
        file = self._file(key)
        if not file.exists():
            return False
        file.unlink()
        self._commit(f"Withdraw answer: {key}", [file])
        return True

    def answers(self) -> Iterator[SavedAnswer]:
        """Yield the saved answers, by file name."""
        for _, answer in AnswerFolder(folder=self.folder).answers():
            if isinstance(answer, SavedAnswer):
                yield answer

    def find(self, key: str) -> SavedAnswer | None:
        """Return one answer."""
        return next((answer for answer in self.answers() if answer.key == key), None)

    def overdue(self, today: date) -> list[SavedAnswer]:
        """Return the answers whose review is due, the longest overdue first."""
        due = [answer for answer in self.answers() if answer.is_overdue(today)]
        return sorted(due, key=lambda answer: answer.review or today)

    def _file(self, key: str) -> Path:
        return self.folder / f"{Path(key).name}.md"

    def _commit(self, subject: str, files: list[Path]) -> bool:
        """Commit these files only; what else is changed in the working tree stays as it is."""
        git, folder = which("git"), str(self.folder.resolve())
        if git is None or not self._git(git, "rev-parse", "--is-inside-work-tree"):
            return False
        paths = [str(file.resolve()) for file in files]
        title = " ".join(subject.split())[:72]
        author = ("-c", "user.name=Orion", "-c", "user.email=orion@localhost")
        done = self._git(git, "add", "--all", "--", *paths) and self._git(
            git, *author, "commit", "--quiet", "--no-verify", "--only", "-m", title, "--", *paths
        )
        if not done:
            log.warning("answer_not_committed", folder=folder, remedy="The file is written; commit it by hand.")
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
