"""What Orion tells people at its door: in all seven languages, with the same gaps, as valid mrkdwn (A12, A13, F9)."""

from __future__ import annotations

from string import Formatter
from typing import get_args

import pytest

from agent.texts.catalogue import LANGUAGES
from agent.texts.notices import Notice, notice
from verification.markup.mrkdwn import repair

NOTICES: tuple[Notice, ...] = get_args(Notice)
ON_BUTTONS: dict[Notice, int] = {"ask_human": 75, "human_asked": 75, "yes": 30, "no": 30, "hand_off_confirm": 300}


def gaps(name: Notice, language: str) -> set[str]:
    return {gap for _, gap, _, _ in Formatter().parse(notice(name, language)) if gap}


@pytest.mark.parametrize("name", NOTICES)
def test_f9_a_notice_is_translated_and_has_the_same_gaps(name: Notice) -> None:
    said = [notice(name, language) for language in LANGUAGES]
    assert len(set(said)) == len(LANGUAGES)
    assert all(text == text.strip() != "" for text in said)
    assert [gaps(name, language) for language in LANGUAGES] == [gaps(name, "en")] * len(LANGUAGES)
    assert notice(name, None) == notice(name, "nl") == said[0]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", NOTICES)
def test_f1_a_notice_needs_no_repair_and_calls_nobody(name: Notice, language: str) -> None:
    text = notice(name, language, **dict.fromkeys(gaps(name, language), "7 h 0 min"))
    assert repair(text) == (text, ())
    assert "<" not in text
    assert "@" not in text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ON_BUTTONS)
def test_a13_buttons_and_dialogs_hold_their_words(name: Notice, language: str) -> None:
    assert len(notice(name, language)) <= ON_BUTTONS[name]
