"""What App Home tells one person: gathered from the index, the counters and the turn records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import Document, KnowledgeAwayError
from agent.texts.catalogue import say
from bot.delivery.home import HomeFigures
from bot.documents.figures import available_figures
from bot.turn.observer import Observers

SHOWN_DAYS: Final = 14
_MAX_LISTED: Final = 10
_MAX_FOR_ADMINS: Final = 5
_MAX_QUESTIONS: Final = 3
_MAX_TRIED: Final = 12  # documents that are looked through for a heading to ask about
_MAX_HEADING_CHARS: Final = 60
_PATH: Final = " › "


async def home_figures(  # noqa: PLR0913 - who opened it, each named at the call
    index: KnowledgeIndex,
    observers: Observers,
    user: str,
    *,
    language: str | None = None,
    admin: bool = False,
    examples: Sequence[str] = (),
) -> HomeFigures:
    """All that this person may see. ``examples`` are questions known to be answered; else some come from headings."""
    known = await available_figures(index)
    documents, questions = await asyncio.to_thread(_visible_documents, index, user, language, examples)
    records = observers.records
    return HomeFigures(
        documents=documents[:_MAX_LISTED],
        total=len(documents),
        size=known.size if known else 0,
        synced=known.synced if known else None,
        questions=questions,
        stats=await observers.stats.read(SHOWN_DAYS),
        days=SHOWN_DAYS,
        disliked=await records.list_disliked(_MAX_FOR_ADMINS) if admin else None,
        failures=await records.list_latest("failed", _MAX_FOR_ADMINS) if admin else None,
    )


def _visible_documents(
    index: KnowledgeIndex, user: str, language: str | None, examples: Sequence[str]
) -> tuple[list[Document], tuple[str, ...]]:
    """The documents this person may see, newest first, and questions that they answer. Not for the event loop."""
    try:
        found = index.documents()
        seen = [one for one in found if one.audience == "public" or user in one.audience.split(",")]
        seen.sort(key=lambda one: one.updated_at, reverse=True)
        asked = examples or _heading_questions(index, seen, language)
        return seen, tuple(islice(asked, _MAX_QUESTIONS))
    except KnowledgeAwayError:
        return [], ()


def _heading_questions(index: KnowledgeIndex, documents: Sequence[Document], language: str | None) -> Iterator[str]:
    """A question about a heading of each document, where a search for it finds that very document first."""
    for document in documents[:_MAX_TRIED]:
        for passage in index.search(document.title, limit=5):
            heading = passage.heading.rpartition(_PATH)[2]
            if passage.document != document.id or heading in {"", document.title} or len(heading) > _MAX_HEADING_CHARS:
                continue
            question = say("home_question", language, title=document.title, heading=heading)
            if [one.document for one in index.search(question, limit=1)] == [document.id]:
                yield question
                break
