"""The quoting engine's own words: in seven languages, and never a claim."""

from __future__ import annotations

import pytest

from agent.quoting.wording import Line, line, small_talk
from verification.answer import Draft, Source
from verification.rules import check

LINES: tuple[Line, ...] = ("quoted", "differ", "older", "conflict", "also", "rest", "hello", "thanks")
SOURCES = (Source(id=1, title="Expense guidelines 2024 › Meals", text="The limit is 45 euros."),)


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "id", "ja", "zh"])
@pytest.mark.parametrize("name", LINES)
def test_f9_no_line_of_its_own_claims_anything(name: Line, language: str) -> None:
    said = line(name, language, title=SOURCES[0].title)
    verdict = check(Draft(text=said, question="What is the limit for meals?", sources=SOURCES))
    assert verdict.passed, verdict.errors
    assert verdict.claims == ()


def test_f9_other_languages_are_answered_in_english() -> None:
    assert line("thanks", None) == line("thanks", "nl") == line("thanks", "en")


def test_i2_a_title_cannot_change_the_form_of_a_line() -> None:
    assert line("quoted", "en", title="*A* <!channel> [1](x)\n# B") == "Quoted from A !channel 1 (x) B:"


@pytest.mark.parametrize(
    "message", ["", "hi, how long is the freeze?", "thanks for nothing said about the freeze", "no"]
)
def test_b_whoever_says_more_than_hello_gets_no_small_talk(message: str) -> None:
    assert small_talk(message) == ""
