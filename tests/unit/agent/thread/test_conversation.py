"""Audiences: those of folders, the index as a place may see it, and no source past them in a turn."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agent.knowledge.index.index import KnowledgeIndex, SeenBy
from agent.knowledge.sources.file_rules import FILE_NAME
from agent.knowledge.sources.folders import Folders
from agent.knowledge.types import IndexRun
from agent.thread.conversation import (
    NOBODY,
    PUBLIC,
    Question,
    ThreadKey,
    Viewers,
    as_markdown,
    may_see,
    parse_audience,
    viewers_of,
)
from agent.thread.state import ThreadState
from agent.tools.builtin.knowledge import for_viewers, knowledge_tools
from agent.tools.tool import Tool
from tests.support.fakes import LIMITS, PassageTool, ScriptedModel, take_turn
from verification.check import check
from verification.types import Draft, Source

HR = Viewers(team="T1", channel="C0HR")
HELP = Viewers(team="T1", channel="C0HELP")
ANNS = frozenset({"S0LEADS", "C0OWN", "ann@acme.example"})
CHAT = Viewers(team="T1", channel="D0ANN", user="U0ANN", memberships=ANNS)


@pytest.mark.parametrize(
    ("audience", "hr", "help_", "chat"),
    [
        (PUBLIC, True, True, True),
        (NOBODY, False, False, False),
        ("", False, False, False),
        ("C0HR", True, False, False),
        ("T1/C0HR", True, False, False),
        ("T2/C0HR", False, False, False),
        ("U0ANN", False, False, True),
        ("C0HR,U0ANN", True, False, True),
        ("T1", True, True, True),
        ("T2", False, False, False),
        ("C0HR, C0HELP", True, True, False),
        ("S0LEADS", False, False, True),
        ("C0OWN", False, False, True),
        ("T1/S0LEADS", False, False, True),
        ("ann@acme.example", False, False, True),
        ("C0HR+ann@acme.example", False, False, False),
        ("C0OWN+ann@acme.example", False, False, True),
        ("S0OTHER,bob@acme.example", False, False, False),
    ],
)
def test_a_source_is_for_those_who_may_see_it(audience: str, *, hr: bool, help_: bool, chat: bool) -> None:
    assert [may_see(audience, viewers) for viewers in (HR, HELP, CHAT)] == [hr, help_, chat]


def test_a_person_counts_only_in_a_direct_message() -> None:
    asked = Question(thread=ThreadKey(team="T1", channel="C0HELP", thread_ts="1.0"), user="U0ANN", text="?", ts="1.0")
    assert viewers_of(asked) == HELP
    direct = ThreadKey(team="T1", channel="D0ANN", thread_ts="D0ANN")
    chat = Question(thread=direct, user="U0ANN", text="?", ts="1.0", memberships=ANNS)
    assert viewers_of(chat) == CHAT
    assert viewers_of(replace(asked, memberships=ANNS)) == HELP
    assert not may_see("", Viewers(team="", channel=""))


@pytest.mark.parametrize("said", [None, [], "C0HR", ["#hr"], ["hr"], [1], ["C0HR", "public"], {"a": 1}, ["C0HR,U0X"]])
def test_an_unknown_audience_is_refused(said: object) -> None:
    assert parse_audience(said) is None


def docs(root: Path) -> Path:
    texts = {
        "handbook.md": "# Handbook\n\nBadges are handed out on Mondays.",
        "hr/salaries.md": "# Salaries\n\nThe badge bonus is 900 euros a year.",
        "hr/open/benefits.md": "# Benefits\n\nThe badge lunch costs nothing.",
        "broken/notes.md": "# Notes\n\nThe badge printer is in room 12.",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "hr" / FILE_NAME).write_text('audience = ["C0HR", "U0ANN"]\n')
    (root / "hr" / "open" / FILE_NAME).write_text('audience = "public"\n')
    (root / "broken" / FILE_NAME).write_text("audience = [\n")
    return root


def audiences(run: IndexRun, *roots: Path) -> dict[str, str]:
    folders = Folders(roots, run)
    return {file.id: file.audience for root in roots for file in folders.documents_in(root)}


def test_the_nearest_audience_file_counts_and_a_broken_one_hides_the_folder(tmp_path: Path) -> None:
    run = IndexRun()
    assert audiences(run, docs(tmp_path)) == {
        "handbook.md": PUBLIC,
        "hr/salaries.md": "C0HR,U0ANN",
        "hr/open/benefits.md": PUBLIC,
        "broken/notes.md": NOBODY,
    }
    (failed,) = run.failed
    assert failed[0].endswith(f"broken/{FILE_NAME}")
    assert "no one sees" in failed[1]


def test_a_link_does_not_carry_a_document_out_of_its_folder(tmp_path: Path) -> None:
    (docs(tmp_path) / "a-copy.md").symlink_to(tmp_path / "hr" / "salaries.md")
    (tmp_path / "hr" / "deep").mkdir()
    (tmp_path / "hr" / "deep" / "x.md").write_text("# X\n\ntext")
    named_twice = audiences(IndexRun(), tmp_path / "hr" / "deep", tmp_path)
    assert (named_twice["hr/salaries.md"], named_twice["x.md"]) == ("C0HR,U0ANN", "C0HR,U0ANN")
    assert "a-copy.md" not in named_twice


@pytest.mark.parametrize("content", ['audience = "everyone"', 'who = ["C0HR"]', 'audience = ["C0HR"]\nmore = 1', "é"])
def test_an_invalid_audience_file_hides_the_folder(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.md").write_text("# A\n\ntext")
    (tmp_path / FILE_NAME).write_bytes(content.encode("latin-1"))
    assert audiences(IndexRun(), tmp_path) == {"a.md": NOBODY}
    (tmp_path / FILE_NAME).unlink()
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "gone")
    assert audiences(IndexRun(), tmp_path) == {"a.md": NOBODY}
    (tmp_path / FILE_NAME).unlink()
    (tmp_path / FILE_NAME).mkdir()
    assert audiences(IndexRun(), tmp_path) == {"a.md": NOBODY}


@pytest.fixture
def fill_index(index: KnowledgeIndex, tmp_path: Path) -> KnowledgeIndex:
    index.index([docs(tmp_path / "docs")])
    return index


def test_a_withheld_document_is_invisible(fill_index: KnowledgeIndex) -> None:
    seen = {name: SeenBy(fill_index, viewers) for name, viewers in (("hr", HR), ("help", HELP), ("chat", CHAT))}
    found = {name: {p.document for p in view.search("badge", limit=3)} for name, view in seen.items()}
    assert found["help"] == {"handbook.md", "hr/open/benefits.md"}
    assert found["hr"] == found["chat"] == {"handbook.md", "hr/salaries.md", "hr/open/benefits.md"}
    assert [len(view.documents()) for view in seen.values()] == [3, 2, 3]
    assert seen["help"].document("Salaries") is None
    assert seen["help"].document("hr/salaries.md") is None
    assert seen["help"].document("Handbook") is not None
    assert seen["hr"].document("Salaries") is not None
    assert not any(view.document("Notes") for view in seen.values())


def test_a_turn_compares_the_audiences_of_all_documents_once(
    fill_index: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    audiences = iter([fill_index.audiences()])  # of restricted wikis, these are megabytes
    monkeypatch.setattr(fill_index, "audiences", audiences.__next__)
    seen = SeenBy(fill_index, HELP)
    assert all((seen.search("badge"), seen.documents(), seen.document("Handbook"), seen.part("handbook.md", 0, 9)))
    assert [*audiences] == []


def test_withheld_passages_do_not_crowd_out_others(index: KnowledgeIndex, tmp_path: Path) -> None:
    secret = tmp_path / "docs" / "secret"
    secret.mkdir(parents=True)
    (secret / FILE_NAME).write_text('audience = ["C0HR"]')
    for number in range(60):
        (secret / f"{number}.md").write_text(f"# Badge {number}\n\nBadge badge badge {number}.")
    (tmp_path / "docs" / "open.md").write_text("# Other\n\nSomewhere far down a badge is mentioned once.")
    index.index([tmp_path / "docs"])
    assert [p.document for p in SeenBy(index, HELP).search("badge", limit=2)] == ["open.md"]
    assert len(SeenBy(index, HR).search("badge", limit=2)) == 2


def test_a_title_that_a_withheld_document_shares_finds_the_other(index: KnowledgeIndex, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "docs" / name).mkdir(parents=True)
        (tmp_path / "docs" / name / f"{name}.md").write_text(f"# Rules\n\nRule {name}.")
    (tmp_path / "docs" / "a" / FILE_NAME).write_text('audience = ["C0HR"]')
    index.index([tmp_path / "docs"])
    found = SeenBy(index, HELP).document("rules")
    assert found is not None
    assert (found.id, "Rule b" in found.text) == ("b/b.md", True)


def test_a_change_of_the_audience_alone_is_indexed(fill_index: KnowledgeIndex, tmp_path: Path) -> None:
    (tmp_path / "docs" / "hr" / FILE_NAME).write_text('audience = "public"')
    report = fill_index.index([tmp_path / "docs"])
    assert (report.changed, report.unchanged) == (1, 3)
    assert SeenBy(fill_index, HELP).document("Salaries") is not None


async def test_the_tools_of_a_turn_see_what_its_place_may_see(fill_index: KnowledgeIndex) -> None:
    other = PassageTool(LIMITS, name="other")
    tools: dict[str, Tool] = {tool.spec.name: tool for tool in knowledge_tools(fill_index)} | {"other": other}
    helped, hr = for_viewers(tools, HELP), for_viewers(tools, HR)
    assert helped["other"] is other
    listed = [(await tools_["list_documents"].run({})).content for tools_ in (helped, hr)]
    assert ["Salaries" in content for content in listed] == [False, True]
    assert "Notes" not in "".join(listed)


async def test_no_source_reaches_an_answer_past_its_audience() -> None:
    """The source may come from any tool: one without knowledge of audiences is checked too."""
    secret = Source(id=0, title="Pay", text="The bonus is 900 euros a year.", audience="C0HR")
    question = Question(
        thread=ThreadKey(team="T1", channel="C0HELP", thread_ts="1.0"), user="U1", text="What is the bonus?", ts="1.0"
    )
    model = ScriptedModel(["<answer>The bonus is 900 euros a year [1].</answer>"])
    with capture_logs() as lines:
        old = Source(id=1, title="Old", text="The bonus is 900.", origin="file", audience="C0HR")
        state = ThreadState(sources=(old,))
        outcome, state = await take_turn(model, question, tools=[PassageTool(secret)], state=state)
    assert "900" not in str(outcome)
    assert not any(context.sources for context in model.decided)
    assert not any(context.sources for context in model.written)
    assert [line["event"] for line in lines].count("source_withheld") == 2
    assert "900" not in str([m for m in state.history if m.role == "assistant"])


SOURCES = (
    Source(id=1, title="Plans", url="https://docs.example/plans", text="Solo costs 19 EUR & 3 devices > 2."),
    Source(id=2, title="Team", text="Team costs 39 EUR."),
)
WRITTEN = """**Solo** is the cheaper plan, R&D says [1].

