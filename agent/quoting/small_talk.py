"""Messages that are no questions, and the few lines that the engine says itself.

Both are data, a table a language, in ``phrases.toml``. The lines claim nothing: they end in a colon, greet or ask.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

from verification.text.lexicon import words as listed_words

Line = Literal["quoted", "also", "hello", "welcome", "unclear"]

_EMOJI: Final = re.compile(r":[\w+'-]{1,60}:(?::skin-tone-\d:)?")
"""As Slack writes every emoji."""
_PICTURE: Final = re.compile(r"[\u2190-\u2bff\U0001f000-\U0001faff]")
_WORD: Final = re.compile(r"[^\W_]+")
_MARKUP: Final = re.compile(r"[\[\]<>*_`|#]+")
_REPLIES: Final[tuple[tuple[str, Line], ...]] = (("thanks", "welcome"), ("greeting", "hello"), ("reaction", "unclear"))
_LONGEST: Final = 12
"""Words of a message that may be small talk."""


def line(name: Line, language: str | None, *, title: str = "") -> str:
    """One line in a language, English where there is none in it."""
    table = _tables().get(language or "en", _tables()["en"])
    return str(table[name]).format(title=" ".join(_MARKUP.sub(" ", title).split()))


def small_talk(message: str) -> str:
    """The reply to a greeting, thanks, a reaction or a question about Orion; empty for a message that says more.

    A lone "?" says more: it means the question above it.
    """
    words = _words(message)
    if not words:
        return line("welcome", None) if _EMOJI.search(message) or _PICTURE.search(message) else ""
    if len(words) > _LONGEST:
        return ""
    return next(filter(None, (_reply(words, language) for language in _tables())), "")


def asks_for_documents(message: str) -> bool:
    """Whether a message asks for nothing but the list of documents."""
    return any(_names_documents(_words(message), language) for language in _tables())


def _reply(words: Sequence[str], language: str) -> str:
    if " ".join(words) in _tables()[language]["about"]:
        return line("hello", language)
    said = set(words)
    kinds = [(said & _listed(language, kind), name) for kind, name in _REPLIES]
    if said <= _listed(language, "filler").union(*(found for found, _ in kinds)):
        return next((line(name, language) for found, name in kinds if found), "")
    return ""


def _names_documents(words: Sequence[str], language: str) -> bool:
    nouns = _listed(language, "documents")
    subjects = set(words) - listed_words("function_words").get(language, frozenset())
    return not subjects.isdisjoint(nouns) and subjects <= nouns | _listed(language, "listing")


def _words(message: str) -> list[str]:
    return _WORD.findall(_EMOJI.sub(" ", message).casefold())


@cache
def _listed(language: str, kind: str) -> frozenset[str]:
    return frozenset(str(_tables()[language].get(kind, "")).split())


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(resources.files("agent.quoting").joinpath("phrases.toml").read_text(encoding="utf-8"))
