"""Prefers passages of recently changed documents, for questions that ask for the newest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agent.knowledge.types import Passage

_ASKED: Final = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|recent(?:ly)?|current(?:ly)?|up to date|as of (?:now|today)|nowadays"
    r"|these days|(?:right|valid|in force) now"
    r"|aktuell\w*|neueste\w*|derzeit|zurzeit|jetzt|momentan"
    r"|actuel\w*|récent\w*|dernière version"
    r"|actual(?:mente|es)?|reciente\w*|vigente|terbaru|terkini|saat ini|sekarang)\b"
    r"|最新|現在|いま|今の|最近|目前|当前|现在|如今",
    re.IGNORECASE,
)
_SMOOTH: Final = 10
"""The constant of reciprocal rank fusion; small, since there are few ranks."""


def asks_for_newest(text: str) -> bool:
    """Whether a question or a query is for what is valid now, or came last."""
    return _ASKED.search(text) is not None


def freshest_first(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Passages by relevance and age together; one without a date counts as older than all."""
    dates = sorted({passage.updated_at for passage in passages if passage.updated_at}, reverse=True)
    age = {date: place for place, date in enumerate(dates)}

    def place(each: tuple[int, Passage]) -> tuple[float, int]:
        found, old = each[0], age.get(each[1].updated_at, len(dates))
        return -1 / (_SMOOTH + found) - 1 / (_SMOOTH + old), old

    return tuple(passage for _, passage in sorted(enumerate(passages), key=place))
