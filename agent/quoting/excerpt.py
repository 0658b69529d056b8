"""Which units are quoted together: the best one with what belongs to it, and what contradicts it.

Promises: an excerpt is units of one source in their order; nothing is quoted twice. ``choose`` says None when nothing
fits the question well enough. Must never join units of different sources into one excerpt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.quoting.documents import place_of
from agent.quoting.evidence import answers
from agent.quoting.ranking import Asked, Comparison, Ranked, compare, gives_reason, rank, text_stems
from agent.quoting.units import Unit, units_of
from verification.types import Source

THRESHOLD: Final = 0.55
"""Below this share of the question's weight the best unit alone is no answer: ``evidence`` decides.

Measured on some 590 questions about two sets of documents: docs/answers.md has the table of other thresholds.
"""

SURE: Final = 0.8
"""From this share on the best unit stands alone: below it, what comes close in other places is quoted as well."""
NEARLY: Final = 0.5
"""The share of the best score that counts as close."""
MOST_EXCERPTS: Final = 3
CLOSE_ENOUGH: Final = 0.2
"""The share of a question's weight that a unit has to cover to be shown for what nothing answers."""

PARAGRAPH_CHARS: Final = 420
"""A paragraph, or a section of nothing but running text, up to this length is quoted whole."""
CLOSE: Final = 0.95
"""The first that covers enough is the answer, if nearly as good as the best, which may be so by its form alone."""
TIED: Final = 0.93
MOST_ITEMS: Final = 12
CLOSE_BY: Final = 0.85
"""The share of the best score from which another figure of the same place is quoted beside it."""
MOST_RIVALS: Final = 2
"""Of what a place says otherwise: "within 30 days", and "later than 90 days … not paid"."""
ALIKE: Final = 0.6
WORTH_COMPARING: Final = 0.7
RELATED: Final = 0.3
"""What a unit of another document on the same subject has to cover for its numbers to be compared."""

IsLeftOut = Callable[[Unit], bool]
"""Tells which units must not be quoted."""

