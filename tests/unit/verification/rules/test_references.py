"""References: how citations are written and whether they resolve, and whom an answer notifies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verification.check import check
from verification.markup.lines import NO_SOURCE
from verification.rules.references import Citation, citations, cited_sources, normalise_citations
from verification.types import Dialect, Draft, Source, Verdict

REFUNDS = Source(
    id=1, title="Refunds", url="https://docs.acme.test/refunds", text="Refunds take 14 days. Ask the finance team."
)
LEAVE = Source(id=2, title="Leave", url="https://docs.acme.test/leave", text="Annual leave is 30 days.")
PLAIN = Source(id=3, title="Thread", text="The office closes at 18:00.")
SOURCES = (REFUNDS, LEAVE, PLAIN)


def rules_of(verdict: Verdict, rule: str) -> list[str]:
    return [found.words for found in verdict.violations if found.rule == rule]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("a [1].", [(1,)]),
        ("a [1][2].", [(1,), (2,)]),
        ("a [1, 2].", [(1, 2)]),
        ("a [1,2;3].", [(1, 2, 3)]),
        ("a [1-3].", [(1, 2, 3)]),
        ("a [1–3].", [(1, 2, 3)]),
        ("a [1, 3-5].", [(1, 3, 4, 5)]),
        ("a [1 and 2].", [(1, 2)]),
        ("答え【1】。", [(1,)]),
        ("a【2†source】", [(2,)]),
        ("a [Source 2].", [(2,)]),
        ("a [^3].", [(3,)]),
        ("a [2†lines 5-9].", [(2,)]),
        ("a [0].", [(0,)]),
        ("a [3-1].", [(NO_SOURCE,)]),
        ("a [5-5].", [(5,)]),
        ("a [1-31].", [tuple(range(1, 32))]),
        ("a [1-32].", [(NO_SOURCE,)]),
        ("a [123456789012].", [(123_456_789_012,)]),
        ("a [1234567890123].", [(NO_SOURCE,)]),
        ("a [1-999999999999].", [(NO_SOURCE,)]),
        ("a [99999999999999999999].", [(NO_SOURCE,)]),
        (f"a [{'9' * 390}].", [(NO_SOURCE,)]),
        ("a `[1]` b", []),
        ("```\nx[1]\n```", []),
        ("a (source 2).", [(2,)]),
        ("a (Quellen 1 und 3).", [(1, 3)]),
        ("a (2) b (see 1) c", []),
        ("a [see 1] b", []),
        ("a [1.5] b", []),
        ("a [x] b [] c", []),
        ("a <https://e.test/x[1]|y [2]> b", []),
        ("see https://e.test/x?a[1]=2 b", []),
        ("see https://e.test/x[1].", [(1,)]),
    ],
)
def test_citations_are_read_in_every_spelling(text: str, ids: list[tuple[int, ...]]) -> None:
    assert [citation.ids for citation in citations(text)] == ids


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("a [1, 2].", "a [1][2]."),
        ("a [1-3].", "a [1][2][3]."),
        ("a [1, 1].", "a [1]."),
        ("a【1】【2】", "a[1][2]"),
        ("a <https://docs.acme.test/refunds|[1]>.", "a [1]."),
        ("a <https://docs.acme.test/refunds|1>.", "a [1]."),
        ("a [1](https://docs.acme.test/refunds).", "a [1]."),
        ("a [[2]](https://docs.acme.test/leave/).", "a [2]."),
        ("a [1](https://docs.acme.test/leave).", "a [1](https://docs.acme.test/leave)."),
        ("a `[1, 2]`.", "a `[1, 2]`."),
        ("a [1][2].", "a [1][2]."),
        ("a [1-99999].", "a [1-99999]."),
        ("a (source 2).", "a [2]."),
        ("a <https://docs.acme.test/leave|Leave>.", "a <https://docs.acme.test/leave|Leave> [2]."),
        ("a [Leave](https://docs.acme.test/leave), b", "a [Leave](https://docs.acme.test/leave) [2], b"),
        ("a https://docs.acme.test/leave b", "a https://docs.acme.test/leave [2] b"),
        ("a <https://docs.acme.test/leave|Leave> and [1]", "a <https://docs.acme.test/leave|Leave> and [1]"),
        ("<https://docs.acme.test/leave|Leave> says so [1]", "<https://docs.acme.test/leave|Leave> says so [1]"),
        ("[1] is <https://docs.acme.test/leave|Leave>", "[1] is <https://docs.acme.test/leave|Leave>"),
        ("a <https://docs.acme.test/other|Other>", "a <https://docs.acme.test/other|Other>"),
        (f"a {LEAVE.url} and {REFUNDS.url}", f"a {LEAVE.url} [2] and {REFUNDS.url} [1]"),
    ],
)
def test_citations_are_normalised_to_one_form(text: str, normal: str) -> None:
    once, repairs = normalise_citations(text, SOURCES)
    assert once == normal
    assert bool(repairs) == (text != normal)
    assert normalise_citations(once, SOURCES) == (normal, ())


def test_a_page_of_two_sources_is_cited_by_number_only() -> None:
    twins = (REFUNDS, Source(id=4, title="Refunds, part 2", url=REFUNDS.url))
    assert normalise_citations("a <https://docs.acme.test/refunds|Refunds>", twins)[1] == ()


@given(st.text(alphabet="[]0123, -–ab`<>|【】.\n()", max_size=60))
def test_setting_citations_is_idempotent(text: str) -> None:
    once, _ = normalise_citations(text, SOURCES)
    assert normalise_citations(once, SOURCES)[0] == once


def test_a_claim_without_citation_is_an_error() -> None:
    verdict = check(Draft(text="Refunds take 14 days.", question="How long do refunds take?", sources=SOURCES))
    assert rules_of(verdict, "cites_sources") == ["Refunds take 14 days."]
    assert not verdict.passed


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("Refunds take 14 days [1].", {}),
        ("Hello! How can I help you today?", {}),
        ("Which workspace do you mean?", {}),
        ("Roses are red, violets are blue.", {"own_words": True}),
        ("Paris is the capital of France.", {"unsourced": True}),
        ("Refunds take 14 days.", {"sources": ()}),
    ],
)
def test_text_that_needs_no_citation_gets_no_error(text: str, flags: dict[str, bool]) -> None:
    fields = {"sources": SOURCES, **flags}
    verdict = check(Draft(text=text, **fields))  # type: ignore[arg-type]  # a table of mixed fields
    assert rules_of(verdict, "cites_sources") == []


def test_a_number_without_a_source_is_an_error() -> None:
    for wrong in ("[1]. They do [1][7].", "[0].", "[999999999999]."):
        verdict = check(Draft(text=f"Refunds take 14 days {wrong}", sources=SOURCES))
        assert len(rules_of(verdict, "citation_resolves")) == 1
    assert rules_of(check(Draft(text="It takes 14 days [1].")), "citation_resolves") == ["[1]"]


def test_numbers_in_a_persons_own_words_are_not_citations() -> None:
    verdict = check(Draft(text="Siehe [4] im Anhang.", question="Translate: see [4] in the annex.", own_words=True))
    assert rules_of(verdict, "citation_resolves") == []


def test_the_remedy_names_the_existing_source_numbers() -> None:
    verdict = check(Draft(text="Refunds take 14 days [9].", sources=SOURCES))
    (found,) = [each for each in verdict.violations if each.rule == "citation_resolves"]
    assert found.remedy == "Cite only [1], [2], [3]."
    assert (found.start, found.end) == (21, 24)


def test_link_to_a_page_resolves_if_a_source_links_a_part_of_it() -> None:
    source = Source(id=1, title="Guide", text="Leave is in [the handbook](https://hr.test/leave#days).")
    for link, resolves in [("leave#days", True), ("leave", True), ("leave#pay", False)]:
        assert check(Draft(text=f"See https://hr.test/{link} [1].", sources=(source,))).passed == resolves


def test_cited_sources_are_those_named_outside_code() -> None:
    assert cited_sources(Draft(text="", sources=SOURCES), "a [3] b [1] `[2]`") == (REFUNDS, PLAIN)


def test_an_unknown_number_in_a_table_row_is_an_error() -> None:
    source = Source(id=1, title="Limits", text="120 requests a minute. 45 euros a day.")
    table = "| what |\n|---|\n| 120 requests a minute [1] |\n| 45 euros a day [77] |"
    verdict = check(Draft(text=table, sources=(source,)))
    assert not verdict.passed
    (found,) = [each for each in verdict.errors if each.rule == "citation_resolves"]
    assert "45 euros a day [77]" in verdict.text[found.start : found.end]
    assert check(Draft(text=table.replace("77", "1"), sources=(source,))).passed


def test_links_that_touch_are_blanked_out_both() -> None:
    assert citations("<https://a.example/1|[8]><https://a.example/2|[7]> said [2].") == (
        Citation(start=56, end=59, ids=(2,)),
    )
    assert citations("[see <https://a.example/1|[8]>](https://b.example/2) said [2].") == (
        Citation(start=58, end=61, ids=(2,)),
    )


def test_a_link_gets_the_number_that_its_own_line_cites() -> None:
    sources = (Source(id=1, title="A", url="https://a.test/p", text="A."), Source(id=2, title="B", text="B."))
    text = "Cited [2].\nSee [the page](https://a.test/p)\nCited [2]."
    assert normalise_citations(text, sources)[0] == text.replace("/p)", "/p) [1]")
    same = "See [the page](https://a.test/p), cited [2]."
    assert normalise_citations(same, sources)[0] == same


def violations_of(text: str, dialect: Dialect = "mrkdwn", mentions: frozenset[str] = frozenset()) -> list[str]:
    verdict = check(Draft(text=text, question="Who is on call?", dialect=dialect, mentions=mentions))
    return [each.words for each in verdict.errors if each.rule == "no_broadcast"]


@pytest.mark.parametrize("dialect", ["mrkdwn", "markdown"])
@pytest.mark.parametrize(
    "text",
    [
        "<!here> the deploy is done.", "<!channel> look.", "<!everyone|everyone> look.",
        "<!subteam^S012AB> is on call.", "<!subteam^S012AB|@sre> is on call.", "<@U0999999> is on call.",
        "<@W0999999|ann> is on call.", "Hey @here, the deploy is done.", "Hey @channel: look.", "ask @everyone.",
        "ASK @HERE!", "(@channel)", "*@here* look", "皆さん@channelを見てください",
        "`<!here>` in code is still a token", "<!Channel> look",
    ],
)  # fmt: skip
def test_a_broadcast_is_an_error_and_never_repaired(text: str, dialect: Dialect) -> None:
    assert violations_of(text, dialect)


@pytest.mark.parametrize("dialect", ["mrkdwn", "markdown"])
@pytest.mark.parametrize(
    "text",
    [
        "The person on call is here. Everyone in the channel knows.", "Write to here@acme.test or ops@here.test.",
        "Use `@here` with care.", "```\n@channel\n```", "The package @here/maps and @channels.",
        "Ask in <#C012AB|general>.", "It ended <!date^1392734382^{date}|on Tuesday>.",
        "The handle @everyone_else is free.", "See https://acme.test/@here for the page.",
    ],
)  # fmt: skip
def test_text_that_only_looks_like_a_mention_passes(text: str, dialect: Dialect) -> None:
    assert violations_of(text, dialect) == []


def test_a_person_named_in_the_question_may_be_mentioned() -> None:
    assert violations_of("<@U0123456> is on call.", mentions=frozenset({"U0123456"})) == []
    assert len(violations_of("<@U0123456> and <@U0999999>.", mentions=frozenset({"U0123456"}))) == 1


TABLE = "| Severity | Who |\n|---|---|\n| SEV1 | Primary |"


@pytest.mark.parametrize("call", ["<!here>", "<!channel>", "@here", "@channel", "<@U0456EFGH>", "<!subteam^S01|ops>"])
@pytest.mark.parametrize("form", ["{call} {table}", "{table} {call}", "*Note for {call}:* {table}"])
def test_a_call_hidden_by_a_table_is_still_found(call: str, form: str) -> None:
    assert len(violations_of(form.format(call=call, table=TABLE))) == 1


def test_a_table_without_a_mention_notifies_no_one() -> None:
    assert violations_of(TABLE) == []
    assert violations_of(f"{TABLE}\n| SEV2 | <@U0456EFGH> |", mentions=frozenset({"U0456EFGH"})) == []
    assert violations_of(f"{TABLE}\n| SEV2 | `@here` |") == []


def test_a_mention_in_small_letters_is_plain_text() -> None:
    assert check(Draft(text="<@u0123abcd> Keys expire.", own_words=True)).chunks == ("&lt;@u0123abcd&gt; Keys expire.",)
