"""Where the things that a question names stand among the units: how rare each is, and how much of it a unit has.

Promises: shares between 0 and 1, and small bonuses; computed once a question over all its units. Must never look at
the form of the question: that is ``ranking``'s business.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from agent.knowledge.search.tokens import stems
from agent.quoting.answer_type import counts
from agent.quoting.concepts import LITTLE, Concept, concepts, concepts_in
from agent.quoting.units import Unit
from verification.types import Source

FLATTENED: Final = 0.5
"""How much rarity counts: a common subject must not weigh next to nothing beside a rare verb."""

IN_TEXT: Final = 1.0
IN_CONTEXT: Final = 0.9
IN_TITLE: Final = 0.7
IN_BLOCK: Final = 0.5
IN_SOURCE: Final = 0.2
UNASKED: Final = 0.8
SIMILAR: Final = 0.7
OTHER: Final = 0.85
"""What a word counts for by where it stands; a longer or shorter form of it, and another word for it, count less."""

MISSED: Final = 2.0
"""A thing that is asked for by a noun and named nowhere near weighs that many times what it would."""

FORGIVEN: Final = 0.75
"""What a verb weighs that is not said: what is done can be told in many words, what it is done to in few."""

SPARED: Final = 0.15
"""What a word weighs that is not said and need not be: ``implied`` has them."""

PAIRS: Final = 0.2
"""What it adds when words that are neighbours in the question are neighbours here."""

TITLED: Final = 0.2
ENTITLED: Final = 0.15
"""What it adds when a unit's document is about what the question names, and about nothing else."""

LEADING: Final = 0.06
"""What it adds to be what a section begins with."""

_APART: Final = frozenset({"item", "row"})
"""What stands in another line of a list or a table is said of something else."""

_PREFIX: Final = 5


