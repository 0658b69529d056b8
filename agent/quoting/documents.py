"""Questions about the documents themselves: which there are, which changed last, and what one of them is about.

Promises: pure; what is shown are lines of the list of documents as they stand, in the order that was asked for. Must
never take a question about what stands in the documents for one about the documents.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agent.quoting.concepts import LITTLE, concepts, concepts_in
from agent.quoting.units import Unit
from verification.types import Source

MOST_BY_AGE: Final = 5
"""Whoever asks for the newest or the oldest wants a few, not all."""

_DOCUMENTS: Final = r"\b(?:documents?|docs?|pages?|files?|dokumente?n?|seiten?)\b"
_NEWEST: Final = (
    r"\b(?:newest|latest|most recent(?:ly)?|(?:changed|updated|edited|new) (?:last|recently|lately)"
    r"|recently (?:changed|updated|edited)|neueste\w*|zuletzt|kürzlich)\b"
)
_OLDEST: Final = r"\b(?:oldest|out of date|outdated|stale|älteste\w*|veraltet\w*)\b"
_ASKED: Final = re.compile(
    r"\b(?:which|what|how many)\s+(?:\w+\s+)?(?:documents?|docs|pages|files|sources)\b.{0,20}"
    r"\b(?:are there|do you (?:have|know)|can you (?:see|read|search)|exist|are (?:available|indexed))"
    r"|\b(?:list|show)\s+(?:me\s+)?(?:all\s+)?(?:the\s+|your\s+)?(?:documents|docs|pages|files|sources)\b"
    r"|\b(?:welche|was für)\s+(?:dokumente|dateien|quellen|seiten)\b.{0,30}\b(?:gibt es|hast du|kennst du)"
    r"|\bquels\s+documents\b.{0,30}\b(?:y a|existent|connais|disponibles)"
    r"|\bqué\s+documentos\b.{0,30}\b(?:hay|tienes|existen|conoces)"
    rf"|\b(?:which|what|welche\w*|was|show|list)\b.{{0,20}}{_DOCUMENTS}.{{0,30}}(?:{_NEWEST}|{_OLDEST})"
    rf"|\b(?:which|what|welche\w*|was|show|list)\b.{{0,30}}(?:{_NEWEST}|{_OLDEST}).{{0,20}}{_DOCUMENTS}"
    r"|\bdokumen apa\b.{0,20}\bada|どんな(?:文書|ドキュメント)|文書の一覧|有哪些(?:文档|文件)",
    re.IGNORECASE,
)
_DATE: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}$")


def asks_for_documents(question: str) -> bool:
    """Whether a question is for the list of documents."""
    return _ASKED.search(question) is not None


def listed(question: str, units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The lines of the list: all of them, or the few newest or oldest."""
    newest = re.search(_NEWEST, question, re.IGNORECASE) is not None
    if not newest and not re.search(_OLDEST, question, re.IGNORECASE):
        return tuple(units)
    dated = [unit for unit in units if _DATE.search(unit.text)]
    return tuple(sorted(dated, key=lambda unit: unit.text[-len("2000-01-01") :], reverse=newest)[:MOST_BY_AGE])


def document_of(title: str) -> str:
    """The title of the document that a source is a part of."""
    return title.partition(" › ")[0]


def place_of(source: Source) -> str:
    """What tells the document that a source is a part of from others: its address, or its title where it has none."""
    return source.url.partition("#")[0] or document_of(source.title)


def is_about(question: str, title: str) -> bool:
    """Whether a question names just what a document's title names: "tell me about travel", "who is on call?"."""
    asked = {concept.key for concept in concepts(question, None) if concept.weight > LITTLE}
    return bool(asked) and asked == concepts_in(title, None)
