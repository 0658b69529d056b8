"""Units of measure: what a word after a number measures and in which scale. The words are data in ``units.toml``.

``UNITS`` maps a written unit (case-folded) to its dimension and its factor to that dimension's basic unit, ``SCALES`` a
scale word to its factor.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple


class Unit(NamedTuple):
    """``dimension`` names what is measured, ``factor`` is the size in the dimension's basic unit."""

    dimension: str
    factor: float


_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_MONEY: dict[str, str] = _DATA["money"]
OTHER_COINS = frozenset(_MONEY.pop("other").split())
"""Words for money that is none of ``CURRENCIES`` or that may also be a weight: such an amount is not one in euros."""
CURRENCIES = frozenset(_MONEY)
UNITS: dict[str, Unit] = {
    word: Unit(dimension, float(factor))
    for dimension, family in _DATA["units"].items()
    for factor, words in family.items()
    for word in words.split()
} | {word: Unit(currency, 1) for currency, words in _MONEY.items() for word in words.split()}
SCALES: dict[str, float] = {word: float(factor) for factor, words in _DATA["scales"].items() for word in words.split()}
# Glued capital letters scale only after a number: "1.2M", "3B". Small "m" and "b" are metres and bytes, never scales.
GLUED_SCALES: dict[str, float] = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "bn": 1e9, "mn": 1e6}
