"""`orion index` and `orion docs` as an admin meets them: web sites, failures, progress, an end in the middle."""

import asyncio
from pathlib import Path

import pytest

from bot.cli.index import _progress
from bot.documents.open import local_corpus, open_index
from bot.settings import load_settings
from tests.support.orion_command import LIMITS, Terminal
from tests.support.web_site import LocalSite, html


@pytest.fixture
def terminal(terminal: Terminal, tmp_path: Path) -> Terminal:
    terminal.set(ORION_HOME=str(tmp_path / "home"))
    return terminal


def test_unread_files_are_counted_by_suffix_with_a_remedy(terminal: Terminal) -> None:
    terminal.set(ORION_DOCS="docs")
    for name in ("a.odt", "b.odt", "photo.png", "LICENSE"):
        (terminal.docs / name).write_text("x")
    done = terminal.orion("index").err
    assert f"Not read: 2 files .odt in {terminal.docs}: save it as .docx, .xlsx, .pptx or PDF" in done
    assert f"Not read: 1 file without a suffix in {terminal.docs}: a format that is not read" in done
    (folder,) = terminal.orion("docs", "--json").json["sources"]
    assert sorted(map(tuple, folder["skipped"])) == [("", 1), (".odt", 2), (".png", 1)]


def test_a_web_site_is_read_by_index_and_listed_by_docs(terminal: Terminal) -> None:
    with LocalSite() as site:
        site.pages["/lunch"] = html("The canteen opens at noon.", "Lunch", etag='"1"')
        terminal.set(
            ORION_WEB_DOCS=site.sitemap("/lunch", "/gone"), ORION_WEB_DOCS_HOSTS="localhost", ORION_DOCS="docs"
        )
        before = terminal.orion("docs", "--json").json
        assert [(s["kind"], s["documents"]) for s in before["sources"]] == [("folder", 1), ("web", 0)]
        assert before["sources"][1]["synced"] == 0.0
        assert "never" in terminal.orion("docs").out
        done = terminal.orion("index")
        assert "1 added, 0 changed, 0 removed, 1 unchanged" in done.out
        assert f"Not read: localhost:{site.port}/gone: is gone (its server answers 404)" in done.err
        assert "0 added, 0 changed, 0 removed, 2 unchanged" in terminal.orion("index", "docs").out
        asked = len(site.asked)
        known = terminal.orion("docs", "--json").json
        assert len(site.asked) == asked
    assert [(d["title"], d["source"]) for d in known["documents"]] == [
        ("Limits", str(terminal.docs)),
        ("Lunch", f"web:{site.url}"),
    ]
    folder, web = known["sources"]
    assert (folder["kind"], folder["where"], folder["size"]) == ("folder", str(terminal.docs), len(LIMITS))
    assert (web["kind"], web["where"], web["documents"], web["failures"]) == ("web", site.url, 1, 1)
    assert [reason for _, reason in web["failed"]] == ["is gone (its server answers 404)"]
    assert web["synced"] == web["tried"]
    shown = terminal.orion("docs")
    assert "Lunch" in shown.out
    assert "/gone: is gone" in shown.err


def test_long_paths_are_listed_whole(terminal: Terminal) -> None:
    path = f"{'handbook/' * 12}other.md"
    (terminal.docs / path).parent.mkdir(parents=True)
    (terminal.docs / path).write_text(LIMITS)
    terminal.set(ORION_DOCS="docs")
    terminal.orion("index")
    lines = terminal.orion("docs").out.splitlines()
    details = lines[lines.index(path) + 1]
    assert details.startswith("  Limits, updated 2")
    assert details.endswith(", for public, 1 passage")


def test_a_secret_in_a_feeds_command_is_not_shown(terminal: Terminal) -> None:
    terminal.set(ORION_DOCS=str(terminal.docs), ORION_FEEDS="false --token hunter22 --wiki https://me:hunter22@w.test")
    shown = [terminal.orion(command).out for command in ("index", "docs")]
    assert all("feed" in text and "--token [redacted]" in text for text in shown)
    assert "hunter22" not in str(shown)


def test_many_failures_are_counted(terminal: Terminal) -> None:
    for n in range(105):
        terminal.write(f"docs/{n}.md", "")
    terminal.orion("index", "docs")
    assert "Not read: 5 more of " in terminal.orion("docs").err


def test_nothing_to_index_is_reported(terminal: Terminal) -> None:
    done = terminal.orion("index")
    assert done.code == 2
    assert done.err.startswith("There is nothing to index. Name folders: orion index DIR, or set ORION_DOCS,")
    assert terminal.orion("docs").out.startswith("No documents yet.")


def test_a_whole_disk_is_not_indexed(terminal: Terminal) -> None:
    done = terminal.orion("index", "/")
    assert done.code == 2
    assert done.err == "/ is a whole disk or home folder. Nothing was read. Name a folder of documents.\n"


def test_documents_of_a_local_workspace_are_listed_by_its_port(terminal: Terminal) -> None:
    terminal.orion("index", "docs")
    (terminal.folder / "other").mkdir()
    (terminal.folder / "other" / "o.md").write_text("# Other\n\nSomething else.")

    async def start() -> None:
        async with open_index(local_corpus(load_settings(), 8765, (terminal.folder / "other",))):
            pass

    asyncio.run(start())
    known = terminal.orion("docs", "--local", "8765", "--json").json
    assert [(one["id"], one["url"]) for one in known["documents"]] == [("o.md", "http://127.0.0.1:8765/docs/o.md")]
    assert "limits.md" in terminal.orion("docs").out
    wrong = terminal.orion("docs", "--local", "9999")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("No local workspace has run on port 9999: ")
    assert "One has on 8765." in wrong.err


def test_an_interrupted_index_command_reports_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        with _progress() as tell:
            tell("one.md")
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        interrupt()
    assert "Ended early; documents looked at: 1. What was read is in the index" in capsys.readouterr().err
