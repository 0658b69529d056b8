"""Check that the numbers of a claim appear in its sources or can follow from them, and that its calculations are right.

A number must have the same unit: the digits alone are not enough. A calculation has signs between its numbers: "300 km
× 0.32 €/km = 96 €", "(9 + 19) * 12 makes 336".
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from verification.checks.derived import is_derivable
from verification.evidence.evidence import MAX_VALUES, Evidence, Finding
from verification.evidence.passages import Passage
from verification.values.amounts import is_result, is_same_kind, matches
from verification.values.numbers import ORDINALS, RANGE, Quantity
from verification.values.quantity_words import HUNDREDTHS, UNITS, rate_end

_MAX_UNNAMED_COUNT = 5  # for "the two" and "three ways" the source has a list but no number
_MIN_TOPIC_SHARE = 0.5  # below this, the next draft copied an unrelated 400 in place of 900
_MAX_SENTENCES = 3
_YEAR, _HOUR, _MIN_YEAR, _NOON = UNITS["年"], UNITS["h"], 1000, 12
# A colon divides only between blanks: "10:30" and "Price: 5" are not divisions.
_SIGN = re.compile(
    r"(?P<unit>[^\d.;!?\n]{0,24}?)(?P<sign>[×*·⋅+−–÷/=≈-]|(?<=\s):(?=\s)|\b(?:x|times|plus|minus|mal|fois|por|kali)\b)"
    r"(?P<open>[\s(]*)[$€£¥₹]?\s*"
)
_OPERATORS = {
    **dict.fromkeys(("×", "*", "·", "⋅", "x", "times", "mal", "fois", "por", "kali"), "*"),
    **dict.fromkeys(("÷", "/", ":"), "/"),
    **dict.fromkeys(("+", "plus"), "+"),
    **dict.fromkeys(("−", "–", "-", "minus"), "-"),
    **dict.fromkeys("=≈", "="),
}
_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "*": operator.mul,
    "/": lambda one, other: one / other if other else math.nan,
    "+": operator.add,
    "-": operator.sub,
}
# Numbers that need no citation: two ("both"), days of a week, months of a year.
_CONSTANTS = frozenset({2, 7, 12, 24, 52, 60, 100, 365, 1000})
_CENTURY_LEFT_OUT = re.compile(r"['’]$")  # Q3 '24
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV")
_NEXT_WORD = re.compile(r"\s?([^\W\d_]+)")


def number_findings(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each number of the claim that is not known, and for each wrong result of a calculation.

    Known are the numbers of the cited sources, of the question, of the asker's messages and of correct calculations.
    """
    claimed = evidence.claim.quantities[:MAX_VALUES]
    known = [quantity for quantity in claimed if not quantity.weak and _is_known(quantity, evidence)]
    miscalculated: list[Finding] = []
    for equation in equations(evidence.claim):
        result = equation.result
        if result and equation.is_clear and not equation.is_right:
            written = evidence.claim.text[equation.operands[0].start : equation.operands[-1].end]
            detail, remedy = f"{written} is {equation.values()[0]:g}", "Calculate again, or leave the calculation out."
            miscalculated.append(Finding(span=(result.start, result.end), detail=detail, remedy=remedy))
    wrong_starts = {finding.span[0] for finding in miscalculated}
    for quantity in claimed:
        if quantity.start in wrong_starts:  # the source's number does not excuse a wrong calculation
            continue
        converted = quantity.unit and any(matches(quantity, other) for other in known if other.unit)  # "23 lb (10 kg)"
        if not (quantity.weak or quantity in known or converted):
            yield _finding(quantity, evidence)
    yield from miscalculated


def _is_known(quantity: Quantity, evidence: Evidence) -> bool:
    # A sentence read by itself may give a different number than within its table or list.
    passages = (*(hit.passage for hit in evidence.hits[:2]), *evidence.cited_and_known)
    if _is_in(passages, quantity):
        return True
    # The 22 in "59-22 at the club" if the source has the date "July 19-22 at the club".
    end = quantity.end + len(f" {quantity.noun}")
    return bool(quantity.noun) and not quantity.period and evidence.is_written_near(quantity.start, end)


