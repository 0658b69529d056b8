"""A repository's documents: as committed, linked to the line, for those whom the repository names."""

import os
from pathlib import Path

import pytest

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.sources.git import GitSource
from agent.knowledge.types import IndexReport, IndexRun
from tests.support.repository import Work

URL = "https://git.example/acme/{repository}/blob/{ref}/{path}"


@pytest.fixture
def work(tmp_path: Path) -> Work:
    work = Work(tmp_path / "handbook")
    folder = work.folder
    (folder / "docs" / "hr").mkdir(parents=True)
    (folder / "docs" / "lunch.md").write_text("# Lunch\n\nIntro.\n\n## Hours\n\nThe canteen opens at noon.\n")
    (folder / "docs" / "hr" / "pay.md").write_text("# Pay\n\nA bonus of 900.\n")
    (folder / "docs" / "hr" / "orion-audience.toml").write_text('audience = ["C0HR"]')
    (folder / "docs" / "link.md").symlink_to("/etc/passwd")
    (folder / ".hidden.md").write_text("hidden")
    program = "def run() -> None:\n    '''Starts the oven.'''\n"
    work.commit("first", at="2026-01-02T12:00:00Z", name="run.py", text=program)
    return work


@pytest.fixture
def repository(work: Work) -> Path:
    return work.folder


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


def test_only_files_that_a_commit_changed_are_indexed(index: KnowledgeIndex, work: Work) -> None:
    source = GitSource(repository=work.folder, ref="main", folder="docs", url=URL)
    assert index.index([source]) == IndexReport(added=2)
    dinner = "# Lunch\n\nDinner is at six.\n"
    (work.folder / "docs" / "lunch.md").write_text(dinner)
    assert index.index([source]) == IndexReport(unchanged=2)
    work.git("rm", "-q", "docs/hr/pay.md")
    work.commit("second", at="2026-03-04T12:00:00Z", name="docs/lunch.md", text=dinner)
    assert index.index([source]) == IndexReport(changed=1, removed=1)
    assert [(d.id, d.updated_at) for d in index.documents()] == [("docs/lunch.md", "2026-03-04")]


def test_an_unreachable_repository_keeps_its_documents(index: KnowledgeIndex, repository: Path) -> None:
    source = GitSource(repository=repository, ref="main")
    index.index([source])
    repository.rename(repository.with_name("away"))
    report = index.index([source])
    reason = "is not a Git repository, or has no such branch, tag or commit"
    assert (report.removed, report.failed) == (0, ((f"{repository} at main", reason),))
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


def test_unreadable_files_of_a_repository_are_named(index: KnowledgeIndex, work: Work) -> None:
    (work.folder / "docs" / "big.log").write_text("line\n" * 2_100_000)
    Path(os.fsdecode(bytes(work.folder) + b"/docs/b\xffd.md")).write_text("text")
    work.commit("fourth", at="2026-03-04T12:00:00Z", name="docs/node_modules/left_out.md")
    report = index.index([GitSource(repository=work.folder, folder="docs", url="https://git.example/b/")])
    assert report.added == 2
    assert sorted(reason for _, reason in report.failed) == [
        "has a name that is not UTF-8",
        "is too big (11 MB; the limit is 10 MB)",
    ]
    assert index.search("canteen")[0].url == "https://git.example/b/docs/lunch.md#L5"
    page = "<% # two\nlines %>\n\n<h1>Tea</h1>\n\nThe kettle of {} is on."
    for name in ("docs/tea.html", "docs/tea.html.erb", "docs/tea.md.erb"):
        work.commit("tea", at="2026-03-05T12:00:00Z", name=name, text=page.format(name))
    index.index([GitSource(repository=work.folder, folder="docs", url="https://git.example/b/")])
    links = sorted(passage.url.rpartition("/")[2] for passage in index.search("kettle"))
    assert links == ["tea.html", "tea.html.erb", "tea.md.erb#L4"]


def test_a_missing_blob_keeps_the_known_document(index: KnowledgeIndex, work: Work) -> None:
    source = GitSource(repository=work.folder, ref="main", folder="docs")
    index.index([source])
    name = work.git("rev-parse", "main:docs/lunch.md").strip()
    (work.folder / ".git" / "objects" / name[:2] / name[2:]).unlink()
    report = index.index([source])
    assert (report.unchanged, report.removed) == (1, 0)
    assert report.failed == (("docs/lunch.md", "cannot be read from its repository"),)
    assert len(index.documents()) == 2
