"""Spans of time between two dates or times of day that a source has; and spans that lie between none."""

from __future__ import annotations

from verification.check import check
from verification.types import Draft, Source


def is_refused(source: str, text: str) -> bool:
    pages = (Source(id=1, title="", text=source),)
    return any(each.rule == "claim_supported" for each in check(Draft(text=f"{text} [1].", sources=pages)).errors)


def test_f1_a_span_of_time_lies_between_two_times_of_the_source() -> None:
    for source, right, wrong in [
        (
            "Uploads failed from 09:12 to 11:47.",
            "Uploads failed for 2 hours and 35 minutes",
            "Uploads failed for 2 hours and 25 minutes",
        ),
        ("Uploads failed from 09:12 to 11:47.", "Uploads failed for 155 minutes", "Uploads failed for 145 minutes"),
        (
            "Uploads failed from 09:12 to 11:47.",
            "Uploads failed for about 2.5 hours",
            "Uploads failed for about 3.5 hours",
        ),
        (
            "09:12 first failed upload. 09:40 a customer reports it. 09:55 support pages.",
            "Support paged 43 minutes after the first failed upload",
            "Support paged 53 minutes after the first failed upload",
        ),
        (
            "4.1 was released on 2026-07-01. 4.2 was released on 2026-08-19.",
            "4.2 was released seven weeks after 4.1",
            "4.2 was released eight weeks after 4.1",
        ),
        (
            "4.1 was released on 2026-07-01. 4.2 was released on 2026-02-30.",
            "4.1 was released on 1 July 2026",
            "4.2 was released 30 days after 4.1",
        ),
        (
            "Ann writes it by 12 March. Ben tests it by 16 March.",
            "Ben tests it four days after Ann writes it",
            "Ben tests it three days after Ann writes it",
        ),
        ("The club was founded in 1990 and closed in 2004.", "The club lasted 14 years", "The club lasted 15 years"),
    ]:
        assert not is_refused(source, right)
        assert is_refused(source, wrong)


def test_f1_times_far_from_the_claim_make_no_span() -> None:
    mills = " ".join(f"The mill grinds {grain}." for grain in ("rye", "oats", "spelt", "wheat", "barley"))
    source = f"The desk opens at 08:00. {mills} Lunch is at 12:00."
    assert is_refused(source, "The mill grinds for 4 hours")
