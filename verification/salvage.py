"""Keep the verified part of an answer: drop the sentences, list items and table rows that failed.

The rest stays word for word, except for a connective that refers to a dropped sentence. A numbered list or a table
never loses a part silently: a phrase marks the gap, or all of it is dropped. A list is dropped together with its
introduction, and a sentence with the one on which it depends.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, pairwise
from typing import Final, Literal, NamedTuple

from verification.check import check
from verification.claims.claims import cited_sentence_spans
from verification.claims.small_talk import is_bare_answer
from verification.evidence.passages import clean_text
from verification.markup.lines import TextLine, ends_in_colon, lines
from verification.text.language import compile_pattern
from verification.types import Claim, Draft, Verdict

_CONNECTIVE: Final = r"(?:(?:{connectives}),?\s+|(?:{connectives_unparted})[、，]?)"
_LEANING: Final = r"(?:{leaning})\b|(?:{leaning_unparted})"
_MARKER: Final = re.compile(r"[ \t\u00a0\u2003]*[0-9]{1,9}[.)][ \t\u00a0]+")
_ONLY_CITES: Final = re.compile(r"(?:\s*\[[0-9]+\])*[\s.。]*")
_TABLE: Final = frozenset({"frame", "head", "rule", "row"})
_MAX_ROUNDS: Final = 3


class LeftOut(NamedTuple):
    """The phrases that replace a dropped ``step`` of a numbered list and a dropped ``row`` of a table."""

    step: str
    row: str


class Part(NamedTuple):
    """A part of an answer: span without line end, its block, and for items depth and number."""

    start: int
    end: int
    kind: Literal["sentence", "item", "row", "head", "foot", "heading", "fence"]
    block: int
    introduces: bool = False  # it ends in a colon
    indent: int = 0
    number: int | None = None

    @property
    def has_place(self) -> bool:
        """True if a reader would notice that it is missing: a numbered step or a table row."""
        return self.number is not None or self.kind == "row"


def outline(text: str) -> tuple[Part, ...]:
    """Return the parts of a text in order, without overlap."""
    return tuple(part for number, block in enumerate(_blocks(text)) for part in _parts(text, block, number))


def _blocks(text: str) -> Iterator[list[TextLine]]:
    """Yield runs of lines of one kind. A blank line ends a block, except between items of a list."""
    block: list[TextLine] = []
    is_adjacent = False  # True if the line before is not blank
    for line in lines(text):
        if line.kind != "blank":
            kind = block[0].kind if block else "blank"
            is_same = (line.kind == kind and kind not in {"heading", "fence"}) or {line.kind, kind} <= _TABLE
            continues_item = kind == "item" and line.kind == "text" and line.indent > 0 and is_adjacent
            if block and not (continues_item or (is_same and (is_adjacent or kind == "item"))):
                yield block
                block = []
            block.append(line)
        is_adjacent = line.kind != "blank"
    if block:
        yield block


def _parts(text: str, block: list[TextLine], number: int) -> Iterator[Part]:
    kind = block[0].kind
    if kind == "text" or (kind == "rule" and len(block) == 1):
        first = block[0].start
        paragraph = clean_text(text[first : block[-1].end]).replace("\n", " ")
        spans: list[tuple[int, int]] = []
        for start, end in cited_sentence_spans(paragraph):
            joins = spans and _ONLY_CITES.fullmatch(paragraph, start, end)
            spans.append((spans.pop()[0] if joins else start, end))
        for start, end in spans:
            yield Part(first + start, first + end, "sentence", number, ends_in_colon(paragraph[start:end]))
    elif kind == "item":  # with its continuation lines
        starts = [at for at, line in enumerate(block) if line.kind == "item"]
        for first, last in pairwise([*starts, len(block)]):
            item, end = block[first], block[last - 1].end
            yield Part(item.start, end, "item", number, ends_in_colon(text[item.start : end]), item.indent, item.number)
    elif kind in _TABLE:  # the rule and everything above it are the header
        first_row = next((at for at, line in enumerate(block) if line.kind == "row"), len(block))
        for at, line in enumerate(block):
            kind_below: Literal["foot", "row"] = "foot" if line.kind == "frame" else "row"
            yield Part(line.start, line.end, "head" if at < first_row else kind_below, number)
    else:
        yield Part(block[0].start, block[0].end, "heading" if kind == "heading" else "fence", number)


def salvage(
    draft: Draft, verdict: Verdict, recheck: Callable[[Draft], Verdict] = check, left_out: LeftOut | None = None
) -> Verdict | None:
    """Return the verdict on the answer without its failing parts, or None if nothing useful is left.

    A verdict that passed is returned unchanged. Without ``left_out``, in the answer's language, a numbered list or a
    table is dropped if one of its parts fails. ``recheck`` is ``check`` or a wrapper around it.
    """
    for _ in range(_MAX_ROUNDS):
        if verdict.passed:
            misses_question = any(violation.rule == "addresses_question" for violation in verdict.violations)
            return verdict if verdict.claims and not misses_question else None
        text = _drop_failed(draft, verdict, left_out)
        if not text:
            return None
        verdict = recheck(replace(draft, text=text, left_out=left_out or ()))
    return None


def _drop_failed(draft: Draft, verdict: Verdict, left_out: LeftOut | None) -> str:
    """The text without the parts that contain errors. Empty if an error has no position in the text."""
    text, errors = verdict.text, verdict.errors
    if any(error.end <= error.start for error in errors):
        return ""  # such as a crash of a rule: then no part of the text is verified
    parts = outline(text)
    fallen = {at for at, part in enumerate(parts) if any(e.start < part.end and part.start < e.end for e in errors)}
    before: set[int] = set()
    while fallen != before:  # a dropped part may take others with it
        before = set(fallen)
        fallen |= (
            _nested_items(parts, fallen)
            | _dependent_sentences(text, parts, fallen)
            | _orphaned_lists(parts, fallen)
            | _empty_headings(parts, fallen)
        )
        if not left_out:  # the remaining steps would be renumbered and hide the gap
            incomplete = {parts[at].block for at in fallen if parts[at].has_place}
            fallen |= {at for at, part in enumerate(parts) if part.block in incomplete}
    left = {part.block for at, part in enumerate(parts) if at not in fallen and part.kind in {"item", "row"}}
    outermost = fallen - _nested_items(parts, fallen)  # items below a dropped step leave no gap
    places = {at for at in outermost if parts[at].has_place and parts[at].block in left}
    source_ids = {source.id for source in draft.sources}
    citing_claims = tuple(claim for claim in verdict.claims if source_ids.issuperset(claim.cited))
    gaps = {at: _gap_text(text, citing_claims, parts[at], left_out) for at in places} if left_out else {}
    return _join_parts(text, parts, fallen, gaps)


def _gap_text(answer: str, claims: tuple[Claim, ...], part: Part, left_out: LeftOut) -> str:
    """The replacement of a part: its number, the phrase, and its citations."""
    text = answer[part.start : part.end]
    inside = (claim.cited for claim in claims if part.start <= claim.start and claim.end <= part.end)
    citations = "".join(f"[{number}]" for number in dict.fromkeys(chain.from_iterable(inside)))
    if part.kind == "row":
        phrase = f"{left_out.row} {citations}".rstrip()
        return f"| {phrase} |" if text.lstrip().startswith("|") else phrase
    marker = _MARKER.match(text)
    return f"{marker.group() if marker else ''}{left_out.step} {citations}".rstrip()


def _nested_items(parts: tuple[Part, ...], fallen: set[int]) -> set[int]:
    nested: set[int] = set()
    parent_indent = -1
    for at, part in enumerate(parts):
        if part.kind != "item" or part.indent <= parent_indent:
            parent_indent = -1
        if parent_indent >= 0:
            nested.add(at)
        elif part.kind == "item" and at in fallen:
            parent_indent = part.indent
    return nested


def _dependent_sentences(text: str, parts: tuple[Part, ...], fallen: set[int]) -> set[int]:
    """The sentences that refer back to a dropped one, and a bare yes or no before one."""
    words = [text[part.start : part.end].lstrip(" \n*_~") for part in parts]
    leaning = compile_pattern(_LEANING)
    dependent: set[int] = set()
    for at in (at for at in fallen if parts[at].kind == "sentence"):
        if at + 1 < len(parts) and parts[at + 1].block == parts[at].block and leaning.match(words[at + 1]):
            dependent.add(at + 1)
        if at and parts[at - 1].kind == "sentence" and is_bare_answer(words[at - 1]):
            dependent.add(at - 1)
    return dependent


def _orphaned_lists(parts: tuple[Part, ...], fallen: set[int]) -> set[int]:
    """Introductions whose list, table or code right below is dropped, and lists whose introduction is."""
    orphaned: set[int] = set()
    for at, part in enumerate(parts):
        members = _introduced_parts(parts, at) if part.introduces else range(0)
        if at in fallen:
            orphaned.update(members)
        elif members and all(member in fallen or parts[member].kind in {"head", "foot"} for member in members):
            orphaned.update((at, *members))
    return orphaned


def _introduced_parts(parts: tuple[Part, ...], at: int) -> range:
    """The list, table or code right below a sentence or item that ends in a colon."""
    first = last = at + 1
    if parts[at].kind == "item":
        while last < len(parts) and parts[last].kind == "item" and parts[last].indent > parts[at].indent:
            last += 1
    elif first < len(parts) and parts[first].kind != "sentence":
        while last < len(parts) and parts[last].block == parts[first].block:
            last += 1
    return range(first, last)


def _empty_headings(parts: tuple[Part, ...], fallen: set[int]) -> set[int]:
    """Headings without content below them, and the head and foot of a table without rows."""
    tables = {part.block for at, part in enumerate(parts) if part.kind == "row" and at not in fallen}
    empty = {at for at, part in enumerate(parts) if part.kind in {"head", "foot"} and part.block not in tables}
    has_content = False
    for at in reversed(range(len(parts))):
        if parts[at].kind == "heading":
            empty |= set() if has_content else {at}
            has_content = False
        elif at not in fallen | empty:
            has_content = True
    return empty


def _join_parts(text: str, parts: tuple[Part, ...], fallen: set[int], gaps: Mapping[int, str]) -> str:
    """Join the remaining parts and the gap phrases. Drop a connective that follows a gap."""
    pieces: list[str] = []
    last = -1
    for at, part in enumerate(parts):
        if at in fallen and at not in gaps:
            continue
        piece = gaps.get(at, text[part.start : part.end])
        goes_on = at - 1 in fallen and parts[at - 1].block == part.block and part.kind == "sentence"
        if goes_on and (match := compile_pattern(_CONNECTIVE).match(piece)):
            rest = piece[match.end() :]
            piece = rest[:1].upper() + rest[1:]
        # Between new neighbours keep the widest of the original gaps.
        between = [text[one.end : other.start] for one, other in pairwise(parts[last : at + 1])] if last >= 0 else [""]
        breaks = max(gap.count("\n") for gap in between)
        pieces += (between[-1] if len(between) == 1 or not breaks else "\n" * min(breaks, 2), piece)
        last = at
    return "".join(pieces)
