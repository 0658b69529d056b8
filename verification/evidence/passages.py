"""The parts of a text that a claim is checked against: sentences, words, numbers, dates, identifiers.

``analyse`` is a pure function of the text. Results are cached, since a turn needs the same sources many times.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain

import sentencex  # type: ignore[import-untyped]  # ships no types
from propcache.api import cached_property

from verification.markup.lines import ANY_CITATION
from verification.text.language import Term, detect_language, folded_words, normalise_text, stems_of, terms
from verification.values.dates import MONTHS, WEEKDAYS, Moment, moments
from verification.values.identifiers import Identifier, identifiers, match_identifiers
from verification.values.numbers import Quantity, quantities

_UNCODABLE = re.compile("[\ud800-\udfff\x00]")
# Character by character: Unicode's NFKC would change lengths, and spans refer to the original text.
_FULLWIDTH = {code: code - 0xFEE0 for code in range(0xFF10, 0xFF1A)} | {0xFF05: 0x25, 0xFF1A: 0x3A}
_FULLWIDTH_SIGN = re.compile("[\uff05\uff10-\uff1a]")
_MAX_STRETCH = 2_000  # letters: the splitter is quadratic in some lines
_ABBREVIATED = re.compile(
    r"\b(?:Nr|No|z\. ?B|d\. ?h|bzw|ca|etc|vs|Dr|St|Mr|Mrs|Ms|Prof|Inc|e\.g|i\.e|p|pp|Art|Abs|approx"
    r"|incl|excl|inkl|exkl|zzgl|max|min)\.\s*$"
)
_DAY_ENDS = re.compile(r"(?<![\d.,:])\d{1,2}\.\s*$")
_NEXT_WORD = re.compile(r"\s*([^\W\d_]+)")
_IN_NAME = re.compile(r"(?<=\w)\.(?=_*[^\W_])")
_NOON = re.compile(r"\d ?[ap]\. ?m\.\s*$", re.IGNORECASE)
_MARKED = re.compile(
    r"`[^`\n]{1,200}`|<[^<>\n]{1,500}>|\[[^\[\]\n]{1,200}\]\([^()\s]{1,500}\)|「[^「」\n]{1,200}」|『[^『』\n]{1,200}』"
    r"|(?<![A-Za-z0-9*_~])([*_~]{1,3})(?=\S)(?:(?!\1)[^\n]){1,200}?(?<=\S)\1(?![A-Za-z0-9*_~])"
)
_CITED = rf"(?:\s*{ANY_CITATION.pattern})"
_BEGINNING = r"\s*(?=[\"“„«»‘'(*_~¿¡「『]{0,3}[^\W_])(?![\"“„«»‘'(*_~]{0,3}[a-zà-ÿ])"
_CITED_QUOTATION = re.compile(rf"[.!?。！？][\"”»“’」』)]+{_CITED}+{_BEGINNING}")
_NEW_SENTENCE = re.compile(rf"(?:{_CITED}+|\s){_BEGINNING}")
_LETTER = re.compile(r"[^\W_]")
_SHORT_DAYS = frozenset(word[:n] for word, day in WEEKDAYS.items() if day <= 7 for n in (1, 2, 3, 4))  # noqa: PLR2004 - Sunday
_PAIR = re.compile(r"\b([^\W\d_]{1,4})\.?\s?(?:[-–—~〜/&,]|to|bis|à|au|al?|sampai|至|到|から)\s?([^\W\d_]{1,4})\b")


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A text whose parts are computed on first use. No slots, because of the cached properties."""

    # Most claims are settled by their words alone, so unused properties must cost nothing.

    text: str
    given_language: str | None = None

    @cached_property
    def language(self) -> str | None:
        """The given language, else the detected one. None if it cannot be detected."""
        return self.given_language or detect_language(self.text)

    @cached_property
    def normalised_text(self) -> str:
        """The text, normalised for looking up strings."""
        return normalise_text(self.text)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The words with their places."""
        return terms(self.text, self.language)

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """The spans of the sentences, in order."""
        return sentence_spans(self.text, self.language)

    @cached_property
    def sentence_words(self) -> list[list[str]]:
        """The words of each sentence, case-folded; pairs of letters for Chinese and Japanese."""
        return [list(folded_words(self.text[start:end])) for start, end in self.spans]

    @cached_property
    def sentence_stems(self) -> list[frozenset[str]]:
        """The stems of each sentence."""
        return [stems_of(words, self.language) for words in self.sentence_words]

    def sentence(self, index: int) -> Passage:
        """One sentence as a separate passage."""
        start, end = self.spans[index]
        return analyse(self.text[start:end], self.language)

    @cached_property
    def stems(self) -> frozenset[str]:
        """All stems."""
        return union_of(self.sentence_stems)

    @cached_property
    def words(self) -> frozenset[str]:
        """All words, case-folded."""
        return frozenset(chain.from_iterable(self.sentence_words))

    @cached_property
    def capitals(self) -> frozenset[str]:
        """The stems of the words with a capital."""
        return frozenset(term.stem for term in self.terms if term.capital and term.stem)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The numbers outside identifiers and dates."""
        taken: list[Moment | Identifier] = [*self.moments]
        for name in self.identifiers:  # a number in code counts, unless it is part of a path
            taken += match_identifiers(self.text, name.start + 1, name.end - 1) if name.kind == "code" else [name]
        return quantities(self.text, self.language, [(each.start, each.end) for each in taken])

    @cached_property
    def identifiers(self) -> tuple[Identifier, ...]:
        """The machine-readable names. 2003.06.11 is a date, not a version."""
        dates = {moment.start for moment in self._all_moments}
        return tuple(i for i in identifiers(self.text) if not (i.kind == "version" and i.start in dates))

    @cached_property
    def names_weekdays(self) -> bool:
        """True if the text has a weekday or a pair of abbreviated ones ("Mo-Fr"), from which others may follow."""
        pairs = (map(str.casefold, pair) for pair in _PAIR.findall(self.text))
        return any(moment.weekday for moment in self.moments) or any(map(_SHORT_DAYS.issuperset, pairs))

    @cached_property
    def moments(self) -> tuple[Moment, ...]:
        """The dates and times, without those inside URLs."""
        taken = bytearray(len(self.text))
        for identifier in self.identifiers if self._all_moments else ():
            if identifier.kind != "code":
                taken[identifier.start : identifier.end] = b"\x01" * (identifier.end - identifier.start)
        return tuple(moment for moment in self._all_moments if not any(taken[moment.start : moment.end]))

    @cached_property
    def _all_moments(self) -> tuple[Moment, ...]:
        return moments(self.text)


