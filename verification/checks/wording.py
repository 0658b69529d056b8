"""Finds a claim that is a sentence of its source but for a name in it, or for a negation.

Who is meant and what is denied is meaning: words can tell only where nothing else differs. German nouns have capitals
like names, and Chinese and Japanese words are not parted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from verification.evidence.evidence import MOST, Evidence, Finding, Hit
from verification.text.lexicon import UNPARTED, words
from verification.text.words import Term

_NEAR_ENOUGH = 0.5  # of the claim's words, where nobody has the name
_NEARLY_ALL = 0.8  # of the other words, where the sources have it for somebody else: there chance is more likely
_FEWEST = 2  # words that a sentence must have beside what differs
_NEAREST = 2  # sentences
_OPENING = " *_•-\"'“„«("  # what may stand before the first word of a sentence


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
    opens = len(run) == 1 and any(not claim.text[begin : run[0].start].strip(_OPENING) for begin, _ in claim.spans)
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
    """A negation that only one of two sentences has which share all other words, in their order.

    "May not cost more than 140" is "up to 140": beside a bound a negation tells nothing.
    """
    if evidence.claim.language in UNPARTED or any(
        quantity.bound not in {"", "~"} for quantity in (*evidence.claim.quantities, *hit.passage.quantities)
    ):
        return
    known = words("negations").get(evidence.claim.language or "en", frozenset())
    denials, rests = 0, []
    for terms in (evidence.claim.terms, hit.terms):
        negations = {term for term in terms if term.word in known or term.word.endswith(("'t", "’t"))}
        denials += len(negations)
        rests.append([term.stem for term in terms if term.stem and term not in negations])
    answers = evidence.claim.terms[:1] and evidence.claim.terms[0].word in known  # "No, ..."
    if denials % 2 and not answers and rests[0] == rests[1] and len(rests[0]) >= _FEWEST:
        yield evidence.instead("polarity", (0, len(evidence.claim.text)), hit, repr(hit.text), "unfounded")
