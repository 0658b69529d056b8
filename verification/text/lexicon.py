"""The words and phrases that the rules know: one TOML file a language beside this module, read when first asked for.

A list of words has blanks or strokes between them. A pattern is a regular expression, over as many lines as it needs;
in it ``{key}`` stands for another one, and ``’`` for either apostrophe.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

LANGUAGES: Final = ("en", "de", "fr", "es", "id", "ja", "zh")
UNPARTED: Final = frozenset({"ja", "zh"})
"""Languages that put no space between words."""
_KEY: Final = re.compile(r"\{([a-z_]+)\}")  # a quantifier has digits in its braces


@cache
def entries(language: str) -> Mapping[str, Any]:
    """All that the file of a language holds."""
    return beside(f"{Path(__file__).parent}/languages/{language}.toml")


@cache
def beside(module: str) -> Mapping[str, Any]:
    """The table in the TOML file that stands beside a module and has its name."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))


@cache
def values(key: str) -> Mapping[str, Any]:
    """What each language that has the key holds under it."""
    return {language: entries(language)[key] for language in LANGUAGES if key in entries(language)}


@cache
def words(key: str) -> Mapping[str, frozenset[str]]:
    """The words of a list by language."""
    return {language: frozenset(re.split(r"[\s|]+", listed.strip())) for language, listed in values(key).items()}


@cache
def all_words(key: str) -> frozenset[str]:
    """The words of a list in all languages."""
    return frozenset[str]().union(*words(key).values())


def denies(word: str, language: str | None) -> bool:
    """Whether a word (case-folded) says that something is not so; of an unknown language as in English."""
    return word in words("negations").get(language or "en", ()) or word.endswith(("'t", "’t"))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern with each ``{key}`` replaced by what the languages hold under it; letter case does not count."""
    # Compiled when it is first used: together these patterns would double the time that an import takes.
    return re.compile(_filled(pattern), re.IGNORECASE)


def _filled(pattern: str) -> str:
    return _KEY.sub(lambda match: _alternatives(match[1]), pattern.replace("\n", "").replace("’", "['’]"))


@cache
def _alternatives(key: str) -> str:
    listed = values(key).values()
    return "|".join(_filled(one if isinstance(one, str) else "|".join(one)) for one in listed)


def folded_as_matched(text: str) -> str:
    """The text in small letters; what a pattern that takes either case takes for an i is made one."""
    folded = text.casefold()
    return folded if text.isascii() else folded.replace("\u0131", "i").replace("i\u0307", "i")
