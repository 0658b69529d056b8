"""Confluence and Notion as feeds: each page once, for those who may read it there, and only what changed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    assert wikis.asked == ["/wiki/rest/api/content/search"] * 2


@pytest.mark.parametrize(
    ("audience", "narrowed"),
    [
        ("public", [ANN]),
        (["C0HR", ANN, "bob@acme.example"], [f"C0HR+{ANN}", ANN]),
        ([f"C0HR+{ANN}", "C0HR+bob@acme.example", "Ann@ACME.example"], ["Ann@ACME.example", f"C0HR+{ANN}"]),
        (["S0LEADS", "U0ANN"], [f"S0LEADS+{ANN}", f"U0ANN+{ANN}"]),
        ([], []),
    ],
)
def test_a_space_for_a_channel_and_a_restricted_page_need_both(audience: Any, narrowed: list[str]) -> None:
    assert narrow_audience(audience, frozenset({ANN})) == narrowed


INCLUDE = (
    '<ac:structured-macro ac:name="include"><ac:parameter ac:name=""><ac:link>'
    '<ri:page {space}ri:content-title="{title}" /></ac:link></ac:parameter></ac:structured-macro>'
)


def test_a_page_is_for_those_who_may_read_the_pages_that_it_includes(
    index: KnowledgeIndex, wikis: Wikis, tmp_path: Path
) -> None:
    """Confluence gives its text to Orion with the text of restricted pages in it."""
    wikis.pages = {
        "10": WikiPage(title="Pay & raises", html="<p>The bonus is 900.</p>", people=("a1",)),
        "11": WikiPage(title="Inner", html="<p>900.</p>", includes=INCLUDE.format(space="", title="Pay &amp; raises")),
        "12": WikiPage(title="Outer", html="<p>Also 900.</p>", includes=INCLUDE.format(space="", title="Inner")),
        "13": WikiPage(
            title="Far", html="<p>x</p>", includes=INCLUDE.format(space='ri:space-key="HR" ', title="Inner")
        ),
        "14": WikiPage(title="Open", html="<p>Lunch.</p>", includes=INCLUDE.format(space="", title="Lunch")),
        "15": WikiPage(title="Lunch", html="<p>Lunch.</p>", includes=INCLUDE.format(space="", title="Open")),
    }
    source = confluence(wikis, tmp_path)
    assert index.index([source]).added == 5
    assert audiences(index) == {"Pay & raises": ANN, "Inner": ANN, "Outer": ANN, "Open": "public", "Lunch": "public"}
    wikis.pages["14"].people = ("a1",)
    wikis.pages["15"].when = "2026-11-02T09:00:00.000Z"  # a new text of a page that another one includes
    assert index.index([source]).changed == 2
    assert audiences(index)["Lunch"] == ANN


VIEWS = {
    '<li class="checked" data-inline-task-id="1">Go</li><li data-inline-task-id="2">No</li>': "- [x] Go\n- [ ] No",
    '<p>SSO: <img class="emoticon emoticon-cross" data-emoji-fallback="❌" alt="(error)"/></p>': "SSO: ❌",
    '<div class="expand-content" style="display: none;"><p>90 days</p></div>': "90 days",
    '<p><span class="aui-icon aui-icon-small">Icon</span>Never</p>': "Never",
    '<p>A-1 <span class="summary">Getting issue details...</span> <span class="aui-lozenge">STATUS</span></p>': "A-1",
    "<h1>Introduction</h1><p>Last updated: 1 May 2020</p>": "# Introduction\n\nLast updated: 1 May 2020",
    '<p><a href="/wiki/spaces/ENG/pages/11">Pay</a></p>': "[Pay]({url}/wiki/spaces/ENG/pages/11)",
}


def test_confluence_pages_are_read_as_people_see_them(index: KnowledgeIndex, wikis: Wikis, tmp_path: Path) -> None:
    wikis.pages = {str(n): WikiPage(title=f"Leave & pay {n}", html=html) for n, html in enumerate(VIEWS)}
    index.index([confluence(wikis, tmp_path)])
    read = {
        each.title: (each.updated_at, each.text.strip())
        for each in (index.document(one.id) for one in index.documents())
        if each
    }
    assert read == {
        f"Leave & pay {n}": ("2026-11-01", text.format(url=wikis.url)) for n, text in enumerate(VIEWS.values())
    }


def test_confluence_reports_a_space_that_it_cannot_see_and_keeps_its_pages(
    index: KnowledgeIndex, wikis: Wikis, tmp_path: Path
) -> None:
    wikis.pages = {"10": WikiPage(title="Deploys", html="<p>Noon.</p>")}
    source = confluence(wikis, tmp_path)
    index.index([source])
    wikis.pages, wikis.has_space = {}, False
    assert "HTTP 404" in index.index([source]).failed[0][1]
    assert audiences(index) == {"Deploys": "public"}
    wikis.has_space = True
    assert index.index([source]) == IndexReport(removed=1)


def test_confluence_omits_archived_pages_and_those_below_a_page_that_it_hides(
    index: KnowledgeIndex, wikis: Wikis, tmp_path: Path
) -> None:
    wikis.pages = {
        "10": WikiPage(title="Old", html="<p>30 days.</p>", status="archived"),
        "11": WikiPage(title="Hidden", html="<p>60 days.</p>", above=("99",)),
        "12": WikiPage(title="Leave", html="<p>90 days.</p>"),
    }
    assert index.index([confluence(wikis, tmp_path)]) == IndexReport(added=1)


@pytest.mark.parametrize(
    ("next_url", "pages"),
    [("/rest/api", 3), ("/wiki/rest/api", 3), ("{url}/wiki/rest/api", 3), ("http://evil.example/wiki/rest/api", 0)],
)
def test_the_next_pages_of_a_list_are_read_from_the_same_server_only(
    next_url: str, pages: int, index: KnowledgeIndex, wikis: Wikis, tmp_path: Path
) -> None:
    wikis.pages = {str(n): WikiPage(title=f"Page {n}", html="<p>x</p>") for n in range(10, 13)}
    wikis.next_url = next_url.format(url=wikis.url)
    report = index.index([confluence(wikis, tmp_path)])
    assert report.added == pages
    assert ("another server" in str(report.failed)) is (pages == 0)
