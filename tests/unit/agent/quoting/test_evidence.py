"""What speaks for a quotation that covers little of a question by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.quoting.evidence import NEEDED, Evidence, answers, evidence_for, weighed
from agent.quoting.ranking import Asked, compare
from agent.quoting.units import units_of
from verification.types import Source

SPARE = Source(
    id=1,
    title="Workshop › Borrowing tools",
    text="A drill is lent for 3 days. Bring it back to the counter with its charger. Batteries stay in the workshop.",
)
OTHERS = Source(id=2, title="Garden", text="The garden is watered at dawn. Seeds are free.")
UNITS = [unit for source in (SPARE, OTHERS) for unit in units_of(source)]
NONE = Evidence(covered=0.0, named=0.0, unnamed=0.0, other_kind=0.0, told=0.0)


def gathered(question: str) -> Evidence:
    compared = compare(Asked(text=question), UNITS)
    return evidence_for(compared, compared.ranked[0], units_of(SPARE))


@pytest.mark.parametrize("name", ["covered", "named", "told"])
def test_h1_what_stands_in_the_quotation_speaks_for_it(name: str) -> None:
    assert weighed(replace(NONE, **{name: 1.0})) > 0.0 == weighed(NONE)


@pytest.mark.parametrize("name", ["unnamed", "other_kind"])
def test_h1_what_is_missing_speaks_against_it(name: str) -> None:
    assert weighed(replace(NONE, **{name: 1.0})) < 0.0


def test_h1_a_word_alone_is_never_enough() -> None:
    assert weighed(Evidence(covered=0.3, named=0.7, unnamed=0.0, other_kind=0.0, told=0.3)) < NEEDED


def test_h1_things_count_that_stand_in_the_neighbouring_sentences_and_in_the_title() -> None:
    one, three = gathered("Is a drill heavy?"), gathered("Is a drill with its charger and batteries heavy?")
    assert three.named > one.named > 0.0
    assert gathered("Is borrowing a drill heavy?").named > one.named


def test_h1_a_noun_that_stands_nowhere_is_counted() -> None:
    assert gathered("How long do I get a drill?").unnamed == 0.0
    assert gathered("How long do I get a drill from the museum?").unnamed > 0.0


def test_h1_a_unit_without_what_is_asked_for_is_of_another_kind() -> None:
    assert gathered("For how many days is a drill lent?").other_kind == 0.0
    assert gathered("What time are batteries in the workshop?").other_kind == 1.0


def test_h1_a_long_story_about_the_right_place_is_answered_and_another_thing_there_is_not() -> None:
    def is_answered(question: str) -> bool:
        compared = compare(Asked(text=question), UNITS)
        return answers(compared, compared.ranked[0], units_of(SPARE))

    story = "I lent a drill with charger and batteries on Monday, is the workshop counter fine to return it"
    assert is_answered(story)
    assert not is_answered("Does the workshop have a ladder, a saw or a lathe to rent for the weekend?")


def test_h1_a_question_of_kinds_alone_has_evidence_too() -> None:
    assert gathered("How long, how many days?").covered == 1.0
