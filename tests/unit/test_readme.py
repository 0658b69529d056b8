"""README and docs: settings and commands that exist, links that lead somewhere, a diagram that matches the imports."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from typer.main import get_command

from bot.cli.main import app
from tests.support.configuration_page import PAGE, meanings, page, settings
from tests.support.orion_command import Terminal, variables
from tests.support.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
VARIABLE = re.compile(r"\b(?:ORION|SLACK|OPENAI|REDIS|LANGFUSE)_[A-Z_]*[A-Z]\b")
EXAMPLES = {"ORION_CSV"}
"""Variables of an example for people who extend Orion."""
COMMAND = re.compile(r"(?:`|\.venv/bin/|\| )orion ([a-z][a-z-]*)(?: (list|retry|drop|[a-z]+(?:-[a-z]+)*)\b)?")
LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
ARROW = re.compile(r"^  ([a-z.]+)(?:\[.*?\])? --> ([a-z.]+)", re.MULTILINE)


def commands() -> dict[str, Any]:
    return dict(vars(get_command(app))["commands"])


def test_the_configuration_page_is_what_the_code_says() -> None:
    """``make docs`` writes it; a new setting needs its meaning in docs/settings.toml."""
    explained = {name for texts in meanings().values() for name, text in texts.items() if text}
    assert explained == set(settings())
    assert PAGE.read_text(encoding="utf-8") == page()


def test_no_page_names_what_is_not_there() -> None:
    known = commands()
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        assert set(VARIABLE.findall(text)) <= {*variables(), *EXAMPLES}, path
        assert [link for link in LINK.findall(text) if not (path.parent / link).exists()] == [], path
        if path.parent.name == "decisions":
            continue  # they may speak of commands that were decided against
        for name, inner in COMMAND.findall(text):
            assert name in known, path
            groups = vars(known[name]).get("commands")
            assert not (inner and groups) or inner in groups, path


def test_the_diagram_matches_the_imports_and_the_contracts() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    arrows = ARROW.findall(text)
    assert len(arrows) > 20
    drawn = {room for arrow in arrows for room in arrow}
    rooms = {f"{path.parent.parent.name}.{path.parent.name}" for path in ROOT.glob("[ab][og]*/*/__init__.py")}
    assert {*rooms, "verification", "observability"} <= drawn
    assert [arrow for arrow in arrows if not imports(*arrow)] == []
    ranks = [[rank(layers, room) for room in arrow] for layers in contracts() for arrow in arrows]
    assert [upward for upward in ranks if all(upward) and upward[0] > upward[1]] == []


def imports(room: str, other: str) -> bool:
    folder = ROOT / Path(*room.split("."))
    files = [folder.with_suffix(".py")] if folder.with_suffix(".py").exists() else folder.rglob("*.py")
    names = [
        name
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [])
    ]
    return any(f"{name}.".startswith(f"{other}.") for name in names)


def contracts() -> list[list[str]]:
    """The layers of each contract over whole packages, from the top, as full names."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layered = [contract for contract in found if contract["type"] == "layers"]
    return [
        [f"{contract['containers'][0]}.{layer}" if "containers" in contract else layer for layer in contract["layers"]]
        for contract in layered
    ]


def rank(layers: list[str], room: str) -> int:
    """Which layer it belongs to, from the top; 0 for none, so that no order is asked of it."""
    return next((n for n, layer in enumerate(layers, 1) if room in layer.replace("|", " ").split()), 0)


def test_the_readmes_example_does_what_it_shows(terminal: Terminal) -> None:
    shown = re.search(
        r"\$ cat sources\.json\n(.*)\n\$ cat answer\.txt\n(.*)\n\$ orion verify.*\n(?s:(.*?))```", PAGES[0].read_text()
    )
    assert shown is not None
    sources, answer, output = shown.groups()
    terminal.write("sources.json", json.dumps(json.loads(sources)))
    done = terminal.orion("verify", terminal.write("answer.txt", answer), "--sources", "sources.json")
    assert done.code == 1
    assert (done.out + done.err).splitlines() == output.splitlines()
    assert shown[0] in (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
