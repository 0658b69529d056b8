"""The sentences of an answer that state something, and the citations of each."""

from hypothesis import given
from hypothesis import strategies as st

from verification.claims.claims import claims


def cited_claims(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(claim.text, claim.cited) for claim in claims(text)]


def test_citations_before_and_after_the_full_stop_belong_to_the_sentence() -> None:
    assert cited_claims("The limit is 30. [1] It resets daily [2].") == [
        ("The limit is 30. [1]", (1,)),
        ("It resets daily [2].", (2,)),
    ]
    assert cited_claims("Das gilt.[2, 3]Ende der Liste") == [("Das gilt.[2, 3]", (2, 3)), ("Ende der Liste", (2, 3))]
    assert cited_claims("上限は30日です。[1]毎日リセットされます[2]。") == [
        ("上限は30日です。[1]", (1,)),
        ("毎日リセットされます[2]。", (2,)),
    ]


def test_a_sentence_shares_the_citations_of_its_paragraph_item_list_or_table() -> None:
    for text, expected in [
        # a paragraph shares its citation; a sentence with its own keeps that
        ("The office opens at 9. It closes at 17. [1]", [(1,), (1,)]),
        ("The office opens at 9. It closes at 17 [1].", [(1,), (1,)]),
        ("The office opens at 9 [1]. It closes at 17.\nLunch is at 12 [2].", [(1,), (1, 2), (2,)]),
        ("The office opens at 9.\n\nIt closes at 17 [1].", [(), (1,)]),
        # an item, with its lines set in and the items below it
        ("- Free has 60. It resets daily [1].\n- Team has 600.", [(1,), (1,), ()]),
        ("- Free [1]:\n  - 60 a minute\n  - 900 a day\n- Team has 600 [2].", [(1,), (1,), (1,), (2,)]),
        ("- Free has\n  - 60 a minute [1]\n  - 900 a day [2]", [(1,), (2,)]),
        # what introduces a list or closes it
        ("The limits are these [4].\n- Free has 60\n- Team has 600 [2]", [(4,), (4,), (2,)]),
        ("The plans differ in their limits.\n\n- Free has 60 [1]\n- Team has 600 [2]", [(1, 2), (1,), (2,)]),
        ("- Free has 60.\n- Team has 600.\n\nAll of this is per minute [3].", [(3,), (3,), (3,)]),
        ("- Free has 60.\n- Team has 600. [1]\n- All have 9.\n[2]", [(2,), (1,), (2,)]),
        ("Free has 60.\n\n- Team has 600.\n- All have 9.\n[2]", [(2,), (2,), (2,)]),
        # a table: its head, the line below it, one row not another's
        ("| Plan | Limit [1] |\n|---|---|\n| Free | 60 |\n| Team | 600 [2] |", [(1,), (2,)]),
        ("| Plan | Limit |\n|---|---|\n| Free | 60 |\n| Team | 600 |\n\nSource: [3]", [(3,), (3,)]),
        ("| Plan | Limit |\n|---|---|\n| Free | 60 |\n| Team | 600 [2] |", [(), (2,)]),
    ]:
        assert [ids for _, ids in cited_claims(text)] == expected


def test_the_judge_decides_whether_an_opening_or_a_closing_is_a_claim() -> None:
    for text, expected in [
        ("Good to know before you travel.\n\nThe limit is 30 [1].\n\nAsk your manager first.", [(1,), (1,), (1,)]),
        ("The limit is 30 [1].\n\nIt was 20 before.", [(1,), ()]),
        ("The limit is 30 [1].\n\nRun `orion index`.\n\nIt is daily [2].", [(1,), (), (2,)]),
        ("The limit is 30 [1].\n\nIt is generous.\n\nIt is daily [2].", [(1,), (), (2,)]),
        ("It is generous.", [()]),
    ]:
        assert [claim.cited for claim in claims(text, has_judge=True)] == expected


def test_list_items_share_the_citation_of_their_introduction() -> None:
    text = "Steps [4]:\n- Run `orion index`\n- Wait for 5 minutes [2]\n"
    assert cited_claims(text) == [("Steps [4]:", (4,)), ("Run `orion index`", (4,)), ("Wait for 5 minutes [2]", (2,))]


def test_table_rows_are_claims_in_both_dialects() -> None:
    assert cited_claims("| A | B |\n|---|---|\n| x y | 3 [2] |") == [("| x y | 3 [2] |", (2,))]
    assert [c for _, c in cited_claims("```\nName | Days\n-----+-----\nFoo  | 3 [1]\n```")] == [(1,)]


