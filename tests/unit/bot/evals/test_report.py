"""The page on a run: the same for the same run, no markup of anybody's text, readable and whole by itself."""

import base64
import hashlib
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.outcome import OutcomeName
from bot.evals import report as eval_report
from bot.evals.answers import EvalReply, EvalRun, LabelledQuestion
from bot.evals.report import report_page
from verification.types import Source

HOSTILE = (
    """<script>document.title = "taken"</script><img src=x onerror="document.title='taken'">'"></td></table>&lt;"""
)
STYLE = Path(eval_report.__file__).with_name("report.css").read_text()


def reply(outcome: OutcomeName = "answered", text: str = "It is 600 [1].", **more: Any) -> EvalReply:
    label = {name: more.pop(name) for name in ("id", "question", "expect", "kind", "thread") if name in more}
    usual: dict[str, Any] = {"id": "a", "question": "How many?", "expect": ("600",), "thread": "", "kind": ""}
    asked = LabelledQuestion(**(usual | label))
    facts: dict[str, Any] = {"ms": 12.0, "attempts": 1, **more}
    return EvalReply(asked=asked, outcome=outcome, text=text, **facts)


REPLIES = (
    reply(kind="number", sources=(Source(id=1, title="Limits", url="https://docs.example/limits"),)),
    reply("refused", "No.", id="b", expect=None, kind="absent", ms=30.0, sources=(Source(id=1, title="Near"),)),
    reply("failed", id="c", reason="verification", attempts=3, failed_rules=("mrkdwn", "cites_sources", "mrkdwn")),
    reply("failed", "The model is away.", id="d", reason="APITimeoutError", ms=61_000.0, attempts=0, kind="number"),
    reply(id="e", attempts=2, failed_rules=("mrkdwn",), thread="t", ms=1500.0),
    reply("partial", "No.", id="f", ms=0.2),
)


def run_of(*replies: EvalReply, file: str = "questions.jsonl") -> EvalRun:
    return EvalRun(file=file, model="m", began=datetime(2026, 11, 22, 9, 0, tzinfo=UTC), replies=replies)


class Page(HTMLParser):
    """A page as a browser reads it: tags with their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._in_cell = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")
            self._in_cell = True

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in_cell:
            self.rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in {"td", "th"}


TAGS = len(Page(report_page(run_of(reply(kind="x")))).tags)


def test_every_charted_figure_is_also_written_as_text() -> None:
    page = Page(report_page(run_of(*REPLIES)))
    for shown in ("40.0 %2 of 5", "100.0 %1 of 1", "Wrong2of 6", "Errors1", "50.0 %2 of 4 judged answers"):
        assert shown in page.text
    rows = {row[0]: row[2:] for row in page.rows}
    assert rows["all"] == ["2", "1", "2", "1"]
    assert (rows["absent"], rows["number"]) == (["0", "1", "0", "0"], ["1", "0", "0", "1"])
    assert [rows[f"{number} drafts"] for number in (2, 3)] == [["50.0 %", "2 of 4"]] * 2
    assert rows["1 draft"] == ["25.0 %", "1 of 4"]
    assert (rows["mrkdwn"], rows["cites_sources"]) == (["3"], ["1"])


def test_each_question_is_listed_with_its_outcome() -> None:
    rows = {row[0]: row[1:] for row in Page(report_page(run_of(*REPLIES))).rows}
    as_expected = ["✓ answered as expectedanswered", "It is 600 [1].", "[1] Limits", "600", "12 ms"]
    assert rows["How many?a · number"] == as_expected
    refused = ["⊘ refused as expectedrefused", "No.", "nearest[1] Near", "to be refused", "30 ms"]
    assert rows["How many?b · absent"] == refused
    assert rows["How many?c"][0] == "✗ wrongfailed (verification)3 draftsmrkdwncites_sources"
    assert rows["How many?d · number"][0::4] == ["! errorsfailed (APITimeoutError)", "61 s"]
    assert rows["How many?e · thread t"][-1] == "1.5 s"


def test_no_text_becomes_markup() -> None:
    hostile = reply(
        text=HOSTILE * 5, id=HOSTILE, question=HOSTILE, expect=(HOSTILE,), kind=HOSTILE, thread=HOSTILE, reason=HOSTILE,
        failed_rules=(HOSTILE,), sources=(Source(id=1, title=HOSTILE, url="https://x.example/" + HOSTILE),),
    )  # fmt: skip
    tame = reply(
        text="x" * 500, id="x", question="x", expect=("x",), kind="x", thread="x", reason="x",
        failed_rules=("x",), sources=(Source(id=1, title="x", url="https://x.example/"),),
    )  # fmt: skip
    wild, expected = Page(report_page(run_of(hostile, file=HOSTILE))), Page(report_page(run_of(tame, file="x")))
    assert wild.tags == expected.tags
    assert [name for _, name, _ in wild.attributes] == [name for _, name, _ in expected.attributes]
    assert wild.text.count(HOSTILE) >= 6


@given(st.text(st.characters(codec=None), min_size=1, max_size=60))
@settings(max_examples=40)
def test_any_text_is_text(text: str) -> None:
    page = report_page(run_of(reply(text=text, question=text, expect=(text,), kind=text)))
    page.encode()
    assert len(Page(page).tags) == TAGS
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", page)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "/docs/a.md", ""])
def test_only_addresses_of_the_web_are_links(url: str) -> None:
    assert "<a " not in report_page(run_of(reply(sources=(Source(id=1, title="A", url=url),))))


def test_the_page_needs_nothing_from_elsewhere_and_allows_no_script() -> None:
    page = Page(report_page(run_of(*REPLIES)))
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name in {"style", "src"} or name.startswith("on")]
    assert "url(" not in STYLE
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert ("meta", "content", f"default-src 'none'; style-src 'sha256-{digest}'") in page.attributes


def test_a_report_without_questions_is_a_page_too() -> None:
    assert "No draft failed a rule." in report_page(run_of())
