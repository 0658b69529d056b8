"""Feeds: a program's documents arrive, and nothing that it does wrong loses, leaks or hangs anything."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.sources import feed as feed_source
from agent.knowledge.sources.feed import FeedSource
from agent.knowledge.types import IndexReport
from agent.thread.conversation import NOBODY

LUNCH: dict[str, Any] = {"key": "1", "title": "Lunch", "text": "The canteen opens at noon.", "audience": "public"}
PAY: dict[str, Any] = {"key": "2", "title": "Pay", "text": "A bonus of 900 euros.", "audience": ["C0HR"]}


def lines(*documents: object) -> str:
    return "".join(f"{json.dumps(document)}\n" for document in documents)


def program(folder: Path, code: str, *documents: object, timeout_s: float = 30.0) -> FeedSource:
    """Return a feed whose program runs ``code`` after it has printed the documents."""
    file = folder / "wiki.py"
    file.write_text(
        f"import os, sys, time, json\nsys.stdout.write({lines(*documents)!r})\nsys.stdout.flush()\n{code}\n"
    )
    return FeedSource(command=(sys.executable, str(file)), environment=(("PATH", os.defpath),), timeout_s=timeout_s)


def titles(index: KnowledgeIndex) -> dict[str, str]:
    return {document.title: document.audience for document in index.documents()}


def test_documents_have_their_link_date_and_audience(index: KnowledgeIndex, tmp_path: Path) -> None:
    file = "open('hours.html', 'w').write('<title>Hours</title><h1>Hours</h1><p>Open from 9 to 5.</p>')"
    hours = {"key": "3", "path": "hours.html", "audience": ["ann@acme.example+C0HR"]}
    lunch = LUNCH | {"url": "https://wiki.example/1", "updated": "2026-03-04T10:00:00Z"}
    source = program(tmp_path, f"{file}; print(json.dumps({hours!r}))", lunch, PAY)
    assert index.index([source]) == IndexReport(added=3)
    found = index.search("When does the canteen open?")[0]
    assert (found.document, found.url, found.updated_at) == ("wiki/1", "https://wiki.example/1", "2026-03-04")
    assert titles(index) == {"Lunch": "public", "Pay": "C0HR", "Hours": "ann@acme.example+C0HR"}


def test_unchanged_documents_are_not_printed_again_and_missing_ones_are_dropped(
    index: KnowledgeIndex, tmp_path: Path
) -> None:
    source = program(tmp_path, "", LUNCH | {"revision": "a"}, PAY | {"revision": "b"})
    index.index([source])
    answer = """
for line in sys.stdin:
    known = json.loads(line)
    if known == {"key": "1", "revision": "a"}:
        print(json.dumps({"key": "1", "unchanged": True}))
