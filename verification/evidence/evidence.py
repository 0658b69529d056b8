"""What a claim is checked against: the cited passages together, and the sentences in them that speak of the same thing.

What the question and the thread say counts as known, never as evidence. ``score`` tells in one number how likely it is
borne out; it ranks and measures, and no claim fails for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from propcache.api import cached_property

from verification.evidence.passages import PREFIX, Passage, joined, prefixes
from verification.text.lexicon import denies
from verification.text.words import Term, normalised, terms
from verification.values.identifiers import stands_in

MOST = 200  # how many numbers, dates or identifiers of one claim are looked at: a bound that keeps the work linear
NEAREST = 8  # how many sentences near a claim are looked at
SAME_SENTENCE = 0.75
"""Of the claim's words, digits among them: a sentence that has as many says nearly the same. Less failed right ones."""

SUPPORTED = 0.43
"""The score from which a claim counts as supported when nothing better was fitted (balanced accuracy, no judge)."""

_ACROSS_LANGUAGES = 0.75  # words tell nothing there: neither supported for sure nor in doubt
_LIKE = 0.8  # what a word counts that only begins like one of the source
_WINDOW = 3  # sentences that stand in one place
_CLOSELY = 2  # sentences round which the words are looked for in one place
_CLOSE_READING, _SHORT_SOURCE = 0.35, 20
_PER_NAME, _MOST_NAMES = 0.15, 2
_REFUTED, _TURNED, _DOUBTED, _SPEAKS_OF_ITSELF, _ASKS = 0.15, 0.4, 0.8, 0.5, 0.4
_SELF = "i i'm i've i'd i'll my me mine myself ich mir mich mein meine je j'ai moi mon ma mes yo mi mis saya aku"
_FIRST_PERSON = frozenset(_SELF.split())

