"""Numbers, dates and facts given to another row, line or section than the source's; and the same said rightly."""

from __future__ import annotations

from verification.check import check
from verification.types import Draft, Source, Violation

LEAVE = """| Employment | Paid leave per year | Carry-over | Notice | Bonus |
|---|---|---|---|---|
| Full time | 28 days | up to 5 days | 2 weeks | yes |
| Part time (3 days) | 17 days | up to 3 days | 2 weeks | yes |
| Apprentice | 30 days | none | 4 weeks | no |"""
VENDORS = """Vendors

| | Fluxo | Brokr | Own Kafka |
|---|---|---|---|
| Price per month | 1,900 euros | 1,250 euros | 2,600 euros |
| EU hosting | yes | no | yes |"""
SEVERITIES = """Severity 1: customers cannot pay. Acknowledge within 5 minutes.
Severity 2: payments are slow. Acknowledge within 15 minutes."""
LOG = """## 4.2.0 (2026-10-06)
- Added: support for streaming, see `Client.stream()`.
- Changed: the default timeout is now 20 seconds.
## 4.1.0 (2026-07-01)
- Removed: support for XML responses.
- Added: support for Python 3.14."""
HOURS = """Hours
- Weekdays: 8:00 to 17:00
- Saturday: 8:00 to 13:00"""

STEPS = """| Step | Owner | Due |
|---|---|---|
| Draft | Ann | 3 May |
| Review | Ben | 10 May |
| Release | Cleo | 17 May |"""


def errors(source: str, text: str) -> list[Violation]:
    pages = (Source(id=1, title="", text=source), Source(id=2, title="", text="The canteen serves lunch."))
    return [each for each in check(Draft(text=f"{text} [1].", sources=pages)).errors if each.rule == "claim_supported"]


def test_f1_a_value_of_another_row_fails() -> None:
    for source, wrong, says in [
        (LEAVE, "Apprentices get 28 days of paid leave per year", "has 30 days for Apprentice, not 28 days"),
        (LEAVE, "Part-time employees can carry over up to 5 days", "has up to 3 days for Part time"),
        (LEAVE, "Apprentices can carry over up to 3 days", "has none for Apprentice"),
        (VENDORS, "Brokr costs 1,900 euros", "has 1,250 euros for Brokr, not 1,900 euros"),
        (STEPS, "The draft is due on 10 May", "has 3 May for Draft"),
        (SEVERITIES, "A severity 2 incident is acknowledged within 5 minutes", "has 15 minutes for Severity 2"),
        (LOG, "4.1.0 came out on 6 October 2026", "not 6 October 2026"),
        (LOG, "`Client.stream()` came with 4.1.0", "gives it to something else than 4.1.0"),
        (LOG, "Support for Python 3.14 came with 4.2.0", "gives it to something else than 4.2.0"),
        (HOURS, "On Saturday it is open until 17:00", "gives it to something else than Saturday"),
    ]:
        assert any(says in each.detail for each in errors(source, wrong))


def test_f1_a_value_of_its_own_row_passes() -> None:
    for source, right in [
        (STEPS, "Once the draft is done, Ben has until 10 May"),
        (LEAVE, "Apprentices get 30 days of paid leave and give 4 weeks' notice"),
        (LEAVE, "Full-time employees get 28 days, apprentices 30 days"),
        (LEAVE, "Employees who are no apprentices get 28 days"),
        (VENDORS, "Own Kafka costs 2,600 euros and is hosted in the EU"),
        (VENDORS, "The cheapest costs 1,250 euros"),
        (
            "Severity 1: the page is updated every 15 minutes.\nSeverity 3: acknowledge within 4 hours.",
            "For severity 1 there are four updates an hour",
        ),
        (SEVERITIES, "Acknowledge severity 1 within 5 minutes and severity 2 within 15 minutes"),
        (LOG, "4.1.0 of 1 July 2026 removed support for XML responses"),
        (LOG, "The default timeout is 20 seconds since 4.2.0"),
        (HOURS, "On Saturday it is open until 13:00"),
    ]:
        assert errors(source, right) == []


def test_f1_what_another_source_or_the_question_has_is_not_held_against_the_row() -> None:
    table, page = Source(id=1, title="", text=LEAVE), Source(id=2, title="", text="Apprentices here get 28 days.")
    text = "Apprentices get 28 days of paid leave"
    assert check(Draft(text=f"{text} [1][2].", sources=(table, page))).errors == ()
    known = Draft(text=f"{text} [1].", question="Do apprentices get 28 days?", sources=(table,))
    assert not [each for each in check(known).errors if "for Apprentice" in each.detail]
