"""Setting a citation right: only where exactly one other source bears the sentence out."""

from __future__ import annotations

from verification.answer import Draft, Repair, Source
from verification.claims import claims
from verification.grounding import ground
from verification.recitation import recite

SOURCES = (
    Source(id=1, title="Backups", text="Backups are kept for 30 days. They run nightly at 02:00."),
    Source(id=2, title="Leave", text="Employees have 28 days of leave a year. Requests go to the team lead."),
    Source(id=3, title="Parking", text="The garage opens at 06:30 and closes at 22:00."),
)


def set_right(text: str, sources: tuple[Source, ...] = SOURCES) -> tuple[str, tuple[Repair, ...]]:
    return recite(Draft(text=text, sources=sources), text, claims(text))


def test_f2_a_wrong_citation_of_a_right_fact_is_set_right_and_recorded() -> None:
    text = "Employees have 28 days of leave a year [1]. Backups are kept for 30 days [1]."
    assert set_right(text) == (
        "Employees have 28 days of leave a year [2]. Backups are kept for 30 days [1].",
        (Repair(kind="citation", count=1),),
    )


def test_f2_a_citation_that_does_not_exist_is_set_right_too() -> None:
    assert set_right("The garage opens at 06:30 [9].")[0] == "The garage opens at 06:30 [3]."
    assert set_right("The garage opens at 06:30 [9][1].")[0] == "The garage opens at 06:30 [3]."


def test_f2_setting_right_is_idempotent() -> None:
    once, _ = set_right("Employees have 28 days of leave a year [1].")
    assert set_right(once) == (once, ())


def test_f2_nothing_changes_when_the_fact_is_wrong_unclear_or_fine() -> None:
    for text in (
        "Employees have 27 days of leave a year [1].",
        "Backups are kept for 30 days [1].",
        "Employees have 28 days of leave a year.",
        "Yes [1].",
        "",
    ):
        assert set_right(text) == (text, ())


def test_f2_two_sources_that_both_hold_it_leave_the_choice_to_the_model() -> None:
    twice = (*SOURCES, Source(id=4, title="Leave again", text="Employees have 28 days of leave a year."))
    text = "Employees have 28 days of leave a year [1]."
    assert set_right(text, twice) == (text, ())


def test_f1_the_remedy_names_the_source_that_bears_it_out() -> None:
    text = "Employees have 28 days of leave a year [1]."
    (judged,), violations = ground(Draft(text=text, sources=SOURCES), text, claims(text))
    assert judged.supported == "no"
    assert "Cite [2] instead" in violations[0].remedy
