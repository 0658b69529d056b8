"""What Orion says to people, in the language of the question. Each language is one TOML file beside this module.

No text may hold an exception's words, a prompt or a key: it says what happened, what was kept and what to do.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from verification.types import Answer

LANGUAGES: Final = ("en", "de", "fr", "es", "id", "ja", "zh")
SUGGESTED_PROMPTS: Final[tuple[Mapping[str, str], ...]] = (
    {"title": "What can you do?", "message": "What can you help me with?"},
    {"title": "What do you know?", "message": "Which documents do you know?"},
    {"title": "What is new?", "message": "Which documents changed most recently?"},
    {"title": "What is old?", "message": "Which documents are the oldest?"},
)


@cache
def texts(language: str) -> Mapping[str, str]:
    """Every text of one of the ``LANGUAGES``, by its key."""
    return tomllib.loads(Path(__file__).with_name(f"{language}.toml").read_text(encoding="utf-8"))


def say(key: str, language: str | None, **gaps: str) -> str:
    """The text in that language (English for any that has no file) with its gaps filled."""
    text = texts(language if language in LANGUAGES else "en")[key]
    return text.format(**gaps) if gaps else text


def translate_status(text: str, language: str | None) -> str:
    """An English status in that language; any text that is none of Orion's (a step's title) stays as it is."""
    return say(key, language) if (key := _status_keys().get(text)) else text


LOADING: Final = tuple(say(f"status_loading_{doing}", None) for doing in ("read", "find", "write", "check"))


@cache
def _status_keys() -> Mapping[str, str]:
    return {text: key for key, text in texts("en").items() if key.startswith("status_")}


def help_text(language: str | None) -> str:
    """What Orion is and how to talk to it."""
    ways = (say(key, language) for key in ("help_ask", "help_go_on", "help_words"))
    return "\n".join([say("help", language), *(f"• {way}" for way in ways)])


def own_message(text: str) -> Answer:
    """One of Orion's own messages, ready to be delivered."""
    return Answer(text=text, chunks=(text,))