def test_lower_case_begins_a_table_row_but_continues_a_line_of_text() -> None:
    table = "```\nname | days\n-----+-----\nfoo  | 3 [1]\nbar  | 4 [2]\n```"
    assert cited_claims(table) == [("foo  | 3 [1]", (1,)), ("bar  | 4 [2]", (2,))]
    assert cited_claims("```\n-----+-----\nFoo  | 3 [1]\n```") == [("Foo  | 3 [1]", (1,))]
    for text in ("The limit is 30\nrequests a minute [1].", "The limit holds for\niOS devices too [1]."):
        assert cited_claims(text) == [(text, (1,))]
    assert [c for _, c in cited_claims("The limit is 30.\n\nit resets daily. [1]")] == [(), (1,)]


def test_lines_indented_under_an_item_belong_to_the_list() -> None:
    text = "Steps [4]:\n- Run it now\n  Then wait here\n  And go home"
    assert {c for _, c in cited_claims(text)} == {(4,)}


def test_a_line_with_only_citations_belongs_to_the_lines_above() -> None:
    assert cited_claims("Final claim here.\nSource: [7]") == [("Final claim here.", (7,))]
    assert [c for _, c in cited_claims("Limits:\n- Free has 60.\n- Team has 600.\n\nSource: [7]")] == [(7,), (7,)]


def test_statements_in_unusual_forms_are_claims() -> None:
    for text, told in [
        ("*Keys never expire*\nThey are rotated monthly [1].", ("*Keys never expire*", (1,))),
        ("*The limit is 900*\n- Keys last 90 days [1]\n- Keys are free [2]", ("*The limit is 900*", (1, 2))),
        ("*900 euros*", ("*900 euros*", ())),
        ("*Free refunds*", ("*Free refunds*", ())),
        ("The limit is 900 a minute:\n- Keys last 90 days [1].", ("The limit is 900 a minute:", (1,))),
        (
            "Refunds are free, and these are the rules:\n- Keys last 90 days [1].",
            ("Refunds are free, and these are the rules:", (1,)),
        ),
        ("Would you like to use all 900 requests?", ("Would you like to use all 900 requests?", ())),
        (
            "Would you like to use all 900 requests?\n\nKeys last 90 days [1].",
            ("Would you like to use all 900 requests?", ()),
        ),
        ("*The limit is 900*\nKeys last 90 days [1].\nKeys are free [2].", ("*The limit is 900*", (1, 2))),
        ("Let me know if 900 are not enough!", ("Let me know if 900 are not enough!", ())),
        ("Did you know that keys never expire? [1]", ("Did you know that keys never expire? [1]", (1,))),
        ("| 900 a minute | Value |\n|---|---|\n| Keys | 90 days [1] |", ("| 900 a minute | Value |", (1,))),
        ("```\n900 a minute | Days\n-------------+-----\nFoo          | 3 [1]\n```", ("900 a minute | Days", (1,))),
        ("Yes.", ("Yes.", ())),
        ("*Step 2: Keys are rotated*\nDo it monthly [1].", ("Keys are rotated*", (1,))),
    ]:
        assert told in cited_claims(text)


def test_a_title_with_a_known_number_is_not_a_claim() -> None:
    for text in [
        "*Step 2*\nKeys are rotated monthly [1].",
        "*What you need to know*\nKeys are rotated monthly [1].",
        "*How keys are rotated*\nKeys are rotated monthly [1].",
        "*Things that are allowed*\nKeys are rotated monthly [1].",
        "*90 days*\nKeys are rotated after 90 days [1].",
        "There are 3 steps:\n- Keys are rotated monthly [1].",
        "These are the rules:\n- Keys are rotated monthly [1].",
        "To roll back, do this:\n- Keys are rotated monthly [1].",
        "Keys are rotated every 90 days [1]. Shall I explain what happens after the 90 days?",
        "Keys are rotated monthly [1]. Do you mean the limit of 900?",
        "Yes. Keys are rotated monthly [1].",
        "*Is the office open?*\nKeys are rotated monthly [1].",
    ]:
        told = claims(text, "Is the limit 900?")
        assert [claim.cited for claim in told] == [(1,)]


def test_rows_of_a_drawn_table_share_the_citation_of_their_introduction() -> None:
    text = "First updates [1]:\n\n```\nSeverity | Update\n---------+-------\nSEV1     | 15 min\n```"
    assert cited_claims(text) == [("First updates [1]:", (1,)), ("SEV1     | 15 min", (1,))]


def test_a_reference_after_the_sentence_is_its_citation() -> None:
    assert cited_claims("Keys last 90 days. See https://wiki.test/p1 [1].")[0] == ("Keys last 90 days.", (1,))
    assert cited_claims("See `https://evil.test/x` [1].") == [("See `https://evil.test/x` [1].", (1,))]


@given(st.text(alphabet="ab A.1[]-*`|\n:?。[1] ", max_size=200))
def test_spans_are_the_text_and_never_overlap(text: str) -> None:
    last = 0
    for claim in claims(text):
        assert text[claim.start : claim.end] == claim.text
        assert last <= claim.start < claim.end
        last = claim.end
