"""Whether a number follows from the numbers of the sources: a sum, a difference, a product, a share, a count, a span.

Only numbers that stand near the claim's subject are reckoned with, and at most two at a time, so that chance results do
not excuse a wrong number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import combinations

from verification.checks.durations import is_between
from verification.checks.equations import results_in
from verification.checks.rows import groups
from verification.evidence.evidence import Evidence, Hit
from verification.text.lexicon import all_words, compiled
from verification.values.amounts import is_share
from verification.values.numbers import Quantity
from verification.values.rates import is_span, seconds
from verification.values.units import UNITS

_RECKONED = r"\b(?:{reckoned})|\b(?:by|um)(?= \W?\d)|{reckoned_unparted}"
_LINKS = frozenset({*"-–—~〜～至到", "to", "bis", "à", "a", "hasta", "sampai", "hingga", "から"})
_AND = re.compile(r"and|und|et|y|dan")
_BETWEEN = re.compile(r"\b(?:between|zwischen|entre|antara)\s\D{0,3}$", re.IGNORECASE)
_REST = re.compile(r"\b(?:not|nicht)\b", re.IGNORECASE)  # of 400 days kept, 90 searchable, "310 are not"
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*•◦]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_SERIES = re.compile(r"(?:,|、|，|;)?\s*\b(?:and|or|und|oder|et|ou|y|o|dan|atau)\b\s+|[、，,;]\s*|と|和|及び|および")
_REACH = 16  # letters: "zwischen den " and the like
_NEAR = 3  # sentences: with more, any small number follows from something
_MOST, _FEW = 24, 8  # pairs of these are tried: the work stays bounded, and chance results rare
_SMALL_COUNT, _LARGEST_COUNT = 12, 100_000  # what people count in a list; what they multiply by


def follows(quantity: Quantity, evidence: Evidence) -> bool:
    """True if the number can be reckoned from the cited sources near the claim's subject."""
    quantity = _whole(quantity, evidence)
    return (
        results_in(quantity, evidence)
        or _is_count(quantity, evidence)
        or any(_same(quantity, value) for value in _results(quantity, evidence))
        or is_between(quantity, evidence)
        or _is_factor(quantity, evidence)
    )


def _whole(quantity: Quantity, evidence: Evidence) -> Quantity:
    """With the unit that "140 euros, 20 more than in Berlin" has only once."""
    if quantity.unit or quantity.noun not in all_words("more"):
        return quantity
    before = [other.unit for other in evidence.claim.quantities[:_MOST] if other.unit and other.end <= quantity.start]
    return quantity._replace(unit=before[-1]) if before else quantity


def may_follow(quantity: Quantity, evidence: Evidence) -> bool:
    """True if the number is the sum of the alike numbers of a sentence although nothing says that it is one.

    Where the claim says that it is a sum, what was counted may have other names: titles and cups are trophies.
    """
    text = evidence.claim.text
    if any(_is_range(text, other, quantity) for other in evidence.claim.quantities[:_MOST] if other != quantity):
        return False
    counted = quantity._replace(noun="") if quantity.unit is None and compiled(_RECKONED).search(text) else quantity
    sums = (sum(amounts) for group in _near(evidence) if len(amounts := _alike(counted, group)) > 1)
    return any(_same(quantity, value) for value in sums)


def _same(quantity: Quantity, value: float) -> bool:
    if quantity.unit and quantity.unit.dimension == "ratio" and quantity.bound != "~":
        return any(is_share(amount, value) for amount in quantity.amounts())
    roughly = 0.1 if quantity.bound == "~" else 1e-9
    return any(math.isclose(amount, value, rel_tol=roughly) for amount in quantity.amounts())


def _near(evidence: Evidence) -> Iterator[list[Quantity]]:
    """The numbers of each sentence near the claim, those of all of them together, and those of the rows it names."""
    near = [_inside(hit) for hit in evidence.hits[:_NEAR]]
    yield from near
    yield [quantity for group in near for quantity in group][:_MOST]
    stems = [term.stem for term in evidence.claim.terms if term.stem]
    for cited in evidence.cited:
        for table in groups(cited.passage):
            spans = [span for line in table.named(stems) for span in line.spans]
            rows = [q for q in cited.passage.quantities if any(start <= q.start < end for start, end in spans)]
            yield rows[:_MOST]


def _inside(hit: Hit) -> list[Quantity]:
    return [q for q in hit.source.passage.quantities if hit.start <= q.start < hit.end][:_MOST]


def _alike(quantity: Quantity, others: list[Quantity]) -> list[float]:
    """The amounts of those numbers that could be added to give this one."""
    unit = quantity.unit
    return [
        other.amounts()[0] if other.unit or not unit else other.readings[0] * unit.factor
        for other in others
        if (other.unit and other.unit.dimension) == (unit and unit.dimension) or _is_bare(other)
        if unit or not quantity.noun or not other.noun or other.noun[:4] == quantity.noun[:4]
    ]


def _is_bare(other: Quantity) -> bool:
    """True for the second of "August cost 41,200 dollars, July 38,900" and of "20 seconds (was 60)"."""
    return other.unit is None and not other.noun and not other.weak and not other.worded


