"""What a text holds that a claim can be checked against: sentences, words, numbers, dates, identifiers.

``analyse`` is a pure function of the text; results are cached, for the sources come again and again within a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, compress, pairwise

import sentencex  # type: ignore[import-untyped]  # ships no types
from propcache.api import cached_property

from verification.text.language import detect
from verification.text.words import Term, folded_words, normalised, stem_list, terms
from verification.values.dates import MONTHS, Moment, moments
from verification.values.identifiers import Identifier, identifiers, within
from verification.values.numbers import Quantity, quantities

_UNCODABLE = re.compile("[\ud800-\udfff\x00]")
# Letter for letter, not by Unicode's NFKC: that changes lengths, and spans refer to the text as it came.
_FULLWIDTH = {code: code - 0xFEE0 for code in range(0xFF10, 0xFF1A)} | {0xFF05: 0x25, 0xFF1A: 0x3A}
_FULLWIDTH_SIGN = re.compile("[\uff05\uff10-\uff1a]")
_CITATION = re.compile(r"\[\d{1,12}(?:\s*[,;–-]\s*\d{1,12})*\]")
PREFIX = 5
_STRETCH = 2_000  # letters: the splitter takes quadratic time in some lines
# Nothing but words and signs that end no sentence, and at most one mark that does, at the end.
_UNPARTED = re.compile(r"[\w ,()\[\]*•`/'\"=+@#$%&|<>{}~^\\–-]*+[.!?]?")
_ABBREVIATED = re.compile(
    r"\b(?:Nr|No|z\. ?B|d\. ?h|bzw|ca|etc|vs|Dr|St|Mr|Mrs|Ms|Prof|Inc|e\.g|i\.e|p|pp|Art|Abs|approx"
    r"|incl|excl|inkl|exkl|zzgl|max|min)\.\s*$"
)
_DAY_ENDS = re.compile(r"(?<![\d.,:])\d{1,2}\.\s*$")
_NEXT_WORD = re.compile(r"\s*([^\W\d_]+)")


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A text to be read; each thing in it is looked for once, when it is first asked for. No slots: it is kept."""

    # Most claims are settled by their words alone: what nobody asks for costs nothing.

    text: str
    told: str | None = None

    @cached_property
    def language(self) -> str | None:
        """The language it was said to be in, else the one it shows; None where that cannot be told."""
        return self.told or detect(self.text)

    @cached_property
    def folded(self) -> str:
        """The text normalised for looking strings up."""
        return normalised(self.text)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The words with their places."""
        return terms(self.text, self.language)

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Where the sentences begin and end, in order."""
        return sentence_spans(self.text, self.language)

    @cached_property
    def sentence_words(self) -> list[list[str]]:
        """The words of each sentence, case-folded; pairs of letters for Chinese and Japanese."""
        return [list(folded_words(self.text[start:end])) for start, end in self.spans]

    @cached_property
    def sentence_stems(self) -> list[frozenset[str]]:
        """The stems of each sentence."""
        return [frozenset(stem_list(words, self.language)) for words in self.sentence_words]

    def sentence(self, index: int) -> Passage:
        """One sentence read by itself."""
        start, end = self.spans[index]
        return analyse(self.text[start:end], self.language)

    def holding(self, stems: frozenset[str]) -> dict[int, int]:
        """How many of the stems each sentence holds, by its index; sentences that hold none are left out."""
        shared = list(map(len, map(stems.__and__, self.sentence_stems)))
        return dict(compress(enumerate(shared), shared))

    @cached_property
    def stems(self) -> frozenset[str]:
        """All stems."""
        return joined(self.sentence_stems)

    @cached_property
    def words(self) -> frozenset[str]:
        """All words, case-folded."""
        return frozenset(chain.from_iterable(self.sentence_words))

    @cached_property
    def prefixes(self) -> frozenset[str]:
        """The first letters of the longer stems."""
        return prefixes(self.stems)

    @cached_property
    def capitals(self) -> frozenset[str]:
        """The stems of the words with a capital."""
        return frozenset(term.stem for term in self.terms if term.capital and term.stem)

    @cached_property
    def initials(self) -> str:
        """The first letters of the words with a capital in order, a space for each other word."""
        return "".join(word.word[0] if word.capital else " " for word in self.terms)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The numbers, those inside identifiers and dates left out."""
        taken = [(found.start, found.end) for found in self.moments]
        for found in self.identifiers:  # a number in code counts, but not that of a path in it
            taken += within(self.text, found) if found.kind == "code" else [(found.start, found.end)]
        return quantities(self.text, self.language, taken)

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The dates and times."""
        return self._apart[1]

    @property
    def identifiers(self) -> tuple[Identifier, ...]:
        """The names that machines read."""
        return self._apart[0]

    @cached_property
    def _apart(self) -> tuple[tuple[Identifier, ...], tuple[Moment, ...]]:
        """Identifiers and dates apart: 2003.06.11 is a date and no version, a date inside a URL is the URL's."""
        named, when = identifiers(self.text), moments(self.text)
        if not (named and when):
            return named, when
        dates = {moment.start for moment in when}
        kept = tuple(i for i in named if not (i.kind == "version" and i.start in dates))
        taken = bytearray(len(self.text))
        for identifier in kept:
            if identifier.kind != "code":
                taken[identifier.start : identifier.end] = b"\x01" * (identifier.end - identifier.start)
        return kept, tuple(moment for moment in when if not any(taken[moment.start : moment.end]))


