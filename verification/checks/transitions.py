"""What was and what is, exchanged: "raised from 20 to 60" where the page has "now 20 (was 60)".

Promises: an error only where a sentence near the claim changes the same two numbers the other way round, and says so in
words that only a change has. Must never take a range for a change. Bounded work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from verification.evidence.evidence import MOST, Evidence, Finding, Hit
from verification.evidence.passages import Passage
from verification.values.amounts import matches
from verification.values.numbers import Quantity

_NEAR: Final = 3
_LONGEST: Final = 40
_LEAD: Final = 8
_FROM: Final = re.compile(r"\b(?:from|von|de|dari)\s$", re.IGNORECASE)
_TO: Final = re.compile(r"[^.;:]{0,12}\s(?:to|auf|a|à|ke|menjadi)\s", re.IGNORECASE)
_BACK: Final = re.compile(
    r"[^.;:]{0,16}[\s(](?:was|were|formerly|previously|instead of|rather than|no longer|(?:up|down) from|not|statt"
    r"|anstatt|vorher|früher|zuvor|bisher|en lugar de|en vez de|antes|au lieu de|sebelumnya)\s(?:von\s|of\s)?",
    re.IGNORECASE,
)


class _Change(NamedTuple):
    """What was, and what is; ``ranges`` if the words may mean a range as well."""

    was: Quantity
    now: Quantity
    ranges: bool


def transition_findings(evidence: Evidence) -> Iterator[Finding]:
    """The first change of the claim that a near sentence has the other way round."""
    if len(evidence.claim.quantities) < 2:  # noqa: PLR2004 - a change has two ends
        return
    mine = list(_changes(evidence.claim))
    theirs = [(hit, other) for hit in evidence.hits[:_NEAR] for other in _changes(hit.passage)] if mine else []
    for one in mine:
        turned = next((hit for hit, other in theirs if _is_turned(one, other)), None)
        if turned and not any(matches(one.was, o.was) and matches(one.now, o.now) for _, o in theirs):
            yield _finding(one, turned)
            return


def _finding(one: _Change, hit: Hit) -> Finding:
    return Finding(
        kind="number",
        severity="error",
        start=min(one.was.start, one.now.start),
        end=max(one.was.end, one.now.end),
        detail=f"source [{hit.source.id}] has the change the other way round: {hit.text[:200]}",
        remedy=f"Say what was and what is as source [{hit.source.id}] does.",
    )


def _is_turned(one: _Change, other: _Change) -> bool:
    is_change = not (one.ranges and other.ranges)
    is_same = matches(one.was, other.was)  # of two equal numbers
    return is_change and not is_same and matches(one.was, other.now) and matches(one.now, other.was)


def _changes(passage: Passage) -> Iterator[_Change]:
    text = passage.text
    for first, last in pairwise(passage.quantities[:MOST]):
        link = text[first.end : last.start]
        if first.weak or last.weak or len(link) > _LONGEST:
            continue
        if _BACK.fullmatch(link):
            yield _Change(was=last, now=first, ranges=False)
        elif _TO.fullmatch(link) and _FROM.search(text, max(0, first.start - _LEAD), first.start):
            yield _Change(was=first, now=last, ranges=True)