def _finding(quantity: Quantity, evidence: Evidence) -> Finding:
    """Name the number of the same kind that a near sentence has in its place, or else say that it is missing."""
    span, claimed = _written_span(evidence.claim, quantity), evidence.claim.quantities[:MAX_VALUES]
    near = ((hit, other) for hit in evidence.hits[:_MAX_SENTENCES] for other in hit.passage.quantities)
    alike = (each for each in near if is_same_kind(quantity, each[1]))
    replacement = next((each for each in alike if not any(matches(mine, each[1]) for mine in claimed)), None)
    if any(_doubts(quantity, evidence, is_replaced=replacement is not None)):
        return evidence.not_found(span, "doubtful")
    certainty = evidence.certainty(replacement[0] if replacement and not _is_in(evidence.others, quantity) else None)
    if replacement is None:
        return evidence.not_found(span, certainty)
    hit, other = replacement
    if not (other.unit or other.noun == quantity.noun or hit.share >= _MIN_TOPIC_SHARE):
        return evidence.not_found(span, certainty)
    right = hit.text[slice(*_written_span(hit.passage, other))].strip()
    if right == evidence.claim.text[slice(*span)]:  # if so, the periods differ
        right = hit.text[other.start : rate_end(hit.text, other.end)].strip()
        span = (span[0], rate_end(evidence.claim.text, span[1]))
    return evidence.replaced_by(span, hit, right, certainty)


def _written_span(passage: Passage, quantity: Quantity) -> tuple[int, int]:
    """The span of a number with its unit, which may follow the other end of a range."""
    last = next((each for each in passage.quantities if each.start >= quantity.end), quantity)
    is_range = quantity.unit and last.unit == quantity.unit and RANGE.fullmatch(passage.text, quantity.end, last.start)
    return quantity.start, last.end if is_range else quantity.end


def _doubts(quantity: Quantity, evidence: Evidence, *, is_replaced: bool) -> Iterator[bool]:
    """Yield True for each way in which a number can be right: the same in another form, or derived from others."""
    yield _is_in(evidence.known, quantity)
    # Only an ordinal or a year may be part of any date of the sources. Another number could match an hour by chance.
    is_date = quantity.noun in ORDINALS or quantity.readings[0] >= _MIN_YEAR
    near = [*(hit.passage for hit in evidence.hits[:_MAX_SENTENCES]), *evidence.conversation]
    yield any(_is_part(quantity, passage) for passage in (evidence.cited_and_known if is_date else near))
    # The 2021 in "in 2021 dollar sales fell" is a year if the source has it.
    written = evidence.claim.text[quantity.start : quantity.end].partition(" ")[0]
    years = {str(moment.year) for passage in evidence.cited_and_known for moment in passage.moments}
    is_short = _CENTURY_LEFT_OUT.search(evidence.claim.text, 0, quantity.start)
    yield written in years or bool(is_short and written in {year[2:] for year in years})
    number = quantity.readings[0]
    if quantity.unit is None and number.is_integer() and 1 <= number <= len(_ROMAN):  # the 4 of "Chapter IV"
        titled = re.compile(rf"\b[A-ZÄÖÜÉ][^\W\d_]{{2,}} {_ROMAN[int(number) - 1]}\b")
        yield any(titled.search(cited.passage.text) for cited in evidence.cited)
    is_alone = not is_replaced or _is_in(evidence.context, quantity)
    yield appears_in_calculation(quantity, evidence.claim, alone=is_alone)
    yield not is_replaced and _may_be_counted(quantity, evidence)
    yield is_derivable(quantity, evidence)


def _is_in(passages: Iterable[Passage], quantity: Quantity) -> bool:
    return any(matches(quantity, other) for passage in passages for other in passage.quantities)


def _may_be_counted(quantity: Quantity, evidence: Evidence) -> bool:
    """Return True for a number that is denied or counts other things, or a small worded one that may count a list."""
    small = quantity.worded and quantity.readings[0] <= _MAX_UNNAMED_COUNT
    if quantity.unit is None and (small or evidence.denies(quantity.start)):
        return True
    bare = quantity._replace(unit=None, period=None)
    others = (other for cited in evidence.cited for other in cited.passage.quantities if not other.unit)
    return any(matches(bare, other) for other in others)


