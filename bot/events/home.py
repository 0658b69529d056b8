"""One person's App Home, built from the index, the counters and the turn records."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import Document, KnowledgeAwayError
from agent.texts.catalogue import SUGGESTED_PROMPTS, say
from agent.thread.conversation import Viewers, may_see
from bot.answers import SavedAnswers
from bot.channel_settings import ChannelFile
from bot.delivery.dialogs import AnswerList
from bot.delivery.home import HomeFigures
from bot.documents.corpus import available_figures
from bot.stores.limits import Pausing
from bot.turn.engine import Engine
from bot.turn.observer import Observers

SHOWN_DAYS: Final = 14
_MAX_LISTED: Final = 10
_MAX_FOR_ADMINS: Final = 5
_MAX_QUESTIONS: Final = 3
_MAX_TRIED: Final = 12  # documents in which to look for a heading to ask about
_MAX_HEADING_CHARS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePage:
    """Gathers App Home for one person. ``prompts``, if not the usual ones, are questions with known answers."""

    engine: Engine
    observers: Observers
    pausing: Pausing
    admins: frozenset[str]
    prompts: Sequence[Mapping[str, str]]
    channels: ChannelFile
    saved_answers: SavedAnswers | None = None

    async def figures(self, team: str, user: str, language: str | None) -> HomeFigures:
        """Return everything that this person may see. Counts are those of their own workspace."""
        index, records = self.engine.index, self.observers.records
        examples = () if self.prompts is SUGGESTED_PROMPTS else [prompt["message"] for prompt in self.prompts]
        viewer = Viewers(team=team, channel="", user=user)
        documents, questions = await asyncio.to_thread(_visible_documents, index, viewer, language, examples)
        admin = user in self.admins
        synced, size, unread = None, 0, list[str]()
        if known := await available_figures(index):
            synced = known.synced
            size = known.size if known.documents == len(documents) else 0  # only if it covers all documents
            unread = [line for source in known.sources for line in source.unread_lines] if admin else []
        answers = AnswerList()
        if saved := self.saved_answers:
            waiting = [(one.proposer, one.answer) for one in await saved.waiting_for(team, user)]
            answers = AnswerList(answers=await asyncio.to_thread(saved.editable, team, user), proposals=waiting)
        return HomeFigures(
            documents=documents[:_MAX_LISTED], total=len(documents), size=size, synced=synced, questions=questions,
            stats=await self.observers.stats_of(team).read(SHOWN_DAYS), days=SHOWN_DAYS, unread=unread, answers=answers,
            paused=await self.pausing.current() is not None, quotes=self.engine.model.quotes_only,
            disliked=await records.list_disliked(_MAX_FOR_ADMINS) if admin else None,
            channels=self.channels.channels_of(team) if admin else {},
            failures=await records.list_latest("failed", _MAX_FOR_ADMINS) if admin else None,
        )  # fmt: skip


def _visible_documents(
    index: KnowledgeIndex, viewer: Viewers, language: str | None, examples: Sequence[str]
) -> tuple[list[Document], tuple[str, ...]]:
    """Return the documents this person may see, newest first, and questions that they answer. Blocks."""
    try:
        documents = [one for one in index.documents() if may_see(one.audience, viewer)]
        documents.sort(key=lambda one: one.updated_at, reverse=True)
        questions = examples or _heading_questions(index, documents, language)
        return documents, tuple(islice(questions, _MAX_QUESTIONS))
    except KnowledgeAwayError:
        return [], ()


def _heading_questions(index: KnowledgeIndex, documents: Sequence[Document], language: str | None) -> Iterator[str]:
    """Yield a question about a heading of each document, if a search for it finds that very document first."""
    for document in documents[:_MAX_TRIED]:
        for passage in index.search(document.title, limit=5):
            heading = passage.path[-1] if passage.path else ""
            if passage.document != document.id or heading in {"", document.title} or len(heading) > _MAX_HEADING_CHARS:
                continue
            question = say("home_question", language, title=document.title, heading=heading)
            if [one.document for one in index.search(question, limit=1)] == [document.id]:
                yield question
                break
