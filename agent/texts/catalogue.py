"""Texts that people see, in the language of the question. Each language is one TOML file next to this module.

No text may contain an exception's words, a prompt or a key. Each says what happened, what was kept and what to do.
"""

import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Final

from verification.markup.chunks import split_chunks
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
    """Return all texts in one of the ``LANGUAGES`` by key."""
    return tomllib.loads(Path(__file__).with_name(f"{language}.toml").read_text(encoding="utf-8"))


def say(key: str, language: str | None, **gaps: str) -> str:
    """Return the text in that language, or in English if the language has no file, with its placeholders filled."""
    text = texts(language if language in LANGUAGES else "en")[key]
    return text.format(**gaps) if gaps else text


def join_names(names: Iterable[str], language: str | None) -> str:
    """Return the names in one text, with the comma of the language."""
    return ("、" if language in {"ja", "zh"} else ", ").join(names)


def translate_status(text: str, language: str | None) -> str:
    """Translate an English status. Other texts, such as a step's title, stay as they are."""
    keys = (key for key, english in texts("en").items() if english == text and key.startswith("status_"))
    return say(key, language) if (key := next(keys, "")) else text


_AGES: Final[tuple[tuple[int, str, str], ...]] = (
    (365, "year_ago", "years_ago"),
    (30, "month_ago", "months_ago"),
    (7, "week_ago", "weeks_ago"),
    (1, "day_ago", "days_ago"),
)
LOADING: Final = tuple(say(f"status_loading_{doing}", None) for doing in ("read", "find", "write", "check"))


def help_text(language: str | None) -> str:
    """Return the introduction: what Orion is and how to talk to it."""
    ways = (say(key, language) for key in ("help_ask", "help_go_on", "help_words"))
    return "\n".join([say("help", language), *(f"• {way}" for way in ways)])


def own_message(text: str) -> Answer:
    """Return one of Orion's own messages, ready for delivery. It claims nothing."""
    return Answer(text=text, chunks=split_chunks(text))


def age(updated_at: str, today: date, language: str | None = None) -> str:
    """Return an age in words (``3 weeks ago``); empty if the date is missing or unreadable."""
    try:
        then = datetime.fromisoformat(updated_at).date()
    except ValueError:
        return ""
    days = (today - then).days
    if days < 0:
        return then.isoformat()
    for length, one, several in _AGES:
        if count := days // length:
            return say(several, language, n=str(count)) if count > 1 else say(one, language)
    return say("today", language)


def truncate(text: str, limit: int) -> str:
    """Return the text in at most ``limit`` characters, with an ellipsis if it was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
