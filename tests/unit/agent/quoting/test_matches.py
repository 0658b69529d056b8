"""Where words stand among the units, and what that counts for."""

from __future__ import annotations

import pytest

from agent.quoting.concepts import concepts
from agent.quoting.matches import IN_CONTEXT, IN_TEXT, IN_TITLE, OTHER, SIMILAR, UNASKED, Places
from agent.quoting.units import Unit, units_of
from verification.types import Source

TRAVEL = Source(
    id=1,
    title="Travel › Hotels",
    text="## Hotels\n\nA room may cost 140 euros.\n\nWith breakfast.\n\nOwner: office manager",
)
OTHERS = Source(id=2, title="Onboarding", text="The breakfastroom is blue. Nobody may park here.")
UNITS: tuple[Unit, ...] = (*units_of(TRAVEL), *units_of(OTHERS))
PLACES = Places(UNITS, "en")


def covered(question: str, text: str) -> float:
    (unit,) = (unit for unit in UNITS if unit.text.startswith(text))
    return PLACES.covered(unit, {concept: PLACES.rarity(concept) for concept in concepts(question, "en")})


@pytest.mark.parametrize(
    ("question", "share"),
    [("room", IN_TEXT), ("hotels", IN_CONTEXT), ("travel", IN_TITLE), ("price", OTHER), ("moon", 0.0)],
)
def test_b_a_word_counts_by_where_it_stands(question: str, share: float) -> None:
    assert covered(question, "A room") == pytest.approx(share)


def test_b_a_longer_form_counts_less() -> None:
    assert covered("breakfast", "The breakfastroom") == pytest.approx(IN_TEXT * SIMILAR)


def test_b_a_line_of_facts_answers_who_asks_for_its_name() -> None:
    assert covered("Who owns travel?", "Owner") > covered("Who is the travel manager?", "Owner")
    assert covered("manager", "Owner") == pytest.approx(UNASKED)


def test_b_a_rare_thing_weighs_more_and_another_word_for_it_is_counted_as_it() -> None:
    (may, room, price, moon) = concepts("parking room price moon", "en")
    assert PLACES.rarity(moon) == PLACES.rarity(price) >= PLACES.rarity(room)
    assert PLACES.rarity(may) > 0


def test_b_a_document_about_the_subject_and_the_begin_of_a_section_are_preferred() -> None:
    weights = dict.fromkeys(concepts("travel", "en"), 1.0)
    first, second, *_ = (PLACES.raised(unit, weights, PLACES.pairs("travel")) for unit in units_of(TRAVEL))
    elsewhere = PLACES.raised(units_of(OTHERS)[1], weights, PLACES.pairs("travel"))
    assert first > second > elsewhere == 0.0


def test_b_a_word_that_is_implied_costs_little_where_it_is_not_said() -> None:
    source = Source(id=1, title="Yard", text="Bikes go into the cellar.")
    places = Places(units_of(source), "en")
    (unit,) = units_of(source)

    def share(question: str) -> float:
        return places.covered(unit, dict.fromkeys(concepts(question, "en"), 1.0))

    assert share("Where do I leave my bikes?") > share("When do I leave my bikes?")


def test_b_to_be_said_elsewhere_on_the_page_costs_an_implied_word_no_more_than_not_to_be_said() -> None:
    question = "How do I swap a shift with a colleague?"

    def share(text: str) -> float:
        units = units_of(Source(id=1, title="Shifts", text=text))
        weights = dict.fromkeys(concepts(question, "en"), 1.0)
        return Places(units, "en").covered(units[0], weights)

    alone = "## Swapping\n\nSwap a shift in the scheduler."
    assert share(f"{alone}\n\n## Lunch\n\nEat with a colleague.") == pytest.approx(
        share(f"{alone}\n\n## Lunch\n\nEat.")
    )
