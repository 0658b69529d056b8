"""Which passages of the sources fit a question: the share of the question's words that each covers, rare words first.

A word weighs what its inverse document frequency over the sections found says. A word that no section has weighs half
as much as the rarest that one has: it counts against every passage, but people also say much that no document does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from agent.knowledge.search.tokens import stems
from agent.quoting.units import QuotableUnit, units_of
from verification.text.language import detect
from verification.types import Source

THRESHOLD: Final = 0.3
"""The least score of the best passage; below it nothing is shown.

Fitted on SciFact alone, gold documents taken out of half of the runs: docs/measurements/answers.md has the table.
"""
PASSAGE_CHARS: Final = 600
MOST: Final = 3
CLOSE: Final = 0.5
"""The share of the best passage's score from which another is shown below it."""
_SMOOTH: Final = 10
"""The constant of reciprocal rank fusion; small, since there are few ranks."""
_ABSENT: Final = 0.5
_EARLIER: Final = 0.5
"""What a word of an earlier question weighs beside one of this."""
_MOST_CHARS: Final = 2_000
"""Of a question: what is longer is something pasted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and the words of earlier ones that complete it."""

    text: str
    earlier: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Units of one section in order, and the ``best`` of them.

    ``covered`` is the share of the question's weight that they cover with the title and headings above them; ``score``
    is the mean of that and of the same share for ``best`` alone: words in one sentence say more than words apart.
    """

    units: tuple[QuotableUnit, ...]
    best: QuotableUnit
    covered: float
    score: float

    @property
    def source(self) -> Source:
        """Where it stands."""
        return self.best.source


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each word of a question weighs, in the language that it is compared in."""

    words: Mapping[str, float]
    language: str | None

    def share(self, *texts: str) -> float:
        """The share of all weight that the words of these texts have."""
        said = frozenset[str]().union(*(_words(text, self.language) for text in texts))
        whole = sum(self.words.values())
        return sum(weight for word, weight in self.words.items() if word in said) / whole if whole else 0.0


def fitting(asked: Asked, sources: Sequence[Source], is_barred: Callable[[QuotableUnit], bool]) -> tuple[Found, ...]:
    """The passages to show, best first; none where even the best covers too little."""
    ranked = ranked_passages(asked, sources, is_barred)
    best = max((found.score for found in ranked[:MOST]), default=0.0)
    if best < THRESHOLD:
        return ()
    chosen: list[Found] = []
    for found in ranked:
        if found.score >= CLOSE * best and all(found.best.text != other.best.text for other in chosen):
            chosen.append(found)
    return tuple(chosen[:MOST])


def ranked_passages(
    asked: Asked, sources: Sequence[Source], is_barred: Callable[[QuotableUnit], bool] = lambda _: False
) -> tuple[Found, ...]:
    """The best passage of each section, by its place in the search and by its score, fused by reciprocal rank."""
    sections = [section for source in sources for section in _sections(source, is_barred)]
    weights = weigh(asked, sections)
    found = sorted((_best_passage(section, weights) for section in sections), key=_by_score)
    places = _places(sources)
    fused = {each: 1 / (_SMOOTH + places[each.source]) + 1 / (_SMOOTH + rank) for rank, each in enumerate(found)}
    return tuple(sorted(found, key=lambda each: -fused[each]))


def _by_score(found: Found) -> tuple[float, float]:
    """Of equal scores the newer document comes first."""
    digits = "".join(filter(str.isdigit, found.source.updated_at[:10]))
    return (-round(found.score, 2), -int(digits or 0))


def _places(sources: Sequence[Source]) -> dict[Source, int]:
    """Each source's place among those that the same tool brought."""
    counts = Counter[str]()
    places: dict[Source, int] = {}
    for source in sources:
        places[source] = counts[source.origin]
        counts[source.origin] += 1
    return places


def weigh(asked: Asked, sections: Sequence[Sequence[QuotableUnit]]) -> Weights:
    """The weights of a question's words over these sections."""
    text = asked.text[:_MOST_CHARS]
    language = detect(text) or detect(" ".join(unit.text for section in sections[:MOST] for unit in section))
    said = [frozenset[str]().union(*(_words(part, language) for part in _texts(section))) for section in sections]
    own, earlier = _words(text, language), _words(asked.earlier[:_MOST_CHARS], language)
    shares = {**dict.fromkeys(earlier, _EARLIER), **dict.fromkeys(own, 1.0)}
    return Weights(words={word: share * _rarity(word, said) for word, share in shares.items()}, language=language)


def _rarity(word: str, sections: Sequence[frozenset[str]]) -> float:
    found = sum(word in section for section in sections)
    count = max(1, found)
    rarity = math.log(1 + (max(len(sections), count) - count + 0.5) / (count + 0.5))
    return rarity if found else rarity * _ABSENT


def _sections(source: Source, is_barred: Callable[[QuotableUnit], bool]) -> Iterator[tuple[QuotableUnit, ...]]:
    units = (unit for unit in units_of(source) if not is_barred(unit))
    for _, section in groupby(units, key=lambda unit: unit.context):
        yield tuple(section)


def _texts(units: Sequence[QuotableUnit]) -> Iterator[str]:
    """What a passage says, with what stands above it."""
    yield units[0].source.title
    yield units[0].context
    yield from (unit.text for unit in units)


def _best_passage(section: Sequence[QuotableUnit], weights: Weights) -> Found:
    passages = (_passage(units, weights) for units in windows(section))
    return max(passages, key=lambda each: each.score)


def _passage(units: Sequence[QuotableUnit], weights: Weights) -> Found:
    covered = weights.share(*_texts(units))
    shares = [weights.share(*_texts((unit,))) for unit in units]
    best = shares.index(max(shares))
    return Found(units=tuple(units), best=units[best], covered=covered, score=(covered + shares[best]) / 2)


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
def _words(text: str, language: str | None) -> frozenset[str]:
    return frozenset(stems(text, language))
