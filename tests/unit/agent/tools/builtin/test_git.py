"""The Git tools over real repositories: what they find and refuse; nothing a repository names is run."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent.actions import ToolCall
from agent.tools.builtin.git import MAX_CHANGES_CHARS, GitLogTool, GitShowTool, repositories
from agent.tools.tool import Tool, ToolResult, call_tool
from tests.support.repository import Work

URL = "https://git.example/{repository}/commit/{commit}"


@pytest.fixture
def work(tmp_path: Path) -> Work:
    made = Work(tmp_path / "shop")
    made.commit("Add the price list", at="2026-11-02T09:00:00+00:00", name="prices.txt", text="tea 3\n")
    made.commit(
        "Raise tea to 4\n\nThe supplier asked.", at="2026-11-10T09:00:00+00:00", name="prices.txt", text="tea 4\n"
    )
    made.commit("Fix the door", at="2026-11-12T09:00:00+00:00", author="Bo Lee", name="door.txt")
    return made


async def call(tool: str, folders: list[Path], url: str = URL, **arguments: Any) -> ToolResult:
    found = repositories(folders, url)
    tools: dict[str, Tool] = {"git_log": GitLogTool(found), "git_show": GitShowTool(found)}
    asked = ToolCall(call_id="1", tool=tool, input=arguments)
    return await call_tool(tools, asked, timeout_s=20, max_chars=20_000)


async def test_git_log_returns_each_commit_as_a_source_with_date_and_link(work: Work) -> None:
    found = await call("git_log", [work.folder], since="2026-11-09", until="2026-11-11")
    assert found.ok
    tea = work.git("rev-parse", "HEAD~1").strip()
    (source,) = found.sources
    assert (source.title, source.url) == (f"shop {tea[:10]}: Raise tea to 4", f"https://git.example/shop/commit/{tea}")
    assert (source.origin, source.updated_at) == ("tool:git_log", "2026-11-10T09:00:00+00:00")
    assert (
        source.text
        == f"commit {tea}\nAuthor: Ada Ray\nDate: 2026-11-10T09:00:00+00:00\n\nRaise tea to 4\n\nThe supplier asked."
    )
    assert "secret.example" not in source.text


@pytest.mark.parametrize(
    ("arguments", "subjects"),
    [
        ({}, ["Fix the door", "Raise tea to 4", "Add the price list"]),
        ({"author": "bo"}, ["Fix the door"]),
        ({"words": "SUPPLIER"}, ["Raise tea to 4"]),
        ({"path": "prices.txt"}, ["Raise tea to 4", "Add the price list"]),
        ({"ref": "HEAD~2..HEAD~1"}, ["Raise tea to 4"]),
        ({"limit": 1}, ["Fix the door"]),
        ({"words": ".*"}, []),
        ({"path": ":(glob)**"}, []),
        ({"author": "--all"}, []),
    ],
)
async def test_git_log_filters_by_its_arguments(work: Work, arguments: dict[str, Any], subjects: list[str]) -> None:
    found = await call("git_log", [work.folder], **arguments)
    assert found.ok
    assert [source.title.partition(": ")[2] for source in found.sources] == subjects
    assert ("There are more" in found.content) == (arguments == {"limit": 1})
    assert bool(found.hints) == (not subjects)


async def test_git_show_returns_the_changes_even_of_a_merge(work: Work) -> None:
    found = await call("git_show", [work.folder], commit="HEAD~1", path="prices.txt")
    (source,) = found.sources
    assert "-tea 3\n+tea 4" in source.text
    assert source.text.startswith("commit ")
    assert (source.origin, source.title.partition(": ")[2]) == ("tool:git_show", "Raise tea to 4")
    work.git("checkout", "-q", "-b", "side", "HEAD~1")
    work.commit("Paint it", at="2026-11-13T09:00:00+00:00", name="paint.txt")
    work.git("checkout", "-q", "main")
    work.git("-c", "user.name=A", "-c", "user.email=a@a.example", "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    found = await call("git_show", [work.folder], commit="main")
    assert "paint.txt" in found.sources[0].text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("git_log", {"ref": "--output=/tmp/x"}),
        ("git_log", {"ref": "HEAD:prices.txt"}),
        ("git_log", {"ref": "nowhere"}),
        ("git_log", {"since": "some day"}),
        ("git_log", {"author": "a\0b"}),
        ("git_log", {"repository": "other"}),
        ("git_show", {"commit": "-p"}),
        ("git_show", {"commit": "HEAD^{tree}"}),
        ("git_show", {"commit": "f" * 40}),
        ("git_show", {"commit": "HEAD", "path": "a\0b"}),
    ],
)
async def test_an_invalid_name_is_refused_with_a_reason(work: Work, tool: str, arguments: dict[str, Any]) -> None:
    found = await call(tool, [work.folder], **arguments)
    assert not found.ok
    assert found.error
    assert found.hints
    assert not found.sources


async def test_no_program_that_a_repository_names_is_run(work: Work, tmp_path: Path) -> None:
    """A repository is not ours: its configuration and attributes may name programs for nearly everything."""
    touched = tmp_path / "touched"
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {touched}\ncat\n")
    trap.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "diff.trap.textconv",
        "diff.trap.command",
        "gpg.program",
    ):
        work.git("config", key, str(trap))
    work.git("config", "log.showSignature", "true")
    (work.folder / ".git" / "info" / "attributes").write_text("* diff=trap\n")
    assert (await call("git_log", [work.folder])).ok
    assert (await call("git_show", [work.folder], commit="HEAD")).ok
    assert not touched.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
async def test_a_repository_of_another_owner_is_read(work: Work) -> None:
    for path in (work.folder, *work.folder.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    assert len((await call("git_log", [work.folder])).sources) == 3


async def test_many_commits_share_a_few_sources(work: Work) -> None:
    for number in range(12):
        work.commit(f"Change {number}", at=f"2026-11-14T09:{number:02}:00+00:00", text=str(number))
    found = await call("git_log", [work.folder], limit=200)
    assert len(found.sources) == 8
    assert found.sources[0].title == "shop: 2 commits from 2026-11-14 to 2026-11-14"
    assert sum(source.text.count("commit ") for source in found.sources) == 15


async def test_a_huge_commit_is_cut_and_says_so(work: Work) -> None:
    work.commit("Big", at="2026-11-15T09:00:00+00:00", name="big.txt", text="line of text\n" * 60_000)
    found = await call("git_show", [work.folder], commit="HEAD")
    assert found.content.endswith("name a path to see those of one file.")
    assert MAX_CHANGES_CHARS < len(found.sources[0].text) < MAX_CHANGES_CHARS + 500


async def test_several_repositories_are_chosen_by_name(work: Work, tmp_path: Path) -> None:
    other = Work(tmp_path / "more" / "shop")
    other.commit("Other", at="2026-11-02T09:00:00+00:00")
    both = [work.folder, other.folder]
    assert [one.name for one in repositories([tmp_path / "shop.git"])] == ["shop"]
    assert (await call("git_log", both)).error == "Name the repository: shop, shop-2."
    found = await call("git_log", both, url="https://g.example/c", repository="shop-2")
    assert found.sources[0].url == f"https://g.example/c/{other.git('rev-parse', 'HEAD').strip()}"
    assert (await call("git_log", both, url="", repository="shop-2")).sources[0].url == ""


async def test_a_folder_that_is_not_a_repository_is_named(work: Work, tmp_path: Path) -> None:
    assert (await call("git_log", [work.folder])).ok
    assert "cannot read the repository" in (await call("git_log", [tmp_path])).error
