"""Citations: ``[n]`` in all the ways models write it, set into the one form, and whether each resolves.

Nothing inside code or a link is a citation. ``normalise`` changes only the spelling of citations.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from verification.markup.edits import Edit, applied, blanked
from verification.markup.lines import NOWHERE, ids_in
from verification.markup.link_targets import KnownLinks, Link, Standing, links, normal
from verification.markup.scanner import prose
from verification.types import Draft, Reading, Repair, Source, Violation

_WORD: Final = r"(?:sources?|src|refs?|references?|quellen?|fuentes?|sumber)"
_NUMBER: Final = rf"(?:{_WORD}\s{{1,3}})?\^?#?[0-9]{{1,400}}"
_JOIN: Final = r"\s{0,3}(?:[,;&、，-]|–|and|und|et|y|dan)\s{0,3}"
# 【1†source】 is how OpenAI's file search cites.
_CITATION: Final = re.compile(
    rf"\[({_NUMBER}(?:{_JOIN}{_NUMBER}){{0,40}})(?:†[^\[\]\n]{{0,60}})?\](?!\()"
    rf"|\(({_WORD}\s{{1,3}}[0-9]{{1,400}}(?:{_JOIN}{_NUMBER}){{0,40}})\)"
    rf"|[【［]({_NUMBER}(?:{_JOIN}{_NUMBER}){{0,40}})(?:†[^【】［］\n]{{0,60}})?[】］]",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"\[?([0-9]{1,6})\]?")
_MOST_NAMED: Final = 30


class Citation(NamedTuple):
    """One bracket: its span, and the source numbers it names in order."""

    start: int
    end: int
    ids: tuple[int, ...]


def citations(text: str) -> tuple[Citation, ...]:
    """The citations of a text, outside code and links, in order."""
    return _shown(prose(text))


@lru_cache(maxsize=4)
def _shown(masked: str) -> tuple[Citation, ...]:
    """The citations of a text whose code is blanked out. Remembered, since several rules ask for the same text."""
    # A number in a URL or a label is no citation.
    unlinked = blanked(masked, [(link.start, link.end) for link in links(masked)])
    return tuple(
        Citation(m.start(), m.end(), tuple(ids_in(m[1] or m[2] or m[3]))) for m in _CITATION.finditer(unlinked)
    )


def normalise(text: str, sources: tuple[Source, ...]) -> tuple[str, tuple[Repair, ...]]:
    """The text with each citation as ``[n][m]``, those written as links to their source included."""
    masked = prose(text)
    by_id = {source.id: normal(source.url) for source in sources} if links(masked) else {}
    changes = [
        Edit(link.start, link.end, f"[{cited}]") for link in links(masked) if (cited := _as_citation(link, by_id))
    ]
    changes += _linked_only(masked, by_id)  # behind the link: nothing that is seen is lost
    for start, end, ids in _shown(masked):
        plain = "".join(f"[{number}]" for number in dict.fromkeys(ids))
        if NOWHERE not in ids and text[start:end] != plain:
            changes.append(Edit(start, end, plain))
    return applied(text, changes), (Repair(kind="citation", count=len(changes)),) if changes else ()


def _as_citation(link: Link, by_id: dict[int, str]) -> int:
    """The source number of a link that is a citation: a bare number as label, that source's url as target; else 0."""
    match = _LABEL.fullmatch(link.label.strip())
    return int(match[1]) if match and by_id.get(int(match[1])) == normal(link.target) else 0


def _linked_only(masked: str, by_id: dict[int, str]) -> Iterator[Edit]:
    """The numbers to set behind links to a source's page, on lines that cite in no other way."""
    pages = Counter(by_id.values())
    numbers = {page: number for number, page in by_id.items() if pages[page] == 1}
    end, cites = -1, False
    for link in links(masked):
        if link.start > end:
            first = masked.rfind("\n", 0, link.start) + 1
            end = masked.find("\n", link.end) % (len(masked) + 1)
            cites = bool(_CITATION.search(masked, first, end))
        number = numbers.get(normal(link.target))
        if number is not None and not cites and not _LABEL.fullmatch(link.label.strip()):
            yield Edit(link.end, link.end, f" [{number}]")


def cites_sources(reading: Reading) -> tuple[Violation, ...]:
    """An error for each claim without a citation, where there is something to cite."""
    draft = reading.draft
    if draft.own_words or draft.unsourced or not draft.sources:
        return ()
    known = ", ".join(f"[{number}]" for number in sorted({source.id for source in draft.sources})[:_MOST_NAMED])
    starts = [citation.start for citation in _shown(reading.prose)]
    return tuple(
        reading.violation(
            "cites_sources",
            (claim.start, claim.end),
            "This states something and cites no source.",
            f"End the sentence with the number of the source that says it ({known}), or leave it out.",
        )
        for claim in reading.claims
        if not claim.cited and bisect_left(starts, claim.start) == bisect_left(starts, claim.end)
    )


def citation_resolves(reading: Reading) -> tuple[Violation, ...]:
    """An error for each number that is no source of this turn, and for each link that does not resolve."""
    numbers = () if reading.draft.own_words else _unknown_numbers(reading)
    return (*numbers, *_unknown_links(reading))


def _unknown_numbers(reading: Reading) -> tuple[Violation, ...]:
    ids = {source.id for source in reading.draft.sources}
    valid = ", ".join(f"[{number}]" for number in sorted(ids)[:_MOST_NAMED])
    remedy = f"Cite only {valid}." if valid else "Leave the number out: there are no sources to cite."
    return tuple(
        reading.violation("citation_resolves", (start, end), "No source has this number.", remedy)
        for start, end, numbers in (*_shown(reading.prose), *_in_tables(reading))
        if not ids.issuperset(numbers)
    )


def _in_tables(reading: Reading) -> Iterator[Citation]:
    """What the rows of a table cite: a table is sent as a code block, but what it states is stated."""
    for claim in reading.claims:
        if claim.cited and not reading.prose[claim.start : claim.end].strip():
            yield Citation(claim.start, claim.end, claim.cited)


def _unknown_links(reading: Reading) -> Iterator[Violation]:
    known = KnownLinks(reading.draft)
    for link in links(reading.prose):
        standings = {known.standing(each.target) for each in (link, *links(link.label))}
        for standing, (detail, remedy) in _LINK_FAULTS.items():
            if standing in standings:
                yield reading.violation("citation_resolves", (link.start, link.end), detail, remedy)
                break


_LINK_FAULTS: Final[dict[Standing, tuple[str, str]]] = {
    "unknown": (
        "This link stands in no source and not in the question.",
        "Leave the link out; cite the source by [n].",
    ),
    "as_code": ("This link leads to a host that no source is from.", "Show the address as `code`, not as a link."),
}


def cited_sources(draft: Draft, text: str) -> tuple[Source, ...]:
    """The sources that a text cites, in the draft's order."""
    ids = {number for citation in citations(text) for number in citation.ids}
    return tuple(source for source in draft.sources if source.id in ids)
