"""What a text holds that a claim can be checked against: sentences, words, numbers, dates, identifiers.

Promises: ``analyse`` is a pure function of the text, kept in a cache because sources come again and again within a
turn; it never raises on odd text (lone surrogates, control characters). Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import sentencex  # type: ignore[import-untyped]  # ships no types

from verification.calendar_words import MONTHS
from verification.dates import Moment, moments
from verification.identifiers import Identifier, identifiers
from verification.language import detect
from verification.numbers import Quantity, quantities
from verification.words import Term, normalised, terms

_UNCODABLE = re.compile("[\ud800-\udfff\x00]")
_FULLWIDTH = {code: code - 0xFEE0 for code in range(0xFF10, 0xFF1A)} | {0xFF05: 0x25, 0xFF1A: 0x3A}
_CITATION = re.compile(r"\[\d{1,12}(?:\s*[,;–-]\s*\d{1,12})*\]")
PREFIX, _WINDOW = 5, 3
_STRETCH = 2_000
_LINE = re.compile(r"[^\n]+")
_ABBREVIATED = re.compile(
    r"\b(?:Nr|No|z\. ?B|d\. ?h|bzw|ca|etc|vs|Dr|St|Mr|Mrs|Ms|Prof|Inc|e\.g|i\.e|p|pp|Art|Abs|approx)\.\s*$"
)
_DAY_ENDS = re.compile(r"(?<![\d.,:])\d{1,2}\.\s*$")
_NEXT_WORD = re.compile(r"\s*([^\W\d_]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence of a passage: its span and the stems it holds."""

    start: int
    end: int
    stems: frozenset[str]
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text read once. ``folded`` is the text normalised for looking strings up.

    ``windows`` are the stems of a few neighbouring sentences each; ``initials`` are the first letters of the words with
    a capital in order, a space for each other word.
    """

    text: str
    language: str | None
    folded: str
    terms: tuple[Term, ...]
    sentences: tuple[Sentence, ...]
    stems: frozenset[str]
    words: frozenset[str]
    prefixes: frozenset[str]
    windows: tuple[frozenset[str], ...]
    initials: str
    quantities: tuple[Quantity, ...]
    moments: tuple[Moment, ...]
    identifiers: tuple[Identifier, ...]


def readable(text: str) -> str:
    """The text, same length, without characters that other libraries cannot take; full-width digits made plain."""
    cleaned = _UNCODABLE.sub("\ufffd", text)
    return cleaned if cleaned.isascii() else cleaned.translate(_FULLWIDTH)


def sentence_spans(text: str, language: str | None) -> Iterator[tuple[int, int]]:
    """The sentences of ``text``, line by line, as spans without white space at their ends."""
    for line in _LINE.finditer(text):
        start = position = line.start()
        for piece in _pieces(line.group(), language or "en"):
            position += len(piece)
            if position < line.end() and _is_broken(text, start, position):
                continue
            yield from _trimmed(text, start, position)
            start = position
        yield from _trimmed(text, start, line.end())


def _pieces(line: str, language: str) -> Iterator[str]:
    """The line as the splitter cuts it; handed over a bounded stretch at a time, for it is quadratic in some runs."""
    start = 0
    while start < len(line):
        end = start + _STRETCH
        if end < len(line):
            end = max(line.rfind(" ", start, end), line.rfind("。", start, end)) + 1 or end
        yield from sentencex.segment(language, line[start:end])
        start = end


def _is_broken(text: str, start: int, position: int) -> bool:
    """True if the cut at ``position`` falls behind an abbreviation or inside a date ("am 3. Mai")."""
    tail = max(start, position - 12)
    if _ABBREVIATED.search(text, tail, position):
        return True
    following = _NEXT_WORD.match(text, position)
    is_day = following is not None and (following[1].casefold() in MONTHS or following[1][0].islower())
    return is_day and bool(_DAY_ENDS.search(text, tail, position))


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


@lru_cache(maxsize=512)
def analyse(text: str, language: str | None = None) -> Passage:
    """Everything in ``text`` that a claim can be checked against. ``language`` None means: find out."""
    text = _CITATION.sub(lambda match: " " * len(match.group()), readable(text))
    spoken = language or detect(text)
    named, when = _apart(identifiers(text), moments(text), len(text))
    taken = bytearray(len(text))
    spans = [(i.start, i.end) for i in named if i.kind != "code"] + [(m.start, m.end) for m in when]
    for start, end in spans:
        taken[start:end] = b"\x01" * (end - start)
    words = tuple(terms(text, spoken))
    stems = frozenset(word.stem for word in words if word.stem)
    sentences = tuple(_sentences(text, spoken, words))
    return Passage(
        text=text,
        language=spoken,
        folded=normalised(text),
        terms=words,
        sentences=sentences,
        stems=stems,
        words=frozenset(word.word for word in words),
        prefixes=prefixes(stems),
        windows=tuple(_windows(sentences)),
        initials="".join(word.word[0] if word.capital else " " for word in words),
        quantities=quantities(text, spoken, taken),
        moments=when,
        identifiers=named,
    )


def _apart(
    named: tuple[Identifier, ...], when: tuple[Moment, ...], length: int
) -> tuple[tuple[Identifier, ...], tuple[Moment, ...]]:
    """Identifiers and dates apart: 2003.06.11 is a date and no version, a date inside a URL is the URL's."""
    dates = {moment.start for moment in when if moment.day is not None}
    kept = tuple(i for i in named if not (i.kind == "version" and i.start in dates))
    taken = bytearray(length)
    for identifier in kept:
        if identifier.kind != "code":
            taken[identifier.start : identifier.end] = b"\x01" * (identifier.end - identifier.start)
    return kept, tuple(moment for moment in when if not any(taken[moment.start : moment.end]))


def prefixes(stems: Iterable[str]) -> frozenset[str]:
    """The first letters of the longer stems: what begins alike is probably the same word."""
    return frozenset(stem[:PREFIX] for stem in stems if len(stem) >= PREFIX)


def _windows(sentences: tuple[Sentence, ...]) -> Iterator[frozenset[str]]:
    for index in range(len(sentences)):
        yield frozenset[str]().union(*(sentence.stems for sentence in sentences[index : index + _WINDOW]))


def _sentences(text: str, language: str | None, words: tuple[Term, ...]) -> Iterator[Sentence]:
    index = 0
    for start, end in sentence_spans(text, language):
        first = index
        while index < len(words) and words[index].start < end:
            index += 1
        inside = words[first:index]
        stems = frozenset(word.stem for word in inside if word.stem)
        yield Sentence(start=start, end=end, stems=stems, terms=inside)
