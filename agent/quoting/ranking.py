"""How well each unit answers a question, by the words they share and where those stand.

Promises: a score from 0 up: the share of the question's weight that a unit covers, rare words weighing more, raised
where the unit has the form that the question asks for. Pure and deterministic.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from agent.knowledge.search.recency import asks_for_newest
from agent.knowledge.search.tokens import stem, stems, subject_tokens, words
from agent.quoting.answer_type import LENGTH_ASKED, TAKES, counted, has_column, has_measure, wants_number
from agent.quoting.concepts import LITTLE, Concept, concepts
from agent.quoting.implied import own_names
from agent.quoting.matches import Places
from agent.quoting.query import ASKS
from agent.quoting.units import Unit
from verification.text.language import detect

DEFINES: Final = 0.25
"""What it adds when a unit opens with just what a question asks the meaning of."""

EARLIER: Final = 0.5
"""Words of earlier questions weigh less than those of this one."""

MOST_CHARS: Final = 2_000
MOST_WORDS: Final = 60
"""A question has fewer; what has more is something pasted, and would only cost time."""

_PROCEDURE_ASKED: Final = re.compile(
    r"\bhow (?:do|can|should|must|to|does one)\b|\bwhat (?:should|must|do) (?:i|we)\b|\bwhat (?:now|are the steps)\b"
    r"|\bsteps\b"
    r"|\bprocedure\b|\brunbook\b"
    r"|\b(?:wie (?:kann|mache|muss|soll|geht|richte)\w*|was (?:tun|muss ich)|comment|cómo|bagaimana (?:cara|saya))\b"
    r"|どうやって|方法|手順|怎么|如何|步骤",
    re.IGNORECASE,
)
_FACT_ASKED: Final = re.compile(
    r"\W*(?:and |so |but )?(?:how (?:long|many|much|often|soon|far|large|big)|when|who(?:m|se)?)\b", re.IGNORECASE
)
"""Not for a way, whatever else is said: "how long … before I need the *runbook*?"."""
_MEANING_ASKED: Final = re.compile(
    r"^\W*(?:what(?: exactly)?(?:['’]s| is| are| does)|define|explain|was (?:ist|sind|bedeutet|heißt)|qu['’]est-ce"
    r"|qué (?:es|son|significa)|apa (?:itu|arti))\b|とは|是什么",
    re.IGNORECASE,
)
_OPENING_CHARS: Final = 120
_DEFINITION: Final = re.compile(
    r"[^.:\n]{0,40}(?::|[：は是]|\b(?:is|are|means|stands|ist|sind|bedeutet|heißt|est|sont|es|son|adalah|ialah)\b)",
    re.IGNORECASE,
)
_DIGIT: Final = re.compile(r"\d")
_NUMBER_BONUS: Final = 1.12
_LENGTH_BONUS: Final = 1.6
_HALVED: Final = 0.5
_PROCEDURE_BONUS: Final = 1.1
_REASON_BONUS: Final = 1.6
"""What a unit gains that gives a reason, for who asks for one."""
_REASON_ASKED: Final = re.compile(r"\b(?:why|reasons?|causes?)\b|\bwhat(?:['’]s| is)(?: \w+)? behind\b", re.IGNORECASE)
_WHY: Final = re.compile(r"\W*(?:(?:and|so|but) )?why\b", re.IGNORECASE)
_REASON: Final = re.compile(
    r"\b(?:because|causes?|caused|reasons?|due to|comes? from|so that|which means|otherwise|therefore|in order to"
    r"|to (?:save|avoid|prevent|keep|make sure)|would|since)\b",
    re.IGNORECASE,
)
_STEP_BONUS: Final = 1.2
_COLUMN_BONUS: Final = 1.2
"""What it adds when a row has a column of the question's own word: "Where"."""
_RELATION_BONUS: Final = 1.35
"""What it gains when the heading above a unit says "after the move" as the question does."""
_RELATION: Final = re.compile(
    r"\b(before|after|during|without|until|outside|inside|beyond|between|under|above|below|against)"
    r"(?: (?:the|an?|our|my|your|its|their|this|that))? ([^\W_]+)",
    re.IGNORECASE,
)
_LATE_RANK: Final = 0.005
_FRESH: Final = 0.15
"""What it adds to be of the newest document, where the newest is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as it is compared: its text, the words of earlier questions that complete it, and its language.

    ``told`` is what stands before it in the message and asks nothing: what the question is about, but no part of it.
    ``is_check``: the text itself is what was told, and whether that holds is asked.
    """

    text: str
    completed: str = ""
    told: str = ""
    is_check: bool = False
    language: str | None = None

    @property
    def wants_number(self) -> bool:
        """It asks for an amount, a length or a time, or whether one holds."""
        return wants_number(self.text) or (self.is_check and _DIGIT.search(self.text) is not None)

    @property
    def wants_procedure(self) -> bool:
        """It asks how something is done."""
        return _PROCEDURE_ASKED.search(self.text) is not None and not _FACT_ASKED.match(self.text)

    @property
    def wants_reason(self) -> bool:
        """It asks why."""
        return _WHY.match(self.text) is not None

    @property
    def is_bare(self) -> bool:
        """It only names something, or something to be done: "fail over the database"."""
        return not self.text.rstrip().endswith(("?", "？")) and next(iter(words(self.text)), "") not in ASKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A unit and its score; ``covered`` is the share of the question without any bonus.

    ``lacks``: a thing that is asked for is named nowhere near. ``is_other_kind``: a number, a person, a time … is asked
    for, and it has none.
    """

    unit: Unit
    score: float
    covered: float
    lacks: bool = False
    is_other_kind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A question beside units: what it asks for with its weight, where that stands, and all units, best first."""

    asked: Asked
    places: Places
    weights: Mapping[Concept, float]
    ranked: tuple[Ranked, ...]


