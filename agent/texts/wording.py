"""What Orion says of itself: the greeting, the suggested prompts, the lines that are no answer.

Promises: valid Slack mrkdwn, free of mentions and links, short enough for any block. Must never carry a fact about
anything but Orion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agent.texts.catalogue import Phrase, say
from verification.types import Answer

_HELP: Final[tuple[Phrase, ...]] = ("help", "help_ask", "help_go_on", "help_words")


def help_text(language: str | None) -> str:
    """What Orion is and how to talk to it."""
    greeting, *ways = (say(phrase, language) for phrase in _HELP)
    return "\n".join([greeting, *(f"• {way}" for way in ways)])


HELP: Final = help_text(None)
LOADING: Final = (
    "Reading your documents…",
    "Finding the passages that matter…",
    "Writing an answer…",
    "Checking every claim against its source…",
)
SUGGESTED_PROMPTS: Final[tuple[Mapping[str, str], ...]] = (
    {"title": "What can you do?", "message": "What can you help me with?"},
    {"title": "What do you know?", "message": "Which documents do you know?"},
    {"title": "What is new?", "message": "Which documents changed most recently?"},
    {"title": "What is old?", "message": "Which documents are the oldest?"},
)


def own_words(text: str) -> Answer:
    """One of Orion's own messages, ready to be delivered."""
    return Answer(text=text, chunks=(text,))
