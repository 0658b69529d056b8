"""Finds a claim that says the opposite of the sentence it rests on: negations, opposites, quantifiers, bounds.

It compares a claim only with a sentence that holds nearly all of its words, and speaks only where the turned word
stands between the same neighbours. Two turns ("not allowed", "forbidden") cancel out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from verification.evidence.antonyms import (
    HAVING_OPPOSITES,
    NEGATIONS,
    NEGATIONS_CJK,
    ONLY,
    OPPOSITES,
    OPPOSITES_CJK,
    PART,
    WHOLE,
    is_short_negation,
    negates,
)
from verification.evidence.evidence import MOST, Evidence, Finding, Hit
from verification.evidence.passages import Passage
from verification.text.words import Term
from verification.values.amounts import matches
from verification.values.numbers import Quantity

_NEAR = 0.5
_VERY_CLOSE = 0.8
_MOSTLY = 0.6
_TIED = 3
_REACH = 3
_LOOK_AHEAD = 8
_BREAK = re.compile(r"[.,;:!?()\n。、，！？]")
_TURNING = frozenset(
    {"but", "only", "aber", "sondern", "nur", "mais", "seulement", "pero", "sino", "solo", "sólo", "tetapi", "hanya"}
)
_ONLY_WORDS = frozenset({"only", "nur", "seulement", "solo", "sólo", "hanya"})
_CLAUSE_ENDS = re.compile(r"[.;:!?()\n]")
_FEWEST = 2
# Bounds that are written with a negation: "no more than three" negates nothing.
UNTIL = frozenset({"until", "till", "bis", "erst", "jusqu'à", "jusque", "hasta", "sampai"})
"""Words behind a negation that make a beginning of it: "not open until nine" is open from nine on."""
NO_MORE = re.compile(
    r"\b(?:no|not) (?:more|less|fewer|later|earlier|longer) than\b|\bnicht (?:mehr|weniger|später|länger) als\b"
    r"|\bpas (?:plus|moins) (?:de|que)\b|\bno (?:más|menos) (?:de|que)\b|\btidak (?:lebih|kurang) dari\b",
    re.IGNORECASE,
)
_EXCEPTING = re.compile(
    r"\b(?:not?|never|cannot|unless|except|nobody|none|nicht|kein\w*|nie|außer|pas|jamais|aucun\w*"
    r"|sauf"
    r"|nunca|ningun\w*|salvo|tidak|kecuali)\b|n['’]t\b",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"(?:it|this|that|these|those|they|ours?|he|she|er|sie|es|dies\w*|il|elle|ils|elles|cela|esto|eso|itu|ini)\b",
    re.IGNORECASE,
)
_UPWARD, _DOWNWARD = frozenset({">=", ">"}), frozenset({"<=", "<"})


class _Turn(NamedTuple):
    """A word of the claim that turns it round; ``there`` is what the source has, ``sure`` if precisely so."""

    start: int
    end: int
    there: str
    sure: bool


def polarity_findings(evidence: Evidence) -> Iterator[Finding]:
    """What the claim turns round against the sentence nearest to it, and bounds that point the other way."""
    crossed = [*_crossed(evidence)]
    yield from (finding for finding in crossed if finding)
    best = evidence.best
    # "Not more than 140" is "up to 140": a bound on the other side undoes the negation.
    if crossed or best is None or not evidence.same_language or best.share < _NEAR:
        return
    # The word that turns a sentence is one that it does not share: another may hold as many words by chance.
    nearest = [hit for hit in evidence.hits[: _TIED if best.share < 1 else 1] if hit.share == best.share]
    yield from islice(filter(None, (_turned(evidence, hit) for hit in nearest)), 1)


def _turned(evidence: Evidence, hit: Hit) -> Finding | None:
    """What the claim turns round against this sentence; None if it does not."""
    language = evidence.claim.language or hit.source.passage.language or "en"
    if language not in OPPOSITES_CJK and not _may_turn(evidence.claim.words, hit.words, language):
        return None
    turns = list(_turns_cjk(evidence, hit, language) if language in OPPOSITES_CJK else _turns(evidence, hit, language))
    whole = len(evidence.claim.text)
    share = _share_without(evidence, hit, [turn for turn in turns if turn.end - turn.start < whole])
    # An even number of turns says the same again.
    if len(turns) % 2 == 0 or share < _VERY_CLOSE:
        return None
    turn = next((turn for turn in turns if turn.there), turns[0])
    return None if not turn.sure or _is_complement(evidence, hit, turn) else _finding(evidence, hit, turn)


def _may_turn(mine: frozenset[str], theirs: frozenset[str], language: str) -> bool:
    """Whether the two sentences have words between which a turn could be found: most pairs have none."""
    table = NEGATIONS[language]
    if not (table.isdisjoint(mine) and table.isdisjoint(theirs)):
        return True
    both = " ".join((*mine, *theirs))  # hardly any word has a mark in it
    if ("'" in both or "’" in both) and any(map(is_short_negation, mine | theirs)):
        return True
    only_mine = mine - theirs
    opposites = OPPOSITES[language]
    if any(not opposites[word].isdisjoint(theirs) for word in only_mine & HAVING_OPPOSITES[language]):
        return True
    return not WHOLE[language].isdisjoint(only_mine) or not ONLY[language].isdisjoint(only_mine)


def _share_without(evidence: Evidence, hit: Hit, turns: Sequence[_Turn]) -> float:
    """The share of the claim's words in the sentence, the turned words left out: they cannot stand there."""
    spans = [(turn.start, turn.end) for turn in turns]
    stems = {t.stem for t in evidence.claim.terms if t.stem and not any(t.start < b and a < t.end for a, b in spans)}
    return len(stems & _said(hit)) / len(stems) if stems else 0.0


