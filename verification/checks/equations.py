"""Calculations that an answer writes out: "300 km × 0.32 €/km = 96 €", "(9 + 19) * 12 makes 336"."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from verification.evidence.evidence import Evidence, Finding
from verification.evidence.passages import Passage
from verification.values.numbers import Quantity

_SIGN = re.compile(
    r"(?P<unit>[^\d.;!?\n]{0,24}?)(?P<sign>[×*·⋅+−–÷/=≈-]|(?<=\s):(?=\s)|\b(?:x|times|plus|minus|mal|fois|por|kali)\b)"
    r"(?P<open>[\s(]*)[$€£¥₹]?\s*"
)
_OPERATIONS = {
    **dict.fromkeys(("×", "*", "·", "⋅", "x", "times", "mal", "fois", "por", "kali"), "*"),
    **dict.fromkeys(("÷", "/", ":"), "/"),
    **dict.fromkeys(("+", "plus"), "+"),
    **dict.fromkeys(("−", "–", "-", "minus"), "-"),
}
_EQUAL = frozenset("=≈")
_UNCERTAIN = frozenset("():")  # a colon may as well introduce the calculation
_CONSTANTS = frozenset({2, 7, 12, 24, 52, 60, 100, 365, 1000})
"""Numbers that nobody cites: both of two, days of a week, months of a year, and the like."""
_MOST_OPERANDS = 12  # a sum over the months of a year
_THREE_DECIMALS = re.compile(r"(?<![\d.,])\d{1,3}[.,]\d{3}(?![\d.,])")
_MOST = 200
_ROUGHLY = 0.1  # what "about" allows


class Equation(NamedTuple):
    """What is reckoned, the results it may have, and the result that is written behind it, if any.

    There are two ``values`` where the order is uncertain: by the usual order, and from left to right.
    """

    operands: tuple[Quantity, ...]
    values: tuple[float, ...]
    said: Quantity | None
    bracketed: bool
    adds: bool

    def gives(self, quantity: Quantity) -> bool:
        """Whether the number is the result, as exactly as it is written."""
        return any(_is_rounded(said, value, quantity) for said in quantity.readings for value in self.values)

    def has_value(self, number: float | None) -> bool:
        """Whether this is the result."""
        return number is not None and any(math.isclose(number, value) for value in self.values)


def results_in(quantity: Quantity, evidence: Evidence) -> bool:
    """Whether the number is the result, or a constant, of a right calculation of the claim."""
    for equation in equations(evidence.claim):
        if equation.gives(quantity) and quantity not in equation.operands:
            return True
        right = equation.said is None or equation.gives(equation.said)
        if right and quantity in equation.operands and not _CONSTANTS.isdisjoint(quantity.readings):
            return True
    return False


def right_results(answer: Passage) -> str:
    """What the right calculations of an answer come to, as written: its other sentences may say so without them."""
    said = (each.said for each in equations(answer) if each.said and each.gives(each.said))
    return "; ".join(answer.text[result.start : result.end] for result in said)


def wrong_results(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each calculation of the claim whose written result is another one than it has."""
    for equation in equations(evidence.claim):
        said = equation.said
        text = evidence.claim.text
        if said is None or equation.bracketed or equation.gives(said) or not _is_comparable(equation, said):
            continue
        if equation.has_value(_as_decimal(text[said.start : said.end])):
            continue
        first = equation.operands[0]
        yield Finding(
            kind="number",
            severity="error",
            start=said.start,
            end=said.end,
            detail=f"{text[first.start : equation.operands[-1].end]} is {equation.values[0]:g}",
            remedy="Calculate anew, or leave the calculation out.",
        )


def _is_comparable(equation: Equation, said: Quantity) -> bool:
    """Whether numbers that are added, or told as the sum, are in one unit: 30 min + 2 h are not 32 of anything."""
    units = {(each.unit.dimension, each.unit.factor) for each in (*equation.operands, said) if each.unit}
    return not equation.adds or len(units) <= 1


def _as_decimal(written: str) -> float | None:
    """2.500 as two and a half: which of its two readings is meant, the result tells."""
    found = _THREE_DECIMALS.search(written)
    return float(found[0].replace(",", ".")) if found else None


def equations(passage: Passage) -> tuple[Equation, ...]:
    """The calculations that a text writes out with signs between the numbers."""
    found = passage.quantities[:_MOST]
    return _equations(passage.text, found) if len(found) > 1 else ()


@lru_cache(maxsize=256)
def _equations(text: str, quantities: tuple[Quantity, ...]) -> tuple[Equation, ...]:
    found: list[Equation] = []
    index = 0
    while index + 1 < len(quantities):
        operands, signs = [quantities[index]], list[str]()
        sign, bracketed = _between(text, quantities[index], quantities[index + 1])
        opened = bracketed
        while sign in _OPERATIONS and len(operands) < _MOST_OPERANDS:
            operands.append(quantities[index + len(operands)])
            signs.append(_OPERATIONS[sign])
            after = quantities[index + len(operands) : index + len(operands) + 1]
            sign, bracketed = _between(text, operands[-1], after[0]) if after else ("", False)
            opened = opened or bracketed
        if signs:
            behind = quantities[index + len(operands) : index + len(operands) + 1]
            said = behind[0] if behind and sign in _EQUAL else None
            adds = not {"+", "-"}.isdisjoint(signs)
            found.append(Equation(tuple(operands), _values(operands, signs), said, opened, adds))
        index += len(operands)
    return tuple(found)


def _between(text: str, one: Quantity, other: Quantity) -> tuple[str, bool]:
    """The sign between two numbers, empty if there is none; and whether what stands there makes the order uncertain."""
    gap = text[one.end : other.start]
    match = _SIGN.fullmatch(gap)
    return (match["sign"].casefold(), not _UNCERTAIN.isdisjoint(gap)) if match else ("", False)


def _values(operands: Sequence[Quantity], signs: Sequence[str]) -> tuple[float, ...]:
    numbers = [_plain(each) for each in operands]
    in_order = numbers[0]
    terms = [numbers[0]]
    for sign, number in zip(signs, numbers[1:], strict=True):
        in_order = _reckoned(in_order, sign, number)
        if sign in "*/":
            terms[-1] = _reckoned(terms[-1], sign, number)
        else:
            terms.append(number if sign == "+" else -number)
    return tuple(dict.fromkeys((sum(terms), in_order)))


def _plain(quantity: Quantity) -> float:
    """The number as a factor: 20 % are 0.2."""
    is_share = quantity.unit is not None and quantity.unit.dimension == "ratio"
    return quantity.amounts()[0] / 100 if is_share else quantity.readings[0]


def _reckoned(one: float, sign: str, other: float) -> float:
    if sign == "/":
        return one / other if other else math.nan
    return one * other if sign == "*" else one + other if sign == "+" else one - other


def _is_rounded(said: float, value: float, quantity: Quantity) -> bool:
    if quantity.unit is not None and quantity.unit.dimension == "ratio":
        return math.isclose(said, 100 * value, rel_tol=0.006) or math.isclose(said, value)
    if quantity.bound == "~":
        return math.isclose(said, value, rel_tol=_ROUGHLY)
    decimals = len(f"{said:.10g}".partition(".")[2])
    return math.isclose(said, value) or math.isclose(said, round(value, decimals))