def _results(quantity: Quantity, evidence: Evidence) -> Iterator[float]:
    """What can be reckoned from two numbers, or as the sum of all alike, where the claim says or shows that it was."""
    text, others = evidence.claim.text, evidence.claim.quantities[:_MOST]
    mine = [q.amounts()[0] for q in others if q is not quantity and not _is_range(text, q, quantity)]
    for group in _near(evidence):
        yield from _of_alike(text, mine, _alike(quantity, group))
        yield from _shares(quantity, group)
        if not all_words("pairs").isdisjoint(evidence.words):
            yield from (2 * other.readings[0] for other in group)
        if quantity.unit is not None:
            yield from _products(quantity, group, evidence)
            continue
        if quantity.noun in all_words("times") or (quantity.bound == "~" and _says_each(evidence)):
            plain = [q.amounts()[0] for q in group if q.readings[0]][:_FEW]
            yield from (max(a, b) / min(a, b) for a, b in combinations(plain, 2))
        if quantity.period:  # what comes every six hours comes "four a day", or "4 times a day"
            spans = [q for q in group if q.unit and is_span(q.unit) and q.readings[0]]
            yield from (seconds(quantity.period) / seconds(q.unit) / q.readings[0] for q in spans if q.unit)


def _of_alike(text: str, mine: list[float], amounts: list[float]) -> Iterator[float]:
    """Sums, differences and means of amounts of one kind; ``mine`` are the other amounts of the claim."""
    reckoned = bool(compiled(_RECKONED).search(text))
    if len(amounts) > 1 and (reckoned or all(amount in mine for amount in amounts)):
        yield sum(amounts)
    if reckoned or any(amount in mine for amount in amounts):
        for a, b in combinations([*amounts, *mine[:4]], 2):
            yield from (a + b, abs(a - b), (a + b) / 2)
    elif _REST.search(text):
        yield from (abs(a - b) for a, b in combinations(amounts, 2))


def _says_each(evidence: Evidence) -> bool:
    return not all_words("each").isdisjoint(evidence.claim.words)


def _products(quantity: Quantity, group: list[Quantity], evidence: Evidence) -> Iterator[float]:
    """Three nights at 160 euros each, and what 2,600 euros a month are in a year."""
    amounts = _alike(quantity, group)
    given = (q for passage in (evidence.claim, *evidence.known) for q in passage.quantities[:_FEW])
    others = [q for q in given if q is not quantity and q.bound != "~" and not (q.weak or q.unit == quantity.unit)]
    counts = [q.readings[0] for q in others if 1 < q.readings[0] <= _LARGEST_COUNT]
    if not (all_words("both").isdisjoint(evidence.claim.words) or all_words("each").isdisjoint(evidence.words)):
        counts.append(2)
    yield from (count * amount for count in counts for amount in amounts)
    if quantity.period:
        # The span that the source's amount is for may stand in the head of its table.
        asked = seconds(quantity.period)
        lengths = {seconds(UNITS[word]) for word in evidence.words & UNITS.keys() if is_span(UNITS[word])} - {asked}
        bare = _alike(quantity, [other for other in group if not other.period])
        yield from (amount * asked / length for length in lengths for amount in bare)


def _is_factor(quantity: Quantity, evidence: Evidence) -> bool:
    """True for the three nights of "three nights cost 480 euros" where one costs 160."""
    if quantity.unit is not None or quantity.bound == "~" or quantity.readings[0] > _LARGEST_COUNT:
        return False
    products = [other for other in evidence.claim.quantities[:_FEW] if other.unit and not other.period]
    return any(
        _same(product, quantity.readings[0] * amount)
        for product in products
        for group in _near(evidence)
        for amount in _alike(product, group)
    )


def _is_range(text: str, one: Quantity, other: Quantity) -> bool:
    """True for the two ends of a range ("5 to 15", "between 40 and 60"): neither is reckoned from the other."""
    first, last = sorted((one, other), key=lambda quantity: quantity.start)
    link = text[first.end : last.start].strip().casefold()
    is_between_and = _AND.fullmatch(link) and _BETWEEN.search(text, max(0, first.start - _REACH), first.start)
    return link in _LINKS or bool(is_between_and)


def _shares(quantity: Quantity, group: list[Quantity]) -> Iterator[float]:
    """What percentage one number is of another, or how much it grew or fell; and a percentage of another number."""
    shares = [q.amounts()[0] for q in group if q.unit and q.unit.dimension == "ratio"][:4]
    plain = [q.amounts()[0] for q in group if not (q.unit and q.unit.dimension == "ratio") and q.amounts()[0]][:_FEW]
    if quantity.unit is not None and quantity.unit.dimension == "ratio":
        for a, b in combinations(plain, 2):
            low, high = sorted((a, b))
            yield from (100 * low / high, 100 * (high - low) / low, 100 * (high - low) / high)
        yield from (100 - share for share in shares)
    yield from (part * whole / 100 for share in shares for whole in plain for part in (share, 100 - share))


def _is_count(quantity: Quantity, evidence: Evidence) -> bool:
    """True for a small whole number that counts a list or a series of a cited source."""
    value = quantity.readings[0]
    ranks = quantity.noun in {"st", "nd", "rd", "th"}
    if ranks or quantity.unit is not None or value != int(value) or not 1 < value <= _SMALL_COUNT:
        return False
    if any(len(_LIST_MARK.findall(cited.passage.text)) == value for cited in evidence.cited):
        return True
    return any(
        len([part for part in _SERIES.split(hit.text) if part.strip()]) == value for hit in evidence.hits[:_NEAR]
    )
