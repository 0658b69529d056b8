"""What to search for: the message, with the words of the question before it where it has few of its own."""

from __future__ import annotations

from typing import Final

from agent.knowledge.search.tokens import subject_tokens
from agent.quoting.small_talk import small_talk
from agent.thread.conversation import Message

FEW: Final = 2
"""A message with more words of a subject stands on its own."""


def search_query(question: str, history: tuple[Message, ...]) -> str:
    """The words to search for; empty for small talk, which nothing is searched for."""
    if small_talk(question) and not _calls_back(question):
        return ""
    return " ".join(filter(None, (question.strip(), " ".join(earlier_subjects(question, history)))))


def _calls_back(question: str) -> bool:
    """Whether it is a lone question mark, which asks for the question before."""
    return question.strip() in {"?", "？"}


def earlier_subjects(question: str, history: tuple[Message, ...]) -> list[str]:
    """The subject words of the question before, where this one has few; of those before it while that has few too."""
    own = {token.casefold() for token in subject_tokens(question)}
    if len(own) > FEW:
        return []
    asked = [m.text for m in history if m.role == "user" and m.addressed and not small_talk(m.text)]
    if asked and asked[-1].strip() == question.strip():
        asked.pop()
    found: dict[str, str] = {}
    for text in reversed(asked):
        tokens = subject_tokens(text)
        found |= {token.casefold(): token for token in tokens if token.casefold() not in own | found.keys()}
        if len(tokens) > FEW:
            break
    return list(found.values())
