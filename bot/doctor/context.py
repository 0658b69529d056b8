"""A model's context in `orion doctor`: some servers drop the rest of a longer prompt without a word."""

from __future__ import annotations

import asyncio
from typing import Final

from agent.model.openai import OpenAIModel
from agent.model.protocol import ModelError
from bot.doctor.check import Check
from bot.settings import Settings
from bot.turn.engine import open_model

NAME: Final = "Model context"
NEEDED: Final = 10_000
"""Tokens: instructions and tools, 6,000 of sources, the conversation, and room for an answer."""
_REMEDY: Final = (
    "Give the server a context of at least {needed} tokens (Ollama: OLLAMA_CONTEXT_LENGTH, llama.cpp: --ctx-size, "
    "vLLM: --max-model-len)."
)


async def context_check(settings: Settings, within_s: float) -> list[Check]:
    """A line where a server of one's own takes too little; none where it takes enough, or does not tell in time."""
    if not settings.openai_base_url:
        return []
    try:
        async with asyncio.timeout(within_s), open_model(settings) as model:
            taken = await _taken(model) if isinstance(model, OpenAIModel) else NEEDED
    except TimeoutError:
        return []
    except ModelError as error:
        taken = 0 if error.kind == "TokenLimitError" else NEEDED
    if taken >= NEEDED:
        return []
    detail = f"{settings.model_name} reads {taken:,} tokens of a prompt" if taken else "long prompts are refused"
    return [Check(name=NAME, ok=False, detail=detail, remedy=_REMEDY.format(needed=f"{NEEDED:,}"))]


async def _taken(model: OpenAIModel) -> int:
    """Tokens of a prompt that the server takes, as far as Orion needs them: by its own list, else tried out."""
    listed = await model.context_listed()
    return listed if listed is not None else await model.context_tried(NEEDED)
