"""The passages that are shown for a question: of the first sources that the search brought, the part that fits best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from agent.files import ORIGIN as FILE
from agent.knowledge.search.index_terms import impacts, words_of
from agent.quoting.units import QuotableUnit, units_of
from verification.types import Source

LEAST: Final = 0.18
"""Nothing is shown where no score reaches it. A higher one hides as many answers as it saves misses (decision 3)."""
PASSAGE_CHARS: Final = 600
MOST: Final = 3
_EARLIER: Final = 0.5  # what a word of an earlier question weighs beside one of this
_MOST_CHARS: Final = 2_000  # of a question: what is longer is something pasted


def weights_of(text: str, earlier: str = "") -> Mapping[str, float]:
    """What the words of a question weigh, and the words of ``earlier`` ones that complete it."""
    before = dict.fromkeys(words_of(earlier[:_MOST_CHARS]), _EARLIER)
    return before | dict.fromkeys(words_of(text[:_MOST_CHARS]), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Units of one section in order, and the ``best`` of them.

    ``covered`` is the share of the question's weight that they cover with the title and headings above them;
    ``closest`` is the same share for ``best`` alone.
    """

    units: tuple[QuotableUnit, ...]
    best: QuotableUnit
    covered: float
    closest: float

    @property
    def score(self) -> float:
        """How well it fits: words in one sentence say more than words apart."""
        return (self.covered + self.closest) / 2


def fitting(
    weights: Mapping[str, float], sources: Sequence[Source], is_barred: Callable[[QuotableUnit], bool]
) -> tuple[Found, ...]:
    """The passages to show, the one with the closest sentence first; none where even the best covers too little.

    Of what was searched for, the best passage of each of the first sources: the search ranks better than these scores
    do. Of attached files any section that covers enough.
    """
    searched: dict[str, Found] = {}
    attached: dict[str, Found] = {}
    for source in sources:
        units = [unit for unit in units_of(source) if not is_barred(unit)]
        sections = [list(section) for _, section in groupby(units, key=lambda unit: unit.context)]
        # "Last updated: …" by itself says nothing to who asks for something else.
        telling = [each for each in sections if any(_says_something(unit, weights) for unit in each)] or sections
        best = (max((_passage(some, weights) for some in windows(each)), key=_score) for each in telling)
        passages = sorted(best, key=_score, reverse=True)
        if source.origin == FILE:
            attached |= {each.best.text: each for each in passages if each.score >= LEAST}
        elif passages:
            searched.setdefault(passages[0].best.text, passages[0])
    first = dict([*searched.items()][:MOST])
    shown = sorted({**attached, **first}.values(), key=_closest_newest)[:MOST]
    return tuple(shown) if max(map(_score, shown), default=0.0) >= LEAST else ()


def _score(found: Found) -> float:
    return found.score


def _closest_newest(found: Found) -> tuple[float, int]:
    digits = "".join(filter(str.isdigit, found.best.source.updated_at[:10]))
    return -round(found.closest, 2), -int(digits or 0)


def _says_something(unit: QuotableUnit, weights: Mapping[str, float]) -> bool:
    return unit.kind != "field" or bool(weights.keys() & _words(unit.text))


def _passage(units: Sequence[QuotableUnit], weights: Mapping[str, float]) -> Found:
    shares = [_share(weights, (unit,)) for unit in units]
    best = shares.index(max(shares))
    return Found(units=tuple(units), best=units[best], covered=_share(weights, units), closest=shares[best])


def _share(weights: Mapping[str, float], units: Sequence[QuotableUnit]) -> float:
    """The share of all weight that the words of these units have, with what stands above them."""
    said = _words(units[0].source.title).union(_words(units[0].context), *(_words(unit.text) for unit in units))
    whole = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in said) / whole if whole else 0.0


def windows(section: Sequence[QuotableUnit]) -> Iterator[Sequence[QuotableUnit]]:
    """The whole section where it is short, else what fits from each of its units on."""
    for start in range(len(section)):
        end, size = start + 1, len(section[start].text)
        while end < len(section) and size + len(section[end].text) < PASSAGE_CHARS:
            size += len(section[end].text) + 1
            end += 1
        yield section[start:end]
        if end == len(section):
            return


@lru_cache(maxsize=8_192)
def _words(text: str) -> frozenset[str]:  # as the index stores them
    return frozenset(impacts("", "", text))