def rank(asked: Asked, units: Sequence[Unit]) -> tuple[Ranked, ...]:
    """All units, best first; among equals the order of the sources decides."""
    return compare(asked, units).ranked


def compare(asked: Asked, units: Sequence[Unit]) -> Comparison:
    """The question beside all units; none is ranked where it names nothing."""
    asked = replace(
        asked, text=asked.text[:MOST_CHARS], completed=asked.completed[:MOST_CHARS], told=asked.told[:MOST_CHARS]
    )
    seen = Counter(detect(source.text) for source in dict.fromkeys(unit.source for unit in units))
    language = _compared_in(asked, seen)
    places = Places(units, language)
    wanted = _wanted(asked, language, frozenset(filter(None, seen)))
    own = own_names(asked.text, {unit.source.text for unit in units})
    wanted = {_unless_own(concept, own, language): share for concept, share in wanted.items()}
    if asked.is_check:
        wanted = {_checked(concept, places): share for concept, share in wanted.items()}
    weights = {concept: places.rarity(concept) * share for concept, share in wanted.items()}
    ranked = _ranked(asked, units, places, weights) if sum(weights.values()) else ()
    return Comparison(asked=asked, places=places, weights=weights, ranked=ranked)


def _ranked(
    asked: Asked, units: Sequence[Unit], places: Places, weights: Mapping[Concept, float]
) -> tuple[Ranked, ...]:
    late = {source: n * _LATE_RANK for n, source in enumerate(dict.fromkeys(unit.source for unit in units))}
    fresh = _freshness(asked, units)
    found = [_judged(asked, unit, places, weights) for unit in units]
    return tuple(
        sorted(found, key=lambda each: late[each.unit.source] - each.score - fresh.get(each.unit.source.updated_at, 0))
    )


def _unless_own(concept: Concept, own: frozenset[str], language: str | None) -> Concept:
    """A thing asked for; need not be said where it is the name of those who ask."""
    is_own = any(stem(name, language) == concept.key for name in own)
    return replace(concept, is_implied=True, is_noun=False) if is_own else concept


def _checked(concept: Concept, places: Places) -> Concept:
    """What is told may well be told in other words; but a thing that no source knows cannot be held against them."""
    return replace(concept, is_noun=concept.is_noun and not concept.key.isdigit() and not places.knows(concept))


def _freshness(asked: Asked, units: Sequence[Unit]) -> dict[str, float]:
    """What a source's date adds: something, where the question is for the newest, else nothing."""
    if not asks_for_newest(asked.text):
        return {}
    dates = sorted({unit.source.updated_at for unit in units} - {""})
    return {date: _FRESH * place / len(dates) for place, date in enumerate(dates, start=1)}


def _judged(asked: Asked, unit: Unit, places: Places, weights: Mapping[Concept, float]) -> Ranked:
    covered, raised = places.covered(unit, weights), places.raised(unit, weights, places.pairs(asked.text))
    is_other_kind = not _has_measure(asked, unit, places)
    if is_other_kind or (asked.wants_number and not places.names(unit, weights)):
        covered *= _HALVED
    score = covered + raised + (DEFINES if defines(asked, unit) else 0.0)
    score *= _form(asked, unit)
    # "Whom do I forward it to?": what "it" is was told, and what names nothing of that is about something else.
    if asked.told and not any(each.is_noun for each in weights) and not places.names_any(unit, asked.told):
        covered *= _HALVED
    lacks = places.lacks(unit, weights)
    return Ranked(unit=unit, score=score, covered=covered, lacks=lacks, is_other_kind=is_other_kind)