Kind = Literal["number", "date", "quote", "identifier", "url", "name", "polarity", "overlap"]
Certainty = Literal["certain", "unfounded", "doubtful"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing about a claim that its sources do not bear out. ``span`` is that of its words in the claim's own text.

    ``certain``: something else stands in its place. ``unfounded``: it stands nowhere and follows from nothing; a judge,
    where there is one, may know better. ``doubtful``: it may be meant otherwise, or follow from what stands there.
    """

    kind: Kind
    span: tuple[int, int]
    detail: str
    remedy: str
    certainty: Certainty = "certain"

    def is_error(self, *, judged: bool) -> bool:
        """Whether it fails the answer; ``judged`` tells that a judge will be asked."""
        return self.certainty == "certain" or (self.certainty == "unfounded" and not judged)


class Cited(NamedTuple):
    """One cited source, read."""

    id: int
    passage: Passage


class Hit(NamedTuple):
    """A sentence of a cited source and the share of the claim's stems that it holds."""

    source: Cited
    place: int
    share: float

    @property
    def stems(self) -> frozenset[str]:
        """The stems that it holds."""
        return self.source.passage.sentence_stems[self.place]

    @property
    def text(self) -> str:
        """The sentence as the source has it."""
        passage = self.source.passage
        start, end = passage.spans[self.place]
        return passage.text[start:end]

    @property
    def passage(self) -> Passage:
        """The sentence read by itself."""
        return self.source.passage.sentence(self.place)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The words of the sentence, with their places in ``text``; stems are those of the source's language."""
        told = self.source.passage.language
        return self.passage.terms if told else terms(self.text, told)


# No slots: the ranking is cached.
@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A claim, the sources it cites, what is known without any, and the context: it excuses, it proves nothing."""

    claim: Passage
    cited: tuple[Cited, ...]
    known: tuple[Passage, ...] = ()
    context: tuple[Passage, ...] = ()

    @cached_property
    def same_language(self) -> bool:
        """False if claim and sources are surely in different languages: then word overlap says nothing."""
        mine = self.claim.language
        return any(mine is None or cited.passage.language in {None, mine} for cited in self.cited)

    @cached_property
    def stems(self) -> frozenset[str]:
        """All stems of the cited sources."""
        return joined([cited.passage.stems for cited in self.cited])

    @cached_property
    def words(self) -> frozenset[str]:
        """All words of the cited sources, case-folded."""
        return joined([cited.passage.words for cited in self.cited])

    @cached_property
    def prefixes(self) -> frozenset[str]:
        """The first letters of each longer stem of the cited sources."""
        return joined([cited.passage.prefixes for cited in self.cited])

    @cached_property
    def hits(self) -> tuple[Hit, ...]:
        """The sentences that share most words with the claim, best first, at most ``NEAREST`` of them."""
        mine = self.claim.stems
        held = [cited.passage.holding(mine) for cited in self.cited]
        shared = sorted((-count, place, index) for place, counts in enumerate(held) for index, count in counts.items())
        return tuple([Hit(self.cited[place], index, -count / len(mine)) for count, place, index in shared[:NEAREST]])

    def near(self) -> Iterator[Passage]:
        """The sentences nearest to the claim: what stands there need not be looked for in all of the source."""
        return (hit.passage for hit in self.hits[:2])

    def is_written_near(self, start: int, end: int) -> bool:
        """Whether these words of the claim, a number among them, stand just so in a sentence near it."""
        words = normalised(self.claim.text[start:end])
        if not any(map(str.isdecimal, words)):
            return False
        return any(stands_in(words, passage.folded) for passage in self.near())

    @property
    def has_lines(self) -> bool:
        """Whether each line of the claim, some code, stands just so in one of the cited sources."""
        lines = [
            said for line in self.claim.text.split("\n") if (said := normalised(line)) and not said.startswith("```")
        ]
        return any(all(line in cited.passage.folded for line in lines) for cited in self.cited)

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """All that is known: the cited sources, the question, the thread."""
        return (*(cited.passage for cited in self.cited), *self.known)

    def denies(self, place: int) -> bool:
        """Whether the claim's sentence that has this place denies something: that need not stand in any source."""
        return any(start <= place < end for start, end in self._denials)

    @cached_property
    def _denials(self) -> list[tuple[int, int]]:
        sentences = zip(self.claim.spans, self.claim.sentence_words, strict=True)
        return [span for span, said in sentences if any(denies(word, self.claim.language) for word in said)]

    @property
    def told(self) -> tuple[Passage, ...]:
        """What no source says, but somebody: the question, the thread, earlier answers."""
        return (*self.known, *self.context)

    def sources_named(self) -> str:
        """The cited sources as words: ``source [1]``, ``sources [1] and [2]``."""
        ids = [f"[{cited.id}]" for cited in self.cited]
        return f"source {ids[0]}" if len(ids) == 1 else f"sources {', '.join(ids[:-1])} and {ids[-1]}"

    def nowhere(self, kind: Kind, span: tuple[int, int], certainty: Certainty) -> Finding:
        """The finding that the words at ``span`` of the claim do not stand in what it cites."""
        words = self.claim.text[slice(*span)].strip()
        detail = f"{words} does not stand in {self.sources_named()}"
        # A doubtful one may be right: whoever can show how it follows need not drop it.
        shown = ", show how it follows from what it cites" if certainty == "doubtful" else ""
        remedy = f"Drop {words}{shown}, or cite the source that states it."
        return Finding(kind=kind, span=span, detail=detail, remedy=remedy, certainty=certainty)

    def instead(
        self, kind: Kind, span: tuple[int, int], hit: Hit, said: str, certainty: Certainty = "certain"
    ) -> Finding:
        """The finding that a sentence says something else in the place of the words at ``span`` of the claim."""
        words = self.claim.text[slice(*span)].strip()
        detail = f"source [{hit.source.id}] says {said}, not {words}"
        remedy = f"Replace {words} by {said} as source [{hit.source.id}] has it, or drop the sentence."
        return Finding(kind=kind, span=span, detail=detail, remedy=remedy, certainty=certainty)


def score(evidence: Evidence, findings: Iterable[Finding], *, refuted: bool = False) -> float:
    """The score of a claim, given what was found against it; ``refuted``: with certainty."""
    value = _overlap(evidence) * _room(evidence) if evidence.same_language else _ACROSS_LANGUAGES
    found = tuple(findings)
    if refuted:
        value *= _REFUTED
    if any(finding.kind == "polarity" for finding in found):
        value *= _TURNED
    if any(finding.kind in {"number", "date", "identifier"} for finding in found):
        value *= _DOUBTED
    if _speaks_of_itself(evidence):
        value *= _SPEAKS_OF_ITSELF
    if "?" in evidence.claim.text:
        value *= _ASKS
    return round(max(0.0, value), 3)


def _room(evidence: Evidence) -> float:
    """Less than 1 for a short source: what a claim adds to a sentence or two stands nowhere else in it."""
    return 1 - _CLOSE_READING * math.exp(-len(evidence.stems) / _SHORT_SOURCE)


def _speaks_of_itself(evidence: Evidence) -> bool:
    """True if the claim says "I" and no source does: what the writer thinks stands in no document."""
    return bool(evidence.claim.words & _FIRST_PERSON) and not evidence.words & _FIRST_PERSON


def _overlap(evidence: Evidence) -> float:
    """The share of the claim's words in the sources: of all of it, of its worst sentence, and of all in one place."""
    stems = evidence.claim.stems
    if not stems:
        return 1.0
    known = evidence.stems
    whole = worst = 1.0
    if not stems <= known:
        whole = _share(stems, known, evidence.prefixes)
        worst = min([_share(held, known, evidence.prefixes) for held in evidence.claim.sentence_stems if held])
    near = [window for hit in evidence.hits[:_CLOSELY] for window in _round(hit)]
    nearest = max([_share(stems, window, prefixes(window)) for window in near], default=0.0)
    absent = sum(1 for name in evidence.claim.capitals if name not in known and name[:PREFIX] not in evidence.prefixes)
    return (whole + 2 * worst + nearest) / 4 - _PER_NAME * min(_MOST_NAMES, absent)


def _share(stems: frozenset[str], known: frozenset[str], alike: frozenset[str]) -> float:
    """The share of the stems that are known; one that begins like a known one counts nearly as much."""
    shared = stems & known
    if len(shared) == len(stems):
        return 1.0
    begun = sum(1 for stem in stems - shared if stem[:PREFIX] in alike)
    return (len(shared) + _LIKE * begun) / len(stems)


def _round(hit: Hit) -> Iterator[frozenset[str]]:
    """The stems of each few neighbouring sentences that the sentence is one of."""
    stems = hit.source.passage.sentence_stems
    first = max(0, hit.place - _WINDOW + 1)
    return (joined(stems[index : index + _WINDOW]) for index in range(first, hit.place + 1))
