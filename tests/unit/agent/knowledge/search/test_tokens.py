"""Words, tokens and stems."""

from __future__ import annotations

import pytest

from agent.knowledge.search.tokens import stem, stems, subject_tokens, tokens


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Use `--force` (v2.3), now!", ["Use", "force", "v2.3", "now"]),
        ("FH-2002: status/409", ["FH-2002", "status/409"]),
        ("?! ... --", []),
    ],
)
def test_d2_identifiers_stay_whole(text: str, found: list[str]) -> None:
    assert tokens(text) == found


def test_d2_words_without_a_subject_are_dropped_unless_nothing_is_left() -> None:
    assert subject_tokens("How long is the freeze, and what is the freeze?") == ["freeze"]
    assert subject_tokens("What is it?") == []


def test_f9_stems_follow_the_language() -> None:
    assert stems("Die Passwörter der Mitarbeiter", "de") == ["passwort", "mitarbeit"]
    assert stems("We kept the 3,000 releases", None) == ["kept", "3000", "releas"]
    assert stem("007") == "7"
    assert stems("年次休暇", None) == ["休暇", "年次", "次休"]
