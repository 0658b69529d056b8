"""Check the words of a claim: quotations, swapped names, and negations.

Names and negations are checked only if the rest of the sentence is the source's own: anything else depends on meaning.
German is left out for names, since all its nouns have capitals, as are Chinese and Japanese, which have no spaces.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice

from verification.evidence.evidence import MAX_VALUES, Certainty, Evidence, Finding, Hit
from verification.evidence.passages import Passage
from verification.evidence.verbatim import text_as_read
from verification.text.language import WITHOUT_SPACES, Term, normalise_text, terms
from verification.text.language import words_by_language as listed
from verification.values.dates import Moment
from verification.values.identifiers import Identifier, is_whole_word_in, without_plural

_QUOTED = re.compile(
    r"“([^“”\n]{2,600})”|„([^„“”\n]{2,600})[“”]|«\s?([^«»\n]{2,600}?)\s?»|»([^«»\n]{2,600}?)«|「([^「」\n]{2,600})」|"
    r"『([^『』\n]{2,600})』"
    r"|(?<![\w\"])\"([^\"\n]{2,600})\"(?![\w\"])|(?<![\w'’])['‘]([^'‘’\n]{10,600})['’](?!\w)"
)
# Every quotation opens with one of these. It would be much slower to try each kind at each character.
_OPENING = re.compile("[“„«»「『\"'‘]")
_OMITTED = re.compile(r"\s*(?:\[\s*(?:\.{3}|…)\s*\]|\(\s*(?:\.{3}|…)\s*\)|\.{3}|…)\s*")
_MARKS = re.compile(r"[*_~`]|\[\w{1,20}\]")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")  # a word over two lines
_EDGE = " .,;:!?。、，！？\"'"
_MIN_WORDS, _MIN_LETTERS_CJK = 3, 6  # minimum words and letters: shorter quotations are names or labels
_MIN_SIMILARITY = 75.0  # percent of the letters: if fewer match, the passage is not the quoted one
_MIN_SHARE = 0.5  # share of the claim's words, if no source has the name
_MIN_SHARE_OF_REST = 0.8  # share of the other words, if the sources use the name elsewhere
_MIN_SHARED_WORDS = 2  # minimum words that a sentence must share
_MAX_SENTENCES = 2  # sentences
_NO_SPACE = re.compile(r"\S+")
_AUXILIARIES = frozenset({"do", "does", "did"})
_INITIAL_SIGNS = " *_•-\"'“„«("  # allowed before the first word of a sentence


def quotations(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the span and the words of each quotation that is long enough to be one."""
    for match in _QUOTED.finditer(text):
        index = match.lastindex or 0
        words = match[index]
        has_spaces = words.isascii() or " " in words
        if len(words.split()) >= _MIN_WORDS if has_spaces else len(words) >= _MIN_LETTERS_CJK:
            yield match.start(index), match.end(index), words


