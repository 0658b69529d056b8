"""The quoting engine's own words: in seven languages, and never a claim."""

from __future__ import annotations

import pytest

from agent.quoting.wording import Line, line, small_talk
from verification.check import check
from verification.types import Draft, Source

LINES: tuple[Line, ...] = ("quoted", "differ", "older", "conflict", "also", "rest", "hello", "thanks", "about")
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


@pytest.mark.parametrize(
    "message",
    ["thanks, that helps!", "lol", "got it, I'll tell the team", "ok, makes sense", ":+1: :tada:", "that's it :+1:"],
)
def test_b_whoever_is_content_is_not_told_that_nothing_was_found(message: str) -> None:
    assert small_talk(message) == line("thanks", "en")


@pytest.mark.parametrize("message", ["wow, who approved this", "it works on which branch", "will do what on Friday"])
def test_b_a_question_that_begins_so_is_a_question(message: str) -> None:
    assert small_talk(message) == ""


@pytest.mark.parametrize(
    ("message", "language"),
    [
        ("What can you help me with?", "en"),
        ("hi, what can you do?", "en"),
        ("who are u", "en"),
        ("help!", "en"),
        ("Hilfe", "de"),
        ("Hallo Orion, wobei kannst du mir helfen?", "de"),
        ("Que peux-tu faire ?", "fr"),
        ("¿Qué puedes hacer?", "es"),
        ("siapa kamu?", "id"),
        ("何ができますか？", "ja"),
        ("你能做什么？", "zh"),
    ],
)
def test_f9_who_asks_what_orion_is_for_is_told_without_a_claim(message: str, language: str) -> None:
    said = small_talk(message)
    assert said == line("about", language)
    verdict = check(Draft(text=said, question=message, sources=()))
    assert (verdict.passed, verdict.claims) == (True, ())


@pytest.mark.parametrize("message", ["can you help me with expenses?", "help me release", "who are you paged by?"])
def test_b_a_question_that_only_begins_like_one_about_orion_is_none(message: str) -> None:
    assert small_talk(message) == ""
