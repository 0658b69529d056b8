"""Half and quarter units of time in words: "half an hour", "une demi-heure", "medio año", "setengah jam".

Promises: a part counts only right before its unit; before anything else the same words may be other words.
"""

from __future__ import annotations

import re

from verification.units import UNITS, Unit

PERIODS = (
    r"second|minute|hour|day|week|month|quarter|year|sekunde|minute|stunde|tag|woche|monat|quartal|jahr|seconde"
    r"|heure|jour"
    r"|semaine|mois|trimestre|an|année|segundo|minuto|hora|día|semana|mes|año|detik|menit|jam|hari|minggu|bulan|tahun"
)
_HALF = "half halbe halben halber halbes demi medio media setengah"
HALVES: dict[str, float] = {**dict.fromkeys(_HALF.split(), 0.5), "quarter": 0.25}
_PART = re.compile(rf"(?P<part>{'|'.join(HALVES)})(?:(?: of)? an? |[ -])(?P<unit>{PERIODS})\b", re.IGNORECASE)


_WITHIN = re.compile(r"\bwithin\s$", re.IGNORECASE)
_A_UNIT = re.compile(r"an? (?P<unit>second|minute|hour|day|week|month|quarter|year)\b(?!['’])", re.IGNORECASE)


def a_unit_within(text: str, start: int) -> tuple[float, Unit, int] | None:
    """One unit, as in "within an hour", where the article counts."""
    match = _A_UNIT.match(text, start)
    unit = (
        UNITS.get(match["unit"].casefold()) if match and _WITHIN.search(text, start - len("within "), start) else None
    )
    return (1.0, unit, match.end()) if match and unit else None


def part_of_a_unit(text: str, start: int) -> tuple[float, Unit, int] | None:
    """The share, its unit and where the words end, if such a part begins at ``start``."""
    match = _PART.match(text, start)
    unit = UNITS.get(match["unit"].casefold()) if match else None
    return (HALVES[match["part"].casefold()], unit, match.end()) if match and unit else None
