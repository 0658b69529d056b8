"""From a question and sources to an answer made of quotations, or to nothing.

Promises: every quoted sentence, item, step and row is followed by its source's number; words that are not the source's
are those of ``wording``. Must never quote what feedback complained of, or what was already shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from agent.attached import ORIGIN, asks_for_file
from agent.conversation import Message
from agent.model import WriteContext
from agent.query import search_query, spoken_in
from agent.quoting.catalogue import document_of, is_about, listed
from agent.quoting.courtesy import without_courtesy
from agent.quoting.excerpt import Choice, Excerpt, choose, opening
from agent.quoting.parts import questions, two_things
from agent.quoting.ranking import Asked, defines, rank
from agent.quoting.units import Unit, units_of
from agent.quoting.wording import line
from verification.answer import Source
from verification.language import detect
from verification.passages import sentence_spans

_COMPARED_CHARS: Final = 90
_LEAST_COMPARED: Final = 12
_HOW: Final = re.compile(r"\W*(?:how|wie|comment|cómo|bagaimana)\b", re.IGNORECASE)
_FENCE: Final = re.compile(r"`{3,}")
_SENTENCE_ENDS: Final = (".", "!", "?", "…", ":", ";", "。", "！", "？", '."', ".)", ".”")


def quoted_answer(context: WriteContext) -> str:
    """The answer in Markdown; nothing where no source fits the question."""
    if asks_for_file(context.question) and (openings := _openings(context)):
        return openings
    said: set[Unit] = set()
    history = context.history
    parts: list[str] = []
    for text in questions(context.question.text):
        parts += _answered(context, text, history, said)
        history = (*history, Message(role="user", text=text))
    answered = [part for part in parts if part]
    if answered and len(answered) < len(parts):
        answered.append(line("rest", detect(context.question.text)))
    return "\n\n".join(answered)


def _answered(context: WriteContext, text: str, history: tuple[Message, ...], said: set[Unit]) -> list[str]:
    """One question answered; as two, where it asks for two things and no one place names both."""
    halves = two_things(text)
    asked = asked_in(text, history)
    if halves and _needs_two(context, asked):
        found = [_part(context, asked_in(half, history), said) for half in halves]
        if any(found):
            return found
    return [_part(context, asked, said)]


def asked_in(text: str, history: tuple[Message, ...]) -> Asked:
    """A question as it is compared with what is quoted, completed from those before it."""
    bare = without_courtesy(text)
    return Asked(text=bare, completed=search_query(bare, history), language=spoken_in(text, history))


def _needs_two(context: WriteContext, asked: Asked) -> bool:
    """Whether the best unit leaves out something that is asked for."""
    ranked = rank(asked, [unit for source in context.sources for unit in units_of(source)])
    return not ranked or ranked[0].lacks


def _openings(context: WriteContext) -> str:
    """How each attached file begins: all that can be said of a file as a whole without understanding it."""
    language, left_out = detect(context.question.text), _complaints(context)
    parts: list[str] = []
    for file in context.question.files:
        named = (s for s in context.sources if s.origin == ORIGIN and document_of(s.title) == file.name)
        first = next(named, None)
        choice = opening(first, is_left_out=left_out) if first else None
        if choice:
            parts.append(_render(line("quoted", language, title=file.name), choice.main))
    return "\n\n".join(parts)


def quoted_list(source: Source, question: str) -> str:
    """The items of a source that is a list: all, or those that the question asks for."""
    opening = line("quoted", detect(question), title=source.title)
    return _render(opening, Excerpt(source=source, units=listed(question, units_of(source))))


def _part(context: WriteContext, asked: Asked, said: set[Unit]) -> str:
    left_out = _complaints(context)
    for sources in _by_trust(context.sources):
        units = [unit for source in sources for unit in units_of(source) if not _is_question(unit)]
        choice = _chosen(asked, sources, units, lambda unit: unit in said or left_out(unit))
        if choice is None or not choice.main.units:
            continue
        said.update(choice.main.units)
        language = detect(context.question.text)
        title = choice.main.source.title
        if choice.other is None:
            return _render(line("quoted", language, title=title), choice.main)
        said.update(choice.other.units)
        dated = choice.main.source.updated_at > choice.other.source.updated_at > ""
        first = line("differ" if dated else "conflict", language, title=title)
        second = line("older" if dated else "also", language, title=choice.other.source.title)
        return f"{_render(first, choice.main)}\n\n{_render(second, choice.other)}"
    return ""


def _chosen(
    asked: Asked, sources: Sequence[Source], units: Sequence[Unit], is_left_out: Callable[[Unit], bool]
) -> Choice | None:
    """How the document begins that is asked for by its title, unless a sentence says what the title means."""
    names_it = not asked.wants_number and not asked.wants_procedure and not _HOW.match(asked.text)
    if names_it and asked.completed == asked.text and not any(defines(asked, unit) for unit in units):
        about = (source for source in sources if is_about(asked.text, source.title))
        found = next((choice for source in about if (choice := opening(source, is_left_out=is_left_out))), None)
        if found is not None:
            return found
    return choose(asked, units, is_left_out=is_left_out)


def _by_trust(sources: Sequence[Source]) -> tuple[list[Source], list[Source]]:
    """Documents first; what people said in the thread only where the documents say nothing."""
    return [s for s in sources if s.origin != "thread"], [s for s in sources if s.origin == "thread"]


def _is_question(unit: Unit) -> bool:
    return unit.text.rstrip("*_\"' ").endswith(("?", "？"))


def _complaints(context: WriteContext) -> Callable[[Unit], bool]:
    """Tells which units must not be quoted: those that feedback names, else all of the last draft; and what is kept."""
    feedback, kept = _letters(context.feedback), _letters(context.kept)
    draft = _letters(context.previous_draft) if context.feedback else ""

    def is_in(unit: Unit, text: str) -> bool:
        said = _letters(unit.text)[:_COMPARED_CHARS]
        return len(said) >= _LEAST_COMPARED and said in text

    named = any(is_in(unit, feedback) for source in context.sources for unit in units_of(source) if is_in(unit, draft))
    barred = feedback if named else draft
    return lambda unit: is_in(unit, barred) or is_in(unit, kept)


def _letters(text: str) -> str:
    """Letters and digits alone: form and citations do not matter when texts are compared."""
    return "".join(re.findall(r"[^\W_]+", re.sub(r"\[\d+\]", "", text))).casefold()


def _render(opening: str, excerpt: Excerpt) -> str:
    """The line that says what is quoted, and the quotation in the source's own form."""
    number = f"[{excerpt.source.id}]"
    lines: list[str] = [opening]
    previous: Unit | None = None
    for unit in excerpt.units:
        if unit.kind == "code":
            lines += ["", _fenced(unit.text), number] if previous is None else ["", _fenced(unit.text)]
        elif unit.kind == "sentence":
            joined = previous is not None and previous.kind == "sentence" and previous.block == unit.block
            if joined:
                lines[-1] += f" {unit.text} {number}"
            else:
                lines += ["", f"{unit.text} {number}"]
        else:
            marker = "-" if unit.kind == "row" else unit.marker
            starts = previous is None or previous.block != unit.block
            lines += [*([""] if starts else []), f"{'    ' * unit.depth}{marker} {_ended(unit)} {number}"]
        previous = unit
    return "\n".join(lines)


def _ended(unit: Unit) -> str:
    """Its text; of several sentences the last is ended too: only behind a full stop a number speaks for them all."""
    text = unit.text
    several = len(sentence_spans(text, None)) > 1
    return f"{text}." if several and not text.endswith(_SENTENCE_ENDS) else text


def _fenced(code: str) -> str:
    """A code block whose fence is longer than any in it."""
    longest = max((len(run) for run in _FENCE.findall(code)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{code}\n{fence}"
