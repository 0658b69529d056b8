"""What App Home tells one person: gathered from the index, the counters and the turn records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import Document, KnowledgeAwayError
from agent.texts.catalogue import say
from bot.delivery.home import HomeFigures, Known, Wrong
from bot.documents.figures import knowledge_figures
from bot.turn.observer import Observers
from observability.stats import VerifierFigures

SHOWN_DAYS: Final = 14
_MOST_LISTED: Final = 10
_FOR_ADMINS: Final = 5
_QUESTIONS: Final = 3
_TRIED: Final = 12
"""Documents that are looked through for a heading to ask about."""
_LONGEST_HEADING: Final = 60
_PATH: Final = " › "


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who opened App Home. ``examples`` are questions known to be answered; else some are taken from headings."""

    user: str
    language: str | None = None
    admin: bool = False
    examples: tuple[str, ...] = ()


async def home_figures(index: KnowledgeIndex, observers: Observers, reader: Reader) -> HomeFigures:
    """All that this person may see."""
    known = await knowledge_figures(index)
    documents, questions = await asyncio.to_thread(_seen_by, index, reader)
    counted, records = await observers.stats.read(SHOWN_DAYS), observers.records
    return HomeFigures(
        documents=tuple(map(_known, documents[:_MOST_LISTED])),
        total=len(documents),
        size=known.size if known else 0,
        synced=known.synced if known else None,
        questions=questions,
        pass_rate=counted.pass_rate,
        answered=counted.answered,
        partial=counted.partial,
        failed=counted.failed,
        refused=counted.refused,
        days=SHOWN_DAYS,
        wrong=_wrong(counted.verifier),
        disliked=await records.disliked(_FOR_ADMINS) if reader.admin else None,
        failures=await records.latest("failed", _FOR_ADMINS) if reader.admin else None,
    )


def _wrong(figures: VerifierFigures | None) -> Wrong | None:
    if figures is None:
        return None
    return Wrong(
        passed=figures.false_accepts,
        should_fail=figures.should_fail,
        stopped=figures.false_rejects,
        should_pass=figures.should_pass,
    )


def _known(document: Document) -> Known:
    return Known(title=document.title, url=document.url, updated_at=document.updated_at)


def _seen_by(index: KnowledgeIndex, reader: Reader) -> tuple[list[Document], tuple[str, ...]]:
    """The documents this person may see, newest first, and questions that they answer. Not for the event loop."""
    try:
        found = index.documents()
        seen = [one for one in found if one.audience == "public" or reader.user in one.audience.split(",")]
        seen.sort(key=lambda one: one.updated_at, reverse=True)
        asked = reader.examples or _asked(index, seen, reader.language)
        return seen, tuple(islice(asked, _QUESTIONS))
    except KnowledgeAwayError:
        return [], ()


def _asked(index: KnowledgeIndex, documents: Sequence[Document], language: str | None) -> Iterator[str]:
    """A question about a heading of each document, where a search for it finds that very document first."""
    for document in documents[:_TRIED]:
        for passage in index.search(document.title, limit=5):
            heading = passage.heading.rpartition(_PATH)[2]
            if passage.document != document.id or heading in {"", document.title} or len(heading) > _LONGEST_HEADING:
                continue
            question = say("home_question", language, title=document.title, heading=heading)
            if [one.document for one in index.search(question, limit=1)] == [document.id]:
                yield question
                break
