"""The checks of `orion doctor` on models: each gets a request like a turn's, with a system message and tools."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from agent.budget import Budget, Usage
from agent.knowledge.types import KnowledgeAwayError
from agent.model.chat_server import was_cut
from agent.model.failures import ServerRefusalError
from agent.model.openai import OpenAIModel
from agent.model.protocol import DecideContext, JudgeContext, ModelError, WriteContext
from agent.texts.catalogue import truncate
from agent.thread.conversation import Question, ThreadKey
from agent.tools.tool import ToolSpec
from bot.doctor.checks import Finding, Problem
from bot.documents.open import corpus_of, open_index, open_meaning
from bot.errors import WrongUse
from bot.settings import Settings, embedding_address
from bot.turn.engine import open_model
from verification.types import Claim, Source

MAX_MESSAGE_CHARS: Final = 200  # of a server's own words
CONTEXT_NEEDED: Final = 10_000  # tokens: instructions, tools, 6,000 for sources, the conversation, room for an answer
_WORDS: Final = "the cat and the dog sat on the mat "  # one token each in any model
_CONTEXT: Final = (
    f"Give the server a context of at least {CONTEXT_NEEDED:,} tokens (Ollama: OLLAMA_CONTEXT_LENGTH, llama.cpp: "
    "--ctx-size, vLLM: --max-model-len)."
)
_SOURCE: Final = Source(id=1, title="Rate limits", text="Each key may send 120 requests a minute.")
_QUESTION: Final = Question(
    thread=ThreadKey(team="T", channel="C", thread_ts="1"), user="U", text="How many requests may a key send?", ts="1"
)
_SEARCH: Final = ToolSpec(
    name="search",
    description="Find passages in the team's documents.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
_DECIDE: Final = DecideContext(
    mission="", question=_QUESTION, plan=None, history=(), answers={}, results=(), sources=(_SOURCE,),
    tools=(_SEARCH,), budget=Budget(), used=Usage(),
)  # fmt: skip
_WRITE: Final = WriteContext(mission="", question=_QUESTION, history=(), answers={}, results=(), sources=(_SOURCE,))
_CLAIM: Final = Claim(text=_SOURCE.text, start=0, end=len(_SOURCE.text), cited=(1,))
_JUDGE: Final = JudgeContext(question=_QUESTION.text, answer=f"{_CLAIM.text} [1]", claims=(_CLAIM,), sources=(_SOURCE,))
_IN_MEMORY: Final = (
    "each Orion compares them in its own memory, because PostgreSQL has no pgvector (0.7 or newer) or its user may not "
    "create the extension `vector`"
)


async def check_model(settings: Settings, within_s: float) -> Finding:
    """Ask the deciding model for a decision, and for an answer unless a separate one writes."""
    if not settings.uses_server:
        return "none configured: Orion quotes (set OPENAI_API_KEY for a model)"
    finding = await _ask_model(settings, within_s, lambda opened: opened.decide(_DECIDE))
    is_writer = settings.write_model in {"", settings.model_name}
    return await _check_answer(settings, within_s) if is_writer and not isinstance(finding, Problem) else finding


async def check_context(settings: Settings, within_s: float) -> Finding:
    """Ask a self-hosted server for a decision on a long prompt: some servers drop its end, and others refuse it."""
    if not settings.openai_base_url:
        return ""
    length = 0
    long = replace(_SOURCE, text=_WORDS * (CONTEXT_NEEDED // len(_WORDS.split())))

    async def ask(opened: OpenAIModel) -> None:
        nonlocal length
        await opened.decide(_DECIDE)  # a server that refuses only the long prompt refuses its length, in any words
        try:
            usage = (await opened.decide(replace(_DECIDE, sources=(long,)))).usage
        except ModelError as error:
            if error.kind in {"TokenLimitError", "ConfigurationError"}:
                return
            if error.kind != "MalformedControlError":
                raise
            usage = error.usage
        length = usage.prompt_tokens if was_cut(usage, CONTEXT_NEEDED) else CONTEXT_NEEDED

    finding = await _ask_model(settings, within_s, ask)
    if isinstance(finding, Problem) or length >= CONTEXT_NEEDED:
        return ""  # the check of the model itself says what is wrong
    detail = f"{settings.model_name} reads {length:,} tokens of a prompt" if length else "long prompts are refused"
    return Problem(detail, _CONTEXT)


async def check_write_model(settings: Settings, within_s: float) -> Finding:
    """Ask the writing model for an answer, if it is a separate one: without it Orion cannot write answers."""
    if not settings.uses_server or settings.write_model in {"", settings.model_name}:
        return ""
    return await _check_answer(settings, within_s, settings.write_model)


async def _check_answer(settings: Settings, within_s: float, model: str = "") -> Finding:
    """Ask for an answer as a stream. One that has begun may take longer."""

    async def ask(opened: OpenAIModel) -> None:
        has_begun = False
        try:
            async with asyncio.timeout(within_s * 0.9), aclosing(opened.write(_WRITE).pieces) as pieces:
                async for _ in pieces:
                    has_begun = True
        except TimeoutError:
            if not has_begun:
                raise

    return await _ask_model(settings, within_s, ask, model)


async def check_judge(settings: Settings, within_s: float) -> Finding:
    """Ask the judge about a claim. Without it every sentence that is not a quotation would be cut out."""
    if not settings.judge and settings.uses_server:
        return "turned off. Unset ORION_JUDGE: without a judge only numbers, dates, names and quotes are checked."
    if settings.judge_model in {"", settings.model_name}:
        return ""
    if not settings.uses_server:
        return Problem(
            "ORION_JUDGE_MODEL is set, but no model server",
            "Set OPENAI_API_KEY or OPENAI_BASE_URL, or unset ORION_JUDGE_MODEL.",
        )

    async def ask(opened: OpenAIModel) -> None:
        if not (await opened.judge(_JUDGE)).judgements:
            raise ModelError(kind="MalformedControlError", detail="its verdict on a claim could not be read")

    return await _ask_model(settings, within_s, ask, settings.judge_model)


async def check_embedding(settings: Settings, within_s: float) -> Finding:
    """Embed a word, and count the passages that have a vector."""
    found = embedding_address(settings)
    if found is None:
        return ""
    from agent.knowledge.semantic.vectors import EmbedderError  # noqa: PLC0415 - loads numpy, only with a server
    from agent.model.embeddings import ServerEmbedder  # noqa: PLC0415 - likewise

    try:
        async with asyncio.timeout(within_s), aclosing(ServerEmbedder(*found)) as embedder:
            model = await embedder.find_model()
            await embedder.embed_question("test")
        return f"{model} embeds; {await _vector_counts(settings)}"
    except EmbedderError as error:
        remedy = (
            "Check ORION_EMBED_MODEL, ORION_EMBED_BASE_URL and ORION_EMBED_API_KEY. Until then search goes by words."
        )
        return f"off: {error}" if error.is_unset else Problem(str(error), remedy)
    except TimeoutError:
        return Problem(f"no vector within {within_s:.0f} s", "Check that the embedding server is up.")
    except (WrongUse, KnowledgeAwayError) as error:
        return Problem(f"the vectors cannot be counted ({error})", "Fix Knowledge first.")


async def _vector_counts(settings: Settings) -> str:
    # The check of the documents syncs them; here we only count them.
    corpus = replace(corpus_of(settings), roots=(), sources=())
    async with open_index(corpus) as (index, _), open_meaning(settings, index) as meaning:
        having, every = await asyncio.to_thread(meaning.store.counts) if meaning else (0, 0)
        by_pgvector = await asyncio.to_thread(index.pgvector)
    text = f"{having:,} of {every:,} passages have a vector"
    if having < every:
        text += "; the others are found by their words until a running Orion or `orion index` has made theirs"
    if corpus.database:
        text += "; PostgreSQL compares them" if by_pgvector else f"; {_IN_MEMORY}"
    return text


async def _ask_model(
    settings: Settings, within_s: float, ask: Callable[[OpenAIModel], Awaitable[object]], model: str = ""
) -> Finding:
    settings = settings.model_copy(update={"model": model, "write_model": ""}) if model else settings
    try:
        async with asyncio.timeout(within_s), open_model(settings) as opened:
            if isinstance(opened, OpenAIModel):
                await ask(opened)
    except ModelError as error:
        detail = f"{settings.model_name}: {error.detail}"
        # It was asked about nothing private, but may quote a key that it refuses.
        if isinstance(error, ServerRefusalError) and error.message and error.kind != "AuthenticationError":
            detail += f": {truncate(error.message, MAX_MESSAGE_CHARS)}"
        return Problem(detail, " ".join(error.hints))
    except TimeoutError:
        return Problem(
            f"{settings.model_name} did not answer within {within_s:.0f} s",
            "Check OPENAI_BASE_URL and that its server is up. One that loads its model first may answer at the next "
            f"try. If it is slow, a question still has {settings.model_timeout_s:.0f} s for each call of the model: "
            "raise ORION_MODEL_TIMEOUT_S if it needs more.",
        )
    return f"{settings.model_name} answers"
