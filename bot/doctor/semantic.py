"""The line about search by meaning in `orion doctor`: whether it is installed, and how many vectors exist."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agent.knowledge.types import KnowledgeAwayError
from bot.doctor.check import Check
from bot.documents.open import corpus_of, open_index
from bot.errors import WrongUse
from bot.settings import Settings

NAME = "Search by meaning"


async def semantic_check(settings: Settings, _: float) -> list[Check]:
    """The line, where ORION_SEMANTIC is set."""
    if not settings.semantic:
        return []
    try:
        corpus = replace(corpus_of(settings), roots=(), sources=())
        async with open_index(corpus) as (index, _report):
            having, every = await asyncio.to_thread(index.meaning.counts) if index.meaning else (0, 0)
    except WrongUse as error:
        remedy = "Run `make semantic`, name the folder of a model in ORION_SEMANTIC, or leave it away."
        return [Check(name=NAME, ok=False, detail=str(error), remedy=remedy)]
    except KnowledgeAwayError as error:
        detail = f"the shared index cannot be used ({error})"
        return [Check(name=NAME, ok=False, detail=detail, remedy="Mend Knowledge first.")]
    detail = f"{having:,} of {every:,} passages have a vector"
    if having < every:
        detail += "; the others are found by their words until a running Orion or `orion index` has made theirs"
    return [Check(name=NAME, ok=True, detail=detail)]
