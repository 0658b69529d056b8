"""What Orion says of itself: the greeting, the suggested prompts, the lines that are no answer.

Promises: valid Slack mrkdwn, free of mentions and links, short enough for any block. Must never carry a fact about
anything but Orion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from verification.answer import Answer

HELP: Final = (
    "Hello, I am Orion. I answer from your team's documents, and I check every answer against them before I send it.\n"
    "• Mention me with a question in a channel, or write to me directly.\n"
    "• Go on in the thread without a mention: I follow the conversation.\n"
    "• Write `stop` to stop me, and `mute` to keep me quiet in a thread until you mention me again."
)
MUTED: Final = "I keep quiet in this thread until somebody mentions me again."
STOPPED: Final = "Stopped."
THANKS: Final = "Thank you, that helps me to get better."
TRUST_UNKNOWN: Final = "I no longer have the record of this answer."
LOADING: Final = (
    "Reading your documents…",
    "Finding the passages that matter…",
    "Writing an answer…",
    "Checking every claim against its source…",
)
SUGGESTED_PROMPTS: Final[tuple[Mapping[str, str], ...]] = (
    {"title": "What can you do?", "message": "What can you help me with?"},
    {"title": "What do you know?", "message": "Which documents do you know?"},
    {"title": "Find a process", "message": "How do we make a release?"},
    {"title": "Compare two documents", "message": "Do any of our documents contradict each other?"},
)


def own_words(text: str) -> Answer:
    """One of Orion's own messages, ready to be delivered."""
    return Answer(text=text, chunks=(text,))
