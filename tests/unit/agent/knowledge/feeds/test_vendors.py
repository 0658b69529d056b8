"""Confluence and Notion as feeds: each page once, for those who may read it there, and only what changed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.knowledge.feeds.confluence import narrow_audience
from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.sources.feed import FeedSource
from agent.knowledge.types import IndexReport
from tests.support.http_server import answering
from tests.support.paths import ROOT
from tests.support.wikis import Note, WikiPage, Wikis

ANN = "ann@acme.example"
TOP, SALARIES, RAISES = "1f0c2ab0c9d3804fb9c1f2f0a4f8a7d1", "2" * 32, "3" * 32


@pytest.fixture
def wikis() -> Iterator[Wikis]:
    made = Wikis()
    with answering(made.answer) as port:
        made.url = f"http://127.0.0.1:{port}"
        yield made


def feed(system: str, folder: Path, config: str) -> FeedSource:
    """Return the shipped program with a settings file, as ORION_FEEDS would name it."""
    file = folder / f"{system}.toml"
    file.write_text(config)
    environment = (("PATH", os.defpath), ("PYTHONPATH", str(ROOT)))
    return FeedSource(command=(sys.executable, "-m", "bot", "feed", system, str(file)), environment=environment)


def confluence(wikis: Wikis, folder: Path, more: str = "") -> FeedSource:
    return feed("confluence", folder, f'url = "{wikis.url}/wiki"\ntoken = "t"\n[spaces]\nENG = "public"\n{more}')


def audiences(index: KnowledgeIndex) -> dict[str, str]:
    return {document.title: document.audience for document in index.documents()}


def test_confluence_pages_get_the_audience_of_their_restrictions(
    index: KnowledgeIndex, wikis: Wikis, tmp_path: Path
) -> None:
    wikis.groups = {"leads": ("a1",)}
    wikis.pages = {
        "10": WikiPage(title="Deploys", html="<h1>Deploys</h1><p>Deploys start at 10 &amp; end at noon.</p>"),
        "11": WikiPage(title="Reviews", html="<p>Reviews are in May.</p>", people=("a1", "b2")),
        "12": WikiPage(title="Scores", html="<p>Scores reach 5.</p>", above=("10", "11"), groups=("leads",)),
        "13": WikiPage(title="Sealed", html="<p>Nobody reads this.</p>", people=("b2",)),
        "14": WikiPage(title="Below", html="<p>Nor this.</p>", above=("13",)),
    }
    source = confluence(wikis, tmp_path)
    report = index.index([source])
    assert report == IndexReport(added=3), report.failed
    assert audiences(index) == {"Deploys": "public", "Reviews": ANN, "Scores": ANN}
    found = index.search("When do deploys start?")[0]
    assert "start at 10 & end at noon" in found.text
    assert found.url == f"{wikis.url}/wiki/spaces/ENG/pages/10"
    assert found.updated_at == "2026-11-01"


def test_confluence_sends_the_text_of_changed_pages_only(index: KnowledgeIndex, wikis: Wikis, tmp_path: Path) -> None:
    wikis.pages = {str(n): WikiPage(title=f"Page {n}", html=f"<p>Fact {n}.</p>") for n in range(10, 15)}
    source = confluence(wikis, tmp_path)
    index.index([source])
    first = len(wikis.asked)
    del wikis.pages["14"]
    wikis.pages["10"].people = ("a1",)  # the text is the same, the audience is not
    wikis.refusals = [429, 503]
    assert index.index([source]) == IndexReport(changed=1, unchanged=3, removed=1)
    assert audiences(index)["Page 10"] == ANN
    assert len(wikis.asked) - first - 2 < first
    wikis.refusals = [500]
    report = index.index([source])
    assert "HTTP 500" in report.failed[0][1]
    assert len(audiences(index)) == 4


def test_notion_pages_have_the_audience_of_the_nearest_listed_page(
    index: KnowledgeIndex, wikis: Wikis, tmp_path: Path
) -> None:
    wikis.notes = {
        TOP: Note(title="Handbook", markdown="Lunch is at noon.", parts={"b1": "Dinner is at six."}),
        SALARIES: Note(title="Salaries", markdown="The bonus is 900.", parent=TOP),
        RAISES: Note(title="Raises", markdown="Raises come in May.", parent=SALARIES),
    }
    config = f'token = "t"\nurl = "{wikis.url}"\naudience = "public"\n[pages]\n"{SALARIES}" = ["C0HR"]\n'
    source = feed("notion", tmp_path, config)
    report = index.index([source])
    assert report == IndexReport(added=3), report.failed
    assert audiences(index) == {"Handbook": "public", "Salaries": "C0HR", "Raises": "C0HR"}
    assert "six" in index.search("When is dinner?")[0].text
    del wikis.notes[SALARIES]  # no longer shared: what lies further below could be anyone's
    wikis.notes[RAISES].parent = "4" * 32
    report = index.index([source])
    assert audiences(index) == {"Handbook": "public"}
    assert report.removed == 2


@pytest.mark.parametrize(("system", "config"), [("confluence", ""), ("notion", ""), ("notion", "token =")])
def test_wrong_settings_are_reported(system: str, config: str, index: KnowledgeIndex, tmp_path: Path) -> None:
    ((_, reason),) = index.index([feed(system, tmp_path, config)]).failed
    assert "missing" in reason or "cannot be read" in reason


def test_the_dry_run_lists_pages_and_reads_no_text(wikis: Wikis, tmp_path: Path) -> None:
    wikis.pages = {"10": WikiPage(title="Deploys", html="<p>x</p>"), "13": WikiPage(title="S", html="", people=("b2",))}
    source = confluence(wikis, tmp_path)
    listed = subprocess.run(
        [*source.command, "--list"], env=dict(source.environment), capture_output=True, text=True, check=True
    )
    first, second = listed.stdout.splitlines()
    assert first.split("\t")[:2] == ["Deploys", "public"]
    assert "no one: restricted" in second
    assert len(wikis.asked) == 1


def test_a_space_for_a_channel_and_a_restricted_page_need_both() -> None:
    assert narrow_audience(["C0HR", ANN, "bob@acme.example"], frozenset({ANN})) == [f"C0HR+{ANN}", ANN]
