"""Walking folders: links, loops, hidden files, and two roots with the same names."""

import os
import subprocess
from pathlib import Path

import pytest

from agent.knowledge.sources.folders import Folders
from agent.knowledge.types import IndexRun, Readable, ReadError

DATE = "2026-01-02T12:00:00Z"
WHEN = {"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE, "PATH": "/usr/bin:/bin:/usr/local/bin"}


def files(run: IndexRun, *roots: Path) -> list[Readable]:
    folders = Folders(roots, run)
    return [file for root in roots for file in folders.documents_in(root)]


def ids(run: IndexRun, *roots: Path) -> list[str]:
    return [file.id for file in files(run, *roots)]


def test_only_documents_are_indexed_in_a_stable_order(tmp_path: Path) -> None:
    for name in ("b.md", "a.TXT", ".hidden.md", "x.png", "node_modules/p.md", ".git/c.md", "sub/d.pdf", "sub/e.html"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    run = IndexRun()
    assert ids(run, tmp_path) == ["a.TXT", "b.md", "sub/d.pdf", "sub/e.html"]
    assert (run.failed, run.missing) == ([], [])
    assert run.skipped == {str(tmp_path): {".png": 1}}


def test_files_copied_on_one_day_have_no_date_and_a_work_tree_has_its_commits_dates(tmp_path: Path) -> None:
    for number, name in enumerate(("a.md", "b.md", "c.md", "old.md")):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (86_400 * (20_000 - 900 * (number == 3)),) * 2)
    dates = [file.read()[1] for file in files(IndexRun(), tmp_path)]
    assert dates == [0.0, 0.0, 0.0, 86_400 * 19_100]
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for command in (("init", "-q"), ("add", "a.md", "b.md"), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, env=WHEN)
    dates = [file.read()[1] for file in files(IndexRun(), tmp_path)]
    assert dates == [1_767_355_200.0, 1_767_355_200.0, 0.0, 86_400 * 19_100]


def test_links_never_leave_their_root_and_never_loop(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret.md").write_text("x")
    (root / "real.md").write_text("x")
    (root / "alias.md").symlink_to(root / "real.md")
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    (root / "loop").symlink_to(root)
    (root / "shared").symlink_to(tmp_path)
    (root / "self.md").symlink_to(root / "self.md")
    (root / "broken.md").symlink_to(root / "gone.md")
    run = IndexRun()
    real, broken, own = files(run, root)
    assert (real.id, broken.id, own.id) == ("real.md", "broken.md", "self.md")
    for link in (broken, own):
        with pytest.raises(ReadError, match="cannot be opened"):
            link.read()
    assert run.failed == [(name, "is a link that leads out of its folder") for name in ("shared", "out.md")]
    (root / "real.md").unlink()
    (root / "real.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(ReadError, match="replaced by a link"):
        real.read()


def test_roots_may_share_names_overlap_and_be_files(tmp_path: Path) -> None:
    for name in ("one/a.md", "two/a.md", "two/b.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    one, two = tmp_path / "one", tmp_path / "two"
    assert ids(IndexRun(), one, two, two / "b.md", one) == ["a.md", "two/a.md", "b.md"]


def test_a_missing_root_and_a_name_that_is_not_text_are_reported(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.md")).write_text("x")
    run = IndexRun()
    assert ids(run, tmp_path, tmp_path / "none") == []
    assert run.failed == [
        ("'bad\\udcff.md'", "has a name that is not UTF-8"),
        (str(tmp_path / "none"), "does not exist"),
    ]
    assert run.missing == [str(tmp_path / "none")]


def test_a_folder_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    run = IndexRun()
    Folders([tmp_path], run)._note_unreadable(PermissionError(13, "Permission denied", str(tmp_path / "shut")))
    assert run.failed == [(str(tmp_path / "shut"), "cannot be opened (Permission denied)")]


def test_the_audience_file_is_not_a_document(tmp_path: Path) -> None:
    (tmp_path / "orion-audience.toml").write_text('audience = "public"')
    (tmp_path / "run.py").write_text("print()")
    assert ids(IndexRun(), tmp_path) == ["run.py"]
