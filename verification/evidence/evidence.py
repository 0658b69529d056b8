"""The evidence for a claim: its cited passages, and the sentences in them about the same subject.

Text from the question and the thread is known, but never evidence. ``score`` estimates how likely a claim is supported.
It is for ranking and measuring; no claim fails because of it.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from propcache.api import cached_property

from verification.evidence.passages import Passage, union_of
from verification.text.language import Term, normalise_text, terms, words_by_language
from verification.values.identifiers import is_whole_word_in

MAX_VALUES = 200  # maximum numbers, dates or identifiers to check per claim, to keep the work linear
MAX_HITS = 8  # sentences near a claim
SAME_SENTENCE = 0.75
"""Share of the claim's words (with digits) that makes a sentence nearly the same. A lower one failed right claims."""

SUPPORTED = 0.43
"""The default score from which a claim counts as supported (balanced accuracy, no judge)."""

_ACROSS_LANGUAGES = 0.75  # then words prove nothing: the claim is neither supported nor in doubt
_PREFIX = 5  # letters: longer stems with the same beginning are probably the same word
_PREFIX_WEIGHT = 0.8  # weight of a word that only begins like a word of the source
_WINDOW = 3  # number of sentences that count as one place
_MAX_CLOSE_HITS = 2  # number of hits whose surroundings are searched
_CLOSE_READING, _SHORT_SOURCE = 0.35, 20
_PER_NAME, _MAX_NAMES = 0.15, 2
_REFUTED_FACTOR, _FIRST_PERSON_FACTOR, _QUESTION_FACTOR = 0.15, 0.5, 0.4
_FIRST_PERSON_WORDS = (
    "i i'm i've i'd i'll my me mine myself ich mir mich mein meine je j'ai moi mon ma mes yo mi mis saya aku"
)
_FIRST_PERSON = frozenset(_FIRST_PERSON_WORDS.split())

