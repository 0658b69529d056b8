"""How well each unit answers a question, by the words they share and where those stand.

Promises: a score between 0 and about 1.3: the share of the question's weight that a unit covers, rare words weighing
more, raised a little where the unit has the form that the question asks for. Pure and deterministic.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from agent.knowledge.terms import stems
from agent.quoting.units import Unit
from verification.answer import Source
from verification.language import detect

IN_TEXT: Final = 1.0
IN_CONTEXT: Final = 0.9
IN_TITLE: Final = 0.7
IN_BLOCK: Final = 0.5
IN_SOURCE: Final = 0.2
SIMILAR: Final = 0.7
"""What a word counts for by where it stands; a longer or shorter form of it counts a little less."""

PAIRS: Final = 0.2
"""What it adds when words that are neighbours in the question are neighbours here."""

DEFINES: Final = 0.25
"""What it adds when a unit opens with just what a question asks the meaning of."""

EARLIER: Final = 0.5
"""Words of earlier questions weigh less than those of this one."""

MOST_CHARS: Final = 2_000
MOST_WORDS: Final = 60
"""A question has fewer; what has more is something pasted, and would only cost time."""

_NUMBER_ASKED: Final = re.compile(
    r"\bhow (?:many|much|long|often|soon|quickly|fast|far|old|big|large|high|late|early)\b|\bwhen\b|\bwhat time\b"
    r"|\b(?:limit|amount|maximum|minimum|deadline|price|cost|budget|number)\b"
    r"|\b(?:wie ?viele?|wie (?:lange|oft|hoch|schnell)|wann|combien|quand|cuánt[oa]s?|cuándo|berapa|kapan)\b"
    r"|何日|何時|いくら|いつ|多少|几|多久|何时",
    re.IGNORECASE,
)
_PROCEDURE_ASKED: Final = re.compile(
    r"\bhow (?:do|can|should|must|to|does one)\b|\bwhat (?:should|must|do) (?:i|we)\b|\bwhat (?:now|are the steps)\b"
    r"|\bsteps\b"
    r"|\bprocedure\b|\brunbook\b"
    r"|\b(?:wie (?:kann|mache|muss|soll|geht|richte)\w*|was (?:tun|muss ich)|comment|cómo|bagaimana (?:cara|saya))\b"
    r"|どうやって|方法|手順|怎么|如何|步骤",
    re.IGNORECASE,
)
_MEANING_ASKED: Final = re.compile(
    r"^\W*(?:what(?:['’]s| is| are| does)|define|explain|was (?:ist|sind|bedeutet|heißt)|qu['’]est-ce"
    r"|qué (?:es|son|significa)|apa (?:itu|arti))\b|とは|是什么",
    re.IGNORECASE,
)
_OPENING_CHARS: Final = 120
_DIGIT: Final = re.compile(r"\d")
_AMOUNT: Final = re.compile(
    r"\d|[一二三四五六七八九十百]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|once|twice|every|each|daily|weekly"
    r"|monthly|yearly|never|always|until|before|after|during|unlimited|half|days?|hours?|weeks?|months?|years?|jede[rsn]?|täglich"
    r"|wöchentlich|monatlich|nie|bis|ein(?:e|en|er|mal)?|zwei|drei|chaque|jamais|un|une|deux|trois|cada|nunca|una|dos|tres|setiap"
    r"|satu|dua|tiga|毎日|毎週|毎月)\b",
    re.IGNORECASE,
)
_NUMBER_BONUS: Final = 1.12
_NO_AMOUNT: Final = 0.8
_PROCEDURE_BONUS: Final = 1.1
_LATE_RANK: Final = 0.005
_PREFIX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as it is compared: its text, and the words of earlier questions that complete it."""

    text: str
    completed: str = ""

    @property
    def wants_number(self) -> bool:
        """It asks for an amount, a length or a time."""
        return _NUMBER_ASKED.search(self.text) is not None

    @property
    def wants_procedure(self) -> bool:
        """It asks how something is done."""
        return _PROCEDURE_ASKED.search(self.text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A unit and its score; ``covered`` is the share of the question without any bonus."""

    unit: Unit
    score: float
    covered: float


def rank(asked: Asked, units: Sequence[Unit]) -> tuple[Ranked, ...]:
    """All units, best first; among equals the order of the sources decides."""
    asked = Asked(text=asked.text[:MOST_CHARS], completed=asked.completed[:MOST_CHARS])
    language = detect(asked.text) or _spoken(units)
    places = _Places(units, language)
    weights = {stem: places.rarity(stem) * share for stem, share in _wanted(asked, language).items()}
    pairs = _pairs(asked.text, language)
    total = sum(weights.values())
    if not total:
        return ()
    late = {source: n * _LATE_RANK for n, source in enumerate(dict.fromkeys(unit.source for unit in units))}
    found = [_judged(asked, unit, places.covered(unit, weights) / total, places.paired(unit, pairs)) for unit in units]
    return tuple(sorted(found, key=lambda each: late[each.unit.source] - each.score))


def _judged(asked: Asked, unit: Unit, covered: float, paired: float) -> Ranked:
    if asked.wants_number and not _AMOUNT.search(unit.text):
        covered *= _NO_AMOUNT
    score = covered + PAIRS * paired + (DEFINES if _defines(asked, unit) else 0.0)
    if asked.wants_number and _DIGIT.search(unit.text):
        score *= _NUMBER_BONUS
    if asked.wants_procedure and (unit.kind in {"step", "code"} or "`" in unit.text):
        score *= _PROCEDURE_BONUS
    return Ranked(unit=unit, score=score, covered=covered)


def _defines(asked: Asked, unit: Unit) -> bool:
    """Whether a unit opens with the subject of a question for a meaning, as a glossary or a first sentence does."""
    if not _MEANING_ASKED.search(asked.text):
        return False
    subject = stems(asked.text, None)
    return bool(subject) and stems(unit.text[:_OPENING_CHARS], None)[: len(subject)] == subject


def _spoken(units: Sequence[Unit]) -> str | None:
    """The language of most sources, for a question too short to tell."""
    seen = Counter(detect(source.text) for source in dict.fromkeys(unit.source for unit in units))
    return seen.most_common(1)[0][0] if seen else None


def _wanted(asked: Asked, language: str | None) -> dict[str, float]:
    """The stems asked for, with their share: the question's own count in full."""
    own = dict.fromkeys(stems(asked.text, language)[:MOST_WORDS], 1.0)
    return {**dict.fromkeys(stems(asked.completed, language)[:MOST_WORDS], EARLIER), **own}


class _Places:
    """Where each word stands: in a unit, above it, in its title, its block, its source."""

    def __init__(self, units: Sequence[Unit], language: str | None) -> None:
        self._count = len(units)
        self._language = language
        self._frequency: Counter[str] = Counter()
        self._similar: dict[str, frozenset[str]] = {}
        self._blocks: dict[tuple[Source, int], set[str]] = {}
        self._sources: dict[Source, set[str]] = {}
        for unit in units:
            here = self._stems(unit.text) | self._stems(unit.context)
            self._frequency.update(here | self._stems(unit.source.title))
            self._blocks.setdefault((unit.source, unit.block), set()).update(here)
            self._sources.setdefault(unit.source, set()).update(here)

    def rarity(self, stem: str) -> float:
        """What a word weighs: more, the fewer units have it."""
        return math.log(1 + self._count / max(1, self._frequency[stem]))

    def paired(self, unit: Unit, pairs: frozenset[tuple[str, str]]) -> float:
        """The share of the question's word pairs that stand in the unit or above it."""
        if not pairs:
            return 0.0
        here = _pairs(unit.text, self._language) | _pairs(unit.context, self._language)
        return len(pairs & here) / len(pairs)

    def covered(self, unit: Unit, weights: Mapping[str, float]) -> float:
        """The weight of the words that a unit has, by where they stand."""
        near = (
            (IN_TEXT, self._stems(unit.text)),
            (IN_CONTEXT, self._stems(unit.context)),
            (IN_TITLE, self._stems(unit.source.title)),
        )
        far = ((IN_BLOCK, self._blocks[unit.source, unit.block]), (IN_SOURCE, self._sources[unit.source]))
        return sum(
            weight
            * (_standing(stem, self._alike(stem), near) or next((value for value, held in far if stem in held), 0.0))
            for stem, weight in weights.items()
        )

    def _alike(self, stem: str) -> frozenset[str]:
        """Words that are this one with more or less behind it: compounds, endings the stemmer left."""
        if stem not in self._similar:
            long = [other for other in self._frequency if len(other) >= _PREFIX] if len(stem) >= _PREFIX else []
            self._similar[stem] = frozenset(o for o in long if stem.startswith(o) or o.startswith(stem))
        return self._similar[stem]

    def _stems(self, text: str) -> frozenset[str]:
        return text_stems(text, self._language)


def _standing(stem: str, alike: frozenset[str], places: Iterable[tuple[float, frozenset[str]]]) -> float:
    best = 0.0
    for value, held in places:
        if stem in held:
            best = max(best, value)
        elif not alike.isdisjoint(held):
            best = max(best, value * SIMILAR)
    return best


@lru_cache(maxsize=8_192)
def _pairs(text: str, language: str | None) -> frozenset[tuple[str, str]]:
    found = stems(text, language)
    return frozenset(pairwise(found))


@lru_cache(maxsize=8_192)
def text_stems(text: str, language: str | None) -> frozenset[str]:
    """The stems of a text."""
    return frozenset(stems(text, language))
