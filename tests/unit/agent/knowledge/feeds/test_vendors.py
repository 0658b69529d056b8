"""Confluence and Notion as feeds: each page once, for those who may read it there, and only what changed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from agent.knowledge.feeds.confluence import narrow_audience
from agent.knowledge.feeds.confluence import print_pages as confluence_pages
from agent.knowledge.feeds.lines import FeedError, Printer, read_config
from agent.knowledge.feeds.notion import print_pages as notion_pages
from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.sources.feed import FeedSource
from agent.knowledge.types import IndexReport, ReadError
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


@dataclass(frozen=True, kw_only=True)
class InHere(FeedSource):
    """The shipped program without a process of its own, which would take a second to start."""

    def _lines(self, folder: Path, revisions: dict[str, str]) -> Iterator[bytes]:  # noqa: ARG002 - as in ``FeedSource``
        *_, system, file = self.command
        printer = Printer(known=revisions, out=BytesIO())
        try:
            {"confluence": confluence_pages, "notion": notion_pages}[system](read_config(Path(file)), printer)
            printer.finish()
        except FeedError as error:
            raise ReadError(reason=str(error)) from None
        yield from printer.out.getvalue().splitlines(keepends=True)  # type: ignore[attr-defined]  # as made above


def feed(system: str, folder: Path, config: str, kind: type[FeedSource] = InHere) -> FeedSource:
    """Return the shipped program with a settings file, as ORION_FEEDS would name it."""
    file = folder / f"{system}.toml"
    file.write_text(f"\ufeff{config}")
    environment = (("PATH", os.defpath), ("PYTHONPATH", str(ROOT)))
    return kind(command=(sys.executable, "-m", "bot", "feed", system, str(file)), environment=environment)


def confluence(wikis: Wikis, folder: Path, kind: type[FeedSource] = InHere) -> FeedSource:
    return feed("confluence", folder, f'url = "{wikis.url}/wiki"\ntoken = "t"\n[spaces]\nENG = "public"\n', kind)


def notion(wikis: Wikis, folder: Path, pages: str = "", kind: type[FeedSource] = InHere) -> FeedSource:
    return feed("notion", folder, f'token = "t"\nurl = "{wikis.url}"\naudience = "public"\n{pages}', kind)


def read_texts(index: KnowledgeIndex) -> dict[str, str]:
    read = (index.document(one.id) for one in index.documents())
    return {each.title: each.text.strip() for each in read if each}


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
        "15": WikiPage(title="Under a hidden page", html="<p>60 days.</p>", above=("99",)),
        "16": WikiPage(title="Old", html="<p>30 days.</p>", status="archived"),
    }
    source = confluence(wikis, tmp_path, FeedSource)
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
    source = notion(wikis, tmp_path, f'[pages]\n"{SALARIES}" = ["C0HR"]\n', FeedSource)
    report = index.index([source])
    assert report == IndexReport(added=3), report.failed
    assert audiences(index) == {"Handbook": "public", "Salaries": "C0HR", "Raises": "C0HR"}
    assert "six" in index.search("When is dinner?")[0].text
    del wikis.notes[SALARIES]  # no longer shared: what lies further below could be anyone's
    wikis.notes[RAISES].parent = "4" * 32
    report = index.index([source])
    assert audiences(index) == {"Handbook": "public"}
    assert report.removed == 2


COLUMN, BASE, SOURCE, ROW, INSIDE = ("4" * 32, "5" * 32, "6" * 32, "7" * 32, "8" * 32)
PROPERTIES: dict[str, Any] = {
    "Price": {"type": "number", "number": 0},
    "State": {"type": "status", "status": {"id": "a", "name": "Done", "color": "green"}},
    "Tags": {"type": "multi_select", "multi_select": [{"name": "a"}, {"name": "b"}]},
    "Due": {"type": "date", "date": {"start": "2026-12-24", "end": "2026-12-31", "time_zone": None}},
    "Owner": {"type": "people", "people": [{"object": "user", "id": "u", "name": "Ann"}]},
    "Paid": {"type": "checkbox", "checkbox": False},
    "Note": {"type": "rich_text", "rich_text": [{"plain_text": "9"}, {"plain_text": "0 days"}]},
    "Sum": {"type": "formula", "formula": {"type": "number", "number": 7}},
    "Code": {"type": "unique_id", "unique_id": {"prefix": "OPS", "number": 3}},
    "File": {"type": "files", "files": [{"name": "pay.pdf", "type": "file", "file": {"url": "https://x"}}]},
    "Site": {"type": "url", "url": "https://x.example"},
    "Empty": {"type": "select", "select": None},
    "Other": {"type": "relation", "relation": [{"id": SALARIES}]},
}
ROWS = """\
- Price: 0
- State: Done
- Tags: a, b
- Due: 2026-12-24 to 2026-12-31
- Owner: Ann
- Paid: no
- Note: 90 days
- Sum: 7
- Code: OPS-3
- File: pay.pdf
- Site: https://x.example"""


