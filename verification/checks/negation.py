"""Finds a claim that says the opposite of the sentence it rests on: negations, opposites, bounds.

A clause of the claim is compared only with a clause of a source that holds nearly all of its words. Two turns ("not
allowed", "forbidden") cancel out. None of it is sure where a judge is asked: what is denied of what, words do not tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from verification.evidence.evidence import MOST, Evidence, Finding, Hit
from verification.text.lexicon import UNPARTED, all_words, compiled, values, words
from verification.text.words import Term
from verification.values.amounts import matches

_NEAR = 0.5  # of the claim's words: below it no clause of a sentence can say nearly the same
_VERY_CLOSE = 0.8  # of a clause's words but for what turns it: below it the two speak of different things
_MOSTLY = 0.6  # of the source's clause: what a claim leaves out may be what is denied
_MOST_CLAUSES = 12  # each of the claim is compared with each of the source: a bound on the work
_TIED = 3  # sentences that share as many words: which of them is meant, only the turn shows
_LOOK_AHEAD, _REACH = 8, 3  # words to the next comma; of them those with a subject that a "not" bears on
_CLAUSE_ENDS = re.compile(r"[.;:!?()\n]")
_BREAK = re.compile(r"[.,;:!?()\n]")
# Bounds that are written with a negation: "no more than three" negates nothing.
_NO_MORE = r"\b(?:{bounds_with_negation})\b"
_EXCEPTING = r"\b(?:{exceptions})\b|n’t\b"
_POINTS_BACK = r"(?:{leaning})\b"
_DIRECTIONS = {">=": 1, ">": 1, "<=": -1, "<": -1}


class _Turn(NamedTuple):
    """A word of the claim that turns it round, and what the source has there."""

    start: int
    end: int
    there: str


class _Clause(NamedTuple):
    """A part of a sentence from one break to the next; offsets of its terms are those of ``text``."""

    text: str
    terms: Sequence[Term]

    @property
    def stems(self) -> frozenset[str]:
        """The stems of its words."""
        return frozenset(term.stem for term in self.terms if term.stem)

    def denied(self, language: str) -> dict[int, list[str]]:
        """Each negation by its place, with the stems it reaches; "not until nine" and "No, …" deny nothing."""
        bounds = [match.span() for match in compiled(_NO_MORE).finditer(self.text)]
        found: dict[int, list[str]] = {}
        for index, term in enumerate(self.terms):
            if not (term.word in words("negations")[language] or term.word.endswith(("'t", "’t"))):
                continue
            behind = self.terms[index + 1 : index + 1 + _LOOK_AHEAD]
            starts_late = any(other.word in all_words("until") for other in behind)
            if not starts_late and not any(start <= term.start < end for start, end in bounds):
                reached = islice(self._reached(term.end, behind), _REACH)
                found[index] = [*reached]
                if language == "de" and not found[index]:  # "das geht nicht": what is denied stands before
                    found[index] = [other.stem for other in self.terms[:index] if other.stem][-1:]
        return {index: reached for index, reached in found.items() if reached}

    def _reached(self, end: int, behind: Sequence[Term]) -> Iterator[str]:
        """The stems up to a comma."""
        for term in behind:
            if _BREAK.search(self.text, end, term.start):
                return
            end = term.end
            if term.stem:
                yield term.stem


def polarity_findings(evidence: Evidence) -> Iterator[Finding]:
    """The numbers that are bounded the other way, else the first clause that is turned round."""
    crossed = list(_crossed(evidence))
    yield from (finding for finding in crossed if finding)
    best = evidence.best
    # "Not more than 140" is "up to 140": a bound on the other side undoes the negation.
    if crossed or best is None or not evidence.same_language or best.share < _NEAR:
        return
    language = evidence.claim.language or best.source.passage.language or "en"
    # The word that turns a sentence is one that it does not share: another may hold as many words by chance.
    nearest = [hit for hit in evidence.hits[: _TIED if best.share < 1 else 1] if hit.share == best.share]
    turned = ((hit, turn) for hit in nearest for turn in _turned(evidence, hit, language))
    for hit, turn in turned:
        if not _is_complement(evidence, hit, turn):
            yield _turned_finding(evidence, hit, turn)
            return


def _turned(evidence: Evidence, hit: Hit, language: str) -> Iterator[_Turn]:
    """The words that turn a clause of the claim against the clause of the sentence that is most like it."""
    if language in UNPARTED:
        turns = list(_turns_unparted(evidence.claim.text, hit.text, language))
        if len(turns) % 2 and _says_the_rest(hit, evidence.claim.terms, turns):
            yield turns[0]
        return
    theirs = _clauses(_Clause(hit.text, hit.terms))
    for mine in _clauses(_Clause(evidence.claim.text, evidence.claim.terms)):
        denies = bool(mine.denied(language))
        there = max(theirs, key=lambda each: (len(mine.stems & each.stems), bool(each.denied(language)) == denies))
        turns = list(_turns(mine, there, language))
        if len(turns) % 2 and _says_the_rest(hit, mine.terms, turns):
            yield turns[0]


def _says_the_rest(hit: Hit, terms: Sequence[Term], turns: Sequence[_Turn]) -> bool:
    """Whether the sentence has nearly all words but those that turn; it may point back to the one before it."""
    stems = {t.stem for t in terms if t.stem and not any(t.start < turn.end and turn.start < t.end for turn in turns)}
    said = hit.stems
    if hit.place and compiled(_POINTS_BACK).match(hit.text):
        said |= hit.source.passage.sentence_stems[hit.place - 1]
    return bool(stems) and len(stems & said) >= _VERY_CLOSE * len(stems)


def _clauses(sentence: _Clause) -> list[_Clause]:
    """The parts of a sentence between full stops, colons and semicolons, and before words like "but"."""
    parts: list[list[Term]] = [[]]
    for term in sentence.terms:
        last = parts[-1][-1].end if parts[-1] else term.start
        if _CLAUSE_ENDS.search(sentence.text, last, term.start) or term.word in all_words("but"):
            parts.append([])
        parts[-1].append(term)
    return [sentence._replace(terms=part) for part in parts[:_MOST_CLAUSES]]


def _turns(mine: _Clause, theirs: _Clause, language: str) -> Iterator[_Turn]:
    """Opposites between the same neighbours, and a negation that only one of the two has."""
    replaced: list[Term] = []
    for index, other, term in _opposites(mine, theirs, _opposite(language)):
        replaced += [mine.terms[index], term]
        if _same_place(mine.terms, index, theirs.terms, other):
            yield _Turn(mine.terms[index].start, mine.terms[index].end, term.word)
    # "Never" for "always" is one turn, not an opposite and a negation; "not allowed" and "forbidden" are two.
    swapped = {term.word for term in replaced}
    known = {term.stem for term in replaced}
    here = {i: reached for i, reached in mine.denied(language).items() if mine.terms[i].word not in swapped}
    there = {i: reached for i, reached in theirs.denied(language).items() if theirs.terms[i].word not in swapped}
    said, there_said, words_said = mine.stems | known, theirs.stems, {term.word for term in mine.terms}
    # "…, without the pager" says nothing of a claim that names no pager, and "not PayPal" little of a longer clause.
    mostly = _MOSTLY * len(there_said) <= len(there_said & said)
    there = {
        place: reached
        for place, reached in there.items()
        if theirs.terms[place].word in words_said or not said.isdisjoint(reached if here else reached[:mostly])
    }
    here = {
        place: reached
        for place, reached in here.items()
        if there or reached[0] in there_said | known or any(s.isdecimal() and s in there_said for s in reached)
    }
    if here and not there:
        term = mine.terms[min(here)]
        yield _Turn(term.start, term.end, "")
    elif there and not here:
        place, reached = min(there.items())
        firsts = [stems[0] for stems in there.values()]
        # "Security fixes and no other fixes": what the clause says without a negation as well, it does not deny.
        if [term.stem for term in theirs.terms].count(reached[0]) <= firsts.count(reached[0]):
            term = next((each for each in mine.terms if each.stem == reached[0]), mine.terms[0])
            yield _Turn(term.start, term.end, f"{theirs.terms[place].word} {term.word}")


def _opposites(mine: _Clause, theirs: _Clause, table: Mapping[str, frozenset[str]]) -> Iterator[tuple[int, int, Term]]:
    """The words whose opposite stands in the other clause: their place, and the opposite with its place."""
    my_words = {term.word for term in mine.terms}
    places = {term.word: place for place, term in reversed([*enumerate(theirs.terms)])}
    for index, term in enumerate(mine.terms):
        opposite = table.get(term.word, frozenset()) - my_words if term.word not in places else frozenset[str]()
        for place in sorted(places[word] for word in opposite if word in places)[:1]:
            yield index, place, theirs.terms[place]


def _same_place(mine: Sequence[Term], index: int, theirs: Sequence[Term], other: int) -> bool:
    """Whether the word before or the word after is the same in both."""
    before = index > 0 and other > 0 and _alike(mine[index - 1], theirs[other - 1])
    after = index + 1 < len(mine) and other + 1 < len(theirs) and _alike(mine[index + 1], theirs[other + 1])
    return before or after


def _alike(one: Term, other: Term) -> bool:
    return one.word == other.word or bool(one.stem and one.stem == other.stem)


@cache
def _opposite(language: str) -> Mapping[str, frozenset[str]]:
    """What cannot be said of the same thing as a word: its opposites, and "most" where the word is "all"."""
    table: dict[str, set[str]] = {}
    for pair in values("opposites")[language].split():
        one, other = pair.split(":")
        table.setdefault(one, set()).add(other)
        table.setdefault(other, set()).add(one)
    for word in words("whole").get(language, ()):
        table.setdefault(word, set()).update(words("part")[language])
    return {word: frozenset(others) for word, others in table.items()}


def _turns_unparted(text: str, other: str, language: str) -> Iterator[_Turn]:
    """The same in Chinese and Japanese, where words are not parted."""
    for mine, opposites in _opposite(language).items():
        for theirs in opposites:
            if mine in text and theirs in other and mine not in other.replace(theirs, "") and theirs not in text:
                yield _Turn(text.index(mine), text.index(mine) + len(mine), theirs)
    marks = values("negations")[language].split()
    here = next((mark for mark in marks if mark in text), "")
    there = next((mark for mark in marks if mark in other), "")
    if bool(here) != bool(there):
        yield _Turn(text.index(here), text.index(here) + len(here) if here else len(text), there)


def _is_complement(evidence: Evidence, hit: Hit, turn: _Turn) -> bool:
    """Whether a negation comes with a number of its own: 62 % did not fail where 38 % failed."""
    theirs = hit.passage.quantities
    mine = [quantity for quantity in evidence.claim.quantities[:MOST] if not quantity.weak]
    return not turn.there and any(not any(matches(quantity, other) for other in theirs) for quantity in mine)


def _turned_finding(evidence: Evidence, hit: Hit, turn: _Turn) -> Finding:
    said = evidence.claim.text[turn.start : turn.end]
    detail = f"source [{hit.source.id}] says {turn.there or hit.text!r} where the answer says {said!r}"
    return _finding((turn.start, turn.end), detail, f"Say it as source [{hit.source.id}] does: {hit.text}")


def _finding(span: tuple[int, int], detail: str, remedy: str) -> Finding:
    return Finding(
        kind="polarity", severity="error", start=span[0], end=span[1], detail=detail, remedy=remedy, sure=False
    )


def _crossed(evidence: Evidence) -> Iterator[Finding | None]:
    """Where the claim says "at least 30" and every source that has 30 "at most 30"; None if a negation may undo it."""
    for quantity in evidence.claim.quantities[:MOST]:
        mine = _DIRECTIONS.get(quantity.bound, 0)
        near = (other for passage in evidence.near() for other in passage.quantities if matches(quantity, other))
        if not mine or any(_DIRECTIONS.get(other.bound, 0) != -mine for other in near):
            continue
        same = [(c, q) for c in evidence.cited for q in c.passage.quantities if matches(quantity, q)]
        if not same or any(_DIRECTIONS.get(q.bound, 0) != -mine for _, q in same):
            continue
        cited, other = same[0]
        said = cited.passage.text[max(0, other.start - 20) : other.end].strip().split("\n")[-1]
        detail = f"source [{cited.id}] bounds it the other way: {said}"
        found = _finding((quantity.start, quantity.end), detail, f"Keep the bound of source [{cited.id}]: {said}")
        # "Below 50 no approval" says "from 50 on approval": whether so, is not for words to tell.
        theirs = next(cited.passage.text[a:b] for a, b in cited.passage.spans if a <= other.start < b)
        yield None if _is_other_side(evidence.claim.text, theirs) else found


def _is_other_side(*sentences: str) -> bool:
    """Whether one of the two sentences negates or makes an exception, and the other does not."""
    bare = (compiled(_NO_MORE).sub(" ", text) for text in sentences)
    return len({len(compiled(_EXCEPTING).findall(text)) % 2 for text in bare}) > 1
