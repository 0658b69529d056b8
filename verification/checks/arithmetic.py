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
from verification.values.amounts import is_share
from verification.values.numbers import Quantity
from verification.values.rates import is_span, seconds
from verification.values.units import UNITS

_CUES = re.compile(
    r"total|together|altogether|sum|combined|in all|overall|differ|more than|less than|fewer|longer|shorter|"
    r"increase|decrease|rose|fell|faster|slower|cheaper|higher|lower|more expensive|\bby(?= \W?\d)|"
    r"(?:more|less) [^.]{1,30} than|"
    r"grew|left|remain|gap|apart|later|earlier|average|mean|times|twice|double|"
    r"insgesamt|zusammen|summe|gesamt|unterschied|mehr als|weniger|übrig|später|früher|durchschnitt|"
    r"schneller|langsamer|billiger|günstiger|teurer|länger|kürzer|höher|niedriger|\bum(?= \d)|"
    r"au total|ensemble|somme|différence|de plus|de moins|reste|plus tard|en moyenne|"
    r"en total|juntos|suma|diferencia|más que|menos que|quedan|después|promedio|"
    r"total|jumlah|bersama|selisih|lebih|kurang|sisa|rata-rata|"
    r"合計|合わせて|全部で|計|差|残り|平均|一共|总共|总计|共计|共|合计|相差|剩|平均",
    re.IGNORECASE,
)
_PAIRS = re.compile(r"(?: [^\W\d_]+)?[ -](?:pairs?|Paare?n?|paires?|pares|pasang)\b", re.IGNORECASE)
_LINKS = frozenset({*"-–—~〜～至到", "to", "bis", "à", "a", "hasta", "sampai", "hingga", "から"})
_AND_LINKS = frozenset({"and", "und", "et", "y", "dan"})
_BETWEEN = re.compile(r"\b(?:between|zwischen|entre|antara)\s\D{0,3}$", re.IGNORECASE)
_REACH = 16
_NEAR = 3
_MOST = 24
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*•◦]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_SERIES = re.compile(r"(?:,|、|，|;)?\s*\b(?:and|or|und|oder|et|ou|y|o|dan|atau)\b\s+|[、，,;]\s*|と|和|及び|および")
_REST = re.compile(r"\b(?:not|nicht)\b", re.IGNORECASE)  # of 400 days kept, 90 searchable, "310 are not"
_SMALL_COUNT, _LARGEST_COUNT = 12, 100_000
_TIMES = frozenset({"times", "time", "mal", "fois", "veces", "kali", "x"})
_FEW = 8
_EACH = frozenset({"each", "every", "per", "jede", "jeder", "jedes", "pro", "chaque", "cada", "setiap"})
_EVERY = _EACH | {"alle", "toutes", "tous", "todos", "todas"}
_MORE = frozenset({"more", "less", "fewer", "mehr", "weniger", "más", "menos", "lebih"})
_BOTH = frozenset({"both", "beide", "beiden", "ambos", "ambas", "kedua"})


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
    if quantity.unit or quantity.noun not in _MORE:
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
    counted = quantity._replace(noun="") if quantity.unit is None and _CUES.search(text) else quantity
    return any(_same(quantity, sum(amounts)) for amounts in _sums(counted, evidence))


def _sums(quantity: Quantity, evidence: Evidence) -> Iterator[list[float]]:
    for group in _near(evidence):
        amounts = _alike(quantity, group)
        if len(amounts) > 1:
            yield amounts


def _same(quantity: Quantity, value: float) -> bool:
    if quantity.bound == "~":
        return any(math.isclose(amount, value, rel_tol=0.1) for amount in quantity.amounts())
    if quantity.unit and quantity.unit.dimension == "ratio":
        return any(is_share(amount, value) for amount in quantity.amounts())
    return any(math.isclose(amount, value) for amount in quantity.amounts())


