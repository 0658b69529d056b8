"""README and docs name the settings and commands that exist, all of the settings, and only files that are there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bot.cli.main import app
from tests.support.orion_command import Terminal, opened, variables
from tests.support.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
VARIABLE = re.compile(r"\b(?:ORION|SLACK|OPENAI|REDIS|LANGFUSE)_[A-Z_]*[A-Z]\b")
COMMAND = re.compile(r"(?:`|\.venv/bin/|\| )orion ([a-z][a-z-]*)(?: (list|retry|drop|[a-z]+(?:-[a-z]+)*)\b)?")
LINK = re.compile(r"\]\((?!https?://)([^)#]+)")


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    yield from opened(tmp_path, capsys, monkeypatch)


def commands() -> dict[str, Any]:
    return dict(vars(get_command(app))["commands"])


def test_every_setting_is_explained_in_the_readme() -> None:
    assert set(VARIABLE.findall(PAGES[0].read_text(encoding="utf-8"))) >= set(variables())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_what_is_not_there(page: Path) -> None:
    text, known = page.read_text(encoding="utf-8"), commands()
    assert set(VARIABLE.findall(text)) <= set(variables())
    for name, inner in COMMAND.findall(text):
        assert name in known
        groups = vars(known[name]).get("commands")
        assert not (inner and groups) or inner in groups
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


def test_the_readme_s_example_does_what_it_shows(terminal: Terminal) -> None:
    shown = re.search(
        r"\$ cat sources\.json\n(.*)\n\$ cat answer\.txt\n(.*)\n\$ orion verify.*\n(?s:(.*?))```", PAGES[0].read_text()
    )
    assert shown is not None
    sources, answer, output = shown.groups()
    terminal.write("sources.json", json.dumps(json.loads(sources)))
    done = terminal.orion("verify", terminal.write("answer.txt", answer), "--sources", "sources.json")
    assert done.code == 1
    assert (done.out + done.err).splitlines() == output.splitlines()