Certainty = Literal["certain", "unfounded", "doubtful"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A part of a claim that its sources do not support. ``span`` locates its words in the claim's own text.

    ``certain``: the source says something else. ``unfounded``: the source does not have it, and it does not follow from
    any value; a judge may know better. ``doubtful``: it may be meant differently, or follow from the source.
    """

    span: tuple[int, int]
    detail: str
    remedy: str
    certainty: Certainty = "certain"

    def is_error(self, *, has_judge: bool) -> bool:
        """Return True if it fails the answer. ``has_judge``: a judge will be asked."""
        return self.certainty == "certain" or (self.certainty == "unfounded" and not has_judge)


class Cited(NamedTuple):
    """A cited source and its passage."""

    id: int
    passage: Passage


class Hit(NamedTuple):
    """A sentence of a cited source, and the share of the claim's stems in it."""

    source: Cited
    place: int
    share: float

    @property
    def stems(self) -> frozenset[str]:
        """The stems of the sentence."""
        return self.source.passage.sentence_stems[self.place]

    @property
    def text(self) -> str:
        """The sentence as it is in the source."""
        passage = self.source.passage
        start, end = passage.spans[self.place]
        return passage.text[start:end]

    @property
    def passage(self) -> Passage:
        """The sentence as a separate passage."""
        return self.source.passage.sentence(self.place)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The words of the sentence with their places in ``text``. Stems follow the source's language."""
        language = self.source.passage.language
        return self.passage.terms if language else terms(self.text, language)


# No slots: the ranking is cached.
@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A claim with its cited sources, the other sources, known text, and context that can excuse but not prove."""

    claim: Passage
    cited: tuple[Cited, ...]
    others: tuple[Passage, ...] = ()
    known: tuple[Passage, ...] = ()
    context: tuple[Passage, ...] = ()

    @cached_property
    def same_language(self) -> bool:
        """False if claim and sources are clearly in different languages, so that shared words mean nothing."""
        claim_language = self.claim.language
        return any(claim_language is None or cited.passage.language in {None, claim_language} for cited in self.cited)

    @cached_property
    def stems(self) -> frozenset[str]:
        """All stems of the cited sources."""
        return union_of([cited.passage.stems for cited in self.cited])

    @cached_property
    def words(self) -> frozenset[str]:
        """All words of the cited sources, case-folded."""
        return union_of([cited.passage.words for cited in self.cited])

    @cached_property
    def hits(self) -> tuple[Hit, ...]:
        """The sentences that share most words with the claim, best first, at most ``MAX_HITS`` of them."""
        claim_stems = self.claim.stems
        shared: list[tuple[int, int, int]] = []
        for place, cited in enumerate(self.cited):
            counts = map(len, map(claim_stems.__and__, cited.passage.sentence_stems))
            shared += [(-count, place, index) for index, count in enumerate(counts) if count]
        best = sorted(shared)[:MAX_HITS]
        return tuple([Hit(self.cited[place], index, -count / len(claim_stems)) for count, place, index in best])

    def is_written_near(self, start: int, end: int) -> bool:
        """Return True if a nearby sentence has exactly these words of the claim, with a number among them."""
        words = normalise_text(self.claim.text[start:end])
        if not any(map(str.isdecimal, words)):
            return False
        return any(is_whole_word_in(words, hit.passage.normalised_text) for hit in self.hits[:2])

    @property
    def quotes_lines(self) -> bool:
        """Return True if one cited source has every line of the claim, a piece of code, verbatim and in this order."""
        lines = [line for line in map(normalise_text, self.claim.text.split("\n")) if not line.startswith("```")]
        for text in (cited.passage.normalised_text for cited in self.cited):
            place = 0
            if all((place := text.find(line, place)) >= 0 for line in lines):
                return True
        return False

    @cached_property
    def cited_and_known(self) -> tuple[Passage, ...]:
        """All text whose values need no other source: the cited passages, the question, the asker's messages."""
        return (*(cited.passage for cited in self.cited), *self.known)

    def denies(self, place: int) -> bool:
        """Return True if the claim's sentence at this place is negated: a denied value need not be in a source."""
        sentences = zip(self.claim.spans, self.claim.sentence_words, strict=True)
        words = next((words for (start, end), words in sentences if start <= place < end), [])
        negations = words_by_language("negations").get(self.claim.language or "en", frozenset())
        return any(word in negations or word.endswith(("'t", "’t")) for word in words)

    @property
    def conversation(self) -> tuple[Passage, ...]:
        """Text from people and earlier answers, not from sources: question, thread, context."""
        return (*self.known, *self.context)

    def certainty(self, hit: Hit | None) -> Certainty:
        """Rate a value that the sources lack: it is certain if ``hit`` says nearly the same with another value."""
        return "certain" if hit and hit.share >= SAME_SENTENCE and self.same_language else "unfounded"

    def name_sources(self) -> str:
        """The cited sources in words: ``source [1]``, ``sources [1] and [2]``."""
        ids = [f"[{cited.id}]" for cited in self.cited]
        return f"source {ids[0]}" if len(ids) == 1 else f"sources {', '.join(ids[:-1])} and {ids[-1]}"

    def not_found(self, span: tuple[int, int], certainty: Certainty) -> Finding:
        """Make a finding: the cited sources do not have the words at ``span`` of the claim."""
        words = self.claim.text[slice(*span)].strip()
        detail = f"{words} is not in {self.name_sources()}"
        # A doubtful value may be right if the writer shows how it follows.
        shown = ", show how it follows from what it cites" if certainty == "doubtful" else ""
        remedy = f"Drop {words}{shown}, or cite the source that states it."
        return Finding(span=span, detail=detail, remedy=remedy, certainty=certainty)

    def replaced_by(self, span: tuple[int, int], hit: Hit, right: str, certainty: Certainty = "certain") -> Finding:
        """Make a finding: a sentence has something else in place of the words at ``span`` of the claim."""
        words = self.claim.text[slice(*span)].strip()
        detail = f"source [{hit.source.id}] says {right}, not {words}"
        remedy = f"Replace {words} by {right} as source [{hit.source.id}] has it, or drop the sentence."
        return Finding(span=span, detail=detail, remedy=remedy, certainty=certainty)


def score(evidence: Evidence, *, refuted: bool = False) -> float:
    """The score of a claim. ``refuted``: a finding fails it."""
    # A claim that adds something to a source of one or two sentences is less likely supported.
    closeness = 1 - _CLOSE_READING * math.exp(-len(evidence.stems) / _SHORT_SOURCE)
    value = _word_overlap(evidence) * closeness if evidence.same_language else _ACROSS_LANGUAGES
    if refuted:
        value *= _REFUTED_FACTOR
    if evidence.claim.words & _FIRST_PERSON and not evidence.words & _FIRST_PERSON:
        value *= _FIRST_PERSON_FACTOR  # "I think": documents do not contain the writer's opinion
    if "?" in evidence.claim.text:
        value *= _QUESTION_FACTOR
    return round(max(0.0, value), 3)


def _word_overlap(evidence: Evidence) -> float:
    """The share of the claim's words that are in the sources: overall, for its worst sentence, and in one place."""
    stems = evidence.claim.stems
    if not stems:
        return 1.0
    known = evidence.stems
    overall = _share(stems, known)
    worst = min(_share(sentence, known) for sentence in evidence.claim.sentence_stems if sentence)
    nearest = 0.0
    for hit in evidence.hits[:_MAX_CLOSE_HITS]:
        around = hit.source.passage.sentence_stems
        for first in range(max(0, hit.place - _WINDOW + 1), hit.place + 1):  # each run of sentences around the hit
            nearest = max(nearest, _share(stems, union_of(around[first : first + _WINDOW])))
    absent = sum(1 for name in evidence.claim.capitals - known if name[:_PREFIX] not in _prefixes(known))
    return (overall + 2 * worst + nearest) / 4 - _PER_NAME * min(_MAX_NAMES, absent)


def _share(stems: frozenset[str], known: frozenset[str]) -> float:
    """The share of known stems. A stem that begins like a known one counts nearly as much."""
    alike = _prefixes(known)
    begun = sum(1 for stem in stems - known if stem[:_PREFIX] in alike)
    return (len(stems & known) + _PREFIX_WEIGHT * begun) / len(stems)


@lru_cache(maxsize=256)  # all claims are compared with the same sources
def _prefixes(stems: frozenset[str]) -> frozenset[str]:
    return frozenset([stem[:_PREFIX] for stem in stems if len(stem) >= _PREFIX])
