"""Sets a citation right: the fact is right, and exactly one other source of the turn bears it out.

Nothing but the bracket changes. A citation that several sentences share stays as it is.
"""

from __future__ import annotations

from typing import Final

from verification.grounding.examine import Grounds
from verification.rules.citations import Citation, citations
from verification.types import Claim, Repair

_MOST_CLAIMS: Final = 50
"""How many sentences with a wrong citation are looked at: an answer with more is to be written anew."""


def recite(grounds: Grounds, text: str, claims: tuple[Claim, ...]) -> tuple[str, tuple[Repair, ...]]:
    """``text`` with citations set right, and how many were; ``claims`` are those of ``text`` that are in doubt."""
    pieces: list[str] = []
    last, count = 0, 0
    marks = citations(text)
    for claim in claims[:_MOST_CLAIMS]:
        own = [mark for mark in marks if claim.start <= mark.start and mark.end <= claim.end]
        right = _right_source(grounds, claim, own) if claim.start >= last else None
        if right is None:
            continue
        for index, mark in enumerate(own):
            pieces.append(text[last : mark.start] + (f"[{right}]" if index == 0 else ""))
            last = mark.end
        count += 1
    repairs = (Repair(kind="citation_source", count=count),) if count else ()
    return "".join([*pieces, text[last:]]), repairs


def _right_source(grounds: Grounds, claim: Claim, own: list[Citation]) -> int | None:
    """The one source that bears the claim out; None if there is none, or several, or the claim shares its citation."""
    if not own or {number for mark in own for number in mark.ids} != set(claim.cited):
        return None
    others = grounds.bearing_out(grounds.read(claim), claim.cited)
    return others[0] if len(others) == 1 else None
