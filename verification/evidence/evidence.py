"""What a claim is checked against: the cited passages together, and the sentences in them that speak of the same thing.

What the question and the thread say counts as known, never as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from propcache.api import cached_property

from verification.evidence.passages import Passage, joined
from verification.text.words import Term, normalised, terms
from verification.types import Severity
from verification.values.identifiers import stands_in

Kind = Literal["number", "date", "quote", "identifier", "url", "name", "polarity", "relation", "overlap"]


MOST = 200
"""How many numbers, dates or identifiers of one claim are looked at: a bound that keeps the work linear."""


NEAREST = 8
"""How many sentences near a claim are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing about a claim that its sources do not bear out. Offsets are those of the claim's own text.

    ``sure``: another value stands in its place. One that merely stands nowhere may follow from something, and is left
    to the judge where one will be asked.
    """

    kind: Kind
    severity: Severity
    start: int
    end: int
    detail: str
    remedy: str
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """One cited source, read."""

    id: int
    passage: Passage


class Hit(NamedTuple):
    """A sentence of a cited source and the share of the claim's stems that it holds."""

    source: Cited
    place: int
    share: float

    @property
    def start(self) -> int:
        """Where the sentence begins in its source."""
        return self.source.passage.spans[self.place][0]

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.source.passage.spans[self.place][1]

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
    def words(self) -> frozenset[str]:
        """The words that it holds, case-folded."""
        return frozenset(self.source.passage.sentence_words[self.place])

    @property
    def terms(self) -> tuple[Term, ...]:
        """The words of the sentence, with their places in ``text``; stems are those of the source's language."""
        told = self.source.passage.language
        return self.passage.terms if told else terms(self.text, told)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A claim, the sources it cites, and what is known without any source. No slots: the ranking is cached."""

    claim: Passage
    cited: tuple[Cited, ...]
    known: tuple[Passage, ...] = ()

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
    def recall(self) -> float:
        """The share of the claim's stems that stand anywhere in the cited sources; 1 for a claim without any."""
        mine = self.claim.stems
        return len(mine & self.stems) / len(mine) if mine else 1.0

    @cached_property
    def held(self) -> tuple[dict[int, int], ...]:
        """For each cited source how many of the claim's stems its sentences hold."""
        return tuple([cited.passage.holding(self.claim.stems) for cited in self.cited])

    @cached_property
    def hits(self) -> tuple[Hit, ...]:
        """The sentences that share most words with the claim, best first, at most ``NEAREST`` of them."""
        mine = self.claim.stems
        shared = [(-count, place, index) for place, held in enumerate(self.held) for index, count in held.items()]
        shared.sort()
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

    @cached_property
    def best(self) -> Hit | None:
        """The sentence that speaks most clearly of the claim's subject."""
        return self.hits[0] if self.hits else None

    def sources_named(self) -> str:
        """The cited sources as words: ``source [1]``, ``sources [1] and [2]``."""
        ids = [f"[{cited.id}]" for cited in self.cited]
        return f"source {ids[0]}" if len(ids) == 1 else f"sources {', '.join(ids[:-1])} and {ids[-1]}"
