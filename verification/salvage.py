"""Keeps what is verified: the answer without the sentences, list items and table rows that failed.

What is kept stands word for word as it was, but for a connective that lost what it pointed back to. Of a numbered list
or a table nothing goes silently: the place says that something is left out, or all of it goes. A list falls with its
introduction, and a sentence with the one that it leans on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from verification.check import check
from verification.claims.small_talk import is_bare_answer
from verification.markup.lines import Unit, outline
from verification.text.lexicon import compiled
from verification.types import Claim, Draft, Verdict

_CONNECTIVE: Final = r"(?:(?:{connectives}),?\s+|(?:{connectives_unparted})[、，]?)"
_LEANING: Final = r"(?:{leaning})\b|(?:{leaning_unparted})"
_MARKER: Final = re.compile(r"[ \t\u00a0\u2003]*[0-9]{1,9}[.)][ \t\u00a0]+")
_ROUNDS: Final = 3


class LeftOut(NamedTuple):
    """What stands in the place of a ``step`` of a numbered list, and in that of a ``row`` of a table."""

    step: str
    row: str


def salvage(
    draft: Draft, verdict: Verdict, recheck: Callable[[Draft], Verdict] = check, left_out: LeftOut | None = None
) -> Verdict | None:
    """The verdict on what is left without the failing parts: passed, to the question, with a claim; else None.

    A passed verdict has nothing to drop and comes back as it is. Without ``left_out``, in the language of the answer, a
    numbered list or a table goes with its first part that fails. ``recheck`` is ``check``, maybe with ears.
    """
    for _ in range(_ROUNDS):
        if verdict.passed:
            strays = any(found.rule == "addresses_question" for found in verdict.violations)
            return verdict if verdict.claims and not strays else None
        text = _without(draft, verdict, left_out)
        if not text:
            return None
        verdict = recheck(replace(draft, text=text, left_out=left_out or ()))
    return None


def _without(draft: Draft, verdict: Verdict, left_out: LeftOut | None) -> str:
    """The text without the units in which the errors lie; empty where an error has no place in the text."""
    text, errors = verdict.text, verdict.errors
    if any(error.end <= error.start for error in errors):
        return ""  # such as a crash of a rule: no part of the text is known to be right
    units = outline(text)
    fallen = {at for at, unit in enumerate(units) if any(e.start < unit.end and unit.start < e.end for e in errors)}
    grown: set[int] = set()
    while fallen != grown:  # what falls may take more with it
        grown = set(fallen)
        fallen |= (
            _children(units, fallen) | _leaning(text, units, fallen) | _lists(units, fallen) | _bare(units, fallen)
        )
        # Steps that went silently were renumbered: a reader could not see that one was missing.
        fallen |= set() if left_out else _gapped(units, fallen)
    places = _places(units, fallen)
    known = {source.id for source in draft.sources}
    cites = tuple(claim for claim in verdict.claims if known.issuperset(claim.cited))
    gaps = {at: _said(text, cites, units[at], left_out) for at in places} if left_out else {}
    return _joined(text, units, fallen, gaps)


def _gapped(units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    """All of the numbered lists and tables that lost a part."""
    blocks = {units[at].block for at in fallen if _has_place(units[at])}
    return {at for at, unit in enumerate(units) if unit.block in blocks}


def _places(units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    """The fallen steps and rows that leave a gap: none under a fallen step, none where nothing of the list is left."""
    left = {unit.block for at, unit in enumerate(units) if at not in fallen and unit.kind in {"item", "row"}}
    whole = fallen - _children(units, fallen)
    return {at for at in whole if _has_place(units[at]) and units[at].block in left}


def _has_place(unit: Unit) -> bool:
    """Whether a reader would take the part as one of a whole: a step with a number, a row of a table."""
    return unit.number is not None or unit.kind == "row"


def _said(whole: str, claims: tuple[Claim, ...], unit: Unit, left_out: LeftOut) -> str:
    """What stands in the place of a unit: its number, the phrase, and what it cited."""
    text = whole[unit.start : unit.end]
    marker = _MARKER.match(text)
    inside = [claim for claim in claims if unit.start <= claim.start and claim.end <= unit.end]
    cited = "".join(f"[{number}]" for number in dict.fromkeys(n for claim in inside for n in claim.cited))
    said = f"{left_out.row if unit.kind == 'row' else left_out.step} {cited}".rstrip()
    if unit.kind != "row":
        return f"{marker.group() if marker else ''}{said}"
    return f"| {said} |" if text.lstrip().startswith("|") else said


def _children(units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    found: set[int] = set()
    under = -1
    for at, unit in enumerate(units):
        if unit.kind != "item" or unit.indent <= under:
            under = -1
        if under >= 0:
            found.add(at)
        elif unit.kind == "item" and at in fallen:
            under = unit.indent
    return found


def _leaning(text: str, units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    """The sentences that point back to a fallen one, and the bare yes or no that stands before one."""
    sentences = [at for at in fallen if units[at].kind == "sentence"]
    behind = {at + 1 for at in sentences if at + 1 < len(units) and units[at + 1].block == units[at].block}
    before = {at - 1 for at in sentences if at and units[at - 1].kind == "sentence"}
    leaning = {at for at in behind if compiled(_LEANING).match(_words(text, units[at]))}
    return leaning | {at for at in before if is_bare_answer(_words(text, units[at]))}


def _words(text: str, unit: Unit) -> str:
    return text[unit.start : unit.end].lstrip(" \n*_~")


def _lists(units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    """An introduction whose list (table, code) is gone, and the list whose introduction is."""
    found: set[int] = set()
    for at, unit in enumerate(units):
        members = _introduced(units, at) if unit.introduces else range(0)
        if not members:
            continue
        if at in fallen:
            found.update(members)
        elif all(member in fallen or units[member].kind in {"head", "foot"} for member in members):
            found.update((at, *members))
    return found


def _introduced(units: tuple[Unit, ...], at: int) -> range:
    """The units that a sentence or item ending in a colon introduces: the list, table or code right after it."""
    first = at + 1
    last = first
    if units[at].kind == "item":
        while last < len(units) and units[last].kind == "item" and units[last].indent > units[at].indent:
            last += 1
    elif first < len(units) and units[first].kind != "sentence":
        while last < len(units) and units[last].block == units[first].block:
            last += 1
    return range(first, last)


def _bare(units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    """Headings with nothing left under them, and the head and foot of a table without rows."""
    tables = {unit.block for at, unit in enumerate(units) if unit.kind == "row" and at not in fallen}
    found = {at for at, unit in enumerate(units) if unit.kind in {"head", "foot"} and unit.block not in tables}
    filled = False
    for at in reversed(range(len(units))):
        if units[at].kind == "heading":
            found |= set() if filled else {at}
            filled = False
        elif at not in fallen | found:
            filled = True
    return found


def _joined(text: str, units: tuple[Unit, ...], fallen: set[int], gaps: Mapping[int, str]) -> str:
    """The text without the fallen units, some replaced; a first connective dropped, and what is left closed up."""
    pieces: list[str] = []
    last = -1
    for at, unit in enumerate(units):
        if at in fallen and at not in gaps:
            continue
        piece = gaps.get(at, text[unit.start : unit.end])
        if at - 1 in fallen and units[at - 1].block == unit.block and unit.kind == "sentence":
            piece = _without_connective(piece)
        pieces += ("" if last < 0 else _gap(text, units[last : at + 1]), piece)
        last = at
    return "".join(pieces)


def _gap(text: str, units: tuple[Unit, ...]) -> str:
    """What stands between two units that are now neighbours: the widest of the gaps there were."""
    gaps = [text[one.end : other.start] for one, other in pairwise(units)]
    lines = max(gap.count("\n") for gap in gaps)
    return gaps[-1] if len(gaps) == 1 or not lines else "\n" * min(lines, 2)


def _without_connective(sentence: str) -> str:
    match = compiled(_CONNECTIVE).match(sentence)
    rest = sentence[match.end() :] if match else sentence
    return rest[:1].upper() + rest[1:] if match else rest