def test_notion_rows_and_pages_in_columns_are_for_the_audience_of_the_page_that_contains_them(
    index: KnowledgeIndex, wikis: Wikis, tmp_path: Path
) -> None:
    """Search lists neither databases nor the blocks of a page, and a row's text is in its properties."""
    in_block, in_base = {"type": "block_id", "block_id": COLUMN}, {"type": "data_source_id", "data_source_id": SOURCE}
    wikis.blocks = {
        COLUMN: {"type": "block_id", "block_id": "9" * 32},
        "9" * 32: {"type": "page_id", "page_id": SALARIES},
    }
    wikis.notes = {
        SALARIES: Note(title="Salaries", markdown="The bonus is 900."),
        INSIDE: Note(title="Inside", markdown="x", above=in_block),
        "a" * 32: Note(title="Unknown", markdown="x", above={"type": "block_id", "block_id": "b" * 32}),
        "c" * 32: Note(title="Old", markdown="30 days.", fields={"archived": True}),
        SOURCE: Note(
            title="Rows",
            markdown="",
            above={"type": "database_id", "database_id": BASE},
            fields={"object": "data_source", "database_parent": {"type": "page_id", "page_id": SALARIES}},
        ),
        ROW: Note(title="Row", markdown="", above=in_base, properties=PROPERTIES),
    }
    source = notion(wikis, tmp_path, f'[pages]\n"{SALARIES}" = ["C0HR"]\n')
    report = index.index([source])
    assert audiences(index) == {"Salaries": "C0HR", "Inside": "C0HR", "Row": "C0HR"}, report.failed
    assert read_texts(index)["Row"] == ROWS
    del wikis.notes[SOURCE].fields["database_parent"]
    wikis.blocks[BASE] = {"type": "page_id", "page_id": SALARIES}
    index.index([source])
    assert audiences(index)["Row"] == "C0HR"


SIGNS = {
    '::: callout {icon="💡" color="blue_bg"}\n\t90 days\n:::': "90 days",
    '<callout icon="💡">\n\t90 days\n</callout>': "90 days",
    '<details color="blue">\n<summary>How long?</summary>\n\t90 days\n</details>': "**How long?**\n\n90 days",
    "<columns>\n\t<column>\n\t\tLeft\n\t</column>\n</columns>": "Left",
    '# Leave {toggle="true" color="blue"}\n\t90 days {color="red"}': "# Leave\n90 days",
    'Due <mention-date start="2026-12-24"/>, says <mention-user url="user://1">Ann</mention-user>': (
        "Due 2026-12-24 , says Ann"
    ),
    '<page url="https://n.example/1">Pay</page>': "[Pay](https://n.example/1)",
    '<synced_block url="x">\n\tCosts \\$5\n</synced_block>\n<unknown url="x" alt="y"/>\n<empty-block/>': "Costs $5",
    "- a\n\t- b\n\tmore": "- a\n\t- b\nmore",
    '```\n\t<page url="x">y</page>\n```': '```\n\t<page url="x">y</page>\n```',
}


def test_notion_pages_are_read_as_people_see_them(index: KnowledgeIndex, wikis: Wikis, tmp_path: Path) -> None:
    wikis.notes = {f"{n:032x}": Note(title=f"Page {n}", markdown=text) for n, text in enumerate(SIGNS)}
    index.index([notion(wikis, tmp_path)])
    read = {title: [line for line in text.split("\n") if line.strip()] for title, text in read_texts(index).items()}
    assert read == {f"Page {n}": [*filter(None, text.split("\n"))] for n, text in enumerate(SIGNS.values())}


def test_a_notion_page_that_only_search_still_knows_is_removed(
    index: KnowledgeIndex, wikis: Wikis, tmp_path: Path
) -> None:
    wikis.notes = {TOP: Note(title="Handbook", markdown="Lunch."), RAISES: Note(title="Raises", markdown="May.")}
    source = notion(wikis, tmp_path)
    index.index([source])
    wikis.notes[RAISES].when, wikis.notes[RAISES].fields = "2026-11-02T09:00:00.000Z", {"gone": True}
    wikis.refusals = [429]
    assert index.index([source]) == IndexReport(unchanged=1, removed=1)
    wikis.notes = {}
    assert index.index([source]) == IndexReport(removed=1)


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
    texts = [text.format(url=wikis.url) for text in VIEWS.values()]
    assert read_texts(index) == {f"Leave & pay {n}": text for n, text in enumerate(texts)}
    assert {each.updated_at for each in index.documents()} == {"2026-11-01"}


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
