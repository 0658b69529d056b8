"""What a message names that is no answer: the nearest documents, each with what it says closest to the question (F4).

Promises: what is shown of a document is a whole sentence, item or row of it that passed the rules of an answer with its
citation; it stands under the document's name, as what was found and not as the answer. Must never show code, what is
long, or a text that nobody but the model was meant to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agent.progress import Progress
from agent.prompts import private_texts
from agent.quoting.answering import asked_in
from agent.quoting.ranking import rank
from agent.quoting.units import Unit, units_of
from verification.answer import Draft, Source
from verification.rules import check

MOST: Final = 3
LONGEST: Final = 240
"""Characters of one sentence: what is longer would hide that a list of places follows."""
CLOSE_ENOUGH: Final = 0.2
"""The share of the question's weight that a sentence has to cover, to be more telling than its document's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A passage, and what it says closest to the question as mrkdwn; empty where nothing comes close."""

    source: Source
    words: str = ""


def named(progress: Progress) -> tuple[Near, ...]:
    """The best passages, one a document, in the order the search ranked them."""
    return tuple(Near(source=source) for source in _one_each(_found(progress))[:MOST])


def quoted(progress: Progress) -> tuple[Near, ...]:
    """The same, but first those that come close in words, the closest first, each with its words.

    Takes some milliseconds a source: not for the event loop.
    """
    sources = _found(progress)
    units = [unit for source in sources for unit in units_of(source)]
    close: dict[str, Near] = {}
    for each in rank(asked_in(progress.question.text, progress.state.history), units):
        source = each.unit.source
        if len(close) == MOST or _place(source) in close or each.covered < CLOSE_ENOUGH:
            continue
        if words := _verified(progress, each.unit):
            close[_place(source)] = Near(source=source, words=words)
    others = (near for near in named(progress) if _place(near.source) not in close)
    return (*close.values(), *others)[:MOST]


def _found(progress: Progress) -> list[Source]:
    return [source for source in progress.sources if source.origin != "thread"]


def _one_each(sources: list[Source]) -> list[Source]:
    """The first passage of each document."""
    first: dict[str, Source] = {}
    for source in sources:
        first.setdefault(_place(source), source)
    return list(first.values())


def _place(source: Source) -> str:
    """The document that a passage is of."""
    return source.url.partition("#")[0] or source.title


def _verified(progress: Progress, unit: Unit) -> str:
    """The unit as it may be shown on one line; empty where a rule objects to it as an answer."""
    if unit.kind == "code" or len(unit.text) > LONGEST:
        return ""
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
