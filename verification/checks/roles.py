"""Another role in the place of the source's: "the incident lead" where the page says "the engineering manager".

Promises: an error only where nearly all else of the claim stands in the sentence nearest to it, that sentence has a
role of its own that the claim leaves out, and no cited source names the claim's; where one does, a heading may say who
is meant, and it is a suspicion. A role without a word that tells it from others ("the manager") is none. English only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from verification.evidence.evidence import Evidence, Finding
from verification.evidence.passages import Passage
from verification.text.words import stem

_IN_CHARGE: Final = (
    "lead manager officer director captain counsel partner owner engineer administrator admin coordinator supervisor"
    " secretary president minister chief desk office team department committee board editor producer analyst architect"
    " auditor assistant inspector commander coach pilot"
)
_HEADS: Final = frozenset(_IN_CHARGE.split()) | frozenset(f"{word}s" for word in _IN_CHARGE.split())
_STEMS: Final = frozenset(stem(word, "en") for word in _HEADS)
_LONGEST: Final = 3
_NEARLY_ALL: Final = 0.75


class _Role(NamedTuple):
    """What tells it from others, and what it is in all, as stems; how it is written, and where."""

    telling: frozenset[str]
    stems: frozenset[str]
    words: str
    start: int


def role_findings(evidence: Evidence) -> Iterator[Finding]:
    """The first role of the claim that stands in another's place."""
    claim, hit = evidence.claim, evidence.best
    if hit is None or claim.language not in {"en", None} or _HEADS.isdisjoint(claim.words):
        return
    mine = next((role for role in _roles(claim) if role.telling.isdisjoint(hit.stems)), None)
    if mine is None or _HEADS.isdisjoint(hit.words):
        return
    there = next((role for role in _roles(hit.passage) if _is_left_out(role, mine, claim)), None)
    others = claim.stems - mine.stems
    if there is None or len(others & hit.stems) < _NEARLY_ALL * max(1, len(others)):
        return
    yield Finding(
        kind="name",
        severity="warning" if mine.stems <= evidence.stems else "error",
        start=mine.start,
        end=mine.start + len(mine.words),
        detail=f"source [{hit.source.id}] has {there.words} there, not {mine.words}",
        remedy=f"Write {there.words} as source [{hit.source.id}] has it, or drop the sentence.",
    )


def _is_left_out(role: _Role, mine: _Role, claim: Passage) -> bool:
    """Whether the claim does not speak of this role, nor calls it by another name: support team for support desk."""
    return role.telling.isdisjoint(mine.telling) and not role.stems <= claim.stems


def _roles(passage: Passage) -> Iterator[_Role]:
    """The words for somebody in charge, each with up to three words right before it."""
    terms, text = passage.terms, passage.text
    for last, term in enumerate(terms):
        if term.stem not in _STEMS or _goes_on(passage, last):
            continue
        first = last
        while first and last - first < _LONGEST and _tells(passage, first - 1):
            first -= 1
        telling = frozenset(each.stem or each.word for each in terms[first:last])
        if not telling:
            continue
        if first and text[terms[first - 1].end : terms[first].start] == "-":  # the "on" of "on-call engineer"
            first -= 1
        start = terms[first].start
        yield _Role(telling=telling, stems=telling | {term.stem}, words=text[start : term.end], start=start)


def _tells(passage: Passage, index: int) -> bool:
    """Whether the word tells the role behind it from others: no article, but the IT of "IT desk"."""
    term = passage.terms[index]
    is_short = term.end - term.start > 1 and passage.text[term.start : term.end].isupper()
    return _goes_on(passage, index) and (bool(term.stem) or is_short)


def _goes_on(passage: Passage, index: int) -> bool:
    """Whether the next word may belong to the same name: "office" and "manager", nothing between them but a space."""
    this, following = passage.terms[index], passage.terms[index + 1 : index + 2]
    if not following or this.word.isdecimal():
        return False
    is_next = passage.text[this.end : following[0].start] in {" ", "-"}
    return is_next and (this.stem not in _STEMS or following[0].stem in _STEMS)
