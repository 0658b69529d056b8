"""Calculations that an answer writes out: "300 km × 0.32 €/km = 96 €", "(9 + 19) * 12 makes 336"."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from verification.evidence.evidence import MOST, Evidence, Finding
from verification.evidence.passages import Passage
from verification.values.amounts import is_result
from verification.values.numbers import Quantity

# A colon divides only between blanks: "10:30" and "Price: 5" were read as divisions.
_SIGN = re.compile(
    r"(?P<unit>[^\d.;!?\n]{0,24}?)(?P<sign>[×*·⋅+−–÷/=≈-]|(?<=\s):(?=\s)|\b(?:x|times|plus|minus|mal|fois|por|kali)\b)"
    r"(?P<open>[\s(]*)[$€£¥₹]?\s*"
)
_SIGNS = {
    **dict.fromkeys(("×", "*", "·", "⋅", "x", "times", "mal", "fois", "por", "kali"), "*"),
    **dict.fromkeys(("÷", "/", ":"), "/"),
    **dict.fromkeys(("+", "plus"), "+"),
    **dict.fromkeys(("−", "–", "-", "minus"), "-"),
    **dict.fromkeys("=≈", "="),
}
_STEPS: dict[str, Callable[[float, float], float]] = {
    "*": operator.mul,
    "/": lambda one, other: one / other if other else math.nan,
    "+": operator.add,
    "-": operator.sub,
}
# Numbers that nobody cites: both of two, days of a week, months of a year, and the like.
_CONSTANTS = frozenset({2, 7, 12, 24, 52, 60, 100, 365, 1000})


class Equation(NamedTuple):
    """What is calculated, the result that is written behind it, if any, and whether brackets leave the order open."""

    operands: tuple[Quantity, ...]
    signs: tuple[str, ...]
    said: Quantity | None
    bracketed: bool

    @property
    def is_right(self) -> bool:
        """Whether the written result is one, as exactly as it is written."""
        if self.said is None:
            return False
        # 2.500 may be two and a half: which is meant, the result tells.
        readings = (*self.said.readings, *(reading / 1000 for reading in self.said.readings))
        return any(is_result(self.said._replace(readings=readings), value) for value in self.values())

    @property
    def is_clear(self) -> bool:
        """Whether its result is certain: brackets leave it open, and "135 euros + 40 %" may be meant in two ways."""
        units = {each.unit for each in (*self.operands, self.said) if each and each.unit}
        return not self.bracketed and (len(units) <= 1 or self._in_one_unit or {"+", "-"}.isdisjoint(self.signs))

    @property
    def _in_one_unit(self) -> bool:
        """Whether all is measured in units of one kind, hours and minutes, say."""
        kinds = {each.unit.dimension for each in self.operands if each.unit}
        return self.said is not None and self.said.unit is not None and kinds == {self.said.unit.dimension}

    def values(self) -> tuple[float, ...]:
        """The result in the unit of the written one: by the usual order of the signs, and from left to right."""
        in_points = all(map(_is_percent, self.operands)) and {"*", "/"}.isdisjoint(self.signs)
        percent = in_points or _is_percent(self.said)  # 60 % − 25 % are 35 percentage points
        factor = self.said.unit.factor if self.said and self.said.unit and self._in_one_unit and not percent else 0
        numbers = [each.amounts()[0] / factor if factor and each.unit else _plain(each) for each in self.operands]
        in_order, terms = numbers[0], [numbers[0]]
        for sign, number in zip(self.signs, numbers[1:], strict=True):
            in_order = _STEPS[sign](in_order, number)
            if sign in "*/":
                terms[-1] = _STEPS[sign](terms[-1], number)
            else:
                terms.append(number if sign == "+" else -number)
        return tuple(value * (100 if percent else 1) for value in (sum(terms), in_order))


def _is_percent(quantity: Quantity | None) -> bool:
    return quantity is not None and quantity.unit is not None and quantity.unit.dimension == "ratio"


def _plain(quantity: Quantity) -> float:
    """The number as a factor: 20 % are 0.2."""
    return quantity.amounts()[0] / 100 if _is_percent(quantity) else quantity.readings[0]


def is_reckoned_with(quantity: Quantity, claim: Passage, *, alone: bool) -> bool:
    """Whether a calculation of the claim comes to the number or has it: one that nobody cites, or (``alone``) any."""
    constant = not _CONSTANTS.isdisjoint(quantity.readings)
    return any(
        (quantity in each.operands and (constant or (alone and each.is_right)))
        or (each.said is None and any(is_result(quantity, value) for value in each.values()))
        for each in equations(claim)
    )


def right_results(answer: Passage) -> str:
    """What the right calculations of an answer come to, as written: its other sentences may say so without them."""
    # A sum written out in a list failed in the sentence above that states its result.
    said = (each.said for each in equations(answer) if each.said and each.is_right)
    return "; ".join(answer.text[result.start : result.end] for result in said)


def wrong_results(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each calculation of the claim whose written result is another one than it has."""
    text = evidence.claim.text
    for equation in equations(evidence.claim):
        said = equation.said
        if said and equation.is_clear and not equation.is_right:
            first, last = equation.operands[0], equation.operands[-1]
            detail = f"{text[first.start : last.end]} is {equation.values()[0]:g}"
            remedy = "Calculate anew, or leave the calculation out."
            yield Finding(kind="number", span=(said.start, said.end), detail=detail, remedy=remedy)


def equations(passage: Passage) -> Iterator[Equation]:
    """The calculations that a text writes out with signs between the numbers."""
    run, signs, bracketed = list(passage.quantities[:1]), list[str](), False
    for one, other in pairwise((*passage.quantities[:MOST], None)):
        gap = passage.text[one.end : other.start] if one and other else ""
        match = _SIGN.fullmatch(gap)
        sign = _SIGNS[match["sign"].casefold()] if match else ""
        bracketed |= bool(sign) and not {"(", ")", ":"}.isdisjoint(gap)
        if other and sign in _STEPS:
            run.append(other)
            signs.append(sign)
            continue
        if signs:
            yield Equation(tuple(run), tuple(signs), other if sign == "=" else None, bracketed)
        run, signs, bracketed = [other] if other else [], [], False