def _said(hit: Hit) -> frozenset[str]:
    """The stems of a sentence, and of the one before it where it points back: "It is 60 minutes"."""
    if hit.place == 0 or not _POINTS_BACK.match(hit.text):
        return hit.stems
    return hit.stems | hit.source.passage.sentence_stems[hit.place - 1]


def _finding(evidence: Evidence, hit: Hit, turn: _Turn) -> Finding:
    return _against(
        (turn.start, turn.end),
        f"source [{hit.source.id}] says {turn.there or hit.text!r} where the answer says "
        f"{evidence.claim.text[turn.start : turn.end]!r}",
        f"Say it as source [{hit.source.id}] does: {hit.text}",
    )


def _against(span: tuple[int, int], detail: str, remedy: str) -> Finding:
    """Not sure enough where a judge is asked: what is denied of what, words alone do not tell."""
    return Finding(
        kind="polarity", severity="error", start=span[0], end=span[1], detail=detail, remedy=remedy, sure=False
    )


def _is_complement(evidence: Evidence, hit: Hit, turn: _Turn) -> bool:
    """Whether a negation comes with a number of its own: 62 % did not fail where 38 % failed."""
    theirs = hit.passage.quantities
    mine = [quantity for quantity in evidence.claim.quantities[:MOST] if not quantity.weak]
    return not turn.there and any(not any(matches(quantity, other) for other in theirs) for quantity in mine)


def _turns(evidence: Evidence, hit: Hit, language: str) -> Iterator[_Turn]:
    mine, theirs = evidence.claim.terms, hit.terms
    opposites = list(_opposites(mine, theirs, OPPOSITES[language]))
    yield from opposites
    # "Never" for "always" is one turn, not an opposite and a negation.
    table = NEGATIONS[language] - {turn.there for turn in opposites}
    table -= {evidence.claim.text[turn.start : turn.end].casefold() for turn in opposites}
    turned = frozenset(term.stem for term in theirs for turn in opposites if term.word == turn.there)
    my_side, their_side = _Side(evidence.claim.text, mine, table), _Side(hit.text, theirs, table)
    yield from _negations(my_side, their_side, turned)
    yield from _quantifiers(mine, theirs, language)


def _opposites(mine: Sequence[Term], theirs: Sequence[Term], table: dict[str, frozenset[str]]) -> Iterator[_Turn]:
    my_words, their_words = {t.word for t in mine}, {t.word for t in theirs}
    for index, term in enumerate(mine):
        if term.word not in table or term.word in their_words:
            continue
        for other_index, other in enumerate(theirs):
            if other.word in table[term.word] and other.word not in my_words:
                sure = _same_place(mine, index, theirs, other_index)
                yield _Turn(start=term.start, end=term.end, there=other.word, sure=sure)
                break


def _same_place(mine: Sequence[Term], index: int, theirs: Sequence[Term], other: int) -> bool:
    """True if the word before or the word after is the same in both."""
    before = index > 0 and other > 0 and _alike(mine[index - 1], theirs[other - 1])
    after = index + 1 < len(mine) and other + 1 < len(theirs) and _alike(mine[index + 1], theirs[other + 1])
    return before or after


