"""Numbers and names given to something else than the source gives them to: suspected, never an error."""

from __future__ import annotations

import pytest

from verification.claims.claims import claims
from verification.grounding.examine import grounds
from verification.grounding.ground import ground
from verification.types import Draft, Source, Violation

PAY = "On-call pay is 350 euros a week for the primary and 175 euros for the secondary."
BACKUPS = "Daily backups are kept for 35 days and monthly backups are kept for 13 months."
TEAMS = "Anna Weber leads the platform team and Tom Fischer leads the data team."
TRAINING = "Anna Weber trained Eva Lang, and Karl Braun hired Tom Fischer."
PAGES = "An unacknowledged page goes to the secondary after 10 minutes and to the engineering manager after 20 minutes."


def found(source: str, claim: str) -> list[Violation]:
    text = f"{claim} [1]"
    draft = Draft(text=text, sources=(Source(id=1, title="", text=source),))
    return [each for each in ground(grounds(draft, text), claims(text))[1] if "something else" in each.detail]


@pytest.mark.parametrize(
    ("source", "claim", "there"),
    [
        (PAY, "The primary gets 175 euros a week.", "350 euros"),
        (BACKUPS, "Daily backups are kept for 13 months.", "35 days"),
        (PAGES, "An unacknowledged page goes to the secondary after 20 minutes.", "10 minutes"),
        (TEAMS, "Tom Fischer leads the platform team.", "Anna Weber"),
        (TRAINING, "Karl Braun trained Eva Lang.", "Anna Weber"),
        (TEAMS, "The data team is led by Anna Weber.", "Tom Fischer"),
        ("Tägliche Sicherungen bleiben 35 Tage und monatliche 13 Wochen.", "Tägliche bleiben 13 Wochen.", "35 Tage"),
    ],
)
def test_f6_a_value_of_something_else_is_suspected(source: str, claim: str, there: str) -> None:
    (violation,) = found(source, claim)
    assert violation.severity == "warning"
    assert there in violation.detail
    assert violation.words in claim
    assert violation.words.split()[-1] in {"euros", "months", "minutes", "team", "Weber", "Lang", "Wochen"}


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        (PAY, "The secondary gets 175 euros a week."),
        (PAY, "Secondary: 175 euros a week"),
        (PAY, "The secondary gets half of what the primary gets: 175 euros a week."),
        (BACKUPS, "Daily backups are kept for 35 days, monthly ones for 13 months."),
        (BACKUPS, "Monthly backups stay for 13 months."),
        (PAGES, "After 20 minutes the page goes to the engineering manager."),
        (TEAMS, "Tom Fischer leads the data team."),
        (TEAMS, "The platform team is led by Anna Weber."),
        ("Restores take between 20 and 40 minutes.", "A restore takes up to 40 minutes."),
        ("オフィスは8時に開き、会議室は9時に開きます。", "会議室は8時に開きます。"),
    ],
)
def test_f1_a_value_in_its_place_is_not(source: str, claim: str) -> None:
    assert found(source, claim) == []