def joined(sets: Sequence[frozenset[str]]) -> frozenset[str]:
    """The union; of one set, the set itself, for most claims are one sentence and cite one source."""
    return sets[0] if len(sets) == 1 else frozenset[str]().union(*sets)


def readable(text: str) -> str:
    """The text, same length, without characters that other libraries cannot take; full-width digits made plain."""
    if text.isascii() and "\0" not in text:
        return text
    cleaned = _UNCODABLE.sub("\ufffd", text)
    return cleaned.translate(_FULLWIDTH) if _FULLWIDTH_SIGN.search(cleaned) else cleaned


def sentence_spans(text: str, language: str | None) -> list[tuple[int, int]]:
    """The sentences of ``text``, line by line, as spans without white space at their ends."""
    found: list[tuple[int, int]] = []
    position = 0
    for line in text.split("\n"):
        start, end = position, position + len(line)
        position = end + 1
        cuts = (
            [start, end]
            if ". " not in line and _UNPARTED.fullmatch(line)
            else _cuts(text, start, line, language or "en")
        )
        for begin, stop in pairwise(cuts):
            piece = text[begin:stop]
            if bare := piece.lstrip():
                found.append((stop - len(bare), stop - len(bare) + len(bare.rstrip())))
    return found


def _cuts(text: str, start: int, line: str, language: str) -> list[int]:
    """The places in the text where a line of it begins, is cut into sentences and ends."""
    cuts = [start]
    position = start
    end = start + len(line)
    for piece in _pieces(line, language):
        position += len(piece)
        # "Der 5. Werktag" is far more common in German than a sentence that ends in a small number.
        is_ordinal = language == "de" and _DAY_ENDS.search(text, max(cuts[-1], position - 5), position)
        if position < end and not is_ordinal and not is_broken(text, cuts[-1], position):
            cuts.append(position)
    cuts.append(end)
    return cuts


def _pieces(line: str, language: str) -> list[str]:
    """The line as the splitter cuts it; handed over a bounded stretch at a time, for it is quadratic in some runs."""
    if len(line) <= _STRETCH:
        return sentencex.segment(language, line)  # type: ignore[no-any-return]  # a list of strings
    pieces: list[str] = []
    start = 0
    while start < len(line):
        end = start + _STRETCH
        if end < len(line):
            end = max(line.rfind(" ", start, end), line.rfind("。", start, end)) + 1 or end
        pieces += sentencex.segment(language, line[start:end])
        start = end
    return pieces


def is_broken(text: str, start: int, position: int) -> bool:
    """True if the cut at ``position`` falls behind an abbreviation or inside a date ("am 3. Mai")."""
    tail = max(start, position - 12)
    if not text[tail:position].rstrip().endswith("."):
        return False
    if _ABBREVIATED.search(text, tail, position):
        return True
    following = _NEXT_WORD.match(text, position)
    is_day = following is not None and (following[1].casefold() in MONTHS or following[1][0].islower())
    return is_day and bool(_DAY_ENDS.search(text, tail, position))


@lru_cache(maxsize=512)
def analyse(text: str, language: str | None = None) -> Passage:
    """The text without its citations, ready to be asked what is in it. ``language`` None means: find out."""
    text = readable(text)
    if "[" in text:
        text = _CITATION.sub(lambda match: " " * len(match.group()), text)
    return Passage(text=text, told=language)


def prefixes(stems: Iterable[str]) -> frozenset[str]:
    """The first letters of the longer stems: what begins alike is probably the same word."""
    return frozenset([stem[:PREFIX] for stem in stems if len(stem) >= PREFIX])