def _is_part(quantity: Quantity, passage: Passage) -> bool:
    """Match "at eight", "the 18th" and "19th century" with a time, a day or a year in the passage."""
    if quantity.unit not in {None, _YEAR, _HOUR}:  # the French write 14:00 as "14 h"
        return False
    if not quantity.readings[0].is_integer():  # "in 4.4." may be read as a day
        return any(f"{quantity.readings[0]:g}" == passage.text[m.start : m.end].rstrip(".") for m in passage.moments)
    if quantity.century:
        years = {year for other in passage.quantities if not other.unit for year in other.readings}
        years |= {moment.year for moment in passage.moments if moment.year}
        return any((year - 1) // 100 + 1 in quantity.readings for year in years)
    hours = {m.hour + after for m in passage.moments if m.hour is not None for after in ((0, 1) if m.minute else (0,))}
    parts = {part for moment in passage.moments for part in (moment.year, moment.day)} | hours
    return not parts.union(hour - _NOON for hour in hours).isdisjoint(quantity.readings)  # "half past eight" is 20:30


class Equation(NamedTuple):
    """A calculation, and the result written after it, if any."""

    operands: tuple[Quantity, ...]
    signs: tuple[str, ...]
    result: Quantity | None
    bracketed: bool  # brackets make the order ambiguous
    in_coins: bool  # one of its numbers is in pence or cents

    @property
    def is_right(self) -> bool:
        """Return True if the written result is correct, to the precision in which it is written."""
        if self.result is None:
            return False
        # 2.500 may be two and a half. The result decides.
        result = self.result._replace(readings=tuple(r / size for r in self.result.readings for size in (1, 1000)))
        sizes = (1, 100) if self.in_coins else (1,)
        return any(is_result(result, value / size) for value in self.values() for size in sizes)

    @property
    def is_clear(self) -> bool:
        """Return True if only one result is possible. Brackets and "135 euros + 40 %" are ambiguous."""
        units = {each.unit for each in (*self.operands, self.result) if each and each.unit}
        return not self.bracketed and (len(units) <= 1 or self._in_one_unit or {"+", "-"}.isdisjoint(self.signs))

    @property
    def _in_one_unit(self) -> bool:
        """Return True if all numbers are in units of one kind, such as hours and minutes."""
        kinds = {each.unit.dimension for each in self.operands if each.unit}
        return self.result is not None and self.result.unit is not None and kinds == {self.result.unit.dimension}

    def values(self) -> tuple[float, ...]:
        """The results in the unit of the written one: by operator precedence, and from left to right."""
        may_be_points = all(each.unit is None or is_percent(each) for each in self.operands)
        in_points = may_be_points and {"*", "/"}.isdisjoint(self.signs)
        percent = is_percent(self.result) or (in_points and all(map(is_percent, self.operands)))
        numbers = [self._as_operand(each, percent=percent, in_points=in_points) for each in self.operands]
        in_order, terms = numbers[0], [numbers[0]]
        for sign, number in zip(self.signs, numbers[1:], strict=True):
            in_order = _OPERATIONS[sign](in_order, number)
            if sign in "*/":
                terms[-1] = _OPERATIONS[sign](terms[-1], number)
            else:
                terms.append(number if sign == "+" else -number)
        values = tuple(value * (100 if percent else 1) for value in (sum(terms), in_order))
        as_fractions = in_points and percent and not any(each.unit for each in self.operands)  # 0.25 + 0.1 = 35 %
        return (*values, *(value * 100 for value in values)) if as_fractions else values

    def _as_operand(self, each: Quantity, *, percent: bool, in_points: bool) -> float:
        if in_points and percent:  # 60 % − 25 % is 35 percentage points, and so is 60 − 25 = 35 %
            return each.readings[0] / 100
        if each.unit and self.result and self.result.unit and self._in_one_unit and not percent:
            return each.amounts()[0] / self.result.unit.factor
        return each.amounts()[0] / 100 if is_percent(each) else each.readings[0]


def is_percent(quantity: Quantity | None) -> bool:
    """Return True for a share."""
    return quantity is not None and quantity.unit is not None and quantity.unit.dimension == "ratio"


def appears_in_calculation(quantity: Quantity, claim: Passage, *, alone: bool) -> bool:
    """Return True if a calculation results in the number, or uses it as a constant (``alone``: in any way)."""
    constant = not _CONSTANTS.isdisjoint(quantity.readings)
    return any(
        (quantity in each.operands and (constant or (alone and each.is_right)))
        or ((each.result is None or each.is_right) and any(is_result(quantity, value) for value in each.values()))
        for each in equations(claim)
    )


@lru_cache(maxsize=64)
def equations(passage: Passage) -> tuple[Equation, ...]:
    """The calculations that a text writes with signs between the numbers."""
    found: list[Equation] = []
    run, signs, bracketed, colon = list(passage.quantities[:1]), list[str](), False, 0
    for one, other in pairwise((*passage.quantities[:MAX_VALUES], None)):
        gap = passage.text[one.end : other.start] if one and other else ""
        match = _SIGN.fullmatch(gap)
        sign = _OPERATORS[match["sign"].casefold()] if match else ""
        bracketed |= bool(sign) and not {"(", ")", ":"}.isdisjoint(gap)
        if other and sign in _OPERATIONS:
            run.append(other)
            signs.append(sign)
            colon = len(signs) if match and match["sign"] == ":" else colon
            continue
        result = other if sign == "=" else None
        units = (_NEXT_WORD.match(passage.text, each.end) for each in run)
        in_coins = any(word[1].casefold() in HUNDREDTHS for word in units if word)
        # "520 € : 390 € + 130 €", as the French write a colon
        parts = ((tuple(run[first:]), tuple(signs[first:])) for first in sorted({0, colon}) if signs[first:])
        found += [Equation(*part, result, bracketed, in_coins) for part in parts]
        run, signs, bracketed, colon = [other] if other else [], [], False, 0
    return tuple(found)
