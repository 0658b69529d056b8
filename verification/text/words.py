"""The words of a text with their places: stems of what carries a subject, bigrams for Chinese and Japanese."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import snowballstemmer  # type: ignore[import-untyped]  # ships no types

from verification.text.language import detect
from verification.text.lexicon import all_words, words

_ALGORITHMS = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "id": "indonesian"}
_TOKEN = re.compile(r"[^\W_]+(?:[’'][^\W\d_]+)?")
_SPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_CJK = re.compile("[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_SUBJECT_CJK = re.compile("[\u3400-\u9fff\uf900-\ufaff々]+|[\u30a1-\u30ff]+")
_LINKS = re.compile(r"https?://\S+|<[@#!][^<>\n]*>")
_EVEN = str.maketrans("’‘“”„«»\u00a0\u2010\u2011\u2012\u2013\u2014\u2212", '\'\'""""" ------')


class Term(NamedTuple):
    """One word. ``stem`` is empty for a word that carries grammar only; ``word`` is case-folded."""

    stem: str
    word: str
    start: int
    end: int
    capital: bool


def terms(text: str, language: str | None) -> tuple[Term, ...]:
    """The words of ``text`` in order; a run of Chinese or Japanese gives its pairs of letters."""
    matches = _TOKEN.finditer(text)
    if text.isascii() or not _CJK.search(text):
        return tuple([_term(match, language) for match in matches])
    found: list[Term] = []
    for match in matches:
        found += _pairs(match.group(), match.start()) if _CJK.search(match.group()) else [_term(match, language)]
    return tuple(found)


def _term(match: re.Match[str], language: str | None) -> Term:
    word = match.group()
    return Term(stem(word, language), word.casefold(), match.start(), match.end(), word[0].isupper())


def _pairs(word: str, offset: int) -> Iterator[Term]:
    for run in _SUBJECT_CJK.finditer(word):
        letters = run.group()
        for index in range(max(1, len(letters) - 1)):
            pair = letters[index : index + 2]
            start = offset + run.start() + index
            yield Term(pair, pair, start, start + len(pair), capital=False)


def stem_list(words: Iterable[str], language: str | None) -> list[str]:
    """The stems of case-folded words in order; none empty."""
    return [found for word in words if (found := stem(word, language))]


def folded_words(text: str) -> Iterator[str]:
    """The case-folded words in order; pairs of letters for Chinese and Japanese."""
    for word in _TOKEN.findall(text):
        if not word.isascii() and _CJK.search(word):
            yield from (term.word for term in _pairs(word, 0))
        else:
            yield word.casefold()


@lru_cache(maxsize=50_000)  # some megabytes: ten thousand words are looked up in one answer
def stem(word: str, language: str | None) -> str:
    """The stem of a word, accents dropped; empty for function words and single letters."""
    if _CJK.search(word):  # a pair of letters stands for itself
        return word
    word = word.casefold().replace("’", "'").removesuffix("'s")
    if word.isdecimal() and word.isascii():
        return word
    name = language if language in _ALGORITHMS else "en"
    if len(word) < 2 and not word.isdigit():  # noqa: PLR2004  # one letter carries no subject
        return ""
    function_words = words("function_words")[name]
    if word in function_words or word.partition("'")[0] in function_words:
        return ""
    return plain(str(snowballstemmer.stemmer(_ALGORITHMS[name]).stemWord(word)))


def plain(word: str) -> str:
    """The word without accents: Unicode's combining marks fall away."""
    if word.isascii():
        return word
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


def normalised(text: str) -> str:
    """Case, typographic quotes, dashes and runs of white space evened out, for looking a string up."""
    even = text if text.isascii() else text.translate(_EVEN)
    return " ".join(even.casefold().split())


def content_stems(text: str, language: str | None = None) -> frozenset[str]:
    """The stems of the words that carry a subject; where the language cannot be told, those of every stemmer."""
    told = language or detect(text)
    bare = _LINKS.sub(" ", text)
    written = [*folded_words(bare)]
    found = frozenset(stem for name in ([told] if told else _ALGORITHMS) for stem in stem_list(written, name))
    return frozenset(stem for stem in found if not all_words("function_letters").issuperset(stem))


def around(text: str, trigger: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The stretches between blanks or line ends that hold what ``trigger`` finds; with a back-tick, to a line end."""
    position = 0
    while match := trigger.search(text, position):
        at = match.start()
        start = max(text.rfind(" ", position, at) + 1, text.rfind("\n", position, at) + 1, position)
        line_end = _find(text, "\n", at)
        end = _find(text, " ", at, line_end)
        if text.find("`", start, end) >= 0:
            end = line_end
        yield start, end
        position = max(end, match.end())


def _find(text: str, mark: str, start: int, end: int | None = None) -> int:
    """Where the mark stands first, else the end."""
    last = len(text) if end is None else end
    at = text.find(mark, start, last)
    return last if at < 0 else at


def is_spaced(text: str) -> bool:
    """Whether words can be told by their letters alone: not so in Chinese and Japanese."""
    return text.isascii() or not _SPACED.search(text)