def quote_findings(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each quotation whose words are not the source's. A translation cannot be compared."""
    if not _OPENING.search(evidence.claim.text) or not evidence.same_language:  # a translation is never word for word
        return
    cited = [cited.passage for cited in evidence.cited]
    for start, end, words in islice(quotations(evidence.claim.text), MAX_VALUES):
        parts = [normalise_text(part).strip(_EDGE) for part in _OMITTED.split(_MARKS.sub("", text_as_read(words)))]
        parts = [part for part in parts if part]
        if not _is_quoted_from((*cited, *evidence.known), parts):
            yield _finding(evidence, (start, end), words, elsewhere=_is_quoted_from(evidence.others, parts))


def _is_quoted_from(passages: Sequence[Passage], parts: Sequence[str]) -> bool:
    pages = {text_as_read(passage.text, captions=captions) for passage in passages for captions in (False, True)}
    pages |= {_HYPHENATED.sub("", page) for page in pages}
    haystacks = [normalise_text(_MARKS.sub("", page)) for page in pages]
    return all(any(is_whole_word_in(part, haystack) for haystack in haystacks) for part in parts)


def _finding(evidence: Evidence, span: tuple[int, int], words: str, *, elsewhere: bool) -> Finding:
    altered = _closest_passage(evidence, words)
    if altered is None:
        detail = f"these words are not in {evidence.name_sources()}"
        remedy = "Quote only what the source says word for word, or say it without quotation marks."
        return Finding(span=span, detail=detail, remedy=remedy, certainty="unfounded")
    source, original = altered
    negations = listed("negations").get(evidence.claim.language or "en", frozenset())
    mine, theirs = (
        [term.stem or term.word for term in terms(part, evidence.claim.language) if term.stem or term.word in negations]
        for part in (words, original)
    )
    certainty: Certainty = "unfounded" if elsewhere else "certain"
    if mine == theirs and len(mine) > 1:  # they differ only in small words ("they are", "they're")
        certainty = "doubtful"
    detail = f"source [{source}] has it as: {original}"
    remedy = f"Quote source [{source}] word for word ({original}), or say it without quotation marks."
    return Finding(span=span, detail=detail, remedy=remedy, certainty=certainty)


def _closest_passage(evidence: Evidence, words: str) -> tuple[int, str] | None:
    from rapidfuzz import fuzz  # noqa: PLC0415 - a twentieth of each start, for quotations that were altered

    score, best = _MIN_SIMILARITY, None
    for hit in evidence.hits:
        sentence = text_as_read(hit.text)
        alignment = fuzz.partial_ratio_alignment(text_as_read(words), sentence, score_cutoff=score)
        if alignment and alignment.score > score:
            score, best = alignment.score, (hit.source.id, sentence, alignment)
    if best is None:
        return None
    number, sentence, alignment = best
    words_there = _NO_SPACE.finditer(sentence)
    inside = (m[0] for m in words_there if alignment.dest_start < m.end() and m.start() < alignment.dest_end)
    return number, " ".join(inside).strip(_EDGE)


def wording_findings(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each swapped name, and one for an extra or missing negation."""
    if not evidence.same_language:
        return
    for hit in evidence.hits[:_MAX_SENTENCES]:
        if hit.share >= _MIN_SHARE:
            findings = [*_name_findings(evidence, hit), *_negation_findings(evidence, hit)]
            yield from findings
            if findings:
                return


def _name_findings(evidence: Evidence, hit: Hit) -> Iterator[Finding]:
    """Yield the names that replace other names between the same words of the sentence."""
    claim = evidence.claim
    names = claim.capitals - hit.stems
    if not names or claim.language in {"de", *WITHOUT_SPACES}:
        return
    claim_terms, source_terms = claim.terms, hit.terms
    mine, theirs = ([term.word for term in each] for each in (claim_terms, source_terms))
    for kind, first, last, start, stop in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        run, other = claim_terms[first:last], source_terms[start:stop]
        if kind == "replace" and _are_names(run, hit.stems) and _are_names(other, claim.stems):
            span, right = (run[0].start, run[-1].end), hit.text[other[0].start : other[-1].end]
            both = (without_plural(name).casefold() for name in (claim.text[slice(*span)], right))
            short, long = sorted(both, key=len)
            if not _is_same_name(short, long) and _is_surely_another(evidence, hit, names, run):
                yield evidence.replaced_by(span, hit, right, "unfounded" if _may_abbreviate(short, long) else "certain")


def _is_same_name(short: str, long: str) -> bool:
    """Return True if both are the same, or one is the initials of the other: LA for Los Angeles."""
    return short == long or short.replace(".", "") == "".join(word[0] for word in long.split())


def _may_abbreviate(short: str, long: str) -> bool:
    """Return True for Ctrl and Control, but also for Bern and Berlin."""
    letters = iter(long)
    return short[:1] == long[:1] and all(letter in letters for letter in short if letter.isalnum())


def _are_names(run: Sequence[Term], others: frozenset[str]) -> bool:
    return all(term.capital and term.stem and term.stem not in others for term in run)


def _is_surely_another(evidence: Evidence, hit: Hit, names: frozenset[str], run: Sequence[Term]) -> bool:
    claim, stems = evidence.claim, {term.stem for term in run}
    if any(stems & passage.stems for passage in evidence.known):
        return False  # the asker used the name
    # The first word of a sentence always has a capital.
    start = run[0].start
    opens = len(run) == 1 and any(not claim.text[begin:start].strip(_INITIAL_SIGNS) for begin, _ in claim.spans)
    values: list[Identifier | Moment] = [*claim.identifiers[:MAX_VALUES], *claim.moments[:MAX_VALUES]]
    if opens or any(value.start <= start < value.end for value in values):
        return False
    if not stems & evidence.stems:
        return True
    rest = claim.stems - names
    if not names <= stems or len(rest) < _MIN_SHARED_WORDS or len(rest & hit.stems) < _MIN_SHARE_OF_REST * len(rest):
        return False
    return not any(names & held.stems and 2 * len(rest & held.stems) >= len(rest) for held in evidence.hits)


def _negation_findings(evidence: Evidence, hit: Hit) -> Iterator[Finding]:
    """Yield a finding if only one of two sentences with the same words in the same order has a negation."""
    # "May not cost more than 140" means "up to 140": next to a bound, a negation proves nothing.
    bounded = any(each.bound not in {"", "~"} for each in (*evidence.claim.quantities, *hit.passage.quantities))
    if bounded or evidence.claim.language in WITHOUT_SPACES:
        return
    negations = listed("negations").get(evidence.claim.language or "en", frozenset())
    claimed, said = ([term.word.replace("’", "'") for term in each] for each in (evidence.claim.terms, hit.terms))
    count = sum(1 for word in (*claimed, *said) if word in negations or word.endswith("n't"))
    # Only the negation and its English auxiliary may differ. Neither "whether or not" nor "not only … but also"
    # reverses a meaning.
    rest, other = (
        [word for each in words if each not in negations and (word := each.removesuffix("n't")) not in _AUXILIARIES]
        for words in (claimed, said)
    )
    answers = bool(claimed) and claimed[0] in negations  # "No, ..."
    if count % 2 and rest == other and not answers and len(claimed) > _MIN_SHARED_WORDS:
        yield evidence.replaced_by((0, len(evidence.claim.text)), hit, repr(hit.text), "unfounded")