def union_of(sets: Sequence[frozenset[str]]) -> frozenset[str]:
    """The union of the sets. A single set, which is the usual case, is returned as it is."""
    return sets[0] if len(sets) == 1 else frozenset[str]().union(*sets)


def clean_text(text: str) -> str:
    """Replace characters that other libraries reject, and full-width digits. The length does not change."""
    if text.isascii() and "\0" not in text:
        return text
    cleaned = _UNCODABLE.sub("\ufffd", text)
    return cleaned.translate(_FULLWIDTH) if _FULLWIDTH_SIGN.search(cleaned) else cleaned


def sentence_spans(text: str, language: str | None) -> list[tuple[int, int]]:
    """The sentences of ``text``, line by line, as spans without surrounding white space."""
    pieces: list[tuple[int, int]] = []
    end = -1
    for line in text.split("\n"):
        begin = start = end + 1
        end = start + len(line)
        for position in _boundaries(line, language or "en"):
            cut = start + position
            # "Der 5. Werktag" is far more common in German than a sentence that ends in a small number.
            is_ordinal = language == "de" and _DAY_ENDS.search(text, max(begin, cut - 5), cut)
            if not is_ordinal and not is_false_boundary(text, begin, cut):
                pieces.append((begin, cut))
                begin = cut
        pieces.append((begin, end))
    bare_pieces = ((stop, text[begin:stop].lstrip()) for begin, stop in pieces)
    return [(stop - len(bare), stop - len(bare) + len(bare.rstrip())) for stop, bare in bare_pieces if bare]


def _boundaries(line: str, language: str) -> list[int]:
    """The positions in a line where sentences may end: never inside emphasis, code, a link or 「」, but after it."""
    positions = {*accumulate(map(len, _split_line(line, language)))} - {len(line)}
    if "[" in line:  # the splitter does not end a sentence after a quotation that has its full stop and a citation
        positions |= {match.end() for match in _CITED_QUOTATION.finditer(line)}
    marked = [match.span() for match in _MARKED.finditer(line)] if positions else []
    ends = [end for _, end in marked]
    result: set[int] = set()
    for position in positions:
        place = bisect_left(ends, position)
        if place == len(marked) or position <= marked[place][0]:
            result.add(position)
        # The boundary is at the end of the marked words, unless the sentence goes on after them.
        elif not _LETTER.search(line, position, ends[place]) and (after := _NEW_SENTENCE.match(line, ends[place])):
            result.add(after.end())
    return sorted(result)


def _split_line(line: str, language: str) -> list[str]:
    """Split a line into sentences, one limited stretch at a time, because the splitter is quadratic for some texts."""
    pieces: list[str] = []
    start, size = 0, len(line)
    while start < size:
        end = start + _MAX_STRETCH
        if end < size:
            end = max(line.rfind(" ", start, end), line.rfind("。", start, end)) + 1 or end
        pieces += sentencex.segment(language, line[start:end])
        start = end
    return pieces


def is_false_boundary(text: str, start: int, position: int) -> bool:
    """Return True if the cut at ``position`` does not end a sentence.

    It is inside a name ("Rocket.Chat") or a date ("am 3. Mai"), or follows an abbreviation ("5 p.m. EST") or a name
    that asks ("Who is told?: HR").
    """
    if text[position : position + 1] in {":", ";", ","}:
        return True
    tail = max(start, position - 12)
    if not text[tail:position].rstrip().endswith("."):
        return False
    if _IN_NAME.match(text, position - 1) or _ABBREVIATED.search(text, tail, position):
        return True
    following = _NEXT_WORD.match(text, position)
    if following and _NOON.search(text, tail, position):
        return following[1].casefold() in WEEKDAYS or (len(following[1]) > 1 and following[1].isupper())
    is_day = following is not None and (following[1].casefold() in MONTHS or following[1][0].islower())
    return is_day and bool(_DAY_ENDS.search(text, tail, position))


@lru_cache(maxsize=512)
def analyse(text: str, language: str | None = None) -> Passage:
    """Return the text without citations as a passage. ``language`` None: detect it."""
    text = clean_text(text)
    if "[" in text:
        text = ANY_CITATION.sub(lambda match: " " * len(match.group()), text)
    return Passage(text=text, given_language=language)
