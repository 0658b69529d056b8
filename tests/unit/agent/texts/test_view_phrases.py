"""The words of modal and App Home: in all seven languages, with the same gaps, as valid mrkdwn (A9, A10, F9)."""

from __future__ import annotations

from string import Formatter
from typing import get_args

import pytest

from agent.texts.catalogue import LANGUAGES
from agent.texts.view_phrases import ViewPhrase, shown
from verification.markup.mrkdwn import repair
from verification.types import RuleName

PHRASES: tuple[ViewPhrase, ...] = get_args(ViewPhrase)


def gaps(name: ViewPhrase, language: str) -> set[str]:
    return {gap for _, gap, _, _ in Formatter().parse(shown(name, language)) if gap}


@pytest.mark.parametrize("name", PHRASES)
def test_f9_a_phrase_is_translated_and_has_the_same_gaps(name: ViewPhrase) -> None:
    said = [shown(name, language) for language in LANGUAGES]
    assert len(set(said)) == len(LANGUAGES)
    assert all(text == text.strip() != "" for text in said)
    assert [gaps(name, language) for language in LANGUAGES] == [gaps(name, "en")] * len(LANGUAGES)
    assert shown(name, None) == shown(name, "nl") == said[0]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PHRASES)
def test_f1_a_phrase_needs_no_repair_and_calls_nobody(name: ViewPhrase, language: str) -> None:
    text = shown(name, language, **dict.fromkeys(gaps(name, language), "7"))
    assert repair(text) == (text, ())
    assert "<" not in text
    assert "@" not in text


def test_a9_every_rule_has_its_words() -> None:
    assert set(get_args(RuleName)) <= set(PHRASES)