def _form(asked: Asked, unit: Unit) -> float:
    """What a unit gains by its form, times: a number for who asks for one, a step for who asks for a way."""
    gains = (
        (_NUMBER_BONUS, asked.wants_number and _DIGIT.search(unit.text)),
        (_LENGTH_BONUS, LENGTH_ASKED.search(asked.text) and TAKES.search(unit.text)),
        (_REASON_BONUS, _REASON_ASKED.search(asked.text) and gives_reason(unit)),
        (_COLUMN_BONUS, unit.kind == "row" and has_column(asked.text, unit.text)),
        (_RELATION_BONUS, not relations(asked.text).isdisjoint(relations(unit.context))),
        (_way(unit), asked.wants_procedure or asked.is_bare),
    )
    return math.prod(gain for gain, held in gains if held)


def gives_reason(unit: Unit) -> bool:
    """Whether a unit, or the heading above it, says why."""
    return _REASON.search(f"{unit.context} {unit.text}") is not None


def _way(unit: Unit) -> float:
    """What a unit gains that says how something is done."""
    if unit.kind == "step":
        return _STEP_BONUS
    return _PROCEDURE_BONUS if unit.kind == "code" or "`" in unit.text else 1.0


def _has_measure(asked: Asked, unit: Unit, places: Places) -> bool:
    """Whether a unit has the kind of thing that is asked for."""
    leads_to_code = unit.kind == "code" or unit.text.endswith((":", "："))
    text = f"`{unit.text}`" if leads_to_code else unit.text
    return has_measure(asked.text, text, unit.context) and places.counts(unit, counted(asked.text))


def defines(asked: Asked, unit: Unit) -> bool:
    """Whether a unit opens with the subject of a question for a meaning, as a glossary, a row or a sentence does."""
    if not _MEANING_ASKED.search(asked.text) and not asked.is_bare:
        return False
    subject = stems(" ".join(subject_tokens(asked.text)), None)
    text = unit.text.partition(": ")[2] if unit.kind == "row" else unit.text
    opening = stems(text[:_OPENING_CHARS], None)[: len(subject)]
    opens = opening == subject or opening[:1] == ["".join(subject)]
    return bool(subject) and opens and _DEFINITION.match(text) is not None


def _compared_in(asked: Asked, seen: Counter[str | None]) -> str | None:
    """The question's language where a source has it or none can be told, else that of most sources."""
    own = asked.language or detect(asked.text)
    told = Counter({language: count for language, count in seen.items() if language})
    return own if own in told or not told else told.most_common(1)[0][0]


def _wanted(asked: Asked, language: str | None, spoken: frozenset[str]) -> dict[Concept, float]:
    """What is asked for, with its share: the question's own words in full, earlier ones no more than they."""
    mine = asked.language
    own = {concept: concept.weight for concept in concepts(asked.text, language, spoken, mine)[:MOST_WORDS]}
    taken = {concept.key for concept in own}
    added = concepts(asked.completed, language, spoken, mine)[:MOST_WORDS]
    # A verb of an earlier question is what this one is about, not another word for something.
    earlier = {replace(each, is_verb=False): EARLIER * each.weight for each in added if each.key not in taken}
    taken.update(each.key for each in earlier)
    told = concepts(asked.told, language, spoken, mine)[:MOST_WORDS] if asked.told else ()
    earlier |= {
        replace(each, is_verb=True, is_noun=False): EARLIER * (LITTLE if each.key.isdigit() else each.weight)
        for each in told
        if each.key not in taken
    }
    before = sum(earlier.values())
    said = sum(weight for weight in own.values() if weight > LITTLE)
    share = min(1.0, sum(own.values()) / before) if said and before else 1.0
    return {**own, **{concept: weight * share for concept, weight in earlier.items()}}


@lru_cache(maxsize=8_192)
def text_stems(text: str, language: str | None) -> frozenset[str]:
    """The stems of a text."""
    return frozenset(stems(text, language))


@lru_cache(maxsize=8_192)
def relations(text: str) -> frozenset[tuple[str, str]]:
    """Which words like "after" stand before which stems."""
    return frozenset((before.lower(), stem(word.lower(), "en")) for before, word in _RELATION.findall(text))
