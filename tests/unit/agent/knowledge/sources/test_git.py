"""A repository's documents: as committed, linked to the line, for those whom the repository names."""

import os
import subprocess
from pathlib import Path

import pytest

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.sources.git import GitSource
from agent.knowledge.types import IndexReport, IndexRun

URL = "https://git.example/acme/{repository}/blob/{ref}/{path}"


def git(folder: Path, *command: str, date: str = "2026-01-02T12:00:00Z") -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")
    when = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "PATH": "/usr/bin:/bin:/usr/local/bin"}
    subprocess.run(["git", *who, *command], cwd=folder, check=True, capture_output=True, env=when)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "handbook"
    (folder / "docs" / "hr").mkdir(parents=True)
    (folder / "docs" / "lunch.md").write_text("# Lunch\n\nIntro.\n\n## Hours\n\nThe canteen opens at noon.\n")
    (folder / "docs" / "hr" / "pay.md").write_text("# Pay\n\nA bonus of 900.\n")
    (folder / "docs" / "hr" / "orion-audience.toml").write_text('audience = ["C0HR"]')
    (folder / "run.py").write_text("def run() -> None:\n    '''Starts the oven.'''\n")
    (folder / "docs" / "link.md").symlink_to("/etc/passwd")
    (folder / ".hidden.md").write_text("hidden")
    git(folder, "init")
    git(folder, "add", "-A")
    git(folder, "commit", "-m", "first")
    return folder


def test_documents_come_from_the_ref_with_links_to_the_line(index: KnowledgeIndex, repository: Path) -> None:
    source = GitSource(repository=repository, ref="main", url=URL)
    (repository / "docs" / "draft.md").write_text("# Draft\n\nNot committed.\n")
    assert index.index([source]) == IndexReport(added=3)
    found = index.search("When does the canteen open?")[0]
    assert (found.document, found.line, found.updated_at) == ("docs/lunch.md", 5, "2026-01-02")
    assert found.url == "https://git.example/acme/handbook/blob/main/docs/lunch.md#L5"
    assert [d.id for d in index.documents()] == ["docs/hr/pay.md", "docs/lunch.md", "run.py"]
    assert {d.id: d.audience for d in index.documents()}["docs/hr/pay.md"] == "C0HR"
    assert {d.source for d in index.documents()} == {source.key}


def test_only_files_that_a_commit_changed_are_indexed(index: KnowledgeIndex, repository: Path) -> None:
    source = GitSource(repository=repository, ref="main", folder="docs", url=URL)
    assert index.index([source]) == IndexReport(added=2)
    (repository / "docs" / "lunch.md").write_text("# Lunch\n\nDinner is at six.\n")
    assert index.index([source]) == IndexReport(unchanged=2)
    git(repository, "rm", "-q", "docs/hr/pay.md")
    git(repository, "commit", "-a", "-m", "second", date="2026-03-04T12:00:00Z")
    assert index.index([source]) == IndexReport(changed=1, removed=1)
    assert [(d.id, d.updated_at) for d in index.documents()] == [("docs/lunch.md", "2026-03-04")]


def test_an_unreachable_repository_keeps_its_documents(index: KnowledgeIndex, repository: Path) -> None:
    source = GitSource(repository=repository, ref="main")
    index.index([source])
    repository.rename(repository.with_name("away"))
    report = index.index([source])
    assert (report.removed, report.failed) == (
        0,
        ((f"{repository} at main", "is not a Git repository, or has no such branch, tag or commit"),),
    )
    assert len(index.documents()) == 3


def test_without_git_the_repository_is_unavailable_and_the_reason_is_reported(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    run = IndexRun()
    source = GitSource(repository=repository)
    assert list(source.documents(run)) == []
    assert run.missing == [source.key]
    assert run.failed[0][1] == "cannot be read: Git is not installed where Orion runs"


@pytest.mark.parametrize("ref", ["--output=/tmp/x", "nowhere", ""])
def test_a_ref_is_never_an_option(repository: Path, ref: str) -> None:
    run = IndexRun()
    assert list(GitSource(repository=repository, ref=ref).documents(run)) == []
    assert len(run.failed) == len(run.missing) == 1


def test_two_repositories_may_have_the_same_paths(index: KnowledgeIndex, repository: Path) -> None:
    main, other = GitSource(repository=repository, ref="main"), GitSource(repository=repository)
    assert index.index([main, other]).added == 6
    assert sum(d.id.startswith("handbook/") for d in index.documents()) == 3


def test_unreadable_files_of_a_repository_are_named(index: KnowledgeIndex, repository: Path) -> None:
    (repository / "docs" / "big.log").write_text("line\n" * 2_100_000)
    (repository / "docs" / "node_modules").mkdir()
    (repository / "docs" / "node_modules" / "left_out.md").write_text("text")
    Path(os.fsdecode(bytes(repository) + b"/docs/b\xffd.md")).write_text("text")
    git(repository, "add", "-A")
    git(repository, "commit", "-m", "fourth")
    report = index.index([GitSource(repository=repository, folder="docs", url="https://git.example/b/")])
    assert report.added == 2
    assert sorted(reason for _, reason in report.failed) == [
        "has a name that is not UTF-8",
        "is too big (11 MB; the limit is 10 MB)",
    ]
    assert index.search("canteen")[0].url == "https://git.example/b/docs/lunch.md#L5"


def test_a_missing_blob_keeps_the_known_document(index: KnowledgeIndex, repository: Path) -> None:
    source = GitSource(repository=repository, ref="main", folder="docs")
    index.index([source])
    name = subprocess.run(
        ["git", "rev-parse", "main:docs/lunch.md"], cwd=repository, capture_output=True, check=True, text=True
    ).stdout.strip()
    (repository / ".git" / "objects" / name[:2] / name[2:]).unlink()
    report = index.index([source])
    assert (report.unchanged, report.removed) == (1, 0)
    assert report.failed == (("docs/lunch.md", "cannot be read from its repository"),)
    assert len(index.documents()) == 2
