"""What a question names: phrases, identifiers in each of their forms, words that weigh little."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.quoting.concepts import LITTLE, UNKNOWN, concepts, concepts_in
from verification.text.language import detect


def weights(text: str) -> dict[str, float]:
    return {concept.key: concept.weight for concept in concepts(text, "en")}


def test_b_light_verbs_name_nothing_and_words_for_the_kind_of_answer_weigh_little() -> None:
    assert weights("How do we make a release?") == {"releas": 1.0}
    assert weights("How do I get it to work?") == {}
    assert weights("What time is lunch?") == {"time": LITTLE, "lunch": 1.0}


def test_f9_the_small_words_of_another_language_name_nothing() -> None:
    assert set(weights("Wie lange ist die Probezeit für neue Kollegen?")) == {"probezeit", "neue", "kollegen"}
    assert set(weights("Wer zahlt?")) == {"zahlt"}


@pytest.mark.parametrize("asked", ["SEV1", "sev-1", "sev 1", "Sev1?"])
@pytest.mark.parametrize("said", ["SEV1", "Sev-1 means", "sev 1"])
def test_b_an_identifier_is_found_in_each_of_its_forms(asked: str, said: str) -> None:
    here = concepts_in(said, "en")
    assert all(concept.key in here or concept.written & here for concept in concepts(asked, "en"))


def test_b_an_identifier_that_is_another_is_not_found() -> None:
    (concept,) = concepts("FH-9999", "en")
    assert not ({concept.key} | concept.written) & concepts_in("FH-2002 and 9990", "en")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("3000", "3,000"),
        ("3.000", "3000"),
        ("five", "5"),
        ("fünf", "5"),
        ("8 am", "08:00"),
        ("3pm", "15:00"),
        ("12:30 am", "0:30"),
        ("7", "07"),
    ],
)
def test_b_a_number_is_found_in_other_forms(asked: str, said: str) -> None:
    keys = {concept.key for concept in concepts(asked, "en")}
    assert keys
    assert keys <= concepts_in(said, "en")


@pytest.mark.parametrize(
    ("question", "verbs"),
    [
        ("What is the notice period?", set()),
        ("Who closes a support ticket?", {"close"}),
        ("Who has to sign off the invoice?", {"sign off"}),
    ],
)
def test_b_a_phrase_that_opens_with_a_verb_is_one_only_with_a_particle(question: str, verbs: set[str]) -> None:
    assert {each.key for each in concepts(question, "en") if each.is_verb} == verbs


def test_b_what_a_question_asks_how_to_do_has_to_be_said() -> None:
    (cancel, flight) = concepts("How do I cancel a flight?", "en")
    assert (cancel.key, cancel.is_verb, flight.is_noun) == ("cancel", False, True)
    assert concepts("Who may cancel a flight?", "en")[0].is_verb


@pytest.mark.parametrize(
    ("question", "key"),
    [
        ("How do I turn a feature flag on?", "turn on"),
        ("Do I need my manager's OK first?", "approv"),
        ("Why haven't they replied?", "repli"),
        ("Who has to okay the invoice?", "approv"),
    ],
)
def test_b_what_only_looks_different_is_the_same(question: str, key: str) -> None:
    keys = {each.key for each in concepts(question, "en")}
    assert key in keys
    assert keys.isdisjoint({"turn", "ok", "haven"})


def test_f9_a_word_in_other_letters_tells_most_of_a_question_in_chinese() -> None:
    found = {
        each.key: each.weight for each in concepts("我们说的 “fencing” 是什么意思？", "en", frozenset({"en"}), "zh")
    }
    assert found["fenc"] == max(found.values()) > 1


def test_b_a_code_that_comes_often_is_still_the_code() -> None:
    assert {each.key for each in concepts("We keep getting 429s", "en")} >= {"429"}
    assert {each.key for each in concepts("after 10 mins", "en")} == {"10", "min"}
    assert "call off" not in {each.key for each in concepts("Whom do I call if the heating is off?", "en")}
    assert "minut" in concepts("mins", "en")[0].others


def test_b_a_phrase_keeps_its_words_only_where_they_keep_their_meaning() -> None:
    assert "call" not in concepts_in("the on-call rotation", "en")
    assert {"annual leav", "leav"} <= concepts_in("annual leave", "en")


@given(st.text(max_size=120))
def test_b_what_a_text_names_it_has(text: str) -> None:
    language = detect(text) or "en"
    here = concepts_in(text, language)
    assert all(concept.key in here or concept.written & here for concept in concepts(text, language))


def test_f9_what_is_asked_in_another_language_is_compared_as_its_meaning() -> None:
    (hotel, night) = (each for each in concepts("Wie viele Hotels pro Nacht?", "en") if each.weight == 1.0)
    assert "hotel" in {hotel.key, *hotel.written}
    assert "night" in night.written
    assert night.is_noun
    assert {each.weight for each in concepts("Wie oft wird der Quirlfloh gefüttert?", "en")} == {UNKNOWN}


def test_f9_a_run_without_spaces_names_what_it_means() -> None:
    (probation,) = (each for each in concepts("試用期間はどのくらいですか？", "en") if each.weight == 1.0)
    assert "probat" in probation.written
    assert "試用期間" in concepts_in("試用期間は6か月です。", "ja")
    assert "試用期間" in {form for each in concepts("How long is the probation period?", "ja") for form in each.written}


def test_f9_what_only_counts_or_bounds_in_another_language_is_not_asked_for() -> None:
    said = concepts("読み取りは何時まで可能ですか？", "en", frozenset({"en"}), "ja")
    assert "まで" not in {each.key for each in said}
    assert "位" not in {each.key for each in concepts("需要几位员工?", "en", frozenset({"en"}), "zh")}
    assert "partir" not in {each.key for each in concepts("À partir de quel montant ?", "en", frozenset({"en"}), "fr")}
    assert not any(each.is_noun for each in concepts("¿A qué hora, qué día?", "en", frozenset({"en"}), "es"))


def test_b_a_noun_has_the_verb_that_it_is_made_of() -> None:
    assert "move" in concepts("How long without movement?", "en")[-1].others
    assert concepts("Who runs the department?", "en")[-1].others.isdisjoint({"depart"})


def test_b_a_verb_and_its_particle_stay_together() -> None:
    keys = {each.key for each in concepts("Can I carry it over?", "en")}
    assert "carri over" in keys
    switch = concepts("How do I switch on a flag?", "en")[0]
    assert switch.parts <= concepts_in("Flags are switched with a tool.", "en")


def test_b_a_bound_or_a_kind_of_answer_weighs_little() -> None:
    assert weights("Up to which sum may I spend money?") == {
        "up to": LITTLE,
        "sum": LITTLE,
        "spend": LITTLE,
        "money": LITTLE,
    }


def test_b_a_phrase_that_only_asks_weighs_little() -> None:
    assert weights("How often is the vault opened?")["how often"] == LITTLE


def test_b_a_phrase_of_days_and_numbers_is_not_said_by_a_day_alone() -> None:
    (first,) = concepts("day one", "en")
    assert first.parts == frozenset()
    assert "first day" in first.others
