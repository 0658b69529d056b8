"""Whether there is an answer at all, and one to the question: emptiness, length, shared content words.

Inflections count, and so do synonyms that the titles and headings of the cited sources offer.
"""

from __future__ import annotations

import re
from typing import Final

from verification.draft_view import Reading
from verification.rules.citations import cited_sources
from verification.text.language import detect
from verification.text.words import content_stems
from verification.types import Source, Violation

_ENOUGH: Final = 50
_VISIBLE: Final = re.compile("[^\\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufffc]")
_HEADING: Final = re.compile(r"^\s{0,3}#{1,6}\s+(.{1,200})$|^\*{1,2}([^*\n]{1,120})\*{1,2}$", re.MULTILINE)


def not_empty(reading: Reading) -> tuple[Violation, ...]:
    """An error when nothing can be seen: white space, zero-width letters, nothing."""
    if _VISIBLE.search(reading.text):
        return ()
    return (reading.violation("not_empty", (0, len(reading.text)), "The answer is empty.", "Write the answer."),)


def minimum_length(reading: Reading) -> tuple[Violation, ...]:
    """A warning when the answer is shorter than the question, up to 50 characters."""
    least = min(len(reading.draft.question.strip()), _ENOUGH)
    seen = len(reading.text.strip())
    if not seen or seen >= least:
        return ()
    detail = f"The answer has {seen} characters, fewer than the {least} to expect."
    return (reading.warning("minimum_length", (0, len(reading.text)), detail, "Answer in a full sentence."),)


def addresses_question(reading: Reading) -> tuple[Violation, ...]:
    """A warning when no content word of the question comes back, in the answer or in what it cites by title."""
    if reading.draft.own_words or not reading.claims:
        return ()
    language = detect(reading.draft.question) or detect(reading.prose)
    asked = content_stems(reading.draft.question, language)
    if not asked or asked & content_stems(reading.text, language):
        return ()
    titles = " ".join(_names(source) for source in cited_sources(reading.draft, reading.text))
    if asked & content_stems(titles, detect(titles) or language):
        return ()
    detail = "No content word of the question appears in the answer."
    remedy = "Answer the question that was asked, in its own terms."
    return (reading.warning("addresses_question", (0, len(reading.text)), detail, remedy),)


def _names(source: Source) -> str:
    """A source's title and its headings."""
    return " ".join([source.title, *(m[1] or m[2] for m in _HEADING.finditer(source.text))])
