"""From a question and sources to an answer made of quotations, or to nothing.

Promises: every quoted sentence, item, step and row is followed by its source's number; words that are not the source's
are those of ``wording``. Must never quote what feedback complained of, or what was already shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from agent.files import ORIGIN, asks_for_file
from agent.model.protocol import WriteContext
from agent.quoting.courtesy import without_courtesy
from agent.quoting.documents import document_of, is_about, listed
from agent.quoting.excerpt import Choice, Excerpt, IsLeftOut, choose, closest, opening
from agent.quoting.parts import questions, two_things
from agent.quoting.query import search_query, spoken_in
from agent.quoting.ranking import Asked, defines, rank
from agent.quoting.told import claimed, is_check, told_and_asked
from agent.quoting.units import Unit, units_of
from agent.quoting.wording import Line, line
from agent.thread.conversation import Message
from verification.evidence.passages import sentence_spans
from verification.text.language import detect
from verification.types import Source

_COMPARED_CHARS: Final = 90
_LEAST_COMPARED: Final = 12
_HOW: Final = re.compile(r"\W*(?:how|wie|comment|cómo|bagaimana)\b", re.IGNORECASE)
_FENCE: Final = re.compile(r"`{3,}")
_SENTENCE_ENDS: Final = (".", "!", "?", "…", ":", ";", "。", "！", "？", '."', ".)", ".”")


class _Choosing(Protocol):
    """How the excerpts of one question are chosen."""

    def __call__(self, asked: Asked, units: Sequence[Unit], *, is_left_out: IsLeftOut) -> Choice | None:
        """The excerpts, if any."""


def quoted_answer(context: WriteContext) -> str:
    """The answer in Markdown; nothing where no source fits the question."""
    if asks_for_file(context.question) and (openings := _openings(context)):
        return openings
    said: set[Unit] = set()
    history = context.history
    parts: list[tuple[Asked, str]] = []
    told, asks = told_and_asked(without_courtesy(context.question.text))
    for text in questions(asks):
        parts += _answered(context, asked_in(text, history, told), history, said)
        history = (*history, Message(role="user", text=text))
    answered = [part for _, part in parts if part]
    missed = [asked for asked, part in parts if not part]
    if answered and missed:
        answered.append(line("rest", detect(context.question.text)))
        answered += filter(None, (_part(context, asked, said, closest) for asked in missed))
    return "\n\n".join(answered)


def _answered(
    context: WriteContext, asked: Asked, history: tuple[Message, ...], said: set[Unit]
) -> list[tuple[Asked, str]]:
    """One question answered; as two, where it asks for two things and no one place names both."""
    halves = None if asked.is_check else two_things(asked.text)
    if halves and _needs_two(context, asked):
        each = (asked_in(half, history, asked.told) for half in halves)
        found = [(half, _part(context, half, said)) for half in each]
        if any(part for _, part in found):
            return found
    return [(asked, _part(context, asked, said))]


def asked_in(text: str, history: tuple[Message, ...], told: str = "") -> Asked:
    """A question as it is compared with what is quoted, completed from those before it and from what is ``told``."""
    bare = without_courtesy(text)
    if not told:
        told, bare = told_and_asked(bare)
    checked = told if told and is_check(bare) else claimed(bare)
    completed, language = search_query(bare, history), spoken_in(text, history)
    if checked:
        earlier = completed.removeprefix(bare.strip())
        return Asked(text=checked, completed=earlier, language=language, is_check=True)
    return Asked(text=bare, told=told, completed=completed, language=language)


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


def _part(context: WriteContext, asked: Asked, said: set[Unit], choosing: _Choosing = choose) -> str:
    complained = _complaints(context)

    def is_left_out(unit: Unit) -> bool:
        return unit in said or complained(unit)

    for sources in _by_trust(context.sources):
        units = [unit for source in sources for unit in units_of(source) if not _is_question(unit)]
        choice = _begun(asked, sources, units, is_left_out) or choosing(asked, units, is_left_out=is_left_out)
        if choice is not None and choice.main.units:
            said.update(unit for excerpt in choice.excerpts for unit in excerpt.units)
            return _worded(choice, detect(context.question.text))
    return ""


def _worded(choice: Choice, language: str | None) -> str:
    """What is quoted, each excerpt under a line that says where it stands."""
    first, *others = choice.excerpts
    if choice.other is None:
        names: tuple[Line, Line] = ("quoted" if choice.is_sure else "closest", "also")
    else:
        dated = first.source.updated_at > choice.other.source.updated_at > ""
        names = ("differ", "older") if dated else ("conflict", "also")
    opened = _render(line(names[0], language, title=first.source.title), first)
    return "\n\n".join((opened, *(_render(line(names[1], language, title=each.source.title), each) for each in others)))


def _begun(asked: Asked, sources: Sequence[Source], units: Sequence[Unit], is_left_out: IsLeftOut) -> Choice | None:
    """How the document begins that is asked for by its title, unless a sentence says what the title means."""
    names_it = not asked.wants_number and not asked.wants_procedure and not _HOW.match(asked.text)
    if not names_it or asked.completed != asked.text or any(defines(asked, unit) for unit in units):
        return None
    about = (source for source in sources if is_about(asked.text, source.title))
    return next((choice for source in about if (choice := opening(source, is_left_out=is_left_out))), None)


def _by_trust(sources: Sequence[Source]) -> tuple[list[Source], list[Source]]:
    """Documents first; what people said in the thread only where the documents say nothing."""
    return [s for s in sources if s.origin != "thread"], [s for s in sources if s.origin == "thread"]


def _is_question(unit: Unit) -> bool:
    return unit.text.rstrip("*_\"' ").endswith(("?", "？"))


def _complaints(context: WriteContext) -> IsLeftOut:
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
