"""The house stays in shape: sizes, walls, names, purity. What import-linter cannot see is checked here."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.paths import ROOT

PACKAGES = ("bot", "agent", "verification", "observability")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
WALLS = {"bot/queue/worker.py", "agent/tools/tool.py", "verification/check.py", "observability/langfuse/tracing.py"}
PURE = (
    "verification/",
    "agent/model/chat_reply.py",
    "agent/thread/state.py",
    "bot/delivery/blocks.py",
    "bot/slack/message.py",
)
NAMELESS = {"utils.py", "helpers.py", "manager.py", "base.py", "common.py", "misc.py", "constants.py", "models.py"}
LONGEST_MODULE = 400
LONGEST_FUNCTION = 40
MEDIAN_FUNCTION = 7
LARGEST_FOLDER = 14


@cache
def parse_modules() -> dict[str, tuple[str, list[ast.AST]]]:
    """Each module's text and every node of it."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in SOURCES}
    return {name: (text, list(ast.walk(ast.parse(text)))) for name, text in texts.items()}


def each(*kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    return ((name, node) for name, (_, nodes) in parse_modules().items() for node in nodes if isinstance(node, kinds))


def length(function: ast.AST) -> int:
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    body = function.body[1:] if ast.get_docstring(function) and len(function.body) > 1 else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def test_modules_functions_and_folders_stay_small() -> None:
    assert {
        name: text.count("\n") for name, (text, _) in parse_modules().items() if text.count("\n") > LONGEST_MODULE
    } == {}
    lengths = [(length(node), name) for name, node in each(ast.FunctionDef, ast.AsyncFunctionDef)]
    assert [found for found in lengths if found[0] > LONGEST_FUNCTION] == []
    assert sorted(lengths)[len(lengths) // 2][0] <= MEDIAN_FUNCTION
    folders = Counter(path.parent.relative_to(ROOT).as_posix() for path in SOURCES if path.name != "__init__.py")
    assert {folder: size for folder, size in folders.items() if size > LARGEST_FOLDER} == {}


def test_every_module_says_what_it_is_for_under_a_name_that_means_something() -> None:
    silent = [name for name, (_, nodes) in parse_modules().items() if not ast.get_docstring(nodes[0])]  # type: ignore[arg-type]
    assert silent == []
    assert [name for name in parse_modules() if Path(name).name in NAMELESS] == []
    formula = [name for name, (text, _) in parse_modules().items() if re.search(r"\bPromises:", text)]
    assert formula == [], "say in one to three plain sentences what the module is for"


def test_broad_excepts_occur_only_at_the_four_walls() -> None:
    broad = {
        name
        for name, node in each(ast.ExceptHandler)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or re.search(r"'(Base)?Exception'", ast.dump(node.type)))
    }
    assert broad <= WALLS


def test_pure_modules_do_nothing_asynchronous() -> None:
    found = {name for name, _ in each(ast.AsyncFunctionDef, ast.Await) if name.startswith(PURE)}
    assert found == set()


def test_no_global_is_ever_rebound() -> None:
    assert [name for name, _ in each(ast.Global)] == []


def test_no_class_name_occurs_three_times() -> None:
    names = Counter(node.name for _, node in each(ast.ClassDef) if isinstance(node, ast.ClassDef))
    assert {name: count for name, count in names.items() if count > 2} == {}


def test_committed_files_do_not_name_a_registry() -> None:
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    assert len(locks) >= 3
    for lock in (path.read_text(encoding="utf-8") for path in locks):
        assert not re.search(r"https?://|--index-url|--find-links", lock)
        pins = re.findall(r"^[A-Za-z0-9]\S*(.*?)(?=^[A-Za-z0-9]|\Z)", lock, re.MULTILINE | re.DOTALL)
        assert pins
        assert all("--hash=sha256:" in pin for pin in pins)  # I7: nothing is installed that was not seen before