| Plan | Price | Devices |
|---|---|---|
| Solo | 19 EUR [1] | > 2 [1] |
| Team | 39 EUR [2] | |

1. Take `a < b` first [2].
- Then rest [1][2]."""
READ = """**Solo** is the cheaper plan, R&D says.

| Plan | Price | Devices |
|---|---|---|
| Solo | 19 EUR | > 2 |
| Team | 39 EUR |  |

1. Take `a < b` first.
- Then rest."""


def test_an_answer_is_read_back_as_its_markdown() -> None:
    sent = check(Draft(text=WRITTEN, sources=SOURCES)).text
    assert "```" in sent
    assert "&amp;" in sent
    assert as_markdown(sent) == READ


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("It is 120 [3], as `limits[3]` says [1, 2]. Ask <http://x.y/4|Ann>.",
         "It is 120, as `limits[3]` says. Ask [Ann](http://x.y/4)."),
        ("On Tuesdays [1] (https://docs.example/plans#a). Or [2] not.", "On Tuesdays. Or not."),
        ("```\n5 < 6 &amp; *a*\n```\n*b* and 2 * 3 * 4", "```\n5 < 6 &amp; *a*\n```\n**b** and 2 * 3 * 4"),
        ("&amp;lt; stays what it is", "&lt; stays what it is"),
        ("<@U1> and <https://x.y>", "<@U1> and <https://x.y>"),
    ],
    ids=["citations and links", "as slack has it", "code and bold", "an entity told", "tokens"],
)  # fmt: skip
def test_no_number_of_an_earlier_turn_and_no_markup_of_slack_stays(said: str, read: str) -> None:
    assert as_markdown(said) == read


@given(st.text(alphabet="ab1 [](),`*_~<>|&;\n-+•lt", max_size=80))
def test_any_text_is_read(said: str) -> None:
    assert len(as_markdown(said)) <= 4 * len(said) + 20
