"""The word lists of the seven languages: complete, known to the code, and readable as patterns."""

from __future__ import annotations

import re

from tests.support.paths import ROOT
from verification.text.lexicon import LANGUAGES, compiled, entries, words

CODE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "verification").rglob("*.py"))


def test_every_entry_of_a_language_is_read_and_english_has_it_too() -> None:
    english = set(entries("en"))
    for language in LANGUAGES:
        keys = set(entries(language))
        inside = "".join(value for value in entries(language).values() if isinstance(value, str))
        assert {key for key in keys if f'"{key}"' not in CODE and f"{{{key}}}" not in CODE + inside} == set()
        assert keys <= english | {key for key in keys if key.endswith("_unparted")} | {"letters", "function_letters"}


def test_pattern_takes_both_apostrophes_and_other_entries() -> None:
    for written in ("I can’t find it", "I can't find it", "ich weiß das nicht"):
        assert compiled("(?:{admissions})").match(written)
    assert all(isinstance(compiled(f"{{{key}}}"), re.Pattern) for key in entries("en") if key != "bounds")
    assert "maximal" not in words("function_words")["de"]