def _alike(one: Term, other: Term) -> bool:
    return one.word == other.word or bool(one.stem and one.stem == other.stem)


class _Side(NamedTuple):
    """One of the two sentences: the text its terms have their offsets in, and the negations of its language."""

    text: str
    terms: Sequence[Term]
    table: frozenset[str]

    def negations(self) -> list[int]:
        """Where the sentence negates something; "No, …" and "not only" negate nothing that follows."""
        bounds = [match.span() for match in NO_MORE.finditer(self.text)] if self.table else []
        return [
            i
            for i, term in enumerate(self.terms)
            if negates(term.word, self.table)
            and self.scope(i)
            and not any(later.word in UNTIL for later in self.terms[i + 1 : i + 1 + _LOOK_AHEAD])
            and not any(start <= term.start < end for start, end in bounds)
        ]

    def scope(self, index: int) -> tuple[str, ...]:
        """The stems that a negation reaches: the next few that carry a subject, up to a comma or a turn."""
        reached: list[str] = []
        end = self.terms[index].end
        for term in self.terms[index + 1 : index + 1 + _LOOK_AHEAD]:
            if _BREAK.search(self.text, end, term.start) or term.word in _TURNING or len(reached) == _REACH:
                break
            reached += [term.stem] if term.stem else []
            end = term.end
        return tuple(reached)

    def clause(self, index: int) -> _Side:
        """The part of the sentence that the word at ``index`` stands in, from one break to the next."""
        return next(part for part in self.clauses() if part.terms and part.terms[-1].end >= self.terms[index].end)

    def clauses(self) -> list[_Side]:
        """The parts of the sentence between full stops, colons and semicolons, and before words like "but"."""
        parts: list[list[Term]] = [[]]
        for term in self.terms:
            last = parts[-1][-1].end if parts[-1] else term.start
            if _CLAUSE_ENDS.search(self.text, last, term.start) or term.word in _TURNING - _ONLY_WORDS:
                parts.append([])
            parts[-1].append(term)
        return [self._replace(terms=part) for part in parts]

    def stems(self) -> frozenset[str]:
        """All stems of the sentence."""
        return frozenset(term.stem for term in self.terms if term.stem)


def _negations(mine: _Side, theirs: _Side, turned: frozenset[str]) -> Iterator[_Turn]:
    """A negation in one of the two while the other has none at all; ``turned`` are stems that an opposite replaces."""
    here, there = mine.negations(), theirs.negations()
    if here:
        there = [index for index in there if _is_of(mine, theirs, index)]
    if here and there:
        yield from _uneven(mine, theirs)
        return
    if not here and not there:
        return
    if here:
        term = mine.terms[here[0]]
        denied = mine.scope(here[0])
        known = [stem for stem in denied if stem in theirs.stems()]
        sure = denied[0] in known or any(stem.isdecimal() for stem in known)
        yield _Turn(start=term.start, end=term.end, there="", sure=sure)
        return
    scope = theirs.scope(there[0])
    affected = next((term for term in mine.terms if term.stem == scope[0]), None)
    part = theirs.clause(there[0])
    if sum(term.stem == scope[0] for term in part.terms) > sum(scope[0] in part.scope(i) for i in part.negations()):
        return  # the same part says it without a negation as well
    if scope[0] in turned:
        yield _Turn(start=mine.terms[0].start, end=mine.terms[-1].end, there="", sure=False)
    elif affected:
        clause, said = part.stems(), mine.stems()
        # What the claim takes from another part may be what sets it apart: "shipped orders cannot be cancelled".
        lacking = clause - said - {theirs.terms[there[0]].stem}
        is_taken_elsewhere = bool(lacking) and not (said - clause).isdisjoint(theirs.stems())
        whole = len(clause & said) >= _MOSTLY * len(clause) and not is_taken_elsewhere
        words = f"{theirs.terms[there[0]].word} {affected.word}"
        yield _Turn(start=affected.start, end=affected.end, there=words, sure=whole)


def _is_of(mine: _Side, theirs: _Side, index: int) -> bool:
    """Whether a negation bears on the claim: "…, without the pager" says nothing of one that names no pager."""
    is_in_both = any(theirs.terms[index].word == term.word for term in mine.terms)
    return is_in_both or not mine.stems().isdisjoint(theirs.scope(index))


