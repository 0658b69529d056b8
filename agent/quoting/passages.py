"""Which passages of the sources fit a question: those that cover most of its words, the rare ones above all.

A word weighs what the index says of it: the fewer passages have it, the more, and most where none has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from agent.knowledge.search.index_terms import impacts, words_of
from agent.quoting.units import QuotableUnit, units_of
from verification.types import Source

Rarity = Callable[[str], Mapping[str, float]]  # what each word of a text weighs

THRESHOLD: Final = 0.33
# Below it nothing is shown: at .33 95 % of SciFact's claims still show their document (docs/measurements/answers.md).
PASSAGE_CHARS: Final = 600
MOST: Final = 3  # of 54 unseen questions the best passage held 39 answers, the best three 50
CLOSE: Final = 0.6  # the share of the best passage's score from which another is shown with it
_EARLIER: Final = 0.5  # what a word of an earlier question weighs beside one of this
_MOST_CHARS: Final = 2_000  # of a question: what is longer is something pasted


def evenly(text: str) -> Mapping[str, float]:
    """The weights where no index tells which words are rare."""
    return dict.fromkeys(words_of(text), 1.0)


def weights_of(text: str, earlier: str = "", rarity: Rarity = evenly) -> Mapping[str, float]:
    """What the words of a question weigh, and the words of ``earlier`` ones that complete it."""
    before = {word: _EARLIER * weight for word, weight in rarity(earlier[:_MOST_CHARS]).items()}
    return {**before, **rarity(text[:_MOST_CHARS])}


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
    """The best passages, the one with the closest sentence first; none where even the best covers too little."""
    ranked = ranked_passages(weights, sources, is_barred)
    if not ranked or ranked[0].score < THRESHOLD:
        return ()
    shown: dict[str, Found] = {}
    for found in ranked:
        if found.score >= CLOSE * ranked[0].score:
            shown.setdefault(found.best.text, found)
    return tuple(sorted([*shown.values()][:MOST], key=lambda found: -round(found.closest, 2)))


def ranked_passages(
    weights: Mapping[str, float],
    sources: Sequence[Source],
    is_barred: Callable[[QuotableUnit], bool] = lambda _: False,
) -> tuple[Found, ...]:
    """The best passage of each section, best first; of equal ones the newer, then the one that the search had first."""
    units = (unit for source in sources for unit in units_of(source) if not is_barred(unit))
    sections = groupby(units, key=lambda unit: (unit.source, unit.context))
    passages = ([_passage(some, weights) for some in windows([*section])] for _, section in sections)
    return tuple(sorted((max(found, key=lambda each: each.score) for found in passages), key=_by_score))


def _by_score(found: Found) -> tuple[float, int]:
    digits = "".join(filter(str.isdigit, found.best.source.updated_at[:10]))
    return -round(found.score, 2), -int(digits or 0)


def _passage(units: Sequence[QuotableUnit], weights: Mapping[str, float]) -> Found:
    shares = [_share(weights, (unit,)) for unit in units]
    best = shares.index(max(shares))
    # "Last updated: …" above an answer to something else says nothing.
    told = (unit for unit in units if unit.kind != "field" or unit is units[best] or weights.keys() & _words(unit.text))
    return Found(units=tuple(told), best=units[best], covered=_share(weights, units), closest=shares[best])


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
