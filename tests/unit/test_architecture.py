"""The house stays in shape: sizes, walls, names, purity. What import-linter cannot see is checked here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PACKAGES = ("bot", "agent", "verification", "observability")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
WALLS = {"bot/queue/worker.py", "agent/tools/tool.py", "verification/check.py", "observability/langfuse/tracing.py"}
PURE = (
    "verification/",
    "agent/model/tag_stream.py",
    "agent/thread/plan.py",
    "agent/thread/state.py",
    "bot/delivery/blocks.py",
    "bot/slack/message.py",
)
NAMELESS = {"utils.py", "helpers.py", "manager.py", "base.py", "common.py", "misc.py", "constants.py"}
LONGEST_MODULE = 400
LONGEST_FUNCTION = 40


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) and len(function.body) > 1 else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_module_and_its_functions_fit_in_a_head(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= LONGEST_MODULE
    long = [f"{f.name}: {length(f)}" for f in functions(ast.parse(text)) if length(f) > LONGEST_FUNCTION]
    assert long == []


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_module_opens_with_what_it_promises(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert path.name not in NAMELESS


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_broad_excepts_stand_at_the_four_walls_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    broad = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
    ]
    assert not broad or name_of(path) in WALLS


@pytest.mark.parametrize("path", [p for p in SOURCES if name_of(p).startswith(PURE)], ids=name_of)
def test_pure_modules_do_nothing_asynchronous(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]


def test_no_global_is_ever_rebound() -> None:
    found = [
        name_of(path)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Global)
    ]
    assert found == []


def test_committed_files_name_no_registry() -> None:
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    assert len(locks) >= 4
    for lock in (path.read_text(encoding="utf-8") for path in locks):
        assert not re.search(r"https?://|--index-url|--find-links", lock)
        pins = re.findall(r"^[A-Za-z0-9]\S*(.*?)(?=^[A-Za-z0-9]|\Z)", lock, re.MULTILINE | re.DOTALL)
        assert pins
        assert all("--hash=sha256:" in pin for pin in pins)  # I7: nothing is installed that was not seen before