def _uneven(mine: _Side, theirs: _Side) -> Iterator[_Turn]:
    """Where both sentences negate something: a part of one that negates while the same part of the other does not."""
    for part in mine.clauses():
        stems = part.stems()
        same = max(theirs.clauses(), key=lambda other: len(stems & other.stems()))
        negated, negated_there = part.negations(), same.negations()
        if bool(negated) == bool(negated_there) or len(stems) < _FEWEST or not _is_same(stems, same.stems()):
            continue
        term = part.terms[negated[0]] if negated else part.terms[0]
        last = term if negated else part.terms[-1]
        yield _Turn(start=term.start, end=last.end, there="", sure=True)
        return  # two that are exchanged do not cancel out


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two parts of sentences hold nearly the same stems."""
    return len(one & other) >= _VERY_CLOSE * max(len(one), len(other))


def _quantifiers(mine: Sequence[Term], theirs: Sequence[Term], language: str) -> Iterator[_Turn]:
    """The claim says "all" where the source says "most", or adds "only"."""
    whole, part, only = WHOLE[language], PART[language], ONLY[language]
    their_words = {t.word for t in theirs}
    for index, term in enumerate(mine):
        if term.word in whole and not their_words & whole:
            there = next((i for i, t in enumerate(theirs) if t.word in part), None)
            if there is not None:
                sure = _same_place(mine, index, theirs, there)
                yield _Turn(start=term.start, end=term.end, there=theirs[there].word, sure=sure)
        elif term.word in only and not their_words & only:
            yield _Turn(start=term.start, end=term.end, there="", sure=False)


def _turns_cjk(evidence: Evidence, hit: Hit, language: str) -> Iterator[_Turn]:
    text, other = evidence.claim.text, hit.text
    for one, two in OPPOSITES_CJK[language]:
        for mine, theirs in ((one, two), (two, one)):
            if mine in text and theirs in other and mine not in other.replace(theirs, "") and theirs not in text:
                start = text.index(mine)
                yield _Turn(start=start, end=start + len(mine), there=theirs, sure=len(mine) > 1)
    here = next((mark for mark in NEGATIONS_CJK[language] if mark in text), "")
    there = next((mark for mark in NEGATIONS_CJK[language] if mark in other), "")
    if bool(here) != bool(there):
        start = text.index(here)
        yield _Turn(start=start, end=start + len(here) if here else len(text), there=there, sure=True)


def _crossed(evidence: Evidence) -> Iterator[Finding | None]:
    """Where the claim says "at least 30" and every source that has 30 "at most 30"; None if a negation may undo it."""
    for quantity in evidence.claim.quantities[:MOST]:
        mine = _direction(quantity.bound)
        if not mine or _is_bounded_so(quantity, mine, evidence):
            continue
        same = [(c, q) for c in evidence.cited for q in c.passage.quantities if matches(quantity, q)]
        if same and all(_direction(q.bound) == -mine for _, q in same):
            cited, other = same[0]
            lead = max(0, other.start - 20)
            said = cited.passage.text[lead : other.end].strip().split("\n")[-1]
            detail = f"source [{cited.id}] bounds it the other way: {said}"
            found = _against((quantity.start, quantity.end), detail, f"Keep the bound of source [{cited.id}]: {said}")
            # "Below 50 no approval" says "from 50 on approval": whether so, is not for words to tell.
            yield None if _is_other_side(quantity, cited.passage, other, evidence) else found


def _is_other_side(quantity: Quantity, passage: Passage, other: Quantity, evidence: Evidence) -> bool:
    """Whether one of the two sentences negates or makes an exception, and the other does not."""
    mine = evidence.claim.text
    theirs = next((passage.text[start:end] for start, end in passage.spans if start <= other.start < end), "")
    counts = [len(_EXCEPTING.findall(NO_MORE.sub(" ", text))) % 2 for text in (mine, theirs)]
    return counts[0] != counts[1] and quantity.bound != "~"


def _is_bounded_so(quantity: Quantity, direction: int, evidence: Evidence) -> bool:
    """Whether a sentence near the claim has the number and does not bound it the other way."""
    near = (other for passage in evidence.near() for other in passage.quantities)
    return any(matches(quantity, other) and _direction(other.bound) != -direction for other in near)


def _direction(bound: str) -> int:
    return 1 if bound in _UPWARD else -1 if bound in _DOWNWARD else 0
