"""Recognises special requests by words in seven languages. The words are data in ``requests.toml``."""

import re
import tomllib
from pathlib import Path
from typing import Final

from agent.thread.conversation import Question

_WORDS: Final = tomllib.loads(Path(__file__).with_name("requests.toml").read_text(encoding="utf-8"))
_SIGNS: Final = ("ja", "zh")  # written without spaces between words


def _alternatives(kind: str, *, signs: bool = False) -> str:
    return "|".join(words for language, words in _WORDS[kind].items() if (language in _SIGNS) is signs)


_FILE: Final = re.compile(rf"\b(?:{_alternatives('file')})\b|{_alternatives('file', signs=True)}", re.IGNORECASE)
_MATERIAL: Final = re.compile(
    rf"^\W*(?:please\s+|bitte\s+)?(?:{_alternatives('work')})\b[^\n:\"“„«「]{{0,80}}[:\n\"“„«「](?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_CJK: Final = re.compile(
    rf"(?:{_alternatives('work', signs=True)})[^:：\n「『“]{{0,40}}[:：\n「『“](?P<rest>.+)", re.DOTALL
)
_PLAY: Final = re.compile(
    rf"^\W*(?:please\s+|bitte\s+)?(?:{_alternatives('make')})\w*\s(?:[\w']+\s){{0,3}}?(?:{_alternatives('play')})\b",
    re.IGNORECASE,
)
_MIN_MATERIAL_WORDS: Final = 3  # words that must follow: `summarise: on-call` still asks for a document


def asks_for_file(question: Question) -> bool:
    """Return True if a question is about an attached file as a whole ("summarise this")."""
    return any(file.text for file in question.files) and _FILE.search(question.text) is not None


def is_from_own_words(question: str) -> bool:
    """Return True if the person gave the words to work on (translate this) or asked for play (write a limerick).

    Such an answer cannot be verified against sources and is labelled so. A question about documents must not count.
    """
    if _PLAY.search(question):
        return True
    if match := _MATERIAL.search(question):
        return len(match["rest"].split()) >= _MIN_MATERIAL_WORDS
    match = _CJK.search(question)
    return match is not None and len(match["rest"].strip()) >= 2 * _MIN_MATERIAL_WORDS
