"""What is only said to be polite is no part of a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.quoting.courtesy import without_courtesy


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Hi team, quick question: where is the lamp?", "where is the lamp?"),
        ("Does anyone know how long a loan lasts?", "how long a loan lasts?"),
        ("Can you tell me who repairs the lift, please?", "who repairs the lift?"),
        ("I was wondering if dogs are allowed", "dogs are allowed"),
        ("Sorry to bother, but I forgot how I book a room. Thanks!", "how I book a room"),
        ("ok, and who decides?", "and who decides?"),
        ("What does it cost again?", "What does it cost?"),
        ("Two things: how long may I mute it, and who decides?", "how long may I mute it, and who decides?"),
        ("just curious - when do you close? thanks in advance!", "when do you close?"),
    ],
)
def test_b_what_is_only_polite_is_left_out(said: str, left: str) -> None:
    assert without_courtesy(said) == left


@pytest.mark.parametrize(
    "said",
    [
        "What is the thank-you letter for?",
        "Well water: who tests it?",
        "Tell me about travel",
        "Please",
        "Hi!",
        "thanks",
        "Short questions to ask?",
        "Two things are broken: who repairs them?",
        "Well-being budget: how much is it?",
        "Quick one-on-one with my manager: how often?",
        "Hi-res logo: where is it?",
        "One question-answering service is down: who repairs it?",
        "Right of way on the yard?",
    ],
)
def test_b_what_names_the_subject_or_is_all_there_is_stays(said: str) -> None:
    assert without_courtesy(said) == said


@given(st.text(max_size=200))
def test_b_nothing_is_made_up(text: str) -> None:
    left = without_courtesy(text).removesuffix("?")
    assert left in text
