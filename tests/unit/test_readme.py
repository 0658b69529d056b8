"""README and docs: settings and commands that exist, links that lead somewhere, a diagram that matches the imports."""

import ast
import json
import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any, cast

import pytest
from typer.main import get_command

from agent.tools import tool as tools
from bot.cli.main import app
from tests.support.configuration_page import PAGE, meanings, page, settings
from tests.support.orion_command import Terminal, variables
from tests.support.paths import ROOT
from verification.check import RULES

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
VARIABLE = re.compile(r"\b(?:ORION|SLACK|OPENAI|REDIS|LANGFUSE)_[A-Z_]*[A-Z]\b")
EXAMPLES = {"ORION_ROSTERS"}
"""Variables of an example for people who extend Orion."""
ADDED = {
    "verification/rules/shouting.py": "tests/unit/verification/rules/test_shouting.py",
    "agent/tools/builtin/roster.py": "tests/unit/agent/tools/builtin/test_roster.py",
}
"""The modules of those examples, each with its tests."""
COMMAND = re.compile(r"(?:`|\.venv/bin/|\| )orion ([a-z][a-z-]*)(?: (list|retry|drop|[a-z]+(?:-[a-z]+)*)\b)?")
FILE = re.compile(r"`((?:agent|bot|docs|tests|verification)/[\w./-]+\.\w+)`")
RUN = re.compile(r"python -m ([a-z][\w.]+)")
LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
ARROW = re.compile(r"^  ([a-z.]+)(?:\[.*?\])? --> ([a-z.]+)", re.MULTILINE)


def commands() -> dict[str, Any]:
    return dict(vars(get_command(app))["commands"])


def test_the_configuration_page_matches_the_code() -> None:
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
        assert [module for module in RUN.findall(text) if find_spec(module) is None] == [], path
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
    """The layer it belongs to, from the top; 0 for none, which has no order."""
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


def code_shown(path: str, language: str) -> str:
    """The text that docs/extending.md shows behind this path."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    return dedent(page.partition(f"`{path}`")[2].partition(f"```{language}\n")[2].partition("   ```")[0])


def module_shown(path: str) -> ModuleType:
    """The module that docs/extending.md shows behind this path."""
    code = code_shown(path, "python")
    module = ModuleType(path.removesuffix(".py").replace("/", "."))
    exec(compile(code, path, "exec"), vars(module))  # noqa: S102 - our own page
    return module


async def test_the_examples_for_people_who_extend_orion_pass_their_own_tests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, spec in tomllib.loads(code_shown("agent/tools/specs.toml", "toml")).items():
        monkeypatch.setitem(tools._SPECS, name, spec)
    rule, tool = map(module_shown, ADDED)
    monkeypatch.setitem(cast("dict[str, Any]", RULES), "no_shouting", rule.no_shouting)
    monkeypatch.setitem(sys.modules, tool.__name__, tool)
    of_rule, of_tool = (
        [test for name, test in vars(module_shown(path)).items() if name.startswith("test_")] for path in ADDED.values()
    )
    for test in of_rule:
        test()
    for test in of_tool:
        (tmp_path / test.__name__).mkdir()
        await test(tmp_path / test.__name__)
    assert of_rule
    assert of_tool


def test_files_that_the_docs_name_exist() -> None:
    contributing, extending = (ROOT / name for name in ("CONTRIBUTING.md", "docs/extending.md"))
    named = {
        *FILE.findall(contributing.read_text(encoding="utf-8")),
        *FILE.findall(extending.read_text(encoding="utf-8")),
    }
    made = {*ADDED, *ADDED.values(), "agent/texts/it.toml"}
    assert {name for name in named - made if not (ROOT / name).exists()} == set()


def test_every_test_that_security_and_criteria_name_exists() -> None:
    for document in ("security.md", "criteria.md"):
        for row in re.findall(r"^\|.*$", (ROOT / "docs" / document).read_text(encoding="utf-8"), re.MULTILINE):
            text = ""
            for name in re.findall(r"`((?:[a-z]+/)*test_\w+)(?:\.py)?`", row):
                file = module_of(name)
                text = text if file is None else file.read_text(encoding="utf-8")
                assert file is not None or f"def {name}(" in text, (document, name)


def module_of(path: str) -> Path | None:
    """Return the test module that a page names."""
    return next((file for top in ("tests", "tests/unit") if (file := ROOT / top / f"{path}.py").exists()), None)
