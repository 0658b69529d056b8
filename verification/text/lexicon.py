"""The words and phrases of the rules: one TOML file per language next to this module, read on first use.

A list of words is separated by blanks or bars. A pattern is a regular expression and may span lines: ``{key}`` inserts
another one, and ``’`` matches either apostrophe.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

LANGUAGES: Final = ("en", "de", "fr", "es", "id", "ja", "zh")
WITHOUT_SPACES: Final = frozenset({"ja", "zh"})
"""Languages that put no space between words."""
_KEY: Final = re.compile(r"\{([a-z_]+)\}")  # a quantifier has digits in its braces


@cache
def language_data(language: str) -> Mapping[str, Any]:
    """Everything in the file of a language."""
    return load_table(f"{Path(__file__).parent}/languages/{language}.toml")


@cache
def load_table(module: str) -> Mapping[str, Any]:
    """Load the TOML file next to a module that has the module's name."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))


@cache
def values_by_language(key: str) -> Mapping[str, Any]:
    """The value of a key for each language that has the key."""
    return {language: language_data(language)[key] for language in LANGUAGES if key in language_data(language)}


@cache
def words_by_language(key: str) -> Mapping[str, frozenset[str]]:
    """The words of a list by language."""
    return {
        language: frozenset(re.split(r"[\s|]+", listed.strip())) for language, listed in values_by_language(key).items()
    }


@cache
def all_words(key: str) -> frozenset[str]:
    """The words of a list in all languages."""
    return frozenset[str]().union(*words_by_language(key).values())


def is_negation(word: str, language: str | None) -> bool:
    """Return True if a case-folded word negates. An unknown language counts as English."""
    return word in words_by_language("negations").get(language or "en", ()) or word.endswith(("'t", "’t"))


@cache
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile the pattern with each ``{key}`` replaced by the languages' values. Case does not count."""
    # Compiled on first use: together these patterns would double the import time.
    return re.compile(_fill_keys(pattern), re.IGNORECASE)


def _fill_keys(pattern: str) -> str:
    return _KEY.sub(lambda match: _alternatives(match[1]), pattern.replace("\n", "").replace("’", "['’]"))


@cache
def _alternatives(key: str) -> str:
    listed = values_by_language(key).values()
    return "|".join(_fill_keys(one if isinstance(one, str) else "|".join(one)) for one in listed)
