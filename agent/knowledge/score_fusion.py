"""Two scores become one: how much a passage says the words of a question, and how near it is in meaning.

Promises: pure; the best by words counts as much on its own as in any other question, whatever the scale of its score.
Must never bring in what neither knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from agent.knowledge.meaning import Ranked

MEANING_SHARE: Final = 0.6
"""The rest is the words' share. Chosen on the first half of SciFact's questions (docs/answers.md)."""


def fused(by_words: Sequence[Ranked], cosines: Mapping[int, float]) -> list[Ranked]:
    """All passages of both, best first, ties by number: a share of the best score by words, and one of the cosine.

    A passage without a cosine (its vector is still to be made) gets what those that the words found have on average:
    it stands where its words put it among them.
    """
    best = max((score for _, score in by_words), default=0.0)
    words = {number: score / best for number, score in by_words} if best > 0 else {}
    known = [cosines[number] for number in words if number in cosines]
    usual = fmean(known) if known else 0.0
    scores = {
        number: (1 - MEANING_SHARE) * words.get(number, 0.0) + MEANING_SHARE * cosines.get(number, usual)
        for number in {*words, *cosines}
    }
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
