"""Orion's own words to people: all of them in all seven languages, with the same gaps, and valid mrkdwn (F9, I6)."""

from __future__ import annotations

from string import Formatter
from typing import get_args

import pytest

from agent.texts.catalogue import LANGUAGES, Phrase, say
from verification.markup.mrkdwn import repair

PHRASES: tuple[Phrase, ...] = get_args(Phrase)
BUTTONS: tuple[Phrase, ...] = ("why_trust", "helpful", "not_helpful")


def gaps(phrase: Phrase, language: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(say(phrase, language)) if name}


@pytest.mark.parametrize("phrase", PHRASES)
def test_f9_every_phrase_has_the_same_gaps_in_every_language(phrase: Phrase) -> None:
    assert [gaps(phrase, language) for language in LANGUAGES] == [gaps(phrase, "en")] * len(LANGUAGES)


@pytest.mark.parametrize("phrase", PHRASES)
def test_f9_a_phrase_is_translated_and_not_repeated(phrase: Phrase) -> None:
    said = [say(phrase, language) for language in LANGUAGES]
    assert all(text == text.strip() != "" for text in said)
    assert len(set(said)) >= len(LANGUAGES) - 1


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("phrase", PHRASES)
def test_f1_a_phrase_needs_no_repair(phrase: Phrase, language: str) -> None:
    text = say(phrase, language, **dict.fromkeys(gaps(phrase, language), "7"))
    assert repair(text) == (text, ())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("phrase", BUTTONS)
def test_a8_a_button_holds_its_words(phrase: Phrase, language: str) -> None:
    assert len(say(phrase, language)) <= 75


def test_f9_other_languages_hear_english() -> None:
    assert say("muted", "nl") == say("muted", None) == say("muted", "en")
