"""Keep the verified part of an answer: drop the sentences, list items and table rows that failed.

The rest stays word for word, except for a connective that lost what it referred to. A numbered list or a table never
loses a part silently: a phrase marks the gap, or all of it is dropped. A list is dropped with its introduction, and a
sentence with the one it depends on.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from verification.check import check
from verification.claims.small_talk import is_bare_answer
from verification.markup.lines import Unit, outline
from verification.text.lexicon import compile_pattern
from verification.types import Claim, Draft, Verdict

_CONNECTIVE: Final = r"(?:(?:{connectives}),?\s+|(?:{connectives_unparted})[、，]?)"
_LEANING: Final = r"(?:{leaning})\b|(?:{leaning_unparted})"
_MARKER: Final = re.compile(r"[ \t\u00a0\u2003]*[0-9]{1,9}[.)][ \t\u00a0]+")
_MAX_ROUNDS: Final = 3


class LeftOut(NamedTuple):
    """The phrases that replace a dropped ``step`` of a numbered list and a dropped ``row`` of a table."""

    step: str
    row: str


def salvage(
    draft: Draft, verdict: Verdict, recheck: Callable[[Draft], Verdict] = check, left_out: LeftOut | None = None
) -> Verdict | None:
    """Return the verdict on the answer without its failing parts, or None if nothing useful is left.

    A verdict that passed is returned unchanged. Without ``left_out``, which is in the answer's language, a numbered
    list or a table is dropped if one of its parts fails. ``recheck`` is ``check`` or a wrapper of it.
    """
    for _ in range(_MAX_ROUNDS):
        if verdict.passed:
            strays = any(violation.rule == "addresses_question" for violation in verdict.violations)
            return verdict if verdict.claims and not strays else None
        text = _drop_failed(draft, verdict, left_out)
        if not text:
            return None
        verdict = recheck(replace(draft, text=text, left_out=left_out or ()))
    return None


def _drop_failed(draft: Draft, verdict: Verdict, left_out: LeftOut | None) -> str:
    """The text without the units that contain errors. Empty if an error has no place in the text."""
    text, errors = verdict.text, verdict.errors
    if any(error.end <= error.start for error in errors):
        return ""  # such as a crash of a rule: then no part of the text is verified
    units = outline(text)
    fallen = {at for at, unit in enumerate(units) if any(e.start < unit.end and unit.start < e.end for e in errors)}
    before: set[int] = set()
    while fallen != before:  # a dropped unit may take others with it
        before = set(fallen)
        fallen |= (
            _nested_items(units, fallen)
            | _dependent_sentences(text, units, fallen)
            | _orphaned_lists(units, fallen)
            | _empty_headings(units, fallen)
        )
        # Without a phrase, the remaining steps would be renumbered and hide the gap.
        fallen |= set() if left_out else _incomplete_blocks(units, fallen)
    left = {unit.block for at, unit in enumerate(units) if at not in fallen and unit.kind in {"item", "row"}}
    whole = fallen - _nested_items(units, fallen)  # items below a dropped step leave no gap
    places = {at for at in whole if _has_place(units[at]) and units[at].block in left}
    source_ids = {source.id for source in draft.sources}
    citing_claims = tuple(claim for claim in verdict.claims if source_ids.issuperset(claim.cited))
    gaps = {at: _gap_text(text, citing_claims, units[at], left_out) for at in places} if left_out else {}
    return _join_units(text, units, fallen, gaps)


def _incomplete_blocks(units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    """All units of the numbered lists and tables that lost a part."""
    blocks = {units[at].block for at in fallen if _has_place(units[at])}
    return {at for at, unit in enumerate(units) if unit.block in blocks}


def _has_place(unit: Unit) -> bool:
    """Return True if a reader would miss the part: a numbered step or a table row."""
    return unit.number is not None or unit.kind == "row"


def _gap_text(answer: str, claims: tuple[Claim, ...], unit: Unit, left_out: LeftOut) -> str:
    """The replacement of a unit: its number, the phrase, and its citations."""
    text = answer[unit.start : unit.end]
    marker = _MARKER.match(text)
    claims_inside = [claim for claim in claims if unit.start <= claim.start and claim.end <= unit.end]
    citations = "".join(f"[{number}]" for number in dict.fromkeys(n for claim in claims_inside for n in claim.cited))
    phrase = f"{left_out.row if unit.kind == 'row' else left_out.step} {citations}".rstrip()
    if unit.kind != "row":
        return f"{marker.group() if marker else ''}{phrase}"
    return f"| {phrase} |" if text.lstrip().startswith("|") else phrase


def _nested_items(units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    nested: set[int] = set()
    parent_indent = -1
    for at, unit in enumerate(units):
        if unit.kind != "item" or unit.indent <= parent_indent:
            parent_indent = -1
        if parent_indent >= 0:
            nested.add(at)
        elif unit.kind == "item" and at in fallen:
            parent_indent = unit.indent
    return nested


def _dependent_sentences(text: str, units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    """The sentences that refer back to a dropped one, and a bare yes or no before one."""
    sentences = [at for at in fallen if units[at].kind == "sentence"]
    behind = {at + 1 for at in sentences if at + 1 < len(units) and units[at + 1].block == units[at].block}
    before = {at - 1 for at in sentences if at and units[at - 1].kind == "sentence"}
    leaning = {at for at in behind if compile_pattern(_LEANING).match(_unit_words(text, units[at]))}
    return leaning | {at for at in before if is_bare_answer(_unit_words(text, units[at]))}


def _unit_words(text: str, unit: Unit) -> str:
    return text[unit.start : unit.end].lstrip(" \n*_~")


def _orphaned_lists(units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    """Introductions whose list, table or code is dropped, and lists whose introduction is."""
    orphaned: set[int] = set()
    for at, unit in enumerate(units):
        members = _introduced_units(units, at) if unit.introduces else range(0)
        if not members:
            continue
        if at in fallen:
            orphaned.update(members)
        elif all(member in fallen or units[member].kind in {"head", "foot"} for member in members):
            orphaned.update((at, *members))
    return orphaned


def _introduced_units(units: tuple[Unit, ...], at: int) -> range:
    """The list, table or code right after a sentence or item that ends in a colon."""
    first = at + 1
    last = first
    if units[at].kind == "item":
        while last < len(units) and units[last].kind == "item" and units[last].indent > units[at].indent:
            last += 1
    elif first < len(units) and units[first].kind != "sentence":
        while last < len(units) and units[last].block == units[first].block:
            last += 1
    return range(first, last)


def _empty_headings(units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    """Headings without content below them, and the head and foot of a table without rows."""
    tables = {unit.block for at, unit in enumerate(units) if unit.kind == "row" and at not in fallen}
    empty = {at for at, unit in enumerate(units) if unit.kind in {"head", "foot"} and unit.block not in tables}
    has_content = False
    for at in reversed(range(len(units))):
        if units[at].kind == "heading":
            empty |= set() if has_content else {at}
            has_content = False
        elif at not in fallen | empty:
            has_content = True
    return empty


def _join_units(text: str, units: tuple[Unit, ...], fallen: set[int], gaps: Mapping[int, str]) -> str:
    """Join the remaining units and the gap phrases. Drop a connective that follows a gap."""
    pieces: list[str] = []
    last = -1
    for at, unit in enumerate(units):
        if at in fallen and at not in gaps:
            continue
        piece = gaps.get(at, text[unit.start : unit.end])
        goes_on = at - 1 in fallen and units[at - 1].block == unit.block and unit.kind == "sentence"
        if goes_on and (match := compile_pattern(_CONNECTIVE).match(piece)):
            rest = piece[match.end() :]
            piece = rest[:1].upper() + rest[1:]
        pieces += ("" if last < 0 else _separator(text, units[last : at + 1]), piece)
        last = at
    return "".join(pieces)


def _separator(text: str, units: tuple[Unit, ...]) -> str:
    """The white space between two units that are now neighbours: the widest of the original gaps."""
    gaps = [text[one.end : other.start] for one, other in pairwise(units)]
    lines = max(gap.count("\n") for gap in gaps)
    return gaps[-1] if len(gaps) == 1 or not lines else "\n" * min(lines, 2)