_BACKWARDS: Final = re.compile(
    r"(?:it|this|that|these|those|they|such|during that|then|otherwise|each|both|he|she"
    r"|er|sie|es|dies\w*|il|elle|ils|cela|esto|eso|itu)\b",
    re.IGNORECASE,
)
_LEADS_ON: Final = re.compile(r"[:：][*_]{0,2}$")
_NUMBER: Final = re.compile(r"\d[\d.,:]*")
_COUNTED: Final = re.compile(r"(\d[\d.,]*)\s+([^\W\d_]{3,})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Units of one source, in order."""

    source: Source
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is quoted. ``other`` says something else of the same thing; ``main`` is then the newer of the two.

    ``beside`` comes nearly as close as ``main``; ``is_sure`` says that ``main`` covers enough to be called the answer.
    """

    main: Excerpt
    other: Excerpt | None = None
    beside: tuple[Excerpt, ...] = ()
    is_sure: bool = True

    @property
    def excerpts(self) -> tuple[Excerpt, ...]:
        """All that is quoted, ``main`` first."""
        return (self.main, *([self.other] if self.other else []), *self.beside)


def choose(asked: Asked, units: Sequence[Unit], *, is_left_out: IsLeftOut) -> Choice | None:
    """The excerpt that answers, if any does."""
    compared = compare(asked, units)
    ranked = [found for found in compared.ranked if not is_left_out(found.unit)]
    alike = [found for found in ranked if found.score >= CLOSE * ranked[0].score]
    fitting = next((found for found in alike if _answers(compared, found, units)), None)
    if fitting is None:
        return None
    best = _what_to_do((fitting, *ranked)) if asked.wants_procedure else fitting
    rivals = [found for found in ranked if _contradicts(asked, found, best)]
    if not rivals:
        return _with_what_is_close(asked, (best, *ranked), units, is_left_out)
    rival, *others = rivals
    same = (found.unit for found in others if found.unit.source == rival.unit.source and not found.lacks)
    said = [rival.unit, *same][:MOST_RIVALS]
    too = [found.unit for found in ranked if _says_otherwise_too(asked, found, best)][: MOST_RIVALS - 1]
    mine = Excerpt(source=best.unit.source, units=tuple(unit for unit in units if unit in (best.unit, *too)))
    theirs = Excerpt(source=rival.unit.source, units=tuple(unit for unit in units if unit in said))
    newer, older = (mine, theirs) if mine.source.updated_at >= theirs.source.updated_at else (theirs, mine)
    return Choice(main=newer, other=older)


def closest(asked: Asked, units: Sequence[Unit], *, is_left_out: IsLeftOut) -> Choice | None:
    """What comes closest to a question that nothing answers, if anything comes close at all."""
    ranked = [found for found in rank(asked, units) if not is_left_out(found.unit)]
    if not ranked or ranked[0].covered < CLOSE_ENOUGH:
        return None
    return _with_what_is_close(asked, ranked, units, is_left_out)


def _with_what_is_close(
    asked: Asked, ranked: Sequence[Ranked], units: Sequence[Unit], is_left_out: IsLeftOut
) -> Choice:
    """The excerpt of the first; unless it covers nearly all, with those of other places that come nearly as close."""
    best = ranked[0]
    close = [found for found in ranked if found.score >= NEARLY * best.score and best.covered < SURE]
    excerpts: list[Excerpt] = []
    said: set[str] = set()
    for found in (best, *close):
        if found.unit.text not in said and len(excerpts) < MOST_EXCERPTS:
            around = _around(asked, found, ranked, units)
            excerpts.append(_without(around, lambda unit: unit.text in said or is_left_out(unit)))
            said.update(unit.text for unit in around.units)
    main, *beside = excerpts
    others = tuple(excerpt for excerpt in beside if excerpt.units)
    said_why = not asked.wants_reason or any(gives_reason(unit) for unit in main.units)
    return Choice(main=main, beside=others, is_sure=best.covered >= THRESHOLD and said_why)


def _answers(compared: Comparison, found: Ranked, units: Sequence[Unit]) -> bool:
    """Whether a unit covers enough, or is likely to answer with what stands around it."""
    return found.covered >= THRESHOLD or answers(
        compared, found, _around(compared.asked, found, compared.ranked, units).units
    )


def _what_to_do(ranked: Sequence[Ranked]) -> Ranked:
    """The best unit; where it only says what a document of steps is for, the best step of that document."""
    best = ranked[0]
    place = place_of(best.unit.source)
    steps = [found for found in ranked if found.unit.kind == "step" and place_of(found.unit.source) == place]
    introduces = best.unit.kind == "sentence" and " › " not in best.unit.source.title
    if not introduces or any(step.unit.source == best.unit.source for step in steps):
        return best
    return next(iter(steps), best)


def opening(source: Source, *, is_left_out: IsLeftOut) -> Choice | None:
    """What a document begins with: its first paragraph, list or table."""
    own = [unit for unit in units_of(source) if not unit.is_field]
    if not own:
        return None
    first = own[0]
    chosen = [unit for unit in own if unit.block == first.block][:MOST_ITEMS]
    if first.kind == "sentence":
        chosen = _with_what_follows(_paragraph(first, own), own)
    excerpt = _without(Excerpt(source=source, units=tuple(chosen)), is_left_out)
    return Choice(main=excerpt) if excerpt.units else None


def _without(excerpt: Excerpt, is_left_out: IsLeftOut) -> Excerpt:
    return Excerpt(source=excerpt.source, units=tuple(unit for unit in excerpt.units if not is_left_out(unit)))


def _around(asked: Asked, best: Ranked, ranked: Sequence[Ranked], units: Sequence[Unit]) -> Excerpt:
    """The best unit with its neighbours where they belong."""
    own = [unit for unit in units if unit.source == best.unit.source]
    chosen = _belonging(asked, best, ranked, own)
    return Excerpt(source=best.unit.source, units=tuple(unit for unit in own if unit in chosen))


def _belonging(asked: Asked, best: Ranked, ranked: Sequence[Ranked], own: Sequence[Unit]) -> list[Unit]:
    unit = best.unit
    if asked.wants_procedure:
        steps = _steps(unit, own)
        if steps:
            return [*([unit] if unit.kind == "sentence" else []), *steps]
    if unit.kind == "code":
        return [*_before(unit, own), unit]
    if unit.kind == "sentence":
        return _with_what_follows(_short_section(unit, own) or _paragraph(unit, own), own)
    tied = [r.unit for r in ranked if r.score >= TIED * best.score and _is_same_list(r.unit, unit)]
    if unit.kind == "step" and (len(tied) > 1 or asked.is_bare):
        return _steps(unit, own)
    return tied if len(tied) <= MOST_ITEMS else [unit]


def _is_same_list(one: Unit, other: Unit) -> bool:
    return one.source == other.source and one.block == other.block and one.kind == other.kind


def _steps(unit: Unit, own: Sequence[Unit]) -> list[Unit]:
    """The numbered steps under the same heading, the unit's own list first."""
    blocks = {each.block for each in own if each.kind == "step" and each.context == unit.context}
    if not blocks:
        return []
    block = unit.block if unit.block in blocks else min(blocks, key=lambda b: (b < unit.block, b))
    return [each for each in own if each.block == block]


def _before(unit: Unit, own: Sequence[Unit]) -> list[Unit]:
    """The sentence right before a code block."""
    index = own.index(unit)
    return [own[index - 1]] if index and own[index - 1].kind == "sentence" and not own[index - 1].is_field else []


def _short_section(unit: Unit, own: Sequence[Unit]) -> list[Unit]:
    """All that stands under the same heading, where it is nothing but running text and not much of it."""
    section = [each for each in own if each.context == unit.context and not each.is_field]
    is_short = sum(len(each.text) + 1 for each in section) <= PARAGRAPH_CHARS
    return section if unit in section and is_short and all(each.kind == "sentence" for each in section) else []


def _paragraph(unit: Unit, own: Sequence[Unit]) -> list[Unit]:
    """The whole paragraph where it is short; else the sentence, what it points back to, and the next one."""
    if unit.is_field:
        return [unit]
    paragraph = [each for each in own if each.block == unit.block]
    if sum(len(each.text) + 1 for each in paragraph) <= PARAGRAPH_CHARS:
        return paragraph
    index = paragraph.index(unit)
    first = max(0, index - 1) if _BACKWARDS.match(unit.text) else index
    return paragraph[first : index + 2]


def _with_what_follows(chosen: list[Unit], own: Sequence[Unit]) -> list[Unit]:
    """A sentence that ends in a colon brings what it leads to."""
    last = own.index(chosen[-1])
    if not _LEADS_ON.search(chosen[-1].text) or last + 1 >= len(own):
        return chosen
    led = [each for each in own[last + 1 :] if each.block == own[last + 1].block]
    return [*chosen, *led[:MOST_ITEMS]]


def _contradicts(asked: Asked, found: Ranked, best: Ranked) -> bool:
    """Whether a unit of another document says the same of other numbers, or of the same subject in other words."""
    if place_of(found.unit.source) == place_of(best.unit.source):
        return False
    if asked.wants_number and found.covered >= RELATED and _same_subject(found.unit, best.unit):
        return _other_amount(best.unit.text, found.unit.text)
    if found.score < WORTH_COMPARING * best.score:
        return False
    ours, theirs = set(_NUMBER.findall(best.unit.text)), set(_NUMBER.findall(found.unit.text))
    if not ours or not theirs or ours == theirs:
        return False
    one = {stem for stem in text_stems(best.unit.text, None) if not stem[:1].isdigit()}
    other = {stem for stem in text_stems(found.unit.text, None) if not stem[:1].isdigit()}
    return bool(one & other) and len(one & other) >= ALIKE * len(one | other)


def _says_otherwise_too(asked: Asked, found: Ranked, best: Ranked) -> bool:
    """Whether a unit of the same place says another amount of the same: "within 30 days", and "later than 90 days"."""
    return (
        asked.wants_number
        and found.score >= CLOSE_BY * best.score
        and not found.lacks
        and found.unit.source == best.unit.source
        and found.unit != best.unit
        and _other_amount(best.unit.text, found.unit.text)
    )


def _same_subject(one: Unit, other: Unit) -> bool:
    """Whether two documents say by their titles that they are about the same, maybe in other years."""
    ours, theirs = (
        {stem for stem in text_stems(unit.source.title.partition(" › ")[0], None) if not stem.isdigit()}
        for unit in (one, other)
    )
    return len(ours & theirs) * 2 >= len(ours | theirs) > 0


def _other_amount(one: str, other: str) -> bool:
    """Whether two texts count the same thing and come to other numbers: 30 days here and 60 days there."""
    ours, theirs = dict(map(reversed, _COUNTED.findall(one))), dict(map(reversed, _COUNTED.findall(other)))
    return any(ours[thing] != theirs[thing] for thing in ours.keys() & theirs.keys())
