"""A message without an answer names the nearest documents, and quotes nothing of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.actions import Respond, ToolCall, ToolCalls
from agent.model.prompts import NOT_FOUND
from agent.model.protocol import JudgeContext, Opinion
from agent.outcome import Answered, Failed, Refused
from agent.quoting.model import ExtractiveModel
from agent.tools.tool import Tool, ToolFailed, ToolResult, ToolSpec
from agent.turn.progress import Policy
from tests.support.fakes import PassageTool, ScriptedModel, take_turn
from verification.judgement import Judgement
from verification.rules.references import citation_order, citations, renumber
from verification.types import Answer, Source

ASKED = "Which number do I call in an emergency inside the building?"
LOOK_FOR = ToolCalls(calls=(ToolCall(call_id="a", tool="elsewhere", input={"query": "number"}),))
LOOK = ToolCalls(calls=(ToolCall(call_id="a", tool="elsewhere"),))
HOST = "https://docs.example.org"
NUMBER = "The emergency number inside the building is 4112."


def page(title: str, text: str = NUMBER, *, origin: str = "document") -> Source:
    return Source(id=0, title=title, url=f"{HOST}/{title.casefold()}", text=text, origin=origin)


async def refuse(*sources: Source, draft: str = f"<answer>{NOT_FOUND}</answer>") -> Answer:
    outcome, _ = await take_turn(ScriptedModel([draft]), ASKED, tools=[PassageTool(*sources)])
    assert isinstance(outcome, (Refused, Failed))
    return outcome.answer


def lines(answer: Answer) -> list[str]:
    return [line for line in answer.text.splitlines() if line.startswith("•")]


async def test_a_refusal_names_three_documents_once_each_as_the_search_ranked_them() -> None:
    plants = Source(id=0, title="Office › Plants", url=f"{HOST}/office#plants", text="Ferns like shade.")
    answer = await refuse(page("Office"), plants, *map(page, ("Parking", "Orders", "Travel")))
    assert lines(answer) == [f"• <{HOST}/{name.casefold()}|{name}>" for name in ("Office", "Parking", "Orders")]
    assert [source.title for source in answer.sources] == ["Office", "Parking", "Orders"]
    assert answer.text.startswith("I didn't find an answer")
    assert not answer.verified


async def test_a_refusal_names_the_section_of_the_best_hit() -> None:
    hotel = Source(id=0, title="Hotel", url=SECTIONS[1][1], text=HOTEL, sections=SECTIONS)
    assert lines(await refuse(hotel)) == [f"• <{HOST}/hotel#Laundry|Hotel › Laundry>"]


AWAY = ToolFailed(why="Nothing was heard.")
AWAY.away = True


@dataclass(frozen=True)
class Away:
    """A tool of a place that cannot be reached."""

    place: str
    failure: Exception = AWAY
    name: str = "elsewhere"

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description="Looks elsewhere.", place=self.place)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG002 - no matter what is asked
        raise self.failure


@pytest.mark.parametrize("draft", [NOT_FOUND, "The emergency number inside the building is 9999."])
async def test_a_service_that_could_not_be_searched_is_named(draft: str) -> None:
    model = ScriptedModel([f"<answer>{draft}</answer>"], decisions=[LOOK, Respond()])
    tools: list[Tool] = [PassageTool(), Away("wiki")]
    outcome, _ = await take_turn(model, ASKED, tools=tools, policy=Policy(general="refuse"))
    assert isinstance(outcome, Refused)
    assert "I couldn't search wiki, so something from there may be missing." in outcome.answer.text


@pytest.mark.parametrize(
    ("place", "name"),
    [("wiki", "wiki"), ("web", "the web"), ("slack", "Slack messages"), ("documents", "the documents")],
)
async def test_a_passing_answer_says_which_place_could_not_be_searched(place: str, name: str) -> None:
    model = ScriptedModel([f"<answer>{NUMBER[:-1]} [1].</answer>"], decisions=[LOOK, Respond()])
    outcome, _ = await take_turn(model, ASKED, tools=[PassageTool(page("Office")), Away(place)])
    assert isinstance(outcome, Answered)
    assert outcome.answer.verified
    assert outcome.answer.label == f"I couldn't search {name}, so something from there may be missing."


HOTEL = "# Hotel\n\n## Wifi\n\nWifi is free.\n\n## Laundry\n\nLaundry costs 5 euros.\n\nShirts cost 2 euros."
SECTIONS = tuple((HOTEL.index(f"## {name}"), f"{HOST}/hotel#{name}", f"Hotel › {name}") for name in ("Wifi", "Laundry"))


@dataclass(frozen=True)
class NamesLines:
    """A judge that names these lines for the claims."""

    lines: tuple[int, ...]
    name: str = "judge"

    async def judge(self, context: JudgeContext) -> Opinion:  # noqa: ARG002 - names the same for any
        named = {n: Judgement(supported=True, lines=((1, line),)) for n, line in enumerate(self.lines, 1)}
        return Opinion(judgements=named)


@pytest.mark.parametrize(
    ("draft", "named", "section", "links"),
    [
        ("Doing the laundry is 5 euros [1].", (5,), "Laundry", ["Laundry"]),
        ("Guests surf for free [1].", (3,), "Wifi", ["Wifi"]),
        (
            "Guests surf for free [1]. A shirt is 2 euros [1]. A wash is 5 euros [1].",
            (3, 6, 5),
            "Laundry",
            ["Wifi"] + ["Laundry"] * 2,
        ),
        (
            "- Guests surf for free [1]\n- A wash is 5 euros [1]\n- A shirt is 2 euros [1]",
            (3, 5, 6),
            "Laundry",
            ["Wifi"] + ["Laundry"] * 2,
        ),
        ("Wifi is free [1].", (), "Wifi", ["Wifi"]),  # a quotation
    ],
)
async def test_citations_and_footer_link_to_the_section_that_the_verdict_names(
    draft: str, named: tuple[int, ...], section: str, links: list[str]
) -> None:
    hotel = Source(id=0, title="Hotel", url=SECTIONS[1][1], text=HOTEL, sections=SECTIONS)
    judge = NamesLines(named) if named else None
    model = ScriptedModel([f"<answer>{draft}</answer>"])
    outcome, _ = await take_turn(model, "What is free and what costs?", tools=[PassageTool(hotel)], judge=judge)
    assert isinstance(outcome, Answered), outcome
    (source,) = outcome.answer.sources
    assert (source.url, source.title) == (f"{HOST}/hotel#{section}", f"Hotel › {section}")
    assert re.findall(r"#(\w+)\|\[1\]>", "".join(outcome.answer.chunks)) == links


class FindsNoAnswer:
    """A judge that takes every draft for a refusal."""

    name = "judge"

    async def judge(self, context: JudgeContext) -> Opinion:
        absent = Judgement(supported=True, absent=True)
        return Opinion(judgements=dict.fromkeys(range(1, len(context.claims) + 1), absent), reply="not_in_sources")


@pytest.mark.parametrize("failure", [AWAY, RuntimeError("a bug")])
async def test_a_failed_search_is_not_reported_as_without_results(failure: Exception) -> None:
    search: Tool = Away("documents", failure, name="search")
    other: Tool = PassageTool(page("Office", origin="tool:wiki"), name="elsewhere")
    silent = "The pages keep silent about the weather [1]."
    for draft, tools in ((NOT_FOUND, [search]), (NOT_FOUND, [search, other]), (silent, [search, other])):
        model = ScriptedModel([f"<answer>{draft}</answer>"], decisions=[LOOK_FOR, Respond()])
        outcome, _ = await take_turn(model, tools=tools, judge=FindsNoAnswer())
        assert isinstance(outcome, Failed)
        assert outcome.reason == "KnowledgeAwayError"


async def test_a_failed_answer_names_unread_files_too() -> None:
    wrong = "<answer>The emergency number inside the building is 9999 [1].</answer>"
    answer = await refuse(page("Office"), draft=wrong)
    assert lines(answer)[-1] == f"• <{HOST}/office|Office>"
    assert "9999" not in answer.text


async def test_nothing_of_a_document_but_its_escaped_title_is_shown() -> None:
    answer = await refuse(page("Office <!channel> | co", "The emergency number: xoxb-123456789012-abcdefgh."))
    (line,) = lines(answer)
    assert line.endswith("|Office &lt;!channel&gt; ¦ co>")
    assert "xoxb" not in answer.text


async def test_messages_of_the_thread_are_not_named_as_documents() -> None:
    answer = await refuse(page("Earlier", origin="thread"), page("Office", "Coffee is free."))
    assert lines(answer) == [f"• <{HOST}/office|Office>"]


async def test_a_refusal_without_a_model_says_that_no_model_is_connected() -> None:
    asked = "Quantos pedidos posso enviar por minuto?"
    outcome, _ = await take_turn(ExtractiveModel(), asked, tools=[PassageTool(page("Office"))])
    assert isinstance(outcome, Refused)
    assert "No language model is connected" in outcome.answer.text
    assert "No language model" not in (await refuse(page("Office"))).text


SOURCES = tuple(Source(id=number, title=str(number)) for number in range(1, 15))
TABLE = "```\nRegion | Limit\n-------+------\nEU     | 600 [9]\n```"


def test_citations_are_numbered_in_the_order_of_the_text() -> None:
    text = f"Seven [12][3]; `[12]` is code.\n\n{TABLE}\n\nAgain [3]."
    order = citation_order(text, SOURCES)
    assert order == {12: 1, 3: 2, 9: 3}
    shown = renumber(text, order)
    assert shown == f"Seven [1][2]; `[12]` is code.\n\n{TABLE.replace('[9]', '[3]')}\n\nAgain [2]."
    streamed = r"Seven [\[12\]](https://x.example/a) and [3], not `[\[3\]](x)`"
    assert renumber(streamed, order) == r"Seven [\[1\]](https://x.example/a) and [2], not `[\[3\]](x)`"


@given(st.lists(st.sampled_from(["It is so [4].", "Or [2][11] not.", "`[7]`", "Well\n\n", "[3]"]), max_size=9))
def test_the_shown_beginning_has_the_citation_numbers_of_the_whole(parts: list[str]) -> None:
    text = " ".join(parts)
    order = citation_order(text, SOURCES)
    shown = renumber(text, order)
    numbers = list(dict.fromkeys(number for citation in citations(shown) for number in citation.ids))
    assert numbers == list(range(1, len(order) + 1))
    for end in range(len(parts)):
        begun = " ".join(parts[:end])
        assert shown.startswith(renumber(begun, citation_order(begun, SOURCES)))
