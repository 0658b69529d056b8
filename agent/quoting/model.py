"""The keyless model: it decides by simple rules and answers by quoting the best sentences of the sources.

Promises: every word of an answer is a source's, except for one short line that says it is quoted, greetings and the
word for "not found". It needs no key, no server and no time to speak of. Must never claim to have understood: what the
sources do not say in words like the question's, it does not answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final, Literal

from agent.actions import Respond, ToolCall, ToolCalls
from agent.budget import Usage
from agent.model.prompts import NOT_FOUND
from agent.model.protocol import (
    DecideContext,
    Decision,
    Generated,
    ModelError,
    ModelErrorKind,
    WriteContext,
    WriteStream,
)
from agent.quoting.answer import quoted_answer, quoted_list
from agent.quoting.courtesy import without_courtesy
from agent.quoting.documents import asks_for_documents, document_of, is_about
from agent.quoting.message_text import normalised
from agent.quoting.parts import questions
from agent.quoting.query import query_abroad, search_query, wider_query
from agent.quoting.told import told_and_asked
from agent.quoting.wording import small_talk
from agent.thread.conversation import Message, Question
from agent.thread.requests import from_own_words
from agent.tools.builtin.knowledge import GET_DOCUMENT, LIST_DOCUMENTS, LIST_TITLE, SEARCH
from verification.text.language import detect

_PIECE: Final = 24
"""Characters that arrive at once: small, so that what reads the stream is used as with a server."""

_MADE_TO_ORDER: Final = re.compile(
    r"\W*(?:please\s+|can you\s+|could you\s+|bitte\s+)?"
    r"(?:translate|write|compose|draft|invent|imagine|tell me a (?:joke|story)"
    r"|übersetze?|dichte|erfinde|traduis|traduisez|écris|invente|traduce|escribe|inventa|terjemahkan|tulis(?:kan)?|buatkan)\b"
    r"|翻訳して|書いて|翻译|写一",
    re.IGNORECASE,
)


class ExtractiveModel:
    """A ``Model`` without a model."""

    name = "extractive"
    quotes_only = True

    async def decide(self, context: DecideContext) -> Decision:
        """One decision: the list if it is asked for, a search if there was none, else the answer."""
        context = replace(context, question=_read(context.question))
        question = context.question.text
        offered = {spec.name for spec in context.tools}
        called = {result.tool for result in context.results}
        if asks_for_documents(question) and LIST_DOCUMENTS in offered - called:
            return _call(LIST_DOCUMENTS)
        query = _next_query(context) if SEARCH in offered else ""
        if query:
            return _call(SEARCH, query=query)
        title = _asked_for(context) if GET_DOCUMENT in offered - called else ""
        if title:
            return _call(GET_DOCUMENT, document=title)
        return Decision(action=Respond(), usage=Usage(model_calls=1))

    def write(self, context: WriteContext) -> WriteStream:
        """The answer as a stream of small pieces."""
        read = replace(context, question=_read(context.question))
        return WriteStream(pieces=_pieces(read), usage=Usage(model_calls=1))

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> Generated:  # noqa: ARG002 - the seam's signature
        """Not possible without a language model: raises ``ModelError`` of kind ``ConfigurationError``."""
        detail = "no language model is configured; the quoting engine cannot write text of its own"
        hint = "Set OPENAI_API_KEY, or OPENAI_BASE_URL to an OpenAI-compatible server."
        kind: ModelErrorKind = "ConfigurationError"
        raise ModelError(kind, detail, hints=(hint,))


def _read(question: Question) -> Question:
    return replace(question, text=normalised(question.text))


def _next_query(context: DecideContext) -> str:
    """The question's own words, then other words for the same things, then those of other languages.

    Nothing where no more is needed: other languages are tried only where nothing was found in the question's own.
    """
    question, history = context.question.text, context.history
    searches = sum(result.tool == SEARCH for result in context.results)
    if small_talk(question) or _is_made_to_order(question) or (searches and asks_for_documents(question)):
        return ""
    if searches == 0:
        return "" if context.sources else search_query(question, history)
    spoken = {detect(source.text) for source in context.sources}
    abroad = query_abroad(question, history) if spoken.isdisjoint({"en", detect(question)}) else ""
    asks = told_and_asked(question)[1]
    meant = "" if asks in question else asks
    left = list(filter(None, (meant, wider_query(question, history), *_each(question, history), abroad)))
    return left[searches - 1] if searches <= len(left) else ""


def _each(question: str, history: tuple[Message, ...]) -> list[str]:
    """A query for each question of a message that asks several, lest one crowd out the others' passages."""
    several = questions(told_and_asked(without_courtesy(question))[1])
    return [search_query(text, history) for text in several] if len(several) > 1 else []


def _asked_for(context: DecideContext) -> str:
    """The title of the document that the question asks for by its name."""
    titles = (document_of(source.title) for source in context.sources if source.origin == "document")
    return next((title for title in titles if is_about(context.question.text, title)), "")


def _is_made_to_order(question: str) -> bool:
    return from_own_words(question) or _MADE_TO_ORDER.match(question) is not None


def _call(tool: str, **arguments: str) -> Decision:
    calls = ToolCalls(calls=(ToolCall(call_id=f"quoting-{tool}", tool=tool, input=arguments),))
    return Decision(action=calls, usage=Usage(model_calls=1))


async def _pieces(context: WriteContext) -> AsyncIterator[tuple[Literal["content", "reasoning"], str]]:
    answer = await asyncio.to_thread(_answer, context)
    thinking = f"{len(context.sources)} sources compared with the question."
    text = f"<thinking>{thinking}</thinking><answer>{answer}</answer>"
    for start in range(0, len(text), _PIECE):
        yield "content", text[start : start + _PIECE]
        await asyncio.sleep(0)  # whoever cancels the turn gets a word in


def _answer(context: WriteContext) -> str:
    question = context.question.text
    talk = small_talk(question)
    if talk:
        return talk
    if _is_made_to_order(question):
        return NOT_FOUND
    if asks_for_documents(question):
        listed = next((source for source in context.sources if source.title == LIST_TITLE), None)
        if listed is not None:
            return quoted_list(listed, question)
    return quoted_answer(context) or NOT_FOUND
