"""Checks the text of a draft, and numbers its citations for its readers: from 1, in the order of their first use.

The model cites by the number that ``Progress.add_source`` gave a source. A growing answer keeps its numbers.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import structlog

from verification.check import check
from verification.markup.scanner import fences, segments
from verification.markup.tables import is_drawn
from verification.rules.citations import citations
from verification.types import Source

log = structlog.get_logger()

check_draft: Final = partial(check, on_crash=lambda rule, error: log.error("rule_crashed", rule=rule, exc_info=error))
_LINKED: Final = re.compile(r"\[\\\[(\d{1,9})\\\]\]\(")
_IN_CELL: Final = re.compile(r"\[(\d{1,9})\]")

Order = Mapping[int, int]  # from the id of a cited source to its new number


def citation_order(text: str, sources: Iterable[Source]) -> Order:
    """Return the order in which a verified text cites these sources."""
    known = {source.id for source in sources}
    cited = dict.fromkeys(number for _, _, numbers in _find_citations(text) for number in numbers if number in known)
    return {number: place for place, number in enumerate(cited, 1)}


def renumber(text: str, order: Order) -> str:
    """Return the text with its citations in that order, also those that are Markdown links. Code stays as it is."""
    pieces, position = [], 0
    for start, end, numbers in _find_citations(text):
        if all(number in order for number in numbers):
            new = "".join(f"[{order[number]}]" for number in numbers)
            linked = f"[\\[{order[numbers[0]]}\\]]("
            pieces += [text[position:start], linked if text.startswith("[\\[", start) else new]
            position = end
    return "".join([*pieces, text[position:]])


def _find_citations(text: str) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return start, end and numbers of each citation in order. Cells of a drawn table have some too."""
    places = [(citation.start, citation.end, citation.ids) for citation in citations(text)]
    for segment in segments(text):
        if segment.kind == "text":
            matches = _LINKED.finditer(text, segment.start, segment.end)
            places += [(link.start(), link.end(), (int(link[1]),)) for link in matches]
    for fence in fences(text):
        if is_drawn(text[fence.body : fence.body_end]):
            cells = _IN_CELL.finditer(text, fence.body, fence.body_end)
            places += [(cell.start(), cell.end(), (int(cell[1]),)) for cell in cells]
    return sorted(places)
