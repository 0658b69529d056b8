"""The word lists of the seven languages: complete, known to the code, and readable as patterns."""

from __future__ import annotations

import re

from tests.support.paths import ROOT
from verification.text.language import LANGUAGES, compile_pattern, language_data, words_by_language

CODE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "verification").rglob("*.py"))


def test_every_entry_of_a_language_is_read_and_english_has_it_too() -> None:
    english = set(language_data("en"))
    for language in LANGUAGES:
        keys = set(language_data(language))
        inside = "".join(value for value in language_data(language).values() if isinstance(value, str))
        assert {key for key in keys if f'"{key}"' not in CODE and f"{{{key}}}" not in CODE + inside} == set()
        assert keys <= english | {key for key in keys if key.endswith("_unparted")} | {"letters", "function_letters"}


def test_pattern_takes_both_apostrophes_and_other_entries() -> None:
    for written in ("I can’t find it", "I can't find it", "ich weiß das nicht"):
        assert compile_pattern("(?:{admissions})").match(written)
    for key in (key for key, value in language_data("en").items() if isinstance(value, str)):
        assert isinstance(compile_pattern(f"{{{key}}}"), re.Pattern)
    assert "maximal" not in words_by_language("function_words")["de"]
