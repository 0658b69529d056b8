"""What a message names that is no answer: the nearest documents, each with what it says closest to the question (F4).

Promises: what is shown of a document is a whole sentence, item or row of it that passed the rules of an answer with its
citation; it stands under the document's name, as what was found and not as the answer. Must never show code, what is
long, or a text that nobody but the model was meant to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

from agent.model.prompts import private_texts
from agent.quoting.answer import asked_in
from agent.quoting.documents import place_of
from agent.quoting.excerpt import CLOSE_ENOUGH
from agent.quoting.message_text import normalised
from agent.quoting.ranking import rank
from agent.quoting.units import Unit, units_of
from agent.turn.progress import Progress
from verification.check import check
from verification.types import Draft, Source

MOST: Final = 3
LONGEST: Final = 240
"""Characters of one sentence: what is longer would hide that a list of places follows."""
LOOKED_AT: Final = 40
"""Sentences, the closest first: a document of which none may be shown must not cost a check for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A passage, and what it says closest to the question as mrkdwn; empty where nothing comes close."""

    source: Source
    words: str = ""


def named(progress: Progress) -> tuple[Near, ...]:
    """The best passages, one a document, in the order the search ranked them."""
    first: dict[str, Near] = {}
    for source in _found(progress):
        first.setdefault(place_of(source), Near(source=source))
    return tuple(first.values())[:MOST]


def quoted(progress: Progress) -> tuple[Near, ...]:
    """The same, but first the passages that come close in words, the closest first, each with its words.

    Takes some milliseconds a source: not for the event loop.
    """
    units = [unit for source in _found(progress) for unit in units_of(source)]
    ranked = rank(asked_in(normalised(progress.question.text), progress.state.history), units)
    fitting = (each.unit for each in ranked if each.covered >= CLOSE_ENOUGH and _is_short(each.unit))
    close: dict[int, Near] = {}
    for unit in islice(fitting, LOOKED_AT):
        if len(close) < MOST and unit.source.id not in close and (words := _verified(progress, unit)):
            close[unit.source.id] = Near(source=unit.source, words=words)
    places = {place_of(near.source) for near in close.values()}
    others = (near for near in named(progress) if place_of(near.source) not in places)
    return (*close.values(), *others)[:MOST]


def _found(progress: Progress) -> list[Source]:
    return [source for source in progress.sources if source.origin != "thread"]


def _is_short(unit: Unit) -> bool:
    """Whether the unit fits on a line or two."""
    return unit.kind != "code" and len(unit.text) <= LONGEST


def _verified(progress: Progress, unit: Unit) -> str:
    """The unit as it may be shown on one line; empty where a rule objects to it as an answer."""
    cited = f" [{unit.source.id}]"
    draft = Draft(
        text=f"{unit.text}{cited}",
        question=progress.question.text,
        sources=(unit.source,),
        link_hosts=progress.policy.link_hosts,
        private_texts=private_texts(),
    )
    verdict = check(draft)
    is_line = verdict.passed and verdict.text.endswith(cited) and "\n" not in verdict.text
    return verdict.text.removesuffix(cited) if is_line else ""
