"""Ranking by words in numpy: what ``postings.best`` gives, to the last bit, where many passages have the words sooner.

Promises: pure; the same places, scores and order. Is imported only where the extra ``semantic`` brings numpy, and must
never become the only way: without it Orion has to do.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from agent.knowledge.postings import BLOCK, terms_of


def best(found: Iterable[tuple[str, int, bytes]], *, passages: int, most: int) -> list[tuple[int, float]]:
    """The ``most`` best places with their scores, best first, as ``postings.best``; every posting is counted."""
    terms = terms_of(found, passages)
    firsts = sorted({first for term in terms for first, _, _ in term.blocks})
    rows = {first: row for row, first in enumerate(firsts)}
    scores = np.zeros((len(firsts), BLOCK))
    for term in terms:
        for first, places, impacts in term.blocks:
            scores[rows[first], np.frombuffer(places, np.uint16)] += term.worth * np.frombuffer(impacts, np.uint8)
    flat = scores.ravel()
    at = np.flatnonzero(flat)
    if most < len(at):
        at = at[flat[at] >= np.partition(flat[at], -most)[-most]]
    at = at[np.argsort(-flat[at], kind="stable")][:most]
    places_of = np.array(firsts, np.int64)[at // BLOCK] + at % BLOCK
    return list(zip(places_of.tolist(), flat[at].tolist(), strict=True))