class Places:
    """Where each word stands: in a unit, above it, in its title, its block, its source."""

    def __init__(self, units: Sequence[Unit], language: str | None) -> None:
        self._count = len(units)
        self._language = language
        self._frequency: Counter[str] = Counter()
        self._similar: dict[str, frozenset[str]] = {}
        self._blocks: dict[tuple[Source, int], set[str]] = {}
        self._sources: dict[Source, set[str]] = {}
        for unit in units:
            here = self.named(unit.text) | self.named(unit.context)
            self._frequency.update(here | self.named(unit.source.title))
            self._blocks.setdefault((unit.source, unit.block), set()).update(here)
            self._sources.setdefault(unit.source, set()).update(here)
        self._single = [word for word in self._frequency if len(word) >= _PREFIX and " " not in word]
        spoken = (unit for unit in reversed(units) if not unit.is_field)
        self._leading = frozenset({unit.source: unit for unit in spoken}.values())

    def rarity(self, concept: Concept) -> float:
        """What a thing weighs: more, the fewer units name it."""
        return math.pow(math.log(1 + self._count / max(1, self._naming(concept))), FLATTENED)

    def knows(self, concept: Concept) -> bool:
        """Whether any unit names a thing."""
        return self._naming(concept) > 0

    def _naming(self, concept: Concept) -> int:
        return max(self._frequency[key] for key in (concept.key, *concept.others, *concept.written))

    def pairs(self, text: str) -> frozenset[tuple[str, str]]:
        """Which words are neighbours in a text."""
        return _pairs(text, self._language)

    def raised(self, unit: Unit, weights: Mapping[Concept, float], pairs: frozenset[tuple[str, str]]) -> float:
        """What neighbours in the question, the document's subject and the place in its section add."""
        leading = LEADING if unit in self._leading else 0.0
        return PAIRS * self._paired(unit, pairs) + self._titled(unit, weights) + leading

    def _paired(self, unit: Unit, pairs: frozenset[tuple[str, str]]) -> float:
        """The share of the question's word pairs that stand in the unit or above it."""
        if not pairs:
            return 0.0
        here = _pairs(unit.text, self._language) | _pairs(unit.context, self._language)
        return len(pairs & here) / len(pairs)

    def _titled(self, unit: Unit, weights: Mapping[Concept, float]) -> float:
        """What the title of the unit's document adds: more, where it is all asked for."""
        title = self.named(unit.source.title.partition(" › ")[0])
        share = sum(weight * self._standing(each, ((1.0, title),)) for each, weight in weights.items())
        asked = {key for each in weights for key in (each.key, *each.others)}
        return (TITLED + (ENTITLED if title <= asked else 0.0)) * share / sum(weights.values())

    def covered(self, unit: Unit, weights: Mapping[Concept, float]) -> float:
        """The share of the weight that a unit has, by where its words stand.

        Of a line of facts, such as ``Owner: …``, only its own words count unless its name is asked for.
        """
        total = sum(weights.values())
        own = self.named(unit.text)
        if unit.is_field and not self._asks_for_name(unit, weights):
            return sum(weight * self._standing(each, ((UNASKED, own),)) for each, weight in weights.items()) / total
        insists = not any(each.weight > 1 and self._stands(each, unit) >= IN_TITLE for each in weights)
        held = 0.0
        for each, weight in weights.items():
            stands = self._stands(each, unit)
            if each.is_implied and stands <= IN_SOURCE:  # somewhere on the page: less than not having to be said
                stands = 0.0
            held += weight * stands
            if insists and each.is_noun and self._is_missed(stands, unit):
                total += (MISSED - 1) * weight
            elif each.is_implied and not stands:
                total -= (1 - SPARED) * weight
            elif each.is_verb and not stands:
                total -= (1 - FORGIVEN) * weight
        return held / total

    def named_in(self, things: Iterable[Concept], *texts: str) -> frozenset[Concept]:
        """Those of the things that stand in one of these texts, wherever."""
        held = frozenset().union(*map(self.named, texts))
        return frozenset(each for each in things if self._standing(each, ((IN_TEXT, held),)))

    def lacks(self, unit: Unit, weights: Mapping[Concept, float]) -> bool:
        """Whether a thing that is asked for, and not only a kind of answer, is named nowhere near a unit."""
        return any(
            each.weight >= 1 and not each.is_implied and self._is_missed(self._stands(each, unit), unit)
            for each in weights
        )

    def _stands(self, concept: Concept, unit: Unit) -> float:
        """What a thing counts for by where it stands, seen from a unit."""
        near = (
            (IN_TEXT, self.named(unit.text)),
            (IN_CONTEXT, self.named(unit.context)),
            (IN_TITLE, self.named(unit.source.title)),
        )
        far = ((IN_BLOCK, self._blocks[unit.source, unit.block]), (IN_SOURCE, self._sources[unit.source]))
        return self._standing(concept, near) or next((value for value, held in far if concept.key in held), 0.0)

    def _is_missed(self, stands: float, unit: Unit) -> bool:
        return stands <= (IN_BLOCK if unit.kind in _APART else IN_SOURCE)

    def names(self, unit: Unit, weights: Mapping[Concept, float]) -> bool:
        """Whether a unit itself, or what stands right above it, names anything asked for."""
        near = ((IN_TEXT, self.named(unit.text)), (IN_CONTEXT, self.named(unit.context)))
        return any(self._standing(each, near) for each in weights)

    def names_any(self, unit: Unit, text: str) -> bool:
        """Whether a unit, what stands above it or its title names one of the things in a text."""
        things = [each for each in concepts(text, self._language) if each.weight > LITTLE and not each.is_implied]
        return not things or bool(self.named_in(things, unit.text, unit.context, unit.source.title))

    def counts(self, unit: Unit, wanted: tuple[str, ...]) -> bool:
        """Whether a unit says how many there are of what is wanted; of nothing, every unit does."""
        things = concepts(" ".join(wanted), self._language)
        keys = frozenset(word for thing in things for each in (thing.key, *thing.others) for word in each.split())
        return not keys or counts(unit.text, keys)

    def _asks_for_name(self, unit: Unit, weights: Mapping[Concept, float]) -> bool:
        label = self.named(unit.text.partition(":")[0])
        return any(each.weight > LITTLE and self._standing(each, ((IN_TEXT, label),)) for each in weights)

    def _standing(self, concept: Concept, places: Iterable[tuple[float, frozenset[str]]]) -> float:
        best = 0.0
        for value, held in places:
            if concept.key in held or not concept.written.isdisjoint(held):
                best = max(best, value)
            elif not concept.others.isdisjoint(held):
                best = max(best, value * OTHER)
            elif (concept.parts and concept.parts <= held) or not self._alike(concept.key).isdisjoint(held):
                best = max(best, value * SIMILAR)
        return best

    def _alike(self, stem: str) -> frozenset[str]:
        """Words that are this one with more or less behind it: compounds, endings the stemmer left."""
        if stem not in self._similar:
            compared = self._single if len(stem) >= _PREFIX and " " not in stem else []
            self._similar[stem] = frozenset(o for o in compared if stem.startswith(o) or o.startswith(stem))
        return self._similar[stem]

    def named(self, text: str) -> frozenset[str]:
        """The keys of all things that a text names."""
        return concepts_in(text, self._language)


@lru_cache(maxsize=8_192)
def _pairs(text: str, language: str | None) -> frozenset[tuple[str, str]]:
    found = stems(text, language)
    return frozenset(pairwise(found))
