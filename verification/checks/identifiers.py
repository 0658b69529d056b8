"""Checks that flags, versions, paths, names, error codes, code spans and URLs of a claim stand in what it cites.

They must stand there, or in the question, as they are written, case aside; a placeholder in a code span may be filled
in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from verification.checks.code import fillings
from verification.evidence.evidence import MOST, Certainty, Evidence, Finding
from verification.markup.link_targets import normal
from verification.values.identifiers import Identifier, missing_words, nearest

_CODE_DIGITS = 3  # E4012 is a code, COVID-19 a name
# How a known address or file is called with an everyday command is for the writer to say, and for a judge to see.
_EVERYDAY = re.compile(r"curl|wget|http|bash|python3?|cat|cd|ls|grep|echo|export|-[A-Za-z]")
_MACHINE_WORD = re.compile(r".*[\d_./=:-].*|--?\w.*")


def identifier_findings(evidence: Evidence, urls: frozenset[str]) -> Iterator[Finding]:
    """One finding for each identifier that no cited source has. ``urls`` are links that count as known."""
    mine = evidence.claim.identifiers[:MOST]
    passages = (*(cited.passage for cited in evidence.cited), *evidence.known) if mine else ()
    texts = [passage.folded for passage in passages]
    inside_code: list[tuple[int, int]] = []
    for identifier in mine:
        if any(start <= identifier.start < end for start, end in inside_code):
            continue
        if identifier.kind == "code":
            inside_code.append((identifier.start, identifier.end))
        missing = _missing(identifier, texts, urls)
        if missing and not _is_filled_in(identifier, evidence, missing):
            yield _finding(identifier, missing, evidence)


def _is_filled_in(identifier: Identifier, evidence: Evidence, missing: tuple[str, ...]) -> bool:
    """Whether it is a command of a source with its placeholders filled in, or one of the words filled in there."""
    texts = [passage.text for passage in evidence.passages]
    codes = [each.text for each in evidence.claim.identifiers[:MOST] if each.kind == "code"]
    if identifier.kind == "code" and fillings(identifier.text, texts):
        return True
    return all(any(word in fillings(code, texts) for code in codes) for word in missing)


def _missing(identifier: Identifier, texts: list[str], urls: frozenset[str]) -> tuple[str, ...]:
    if identifier.kind == "url" and is_known_url(identifier.text, urls):
        return ()
    best: tuple[str, ...] | None = None
    for text in texts:
        missing = missing_words(identifier, text)
        if not missing:
            return ()
        best = missing if best is None or len(missing) < len(best) else best
    return best or ()


def is_known_url(url: str, urls: frozenset[str]) -> bool:
    """Whether it is one of the links that ``known_urls`` gave."""
    return normal(url) in urls


def known_urls(urls: Iterable[str]) -> frozenset[str]:
    """Links as ``identifier_findings`` compares them."""
    return frozenset(map(normal, urls))


def _certainty(identifier: Identifier, missing: tuple[str, ...], *, near: bool) -> Certainty:
    """Anything that only a machine would write is evidence; a code span of plain words may be emphasis."""
    words = identifier.text.split()
    if identifier.kind == "code" and len(words) > 1 and all(map(_EVERYDAY.fullmatch, missing)):
        return "doubtful"
    if near or identifier.kind == "url":
        return "certain"
    if identifier.kind == "code_number":
        # COVID-19 and U-30 are names; an error code has more digits.
        return "unfounded" if sum(map(str.isdigit, identifier.text)) >= _CODE_DIGITS else "doubtful"
    plain = identifier.kind == "code" and len(words) > 1 and not any(map(_MACHINE_WORD.fullmatch, words))
    return "doubtful" if plain else "unfounded"


def _finding(identifier: Identifier, missing: tuple[str, ...], evidence: Evidence) -> Finding:
    wrong = " ".join(missing)
    known = [each for cited in evidence.cited for each in cited.passage.identifiers]
    there = nearest(wrong, known) or nearest(identifier.text, known)
    where = evidence.sources_named()
    detail = f"{where} has {there}, not {wrong}" if there else f"{wrong} does not stand in {where}"
    return Finding(
        kind="url" if identifier.kind == "url" else "identifier",
        start=identifier.start,
        end=identifier.end,
        detail=detail,
        remedy=f"Write {there} as {where} has it, or drop the sentence."
        if there
        else f"Drop {wrong}, or cite the source that states it.",
        certainty=_certainty(identifier, missing, near=bool(there)),
    )
