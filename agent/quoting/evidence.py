"""Whether a quotation that covers too little of a question by itself is likely to answer it all the same.

Promises: pure; a few shares, weighed as a logistic regression weighed them over questions with an answer and questions
without one: docs/answers.md says how, and what they are worth on questions left out. Must never look at single words:
what a word means is the business of ``concepts``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Final

from agent.quoting.concepts import LITTLE, Concept
from agent.quoting.ranking import Comparison, Ranked
from agent.quoting.units import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What speaks for and against an answer: shares between 0 and 1, and the logarithm of one more than a count.

    ``covered``: the share of the question that the best unit covers, as it was ranked.
    ``named``: how many things asked for stand in the quotation, above it or in its title (the logarithm).
    ``unnamed``: the share of the question that are nouns and stand in none of these.
    ``other_kind``: 1 where a number, a person, a time … is asked for and the unit has none.
    ``told``: the share of what the unit names that is asked for.
    """

    covered: float
    named: float
    unnamed: float
    other_kind: float
    told: float


WEIGHTS: Final = Evidence(covered=5.0, named=2.1, unnamed=-3.6, other_kind=-1.5, told=2.1)
NEEDED: Final = 5.1
"""What the weighed sum has to reach: the even chance. Such an answer is called what comes closest."""


def answers(compared: Comparison, found: Ranked, quoted: Sequence[Unit]) -> bool:
    """Whether the evidence for a unit, quoted with those around it, is enough."""
    return weighed(evidence_for(compared, found, quoted)) >= NEEDED


def weighed(evidence: Evidence) -> float:
    """What speaks for an answer, less what speaks against it."""
    return math.fsum(map(operator.mul, astuple(WEIGHTS), astuple(evidence)))


def evidence_for(compared: Comparison, found: Ranked, quoted: Sequence[Unit]) -> Evidence:
    """The evidence for a unit, quoted with those around it."""
    unit, places = found.unit, compared.places
    weights = {each: weight for each, weight in compared.weights.items() if each.weight > LITTLE} or compared.weights
    named = places.named_in(weights, *(each.text for each in quoted), unit.context, unit.source.title)
    told = places.named(unit.text)
    wanted = {key for each in compared.weights for key in (each.key, *each.others)}
    return Evidence(
        covered=found.covered,
        named=math.log1p(len(named)),
        unnamed=_share(weights, (each for each in weights if each.is_noun and each not in named)),
        other_kind=float(found.is_other_kind),
        told=len(told & wanted) / max(1, len(told)),
    )


def _share(weights: Mapping[Concept, float], some: Iterable[Concept]) -> float:
    return sum(weights[each] for each in some) / sum(weights.values())
