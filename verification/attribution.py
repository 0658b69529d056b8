"""A right fact with the wrong number behind it: find the source that does hold it.

Promises: a citation is only ever moved from a source that speaks against the sentence to the one source that holds all
its facts and nearly all its words; what was moved is recorded. Must never touch a word, nor move a citation that
several sources could have.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from verification.answer import Claim, Draft, Repair, Source
from verification.citations import Citation, citations
from verification.grounding import ground
from verification.language import content_stems, detect

_CITED: Final = re.compile(r"\[[0-9]{1,12}\]")
_ENOUGH: Final = 0.75
_MOST_CLAIMS: Final = 20
_MOST_SOURCES: Final = 30


def reattributed(draft: Draft, text: str, claims: tuple[Claim, ...]) -> tuple[str, tuple[Repair, ...]]:
    """The text with each wrong citation set to the source that holds the sentence, and how many were set.

    ``claims`` are judged ones with spans of ``text``; those without a citation of their own are left alone.
    """
    marks = citations(text)
    wrong = [claim for claim in claims if claim.supported == "no"][:_MOST_CLAIMS]
    moves: list[tuple[Citation, int]] = []
    for claim in wrong:
        own = [mark for mark in marks if claim.start <= mark.start and mark.end <= claim.end]
        holder = _holder(draft, text, claim) if len(own) == 1 and len(own[0].ids) == 1 else None
        if holder is not None and own[0].ids == claim.cited:
            moves.append((own[0], holder.id))
    for mark, number in reversed(moves):
        text = f"{text[: mark.start]}[{number}]{text[mark.end :]}"
    return text, (Repair(kind="citation_source", count=len(moves)),) if moves else ()


def _holder(draft: Draft, text: str, claim: Claim) -> Source | None:
    """The one source that holds the claim; None where there is none, or more than one."""
    others = [source for source in draft.sources if source.id not in claim.cited][:_MOST_SOURCES]
    near = [source for source in others if _is_near(claim, source)]
    holders = [source for source in near if _holds(draft, text, claim, source)]
    return holders[0] if len(holders) == 1 else None


def _is_near(claim: Claim, source: Source) -> bool:
    """Whether the source has at least three quarters of the claim's content words."""
    bare = _CITED.sub("", claim.text)
    language = detect(source.text) or detect(bare)
    stems = content_stems(bare, language)
    shared = stems & content_stems(f"{source.title}\n{source.text}", language)
    return bool(stems) and len(shared) >= _ENOUGH * len(stems)


def _holds(draft: Draft, text: str, claim: Claim, source: Source) -> bool:
    judged, violations = ground(draft, text, (replace(claim, cited=(source.id,)),))
    return not violations and judged[0].supported == "yes"
