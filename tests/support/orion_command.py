"""`orion …` as a user types it, in this process: what it prints and how it exits.

The environment is only what a test gives, the folder a temporary one, and logging is put back afterwards.
"""

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from bot.cli.main import main
from bot.settings import Settings

LIMITS = "# Limits\n\nEach API key may make 600 requests a minute.\n"
QUESTION = "How many requests may an API key make?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Terminal:
    """A person's terminal in a folder of its own, with one document under ``docs``."""

    def __init__(self, folder: Path, captured: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.docs = folder / "docs"
        self.docs.mkdir()
        (self.docs / "limits.md").write_text(LIMITS)
        self._captured = captured
        self._patch = patch

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._patch.setenv(name, value)

    def write(self, name: str, content: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def orion(self, *arguments: str) -> Done:
        """Run a command to its end. One that would show a stack trace fails the test by raising."""
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = self._captured.readouterr()
        code = ended.value.code
        return Done(code=code if isinstance(code, int) else int(code is not None), out=out, err=err)


def variables() -> list[str]:
    """Every variable that Orion reads."""
    fields = Settings.model_fields.values()
    aliases = [field.validation_alias for field in fields]
    return [str(choice) for alias in aliases for choice in getattr(alias, "choices", [])]


def open_terminal(folder: Path, captured: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """For a fixture ``terminal``."""
    patch.chdir(folder)
    for name in variables():
        patch.delenv(name, raising=False)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    # What a thread of an earlier test still logs is not a command's output.
    structlog.configure(logger_factory=lambda *_: structlog.WriteLogger(sys.stderr))
    try:
        yield Terminal(folder, captured, patch)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(capture=False)
        structlog.reset_defaults()
