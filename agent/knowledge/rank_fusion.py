"""Several rankings become one: reciprocal rank fusion.

Promises: pure; only ranks count, so scores of different kinds need no common scale; ties go by number. Must never bring
in what no ranking has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent.knowledge.meaning import Ranked

SMOOTHING: Final = 60
"""The usual constant: how little the first ranks stand out from those behind them."""


def fused(rankings: Sequence[tuple[float, Sequence[Ranked]]], *, smoothing: int = SMOOTHING) -> list[Ranked]:
    """All numbers of all rankings, best first. Each ranking counts by its weight: ``weight / (smoothing + rank)``."""
    scores: dict[int, float] = {}
    for weight, ranking in rankings:
        for rank, (number, _) in enumerate(ranking, start=1):
            scores[number] = scores.get(number, 0.0) + weight / (smoothing + rank)
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
