"""What a message names that is no answer: the nearest documents, each with the sentence closest to the question (F4).

A sentence is shown only if the rules pass it as an answer that cites its document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agent.model.prompts import private_texts
from agent.quoting.passages import Asked, ranked_passages
from agent.quoting.query import earlier_subjects
from agent.quoting.units import QuotableUnit
from agent.turn.progress import Progress
from verification.check import check
from verification.types import Draft, Source

MOST: Final = 3
LONGEST: Final = 240
"""Characters of one sentence: what is longer would hide that a list of places follows."""
CLOSE_ENOUGH: Final = 0.2
"""The share of a question's weight that a passage covers whose words are shown."""
LOOKED_AT: Final = 40
"""Passages, the closest first: a document of which none may be shown must not cost a check for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A passage, and what it says closest to the question as mrkdwn; empty where nothing comes close."""

    source: Source
    words: str = ""


def named(progress: Progress) -> tuple[Near, ...]:
    """The best passages, one a document, in the order the search ranked them."""
    first: dict[str, Near] = {}
    for source in _found(progress):
        first.setdefault(_place(source), Near(source=source))
    return tuple(first.values())[:MOST]


def quoted(progress: Progress) -> tuple[Near, ...]:
    """The same, but first the passages that come close in words, the closest first, each with its words.

    Takes some milliseconds a source: not for the event loop.
    """
    text = progress.question.text
    asked = Asked(text=text, earlier=" ".join(earlier_subjects(text, progress.state.history)))
    close: dict[int, Near] = {}
    for found in ranked_passages(asked, _found(progress))[:LOOKED_AT]:
        if len(close) == MOST or found.covered < CLOSE_ENOUGH:
            break
        if found.source.id not in close and _is_short(found.best) and (words := _verified(progress, found.best)):
            close[found.source.id] = Near(source=found.source, words=words)
    places = {_place(near.source) for near in close.values()}
    others = (near for near in named(progress) if _place(near.source) not in places)
    return (*close.values(), *others)[:MOST]


def _found(progress: Progress) -> list[Source]:
    return [source for source in progress.sources if source.origin != "thread"]


def _place(source: Source) -> str:
    """What tells a source's document from others: its address, or its title where it has none."""
    return source.url.partition("#")[0] or source.title.partition(" › ")[0]


def _is_short(unit: QuotableUnit) -> bool:
    """Whether the unit fits on a line or two."""
    return unit.kind != "code" and len(unit.text) <= LONGEST


def _verified(progress: Progress, unit: QuotableUnit) -> str:
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
