"""The model that needs no key: it searches and shows the passages that fit the question best.

All words of an answer come from sources, except the line above each passage and the replies to small talk.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Final

from agent.actions import NoReply, Respond, ToolCall, ToolCalls
from agent.budget import Usage
from agent.files import ORIGIN
from agent.model.prompts import NOT_FOUND
from agent.model.protocol import DecideContext, Decision, Generated, ModelError, Piece, WriteContext, WriteStream
from agent.quoting.passages import (
    QuotableUnit,
    RankedPassage,
    best_passages,
    render_passages,
    render_units,
    units_of,
    windows,
    word_weights,
)
from agent.quoting.small_talk import asks_for_documents, earlier_subjects, is_question, search_query, small_talk_reply
from agent.thread.conversation import asks_for_file, is_from_own_words
from agent.tools.builtin.knowledge import LIST_DOCUMENTS, LIST_TITLE, SEARCH

_PIECE: Final = 24  # characters per piece: as few as servers send
_MAX_COMPARED_CHARS: Final = 90
_MIN_COMPARED_CHARS: Final = 12


class ExtractiveModel:
    """A ``Model`` that needs no language model."""

    name = "extractive"
    quotes_only = True

    async def decide(self, context: DecideContext) -> Decision:
        """Ignore messages between other people. List the documents if asked to. Otherwise search once, then answer."""
        question = context.question.text
        askers = [message.user for message in context.history if message.role == "user" and message.addressed]
        # A question from another person than the last asker may be for others.
        is_follow_up = askers[-1:] == [context.question.user] and is_question(question)
        if not (context.question.addressed or is_follow_up):
            return Decision(action=NoReply(), usage=Usage())
        offered = {spec.name for spec in context.tools}
        called = {result.tool for result in context.results}
        if small_talk_reply(question) or is_from_own_words(question):
            return Decision(action=Respond(), usage=Usage())
        listing = asks_for_documents(question) and LIST_DOCUMENTS in offered
        tool = LIST_DOCUMENTS if listing else SEARCH
        if tool not in offered - called:
            return Decision(action=Respond(), usage=Usage())
        arguments = {} if listing else {"query": search_query(question, context.history)}
        calls = ToolCalls(calls=(ToolCall(call_id=f"quoting-{tool}", tool=tool, input=arguments),))
        return Decision(action=calls, usage=Usage())

    def write(self, context: WriteContext) -> WriteStream:
        """Return the answer as a stream of small pieces."""
        return WriteStream(pieces=_pieces(context), usage=Usage())

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> Generated:  # noqa: ARG002 - the seam's signature
        """Raise ``ModelError`` of kind ``ConfigurationError``: this needs a language model."""
        detail = "no language model is configured (OPENAI_API_KEY or OPENAI_BASE_URL): Orion only quotes"
        raise ModelError(kind="ConfigurationError", detail=detail)


async def _pieces(context: WriteContext) -> AsyncGenerator[Piece]:
    answer = await asyncio.to_thread(_answer, context)
    text = f"<thinking>{len(context.sources)} sources compared with the question.</thinking><answer>{answer}</answer>"
    for start in range(0, len(text), _PIECE):
        yield "content", text[start : start + _PIECE]
        await asyncio.sleep(0)  # lets a cancellation of the turn through


def _answer(context: WriteContext) -> str:
    question = context.question.text
    if talk := small_talk_reply(question):
        return talk
    if is_from_own_words(question):
        return NOT_FOUND
    language = context.question.reply_language
    listed = next((source for source in context.sources if source.title == LIST_TITLE), None)
    if listed and asks_for_documents(question):
        return render_units(listed, units_of(listed), language)
    files = [(source, units_of(source)) for source in context.sources if source.origin == ORIGIN]
    if files and asks_for_file(context.question):
        return "\n\n".join(render_units(file, next(windows(units)), language) for file, units in files if units)
    weights = word_weights(question, " ".join(earlier_subjects(question, context.history)))
    passages = _passages(context, weights)
    return render_passages(passages, weights, language) if passages else NOT_FOUND


def _passages(context: WriteContext, weights: Mapping[str, float]) -> tuple[RankedPassage, ...]:
    """Return the best passages: messages of the thread only if they fit better than the documents."""
    barred = _barred_units(context)
    documents = [source for source in context.sources if source.origin != "thread"]
    thread = [source for source in context.sources if source.origin == "thread"]
    # A question between people in the thread is not an answer.
    questions = {unit for source in thread for unit in units_of(source) if unit.text.endswith(("?", "？"))}
    found = (best_passages(weights, documents, barred), best_passages(weights, thread, barred | questions))
    return max(found, key=lambda passages: max((each.score for each in passages), default=0.0))


def _barred_units(context: WriteContext) -> set[QuotableUnit]:
    """Return the units not to quote: those shown already, and those of the last draft that feedback names, or all."""

    def units_in(text: str) -> set[QuotableUnit]:
        text = _letters(text)
        every = (unit for source in context.sources for unit in units_of(source)) if text else ()
        begins = ((unit, _letters(unit.text)[:_MAX_COMPARED_CHARS]) for unit in every)
        return {unit for unit, begin in begins if len(begin) >= _MIN_COMPARED_CHARS and begin in text}

    drafted = units_in(context.previous_draft if context.feedback else "")
    return (drafted & units_in(context.feedback) or drafted) | units_in(context.kept)


def _letters(text: str) -> str:
    """Return only letters and digits, so that texts are compared without formatting and citations."""
    return "".join(re.findall(r"[^\W_]+", re.sub(r"\[\d+\]", "", text))).casefold()