"""
    program(tmp_path, answer)
    assert index.index([source]) == IndexReport(unchanged=1, removed=1)
    assert titles(index) == {"Lunch": "public"}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("sys.exit('the wiki is away: 503')", "the wiki is away: 503"),
        ("os.kill(os.getpid(), 9)", "exit code -9"),
        ("time.sleep(600)", "took too long"),
        ("sys.stdout.close(); os.close(1); time.sleep(600)", "took too long"),
        ("os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '600'); sys.exit(3)", "took too long"),
        ("import subprocess; subprocess.Popen(['sleep', '40'], start_new_session=True)", "took too long"),
        ("while True: print('x' * 60_000)", "too much"),
    ],
)
def test_a_failing_program_keeps_the_earlier_documents(
    code: str, reason: str, index: KnowledgeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_source, "_MAX_OUTPUT_BYTES", 3_000_000)
    index.index([program(tmp_path, "", LUNCH, PAY)])
    began = time.monotonic()
    hasty = 1.5 if reason == "took too long" else 30.0
    report = index.index([program(tmp_path, code, PAY | {"audience": ["C0BOSS"]}, timeout_s=hasty)])
    assert time.monotonic() - began < 30
    assert reason in report.failed[-1][1]
    assert titles(index) == {"Lunch": "public", "Pay": "C0BOSS"}, "an audience that shrank counts all the same"


@pytest.mark.parametrize("code", ["", "print('<html>502 Bad Gateway</html>')", "print('{}')"])
def test_a_program_that_prints_no_document_keeps_the_earlier_ones(
    code: str, index: KnowledgeIndex, tmp_path: Path
) -> None:
    index.index([program(tmp_path, "", LUNCH, PAY)])
    report = index.index([program(tmp_path, code)])
    assert "printed no document; its documents stay" in report.failed[-1][1]
    assert titles(index) == {"Lunch": "public", "Pay": "C0HR"}
    assert index.index([program(tmp_path, "", {"empty": True})]) == IndexReport(removed=2)
    assert index.index([program(tmp_path, "")]) == IndexReport(), "it never had any"


@pytest.mark.parametrize(
    "garbage",
    ["not json", "[]", "{}", '{"key": ""}', '{"key": "9", "audience": "public"}', '"' + "x" * 9_000_000, "{" * 100_000],
    ids=range(7),
)
def test_a_bad_line_is_named_and_the_others_count(garbage: str, index: KnowledgeIndex, tmp_path: Path) -> None:
    file = tmp_path / "wiki.jsonl"
    file.write_text(f"{garbage}\n{lines(LUNCH)}{garbage}")
    report = index.index([FeedSource(command=(str(file),))])
    assert report.added == 1
    assert report.failed
    source = program(tmp_path, f"print({garbage!r}[:20_000] + {garbage!r}[20_000:])", LUNCH)
    report = index.index([source])
    assert (report.added, len(report.failed)) == (1, 1)


def test_a_nul_reaches_no_database(index: KnowledgeIndex, tmp_path: Path) -> None:
    lunch = LUNCH | {"title": "Lu\0nch", "url": "https://wiki.example/\0"}
    report = index.index([program(tmp_path, "", lunch, PAY | {"key": "2\0"})])
    assert (report.added, len(report.failed)) == (1, 1)
    assert [(document.title, document.url) for document in index.documents()] == [("Lunch", "")]


@pytest.mark.parametrize("audience", [None, [], "everyone", ["#hr"], ["C0HR", 7], {"who": "C0HR"}])
def test_a_document_without_a_usable_audience_is_visible_to_no_one(
    audience: object, index: KnowledgeIndex, tmp_path: Path
) -> None:
    report = index.index([program(tmp_path, "", LUNCH, PAY | {"audience": audience})])
    assert titles(index) == {"Lunch": "public", "Pay": NOBODY}
    assert "no one sees it" in report.failed[0][1]


def test_a_program_sees_nothing_of_orion_and_reads_only_its_own_folder(
    index: KnowledgeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-secret")
    (tmp_path / "secret.md").write_text("# Secret\n\nThe code is 1234.")
    code = f"open({str(tmp_path / 'environment.txt')!r}, 'w').write(repr(sorted(os.environ)))"
    outside = {"key": "4", "path": str(tmp_path / "secret.md"), "audience": "public"}
    report = index.index([program(tmp_path, code, LUNCH, outside)])
    assert "SLACK_BOT_TOKEN" not in (tmp_path / "environment.txt").read_text()
    assert titles(index) == {"Lunch": "public"}
    assert "outside" in report.failed[0][1]


def test_title_and_date_are_those_of_the_feed_in_every_format(index: KnowledgeIndex, tmp_path: Path) -> None:
    page = {"name": "page.html", "text": "<title>A</title><h1>Overview</h1><p>Last updated: 1 May 2020</p>"}
    notes = {"text": "---\ntitle: B\n---\n\n# Overview\n\nLast updated: 1 May 2020"}
    plain = {"name": "a.txt", "text": "Updated: 1 May 2020"}
    for title in ("Leave", "Absence"):
        named = {"title": title, "updated": "2026-03-04T10:00:00Z"}
        documents = [LUNCH | named | more | {"key": str(n)} for n, more in enumerate((page, notes, plain))]
        index.index([program(tmp_path, "", *documents)])
        assert {(each.title, each.updated_at) for each in index.documents()} == {(title, "2026-03-04")}


def test_a_title_is_read_as_it_is_and_a_key_counts_once(index: KnowledgeIndex, tmp_path: Path) -> None:
    title = 'Ticket # 5: the "x" plan'
    report = index.index([program(tmp_path, "", LUNCH | {"title": title}, LUNCH | {"audience": ["C0HR"]})])
    assert titles(index) == {title: "public"}
    assert "is printed twice" in report.failed[0][1]


def test_a_missing_program_or_file_is_reported(index: KnowledgeIndex, tmp_path: Path) -> None:
    missing = [FeedSource(command=(str(tmp_path / "no-program"),)), FeedSource(command=(str(tmp_path / "no.jsonl"),))]
    assert [reason for _, reason in index.index(missing).failed] == [
        "cannot be started (No such file or directory)",
        "cannot be read (No such file or directory)",
    ]
