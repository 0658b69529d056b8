"""Passages under "Why trust this?" are the lines that the verdict names."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.stores.passages import MAX_PASSAGES, passages_of
from verification.check import check
from verification.evidence.verbatim import text_as_read
from verification.markup.lines import source_lines
from verification.types import Claim, Draft, Source

TABLE = "Limits by plan\n\n| Plan | Requests | Price |\n|---|---|---|\n| Free | 60 | 0 |\n| Pro | 600 | 9 |\n"
POLICY = Source(
    id=2, title="Leave", updated_at="2026-11-01",
    text="Parental leave is six weeks.\n\nAfter six years notice is three months.\n\nAsk\nyour lead about it.",
)  # fmt: skip
PLANS = Source(id=1, title="Plans", text=TABLE)


def claim(text: str, **fields: Any) -> Claim:
    return Claim(text=text, start=0, end=len(text), **{"cited": (2,), "settled_by": "judge", **fields})


def passages_shown(one: Claim) -> list[tuple[int, str]]:
    return [(passage.source, passage.text) for passage in passages_of(one, (PLANS, POLICY))]


def test_the_judged_line_is_shown_and_not_the_one_that_shares_more_words() -> None:
    one = claim("Six weeks or years of leave: notice is 3 months [2].", lines=((2, 2),))
    assert passages_shown(one) == [(2, "After six years notice is three months.")]
    (passage,) = passages_of(one, (POLICY,))
    assert [passage.text[start:end] for start, end in passage.highlights] == ["six years notice", "months"]


def test_a_table_row_is_shown_with_its_header() -> None:
    one = claim("Pro costs 9 [1].", cited=(1,), lines=((1, 5),))
    assert passages_shown(one) == [(1, "| Plan | Requests | Price |\n| Pro | 600 | 9 |")]
    (passage,) = passages_of(one, (PLANS,))
    assert [passage.text[start:end] for start, end in passage.highlights] == ["Pro", "9"]


HEAD = "| Plan | Requests | Price |\n"
STEPS = (
    f"Steps:\n1. Ask your lead. {'It is polite. ' * 30}Or skip it.\n2. Write. {'Say when. ' * 40}No reason is needed."
)
FRIENDS = "We pay.\nYou can refer:\n* friends\n\n  of staff\n* guests\n* staff\n\nNot:\n* contractors\n\nMore text."


@pytest.mark.parametrize(
    ("text", "named", "shown"),
    [
        (FRIENDS, [8], ["Not:\n* contractors"]),
        (FRIENDS, [2, 6], ["You can refer:\n* staff"]),
        (FRIENDS, [2, 3, 6], ["You can refer:\n* friends\n* staff"]),
        (FRIENDS, [3, 4], ["You can refer:\n* friends\n  of staff"]),
        (FRIENDS, [3, 5, 8], ["You can refer:\n* friends\n* guests", "Not:\n* contractors"]),
        (FRIENDS, [2], ["We pay.\nYou can refer:\n* friends\n* guests\n* staff"]),
        ("## Who\n\nWe pay:\n1. a\n1. b\n1. c\n1. d\n1. e", [2], ["We pay:\n1. a\n2. b\n3. c\n4. d\n…"]),
        ("We pay:\n1. a\n1. b\n   - x\n1. c\n1. d\n1. e", [2, 6, 7], ["We pay:\n1. a\n…\n4. d\n5. e"]),
        ("We pay:\n\n1) a\n2) b\n4) c", [4], ["We pay:\n…\n4) c"]),
        (
            "To ask:\n1. Go\n2. Assign to:\n   - Ann: law\n   - Bo: rest",
            [5],
            ["To ask:\n…\n2. Assign to:\n   - Bo: rest"],
        ),
        ("To ask:\n1. Go.\n\nThen you set:\n- time\n- place", [3], ["1. Go.\nThen you set:\n- time\n- place"]),
        ("It is new. It is good. You set:\n- time", [1], ["It is new. It is good. You set:\n- time"]),
        ("4. **Ways:**\n* cash\n5. **Never:**\n* gifts\n* part", [4, 5], ["5. Never:\n* gifts\n* part"]),
        ("# Staff\n\n### To report\n\n- Write.\n- Call.", [4], ["To report\n- Call."]),
        (f"You pay:\n\n{TABLE[TABLE.index('|') :]}", [5], [f"You pay:\n{HEAD}| Pro | 600 | 9 |"]),
        (f"You pay:\n\n{TABLE[TABLE.index('|') :]}", [1], [f"You pay:\n{HEAD}| Free | 60 | 0 |\n| Pro | 600 | 9 |"]),
        (FRIENDS, [9], ["More text."]),
        ("You can refer:\n- friends\n  - from school\n- staff", [4], ["You can refer:\n- staff"]),
        (
            "You can refer:\n1. friends of:\n   1. staff\n   2. guests",
            [4],
            ["You can refer:\n1. friends of:\n…\n   2. guests"],
        ),
        ("We pay a bonus.\n- friends\n- former staff", [3], ["former staff"]),
        ("**Who is paid**\n\n- friends\n- staff", [3], ["Who is paid\n- staff"]),
        (STEPS, [2, 3], [STEPS]),
    ],
)
def test_items_and_rows_are_shown_once_after_the_line_that_introduces_them(
    text: str, named: list[int], shown: list[str]
) -> None:
    one = claim("They count [1].", cited=(1,), lines=tuple((1, line) for line in named))
    assert [passage.text for passage in passages_of(one, (Source(id=1, title="Referrals", text=text),))] == shown


@pytest.mark.parametrize("page", ["1. a:\n- b:\n" * 2_000, "  a|b\n" * 4_000, "a:\n" * 4_000, "- a:\n" * 4_000])
def test_a_page_of_nothing_but_introductions_has_a_short_passage(page: str) -> None:
    for line in (1, 1_500, 3_999):
        (passage,) = passages_of(claim("a", cited=(1,), lines=((1, line),)), (Source(id=1, title="T", text=page),))
        assert len(passage.text) < 100


def test_a_passage_links_to_its_section() -> None:
    text, sections = (
        "## Wifi\n\nFree.\n\n## Laundry\n\nPaid.",
        ((0, "https://x.example/p#a", "Hotels › Wifi"), (16, "https://x.example/p#b", "Hotels › Laundry")),
    )
    page = Source(id=1, title="Hotels", url="https://x.example/p", text=text, sections=sections)
    one = claim("It counts [1].", cited=(1,), lines=((1, 2), (1, 4)))
    assert [(each.url, each.title) for each in passages_of(one, (page,))] == [section[1:] for section in sections]
    assert passages_of(one, (replace(page, sections=()),))[0].url == page.url


LEVEL_HEAD = "| Category | Writer (L1) | Editor (L2) | Chief (L3) |"
LEVELS = (
    f"{LEVEL_HEAD}\n|---|---|---|---|\n"
    f"| *Scope* | Writes single pages. {'Asks a colleague for help. ' * 9}| Owns a whole chapter. {'Is asked. ' * 9}"
    f"| Owns the book. {'Decides what is printed. ' * 9}|\n| *Skill* | Spells. | Edits. | Plans. |\n"
)
WORDED = f"Need: A person leaves; Who decides?: The lead{', who asks the team' * 30}; Who is told?: The person<br/>HR"
LISTED = (
    "1. Gifts:\n\n    | Gift | Who |\n    |--|--|\n    | >£500 | Ann<br/>**Bo** |\n\n2. Say __no__ *first*, `a*b*c`."
)


WRITER = f"Writer (L1): Writes single pages.{' Asks a colleague for help.' * 9}"


@pytest.mark.parametrize(
    ("text", "lines", "words", "passages"),
    [
        (TABLE, (2, 3, 5), "Pro costs 9", f"{HEAD}| Pro | 600 | 9 |"),  # the head and its rule are named too
        (f"{TABLE}| Team | 90 | 3 |", (4, 6), "90 > 60", f"{HEAD}| Free | 60 | 0 |\n| Team | 90 | 3 |"),
        (TABLE, (2,), "It has a price", HEAD.strip()),
        (
            LISTED,
            (4, 5),
            "Above £500 Bo decides",
            "1. Gifts:\n| Gift | Who |\n| >£500 | Ann Bo |\n\n2. Say no first, a*b*c.",
        ),
        (LEVELS, (3,), "A writer (L1) writes pages", f"Scope · {WRITER} · …"),
        (
            LEVELS,
            (3,),
            "A writer (L1) writes pages, L3 owns the book",
            f"Scope · {WRITER} · … · Chief (L3): Owns the book. …",
        ),
        (LEVELS, (4,), "Edits", f"{LEVEL_HEAD}\n| Skill | Spells. | Edits. | Plans. |"),
        (
            WORDED,
            (1,),
            "Three things",
            f"A person leaves · Who decides?: The lead{', who asks the team' * 23}, who asks… · …",
        ),
        (WORDED, (1,), "HR is told", "A person leaves · … · Who is told?: The person HR"),
    ],
)
def test_rows_are_shown_with_what_their_columns_are(
    text: str, lines: tuple[int, ...], words: str, passages: str
) -> None:
    one = claim(words, cited=(1,), lines=tuple((1, line) for line in lines))
    assert "\n\n".join(each.text for each in passages_of(one, (Source(id=1, title="T", text=text),))) == passages


@pytest.mark.parametrize(
    ("quoted", "cited", "place"),
    [
        ("After six years *notice* is three months [2].", (2,), (2, "After six years notice is three months.")),
        ("Ask your lead about it. [2]", (2,), (2, "Ask\nyour lead about it.")),
        ("<https://x.example/a?b|Ask\nyour> lead about it [2].", (2,), (2, "Ask\nyour lead about it.")),
        ("Ask your lead about it? [2]", (2,), (2, "Ask\nyour lead about it.")),
        ("; Requests: 600; Price: 9 [1]", (1,), (1, "| Plan | Requests | Price |\n| Pro | 600 | 9 |")),
        ("Plan: Pro; Requests: 600; Price: 9 [1]", (1,), (1, "| Plan | Requests | Price |\n| Pro | 600 | 9 |")),
        ("Pro | 600 | 9", (1,), (1, "| Plan | Requests | Price |\n| Pro | 600 | 9 |")),
    ],
)
def test_a_quotation_is_shown_in_its_place(quoted: str, cited: tuple[int, ...], place: tuple[int, str]) -> None:
    assert passages_shown(claim(quoted, cited=cited, settled_by="quotation")) == [place]


BOOKS = "You may buy:\n- study guides, books\n- books\n\n**Not for:**\n- books\n- travel"


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ((), "You may buy:\n- books"),
        (((1, 5),), "Not for:\n- books"),
        (((1, 4), (1, 5)), "Not for:\n- books"),
        (((1, 2),), "You may buy:\n- study guides, books"),
        (((1, 0), (1, 3)), "You may buy:\n- books"),
    ],
)
def test_a_quotation_of_several_places_is_shown_where_the_judge_found_it(
    named: tuple[tuple[int, int], ...], shown: str
) -> None:
    quoted = claim("Books [1]", cited=(1,), settled_by="quotation", lines=named)
    (passage,) = passages_of(quoted, (Source(id=1, title="Budget", text=BOOKS),))
    assert passage.text == shown


def test_all_lines_that_the_verdict_names_are_shown_or_the_cut_is_reported() -> None:
    items = [f"{number}. Item {number}: {'bring it along with you, ' * 3}please" for number in range(1, 41)]
    page = Source(id=2, title="List", text="\n".join(["You need:", *items]))
    for count, is_cut in [(15, False), (40, True)]:
        one = claim(f"You need {count} things [2].", lines=tuple((2, n) for n in range(1, count + 2)))
        (passage,) = passages_of(one, (page,))
        assert passage.is_cut == is_cut
        assert is_cut or passage.text.split("\n") == ["You need:", *items[:count]]
    scattered = claim("They differ [2].", lines=tuple((2, n) for n in range(1, 41, 3)))
    prose = replace(page, text=page.text.replace(". ", " "))
    assert [each.is_cut for each in passages_of(scattered, (prose,))] == [False] * (MAX_PASSAGES - 1) + [True]


@pytest.mark.parametrize(
    "text",
    ["| App | Page |\n|---|---|\n| Kiln | [here](https://x.example/k) |", "Kiln is [here](https://x.example/k)."],
)
def test_an_address_that_the_claim_names_is_shown(text: str) -> None:
    one = claim("Kiln is at <https://x.example/k|this page> [1].", cited=(1,), lines=((1, text.count("\n") + 1),))
    (passage,) = passages_of(one, (Source(id=1, title="Ways", text=text),))
    assert "here (https://x.example/k)" in passage.text


def test_a_quoted_row_with_an_address_is_shown_in_its_place() -> None:
    page = Source(id=1, title="Ways", text="| App | Page |\n|---|---|\n| Kiln | https://x.example/k?tab=readme |")
    one = claim("App: Kiln; Page: https://x.example/k?tab=readme [1]", cited=(1,), settled_by="quotation")
    assert [each.text for each in passages_of(one, (page,))] == [
        "| App | Page |\n| Kiln | https://x.example/k?tab=readme |"
    ]


def test_lines_of_two_sources_are_two_passages_and_a_date_is_the_titles_line() -> None:
    one = claim("Both [1][2].", cited=(1, 2), lines=((2, 0), (1, 4), (1, 9), (7, 1)))
    assert [source for source, _ in passages_shown(one)] == [1, 2]
    assert passages_shown(one)[1] == (2, "Leave, updated 2026-11-01")


def test_a_passage_is_shown_as_on_its_page_and_cut_between_words() -> None:
    text = "- A key is [made\n  here](https://x.example/k) **once**.\n- Ask [Ann](mailto:ann@x.example) first.\n\n"
    text += "The list of all regions in which a key may be used is long, so it comes in\ntwo parts that need time."
    page = Source(id=2, title="Keys", text=text)
    quoted, judged = claim("Ask Ann first [2].", settled_by="quotation"), claim("It is long [2].", lines=((2, 3),))
    assert [one.text for one in passages_of(quoted, (page,))] == ["Ask Ann first."]
    menu = claim("Choose <https://x.example/s|Settings> &gt; Keys [2].", settled_by="quotation")
    steps = replace(page, text="1. Choose [Settings](https://x.example/s) > Keys.")
    assert [one.text for one in passages_of(menu, (steps,))] == ["1. Choose Settings > Keys."]
    assert [one.text for one in passages_of(judged, (page,))] == [text.partition("\n\n")[2].replace("\n", " ")]
    late = (
        f"{'Payroll is made by bank transfer twice a month. ' * 32}Claims are paid by the 25th. {'More follows. ' * 9}"
    )
    (end,) = passages_of(claim("Claims are paid by the 25th [2].", lines=((2, 1),)), (replace(page, text=late),))
    assert end.text == "… Claims are paid by the 25th. …"
    words = " ".join(f"word{number}" for number in range(400))
    (cut,) = passages_of(claim("Here is word150 [2].", lines=((2, 1),)), (replace(page, text=words),))
    assert set(cut.text.strip("…").split()) <= set(words.split())
    assert (cut.text[0], cut.text[-1]) == ("…", "…")
    assert [cut.text[start:end] for start, end in cut.highlights] == ["word150"]


@pytest.mark.parametrize("settled_by", ["nobody", "rule"])
def test_a_claim_that_was_not_judged_has_no_passage(settled_by: str) -> None:
    assert passages_shown(claim("After six years notice is three months [2].", settled_by=settled_by)) == []


TEXTS = st.lists(
    st.sampled_from(
        [*TABLE.split("\n"), *POLICY.text.split("\n"), "They get:", "- six weeks", "x" * 900, f"|{' |' * 300}"]
    ),
    max_size=9,
).map("\n".join)


@given(
    st.lists(TEXTS, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 9)), max_size=9),
    st.sampled_from(["judge", "quotation", "rule", "nobody"]),
    st.sampled_from(["Pro costs 9.", "After six years notice is three months.", "| Free | 60 | 0 |"]),
)
def test_every_passage_is_one_that_the_verdict_names(
    texts: list[str], lines: list[tuple[int, int]], settled_by: Any, words: str
) -> None:
    sources = tuple(Source(id=n, title=f"T{n}", text=text) for n, text in enumerate(texts, 1))
    pages = {source.id: source_lines(source) for source in sources}
    one = replace(claim(words, cited=(1,), settled_by=settled_by), lines=tuple(lines))
    named = {(number, pages[number][line]) for number, line in lines if 0 <= line < len(pages.get(number, ()))}
    introduced = {  # a line that introduces a list or table comes with its first lines and the line above it
        (number, text)
        for number, line in lines
        if (number, "They get:") in named and pages[number][line : line + 1] == ("They get:",)
        for text in pages[number][max(line - 1, 0) : line + 7]
    }
    found = passages_of(one, sources)
    assert len(found) <= MAX_PASSAGES
    for passage in found:
        for part in passage.text.strip("…").split("\n"):
            is_named = any(part in line for number, line in named | introduced if number == passage.source)
            is_head = part in {"| Plan | Requests | Price |", "They get:"}
            is_quoted = settled_by == "quotation" and part in "\n".join(pages[1])
            assert is_quoted or (settled_by in {"judge", "quotation"} and (is_named or is_head))


KINDS = {
    "wrapped lines": "Leave is six weeks for all that worked here for at least a year\nin full.\n\n> Guests\n> stay",
    "a table": "| Plan | Requests | Price |\n|---|---|---|\n| **Free** | 60 a minute | [9 euros](https://p.ex/9) |",
    "lists": "You may buy:\n\n- the **guides**\n- books\n  - also old ones\n\nNot for:\n\n1. books on `law`",
    "an MCP record": "# ENG-7\n\nstatus: open\nbefore days: 30\nsummary: The valve of tank nine sticks when cold.",
    "a saved answer": "Question: Until when?\n\nThe password is valid for *seven days*.\n\n\u2022 Ask at the desk",
    "thread messages": "Ann: it moved to Thursday, I asked\nBen: no, Priya says <https://c.example|Friday> & later",
}


def words_of(text: str) -> str:
    return " ".join(re.findall(r"\w+", text_as_read(text).casefold()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_judge", [False, True])
def test_a_quotation_of_any_source_is_shown_whole_and_from_its_source(kind: str, *, has_judge: bool) -> None:
    sources = tuple(Source(id=n, title=name, text=text) for n, (name, text) in enumerate(KINDS.items(), 1))
    (source,) = (each for each in sources if each.title == kind)
    units = [unit for line in source_lines(source)[1:] for unit in re.split(r"(?<=[.!?])\s+", line)]
    drafts = (re.sub(r"^\s*(?:[-*\u2022>]|\d+[.)])\s+", "", unit) + f" [{source.id}]" for unit in units)
    verdicts = (check(Draft(text=text, sources=sources, has_judge=has_judge)) for text in drafts)
    quoted = [one for verdict in verdicts for one in verdict.claims if one.settled_by == "quotation"]
    assert quoted
    for one in quoted:
        passages = passages_of(one, sources)
        assert words_of(one.text.rpartition("[")[0]) in words_of(" ".join(passage.text for passage in passages))
        for passage in passages:
            assert passage.source == source.id
            assert all(words_of(line) in words_of(source.text) for line in passage.text.split("\n"))
