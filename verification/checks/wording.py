"""Checks the words of a claim: quotations, and a sentence that is the source's but for a name in it, or for a negation.

Who is meant and what is denied is meaning: words can tell only where nothing else differs. German nouns have capitals
like names, and Chinese and Japanese words are not parted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice

from verification.evidence.evidence import MOST, Certainty, Evidence, Finding, Hit
from verification.text.lexicon import UNPARTED
from verification.text.lexicon import words as listed
from verification.text.words import Term, normalised, terms
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
_NEAR_ENOUGH = 0.5  # of the claim's words, where nobody has the name
_NEARLY_ALL = 0.8  # of the other words, where the sources have it for somebody else: there chance is more likely
_FEWEST = 2  # words that a sentence must have beside what differs
_NEAREST = 2  # sentences
_INITIAL_SIGNS = " *_•-\"'“„«("  # what may stand before the first word of a sentence


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
    if not _OPENING.search(evidence.claim.text) or not evidence.same_language:  # a translation is never word by word
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
    certainty: Certainty = "doubtful" if loose else "certain" if altered else "unfounded"
    return Finding(kind="quote", span=(start, end), detail=detail, remedy=remedy, certainty=certainty)


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
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return text[start:end].strip(_EDGE)


def wording_findings(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each name in another one's place, and one for a negation too many or too few."""
    if not evidence.same_language:
        return
    for hit in evidence.hits[:_NEAREST]:
        if hit.share >= _NEAR_ENOUGH:
            found = [*_exchanged(evidence, hit), *_turned(evidence, hit)]
            yield from found
            if found:
                return


def _exchanged(evidence: Evidence, hit: Hit) -> Iterator[Finding]:
    """Names in whose place, between the same words, the sentence has others."""
    claim = evidence.claim
    names = claim.capitals - hit.stems
    if not names or claim.language in {"de", *UNPARTED}:
        return
    mine, theirs = claim.terms, hit.terms
    matcher = SequenceMatcher(None, [term.word for term in mine], [term.word for term in theirs], autojunk=False)
    for kind, first, last, start, stop in matcher.get_opcodes():
        run, other = mine[first:last], theirs[start:stop]
        if kind == "replace" and _are_names(run, hit.stems) and _are_names(other, claim.stems):
            span = (run[0].start, run[-1].end)
            if _is_surely_another(evidence, hit, names, run):
                yield evidence.instead("name", span, hit, hit.text[other[0].start : other[-1].end])


def _are_names(run: Sequence[Term], others: frozenset[str]) -> bool:
    return all(term.capital and term.stem and term.stem not in others for term in run)


def _is_surely_another(evidence: Evidence, hit: Hit, names: frozenset[str], run: Sequence[Term]) -> bool:
    claim, stems = evidence.claim, {term.stem for term in run}
    if any(stems & passage.stems for passage in evidence.known):
        return False  # as the asker calls it
    # The first word of a sentence has a capital whether it is a name or not.
    opens = len(run) == 1 and any(
        not claim.text[begin : run[0].start].strip(_INITIAL_SIGNS) for begin, _ in claim.spans
    )
    values = [(value.start, value.end) for value in claim.identifiers[:MOST]]
    values += [(value.start, value.end) for value in claim.moments[:MOST]]
    if opens or any(start <= run[0].start < end for start, end in values):
        return False
    if not stems & evidence.stems:
        initials = " ".join(cited.passage.initials for cited in evidence.cited)
        return run[0].word not in initials  # LA is no new name beside Los Angeles
    rest = claim.stems - names
    said = names <= stems and len(rest) >= _FEWEST and len(rest & hit.stems) >= _NEARLY_ALL * len(rest)
    return said and not any(names & held.stems and 2 * len(rest & held.stems) >= len(rest) for held in evidence.hits)


def _turned(evidence: Evidence, hit: Hit) -> Iterator[Finding]:
    """A negation that only one of two sentences has which share all other words, in their order."""
    # "May not cost more than 140" is "up to 140": beside a bound a negation tells nothing.
    if evidence.claim.language in UNPARTED or any(
        quantity.bound not in {"", "~"} for quantity in (*evidence.claim.quantities, *hit.passage.quantities)
    ):
        return
    known = listed("negations").get(evidence.claim.language or "en", frozenset())
    denials, rests = 0, []
    for said in (evidence.claim.terms, hit.terms):
        negations = {term for term in said if term.word in known or term.word.endswith(("'t", "’t"))}
        denials += len(negations)
        rests.append([term.stem for term in said if term.stem and term not in negations])
    answers = evidence.claim.terms[:1] and evidence.claim.terms[0].word in known  # "No, ..."
    if denials % 2 and not answers and rests[0] == rests[1] and len(rests[0]) >= _FEWEST:
        yield evidence.instead("polarity", (0, len(evidence.claim.text)), hit, repr(hit.text), "unfounded")
