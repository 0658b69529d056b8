"""What people see while Orion works, in their language (A5, F9)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bot
from agent.texts.catalogue import LANGUAGES
from agent.texts.status_words import status_in
from agent.texts.wording import LOADING
from bot.turn.queue_position import BEHIND, BUSY
from bot.turn.status import DOCUMENTS_AWAY, LATE, MODEL_AWAY

SHOWN = [
    *LOADING,
    MODEL_AWAY,
    DOCUMENTS_AWAY,
    LATE,
    BEHIND,
    BUSY,
    *re.findall(r'"(is [a-z ]+…)"', (Path(bot.__file__).parent / "turn/observer.py").read_text(encoding="utf-8")),
    *re.findall(r'"(is [a-z ]+…)"', (Path(bot.__file__).parent / "turn/status.py").read_text(encoding="utf-8")),
]


@pytest.mark.parametrize("text", sorted(set(SHOWN)))
def test_f9_every_status_is_said_in_all_seven_languages(text: str) -> None:
    said = [status_in(text, language) for language in LANGUAGES]
    assert len(set(said)) == len(LANGUAGES)
    assert said[0] == text
    assert all(status.endswith("…") for status in said)
    assert len({"{number}" in status for status in said}) == 1


def test_f9_what_has_no_translation_is_shown_as_it_is() -> None:
    assert status_in("is number 3 in the queue…", "de") == "is number 3 in the queue…"
    assert status_in(LOADING[0], "nl") == status_in(LOADING[0], None) == LOADING[0]
