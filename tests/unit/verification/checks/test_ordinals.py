"""A rank in the place of another one."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft, Source, Violation


def found(source: str, text: str, question: str = "") -> list[Violation]:
    pages = (Source(id=1, title="", text=source),)
    verdict = check(Draft(text=f"{text} [1].", sources=pages, question=question))
    return [each for each in verdict.errors if each.rule == "claim_supported"]


@pytest.mark.parametrize(
    ("source", "text", "words"),
    [
        (
            "Nirvana broke through with their second album.",
            "Nirvana broke through with their first album",
            "first album",
        ),
        ("The band made its second studio album.", "The band made its first album", "first album"),
        ("Brudenell was the 7th Earl of Cardigan.", "Brudenell was the third Earl of Cardigan", "third Earl"),
        (
            "In the 17th century the 7th Earl lived here.",
            "In the 17th century the third Earl lived here",
            "third Earl",
        ),
        ("The second new loud album sold well.", "The first album sold well", "first album"),
        (
            "The pass is sold at the desk. The pass is sold at the gate. The second pass is free.",
            "The first pass is sold at once",
            "first pass",
        ),
        ("Das Team sitzt im zweiten Stock.", "Das Team sitzt im dritten Stock", "dritten Stock"),
    ],
)
def test_f1_another_rank_of_the_same_thing_is_an_error(source: str, text: str, words: str) -> None:
    (violation,) = found(source, text)
    assert violation.words.startswith(words)
    assert "source [1] says" in violation.detail


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Nirvana broke through with their second album.", "Nirvana broke through with their second album"),
        ("The 7th Earl gave it its name.", "The seventh Earl gave it its name"),
        ("The second album sold well, the first album sold badly.", "The first album sold badly"),
        ("Chapter 1 and the second chapter are new.", "The first chapter is new"),
        ("The second door is locked.", "First, open the door"),
        ("The second step is to wait.", "The first engineer has to wait"),
        ("It takes a second.", "It takes one second"),
        ("The second door is locked.", "One door is locked"),
        ("The site has a mobile-first direction.", "The direction of the site is a mobile-first direction"),
        ("The second doors are locked.", "A dozen doors are locked"),
        ("The second new loud live album sold well.", "The first album sold well"),
        ("The second door of the hall is locked.", "The first hall is locked"),
        ("Their new second tour was loud.", "Their new first album was loud"),
        ("Das zweite Album der Band erschien im Herbst.", "The first album of the band came out in the autumn"),
        (
            "A pass is sold at the desk. A pass is sold at the gate. A pass is sold on board. A second pass is new.",
            "The first pass is sold at once",
        ),
    ],
)
def test_f1_a_rank_that_nothing_speaks_against_is_none(source: str, text: str) -> None:
    assert found(source, text) == []


def test_f1_a_rank_of_the_question_is_known() -> None:
    text = "Their first album is not named, the second album is"
    assert found("Nirvana broke through with their second album.", text, "What was the first album?") == []


def test_f1_the_parts_of_a_sentence_do_not_make_a_rank_right() -> None:
    source = "The cardigan was named after James Brudenell, 7th Earl of Cardigan, a British general."
    assert [each.words for each in found(source, "The cardigan was named after the 3rd Earl of Cardigan")] == ["3"]
