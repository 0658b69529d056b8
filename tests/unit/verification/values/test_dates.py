"""Dates and times in seven languages, what agrees with what, and what is never resolved."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from verification.check import check
from verification.types import Draft, Source
from verification.values.dates import Moment, agrees, moments

Parts = tuple[int | None, int | None, int | None, int | None, int | None, int | None]


def parts(moment: Moment) -> Parts:
    return (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.weekday)


def test_one_day_is_read_in_every_spelling() -> None:
    for written in [
        "2021-03-05", "2021/03/05", "2021.03.05", "5 March 2021", "5th of March 2021", "March 5, 2021",
        "Mar. 5th, 2021", "5. März 2021", "05.03.2021", "5 mars 2021", "5 de marzo de 2021", "5 Maret 2021",
        "2021年3月5日",
    ]:  # fmt: skip
        assert [parts(m)[:3] for m in moments(f"on {written} it rained")] == [(2021, 3, 5)]


def test_one_time_is_read_in_every_spelling() -> None:
    for written in [
        "14:30", "2:30 pm", "2.30 p.m.", "14.30 Uhr", "14 Uhr 30", "14h30", "pukul 14.30", "午後2時30分",
        "午後 2時30分", "下午2点半", "14:30:00",
    ]:  # fmt: skip
        assert [parts(m)[3:5] for m in moments(f"at {written} sharp")] == [(14, 30)]


def test_a_date_has_only_the_parts_that_are_written() -> None:
    for text, expected in [
        ("2021-03-05T09:00Z", [(2021, 3, 5, 9, 0, None)]),
        ("March 2021", [(2021, 3, None, None, None, None)]),
        ("2021-03", [(2021, 3, None, None, None, None)]),
        ("2021年3月", [(2021, 3, None, None, None, None)]),
        ("3月5日", [(None, 3, 5, None, None, None)]),
        ("am 12.05.", [(None, 5, 12, None, None, None)]),
        ("3–5 March 2021", [(2021, 3, 3, None, None, None), (2021, 3, 5, None, None, None)]),
        ("March 3-5, 2021", [(2021, 3, 3, None, None, None), (2021, 3, 5, None, None, None)]),
        ("03/04/2021", [(2021, 4, 3, None, None, None), (2021, 3, 4, None, None, None)]),
        ("13/04/69", [(2069, 4, 13, None, None, None)]),
        ("13/04/70", [(1970, 4, 13, None, None, None)]),
        ("in 1994", [(1994, None, None, None, None, None)]),
        ("1904-1905", [(1904, None, None, None, None, None), (1905, None, None, None, None, None)]),
        ("1988/89", [(1988, None, None, None, None, None), (1989, None, None, None, None, None)]),
        ("1988/95", []),
        ("SoccerMay 1 2019", [(2019, 5, 1, None, None, None)]),
        ("the SoccerMay is out", []),
        ("every Tuesday", [(None, None, None, None, None, 2)]),
        ("毎週火曜日", [(None, None, None, None, None, 2)]),
        ("midnight", [(None, None, None, 0, 0, None)]),
        ("um Mitternacht", [(None, None, None, 0, 0, None)]),
        ("à minuit", [(None, None, None, 0, 0, None)]),
        ("a medianoche", [(None, None, None, 0, 0, None)]),
        ("正午", [(None, None, None, 12, 0, None)]),
        ("midday", [(None, None, None, 12, 0, None)]),
        ("noon", [(None, None, None, 12, 0, None)]),
        ("24:00", [(None, None, None, 0, 0, None)]),
        ("12 pm", [(None, None, None, 12, 0, None)]),
        ("12 am", [(None, None, None, 0, 0, None)]),
        ("9 o'clock", [(None, None, None, 9, 0, None)]),
        ("in October", [(None, 10, None, None, None, None)]),
        ("10:15-11:00", [(None, None, None, 10, 15, None), (None, None, None, 11, 0, None)]),
    ]:
        assert [parts(m) for m in moments(text)] == expected


def test_text_that_is_not_a_date() -> None:
    phrases = (
        "next week's plan; today; tomorrow; it may be; we march on; 30 days; 3 may be; v2.1.3; $2021; 31:99; 25:00"
    )
    for text in [*phrases.split("; "), "12345", "a2021", "1.5.2", "99.99."]:
        assert moments(text) == ()


def test_two_dates_agree_if_the_source_has_every_part_of_the_claim() -> None:
    for claim, source, same in [
        ("March 2021", "5 March 2021", True),
        ("5 March 2021", "March 2021", False),
        ("5 March 2021", "5 March", True),
        ("5 March", "6 March", False),
        ("2021", "5 March 2021", True),
        ("2021", "5 March", False),
        ("the 1990s", "1994", True),
        ("the 1990s", "2004", False),
        ("2:30", "14:30", True),
        ("2:30 am", "14:30", False),
        ("12:30", "0:30", True),  # half past midnight
        ("14:30", "14:45", False),
        ("14:30", "2021", False),
        ("Monday", "Montag", True),
        ("Monday", "Tuesday", False),
        ("2021-03-05 09:00", "2021-03-05 09:00", True),
        ("2021-03-05 09:00", "2021-03-05", False),
    ]:
        assert agrees(moments(f"on {claim}")[0], moments(f"on {source}")[0]) is same


@given(st.dates(min_value=dt.date(1900, 1, 1), max_value=dt.date(2099, 12, 31)))
def test_iso_and_spelled_dates_agree(day: dt.date) -> None:
    (iso,) = moments(day.isoformat())
    (spelled,) = moments(f"{day.day} {day:%B} {day.year}")
    assert agrees(iso, spelled)
    assert agrees(spelled, iso)


@given(st.text(max_size=80))
def test_any_text_is_read_without_trouble(text: str) -> None:
    for moment in moments(text):
        assert 0 <= moment.start < moment.end <= len(text)


def test_a_span_of_a_whole_day_passes_if_the_source_has_it() -> None:
    sources = (Source(id=1, title="", text="The desk is staffed from 08:00 to 08:00 the next day."),)
    assert check(Draft(text="The desk is open from 08:00 to 08:00 the next day [1].", sources=sources)).passed
