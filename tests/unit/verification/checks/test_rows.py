"""What a page says of several alike things: rows and columns of tables, labelled lines, sections; and what is none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verification.checks.rows import groups, stands_in
from verification.evidence.passages import analyse

LEAVE = """Leave

| Employment | Leave | Notice |
|---|---|---|
| Full time | 28 days | 2 weeks |
| Part time (3 days) | 17 days | none |
"""
VENDORS = """| | Fluxo | Own Kafka |
|---|---|---|
| Price | 1,900 euros | 2,600 euros |
| EU hosting | yes | no |"""


def names(text: str) -> list[list[str]]:
    return [[line.name for line in group.lines] for group in groups(analyse(text, "en"))]


def test_f1_the_alike_things_of_a_page() -> None:
    for text, expected in [
        (LEAVE, [["Full time", "Part time"]]),
        (VENDORS, [["Fluxo", "Own Kafka"]]),
        ("# Log\n## 4.2.0 (2026-10-06)\n- Added: x\n## 4.1.0\n- Fixed: y", [["4.2.0", "4.1.0"]]),
        ("Severity 1: page at once.\nSeverity 2: page in the morning.", [["Severity 1", "Severity 2"]]),
        ("Limits:\n- Domestic: 120 euros\n- **Europe**: 160 euros", [["Domestic", "Europe"]]),
        # a number alone, one row, two rows of one name, rows of different lengths, no rule: nothing to tell apart
        ("| Code | Means |\n|---|---|\n| 404 | gone |\n| 409 | taken |", []),
        ("| Plan | Price |\n|---|---|\n| Team | 9 euros |", []),
        ("| Plan | Price |\n|---|---|\n| Team | 9 euros |\n| Team | 8 euros |", []),
        ("| Plan | Price |\n|---|---|\n| Team | 9 euros |\n| Firm | 8 euros | 7 |", []),
        ("| Plan | Price |\n| Team | 9 euros |\n| Firm | 8 euros |", []),
        # labels of long paragraphs and of prose
        ("Summary: it broke at 09:12.\nCause: a certificate expired at 09:10.", []),
        (
            "- Added: retries with exponential backoff, off by default, set 3.\n- Changed: the cache, now 500 entries.",
            [],
        ),
        ("## Rates\nUp to 600.\n## Keys\nFor 90 days.", []),
        ("Just a line: 3 euros", []),
        ("", []),
    ]:
        assert names(text) == expected


def test_f1_a_thing_is_named_by_its_whole_name() -> None:
    (leave,) = groups(analyse(LEAVE, "en"))
    assert [line.name for line in leave.named(["part", "time", "staff"])] == ["Part time"]
    assert leave.named(["time", "part"]) == []
    (prices,) = groups(analyse("Prices\n- Kafka: 3 euros\n- Local Kafka: 2 euros", "en"))
    assert [line.name for line in prices.named(["local", "kafka"])] == ["Local Kafka"]


def test_f1_what_a_line_says_is_where_it_stands() -> None:
    (vendors,) = groups(analyse(VENDORS, "en"))
    kafka = vendors.lines[1]
    assert [VENDORS[slice(*span)].strip() for span in kafka.spans] == ["2,600 euros", "no"]
    assert vendors.heads == (("price",), ("eu", "host"))


@given(st.text(alphabet="|-#:\n 1ab*`.", max_size=200))
def test_f1_any_text_has_its_lines_inside(text: str) -> None:
    for group in groups(analyse(text, "en")):
        assert all(0 <= start <= end <= len(text) for line in group.lines for start, end in line.spans)
        assert all(stands_in(line.stems, line.stems) for line in group.lines)
