"""Checks that the words between quotation marks are the source's own.

An omission (…, [...]) splits a quotation into parts that must each stand there; case and the final mark do not count.
One or two quoted words are a name or a label, not a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from verification.evidence.evidence import MOST, Evidence, Finding
from verification.text.lexicon import words as listed
from verification.text.words import normalised, terms
from verification.values.identifiers import stands_in

_QUOTED = re.compile(
    r"“([^“”\n]{2,600})”|„([^„“”\n]{2,600})[“”]|«\s?([^«»\n]{2,600}?)\s?»|»([^«»\n]{2,600}?)«|「([^「」\n]{2,600})」|"
    r"『([^『』\n]{2,600})』"
    r"|(?<![\w\"])\"([^\"\n]{2,600})\"(?![\w\"])|(?<![\w'’])['‘]([^'‘’\n]{10,600})['’](?!\w)"
)
# Every quotation is opened by one of these; trying each kind of it at each character would cost far more.
_OPENING = re.compile("[“„«»「『\"'‘]")
_OMITTED = re.compile(r"\s*(?:\[\s*(?:\.{3}|…)\s*\]|\(\s*(?:\.{3}|…)\s*\)|\.{3}|…)\s*")
_MARKS = re.compile(r"[*_~`]|\[\w{1,20}\]")
_EDGE = " .,;:!?。、，！？\"'"
_SHORTEST, _SHORTEST_CJK = 3, 6  # words, letters: less in quotation marks is a name or a label
_ALTERED = 75.0  # percent of the letters: below it the nearest passage is not what was quoted


def quotations(text: str) -> Iterator[tuple[int, int, str]]:
    """The span and the words of each quotation long enough to be one."""
    for match in _QUOTED.finditer(text):
        index = match.lastindex or 0
        words = match[index]
        long_enough = (
            len(words.split()) >= _SHORTEST if words.isascii() or " " in words else len(words) >= _SHORTEST_CJK
        )
        if long_enough:
            yield match.start(index), match.end(index), words


def quote_findings(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each quotation whose words are not the source's; a translated one cannot be compared."""
    if not _OPENING.search(evidence.claim.text) or not evidence.same_language:
        return
    found = list(islice(quotations(evidence.claim.text), MOST))
    passages = [*(cited.passage for cited in evidence.cited), *evidence.known] if found else []
    haystacks = [normalised(_MARKS.sub("", passage.text)) for passage in passages]
    for start, end, words in found:
        parts = [normalised(part).strip(_EDGE) for part in _OMITTED.split(_MARKS.sub("", words))]
        if all(any(stands_in(part, haystack) for haystack in haystacks) for part in parts if part):
            continue
        yield _finding(evidence, start, end, words)


def _finding(evidence: Evidence, start: int, end: int, words: str) -> Finding:
    altered = _altered(evidence, words)
    loose = altered is not None and _same_substance(words, altered[1], evidence.claim.language)
    if altered:
        source, original = altered
        detail = f"source [{source}] has it as: {original}"
        remedy = f"Quote source [{source}] word by word ({original}), or say it without quotation marks."
    else:
        detail = f"these words do not stand in {evidence.sources_named()}"
        remedy = "Quote only what the source says word by word, or say it without quotation marks."
    return Finding(
        kind="quote",
        start=start,
        end=end,
        detail=detail,
        remedy=remedy,
        certainty="doubtful" if loose else "certain" if altered else "unfounded",
    )


def _same_substance(words: str, original: str, language: str | None) -> bool:
    """True if the two differ in small words only ("they are", "they're"): not word by word, but not wrong."""
    negations = listed("negations").get(language or "en", frozenset())
    mine, theirs = (
        [term.stem or term.word for term in terms(part, language) if term.stem or term.word in negations]
        for part in (words, original)
    )
    return mine == theirs and len(mine) > 1


def _altered(evidence: Evidence, words: str) -> tuple[int, str] | None:
    """The source and the passage that the quotation comes closest to."""
    from rapidfuzz import fuzz  # noqa: PLC0415 - a twentieth of each start, for quotations that were altered

    best: tuple[float, int, str] = (_ALTERED, 0, "")
    for hit in evidence.hits:
        alignment = fuzz.partial_ratio_alignment(words, hit.text, score_cutoff=best[0])
        if alignment and alignment.score > best[0]:
            best = (alignment.score, hit.source.id, _whole_words(hit.text, alignment.dest_start, alignment.dest_end))
    return (best[1], best[2]) if best[2] else None


def _whole_words(text: str, start: int, end: int) -> str:
    """``text[start:end]`` widened to whole words."""
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return text[start:end].strip(_EDGE)
