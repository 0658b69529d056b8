"""Keep what is verified: the answer without the sentences, list items and table rows that failed.

Promises: what is kept stands word for word as it was, but for renumbered lists and a connective that lost what it
pointed back to; it passes all rules again and still answers the question, else there is nothing (None). Must never
keep a list whose introduction fell, nor a sentence that leans on one that fell.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Final

from verification.check import check
from verification.markup.outline import Unit, outline
from verification.types import Draft, Verdict, Violation

_CONNECTIVE: Final = re.compile(
    r"(?:(?:however|therefore|thus|hence|moreover|furthermore|additionally|also|besides|nevertheless"
    r"|instead|consequently"
    r"|as a result|in addition|otherwise|likewise|allerdings|cependant|toutefois|de plus|en outre"
    r"|par conséquent|sin embargo"
    r"|por lo tanto|además|namun|oleh karena itu|selain itu|karena itu),?\s+"
    r"|(?:しかし|ただし|そのため|したがって|また|さらに|但是|不过|因此|所以|此外|而且)[、，]?)",
    re.IGNORECASE,
)
_LEANING: Final = re.compile(
    r"(?:this|that|these|those|it|they|he|she|such|then|so|but|and|or|yet|the (?:same|latter|former)|both|neither"
    r"|in (?:that|this) case|dies\w*|das|es|er|sie|dadurch|dann|damit|daher|deshalb|jedoch|aber|und|cela"
    r"|ceci|ce|ça|celui\w*"
    r"|celle\w*|ils?|elles?|ainsi|donc|mais|et|esto|eso|est[ae]s?|ell[oa]s?|así|pero|y|hal (?:ini|itu)"
    r"|ini|itu|mereka|tetapi"
    r"|dan|lalu|kemudian)\b|(?:これ|それ|その|この|そこ|这|那|它|其)",
    re.IGNORECASE,
)
_VERDICT_WORD: Final = re.compile(
    r"\W*(?:yes|no|correct|exactly|right|ja|nein|genau|oui|non|exact\w*|sí|si|no|ya|tidak|benar|はい|いいえ|是的?|不是|对|否)"
    r"\W*",
    re.IGNORECASE,
)
_ROUNDS: Final = 3


def salvage(draft: Draft, verdict: Verdict, recheck: Callable[[Draft], Verdict] = check) -> Verdict | None:
    """The verdict on what is left without the failing parts: passed, to the question, with a claim; else None.

    A passed verdict has nothing to drop and comes back as it is. ``recheck`` is ``check``, maybe with ears.
    """
    for _ in range(_ROUNDS):
        if verdict.passed:
            strays = any(found.rule == "addresses_question" for found in verdict.violations)
            return verdict if verdict.claims and not strays else None
        text = _without(verdict.text, verdict.errors)
        if not text:
            return None
        verdict = recheck(replace(draft, text=text))
    return None


def _without(text: str, errors: tuple[Violation, ...]) -> str:
    """The text without the units in which the errors lie; empty where an error has no place in the text."""
    if any(error.end <= error.start for error in errors):
        return ""
    units = outline(text)
    fallen = {at for at, unit in enumerate(units) if any(e.start < unit.end and unit.start < e.end for e in errors)}
    grown: set[int] = set()
    while fallen != grown:
        grown = set(fallen)
        fallen |= (
            _children(units, fallen) | _leaning(text, units, fallen) | _lists(units, fallen) | _bare(units, fallen)
        )
    return _joined(text, units, fallen)


def _children(units: tuple[Unit, ...], fallen: set[int]) -> set[int]:
    """The deeper items under a fallen item."""
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
    found: set[int] = set()
    for at in fallen:
        unit, after, before = units[at], at + 1, at - 1
        if unit.kind != "sentence":
            continue
        if after < len(units) and units[after].block == unit.block and _LEANING.match(_words(text, units[after])):
            found.add(after)
        if before >= 0 and units[before].kind == "sentence" and _VERDICT_WORD.fullmatch(_words(text, units[before])):
            found.add(before)
    return found


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


def _joined(text: str, units: tuple[Unit, ...], fallen: set[int]) -> str:
    """The text without the fallen units: lists renumbered, a first connective dropped, gaps closed up."""
    pieces: list[str] = []
    numbers: dict[tuple[int, int], int] = {}
    touched = {units[at].block for at in fallen}
    last = -1
    for at, unit in enumerate(units):
        if at in fallen:
            continue
        piece = text[unit.start : unit.end]
        if at - 1 in fallen and units[at - 1].block == unit.block and unit.kind == "sentence":
            piece = _without_connective(piece)
        if unit.block in touched:
            piece = _renumbered(piece, unit, numbers)
        pieces += ("" if last < 0 else _gap(text, units[last : at + 1]), piece)
        last = at
    return "".join(pieces)


def _gap(text: str, units: tuple[Unit, ...]) -> str:
    """What stands between two units that are now neighbours: the widest of the gaps there were."""
    gaps = [text[one.end : other.start] for one, other in pairwise(units)]
    lines = max(gap.count("\n") for gap in gaps)
    return gaps[-1] if len(gaps) == 1 or not lines else "\n" * min(lines, 2)


def _without_connective(sentence: str) -> str:
    match = _CONNECTIVE.match(sentence)
    rest = sentence[match.end() :] if match else sentence
    return rest[:1].upper() + rest[1:] if match else rest


def _renumbered(piece: str, unit: Unit, numbers: dict[tuple[int, int], int]) -> str:
    """An ordered item with the number after its kept predecessor's; the first of a list keeps its list's start."""
    for deeper in [key for key in numbers if key[0] == unit.block and key[1] > unit.indent]:
        del numbers[deeper]
    if unit.number is None:
        return piece
    place = (unit.block, unit.indent)
    number = numbers.get(place, unit.first - 1) + 1
    numbers[place] = number
    return piece.replace(str(unit.number), str(number), 1)