def _near(evidence: Evidence) -> Iterator[list[Quantity]]:
    """The numbers of each sentence near the claim, those of all of them together, and those of the rows it names."""
    near = [_inside(hit) for hit in evidence.hits[:_NEAR]]
    yield from near
    together = [quantity for group in near for quantity in group]
    yield together[:_MOST]
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
    reckoned = bool(_CUES.search(evidence.claim.text))
    text, others = evidence.claim.text, evidence.claim.quantities[:_MOST]
    mine = [q.amounts()[0] for q in others if q is not quantity and not _is_range(text, q, quantity)]
    for group in _near(evidence):
        amounts = _alike(quantity, group)
        if len(amounts) > 1 and (reckoned or all(amount in mine for amount in amounts)):
            yield sum(amounts)
        if reckoned or any(amount in mine for amount in amounts):
            for a, b in combinations([*amounts, *mine[:4]], 2):
                yield a + b
                yield abs(a - b)
                yield (a + b) / 2
        elif _REST.search(text):
            yield from (abs(a - b) for a, b in combinations(amounts, 2))
        if quantity.unit is not None and quantity.unit.dimension == "ratio":
            yield from _shares(group)
        yield from _parts(group)
        if quantity.unit is not None:
            yield from _products(quantity, group, evidence)
    yield from _paired(evidence)
    yield from _ratios(quantity, evidence)
    yield from _times_a_span(quantity, evidence)


def _products(quantity: Quantity, group: list[Quantity], evidence: Evidence) -> Iterator[float]:
    """Three nights at 160 euros each, and what 2,600 euros a month are in a year."""
    amounts = _alike(quantity, group)
    given = (q for passage in (evidence.claim, *evidence.known) for q in passage.quantities[:_FEW])
    others = [q for q in given if q is not quantity and q.bound != "~" and not (q.weak or q.unit == quantity.unit)]
    counts = [q.readings[0] for q in others if 1 < q.readings[0] <= _LARGEST_COUNT]
    if not (_BOTH.isdisjoint(evidence.claim.words) or _EACH.isdisjoint(evidence.words)):
        counts.append(2)
    yield from (count * amount for count in counts for amount in amounts)
    if quantity.period:
        # The span that the source's amount is for may stand in the head of its table.
        asked = seconds(quantity.period)
        lengths = {seconds(UNITS[word]) for word in evidence.words & UNITS.keys() if is_span(UNITS[word])} - {asked}
        bare = _alike(quantity, [other for other in group if not other.period])
        yield from (amount * asked / length for length in lengths for amount in bare)


def _ratios(quantity: Quantity, evidence: Evidence) -> Iterator[float]:
    """How many times as much one number of a sentence is as another, and how much of one there is per other."""
    is_rate = quantity.bound == "~" and not _EACH.isdisjoint(evidence.claim.words)
    if quantity.unit or not (quantity.noun in _TIMES or is_rate):
        return
    for group in _near(evidence):
        for one, other in combinations([q for q in group if q.readings[0]][:_FEW], 2):
            low, high = sorted((one.amounts()[0], other.amounts()[0]))
            yield high / low


def _times_a_span(quantity: Quantity, evidence: Evidence) -> Iterator[float]:
    """How often in a day what comes every six hours is."""
    if quantity.period is None or quantity.unit:
        return
    for hit in evidence.hits[:_NEAR]:
        spans = [] if _EVERY.isdisjoint(hit.passage.words) else [q for q in _inside(hit) if q.unit and is_span(q.unit)]
        yield from (
            seconds(quantity.period) / seconds(q.unit) / q.readings[0] for q in spans if q.unit and q.readings[0]
        )


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
    if link in _LINKS:
        return True
    return link in _AND_LINKS and bool(_BETWEEN.search(text, first.start - _REACH, first.start))


def _paired(evidence: Evidence) -> Iterator[float]:
    """Twice what a sentence near the claim counts in pairs: 19 pairs of chromosomes are 38."""
    for hit in evidence.hits[:_NEAR]:
        if _PAIRS.search(hit.text):
            text = hit.source.passage.text
            yield from (2 * q.readings[0] for q in _inside(hit) if _PAIRS.match(text, q.end))


def _shares(group: list[Quantity]) -> Iterator[float]:
    """What percentage one number is of another, or how much it grew or fell."""
    plain = [q.amounts()[0] for q in group if not (q.unit and q.unit.dimension == "ratio") and q.amounts()[0]]
    for a, b in combinations(plain[:8], 2):
        low, high = sorted((a, b))
        yield 100 * low / high
        yield 100 * (high - low) / low
        yield 100 * (high - low) / high
    for share in (q.amounts()[0] for q in group if q.unit and q.unit.dimension == "ratio"):
        yield 100 - share


def _parts(group: list[Quantity]) -> Iterator[float]:
    """A percentage of another number of the same sentence."""
    shares = [q.amounts()[0] for q in group if q.unit and q.unit.dimension == "ratio"]
    for share in shares[:4]:
        for other in group[:8]:
            if not (other.unit and other.unit.dimension == "ratio"):
                yield share * other.amounts()[0] / 100
                yield (100 - share) * other.amounts()[0] / 100


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
