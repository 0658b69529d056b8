"""The words of a text with their places: stems of content words, bigrams for Chinese and Japanese."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import snowballstemmer  # type: ignore[import-untyped]  # ships no types

from verification.text.language import all_words, detect_language, words_by_language

_ALGORITHMS = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "id": "indonesian"}
_TOKEN = re.compile(r"[^\W_]+(?:[’'][^\W\d_]+)?")
_SPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_CJK = re.compile("[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_SUBJECT_CJK = re.compile("[\u3400-\u9fff\uf900-\ufaff々]+|[\u30a1-\u30ff]+")
_LINKS = re.compile(r"https?://\S+|<[@#!][^<>\n]*>")
_EVEN = str.maketrans("’‘“”„«»\u00a0\u2010\u2011\u2012\u2013\u2014\u2212", '\'\'""""" ------')


class Term(NamedTuple):
    """One word. ``stem`` is empty for a function word. ``word`` is case-folded."""

    stem: str
    word: str
    start: int
    end: int
    capital: bool


def terms(text: str, language: str | None) -> tuple[Term, ...]:
    """The words of ``text`` in order. A run of Chinese or Japanese gives pairs of characters."""
    result: list[Term] = []
    for match in _TOKEN.finditer(text):
        word = match.group()
        if not word.isascii() and _CJK.search(word):
            result += _cjk_pairs(word, match.start())
        else:
            result.append(Term(stem(word, language), word.casefold(), match.start(), match.end(), word[0].isupper()))
    return tuple(result)


def _cjk_pairs(word: str, offset: int) -> Iterator[Term]:
    for run in _SUBJECT_CJK.finditer(word):
        letters = run.group()
        for index in range(max(1, len(letters) - 1)):
            pair = letters[index : index + 2]
            start = offset + run.start() + index
            yield Term(pair, pair, start, start + len(pair), capital=False)


def stem_list(words: Iterable[str], language: str | None) -> list[str]:
    """The stems of case-folded words in order, without empty ones."""
    return [stemmed for word in words if (stemmed := stem(word, language))]


def folded_words(text: str) -> Iterator[str]:
    """Yield the case-folded words in order, as pairs of characters for Chinese and Japanese."""
    for word in _TOKEN.findall(text):
        if not word.isascii() and _CJK.search(word):
            yield from (term.word for term in _cjk_pairs(word, 0))
        else:
            yield word.casefold()


@lru_cache(maxsize=50_000)  # some megabytes: one answer looks up ten thousand words
def stem(word: str, language: str | None) -> str:
    """The stem of a word without accents. Empty for function words and single letters."""
    if _CJK.search(word):  # a pair of characters is its own stem
        return word
    word = word.casefold().replace("’", "'").removesuffix("'s")
    if word.isdecimal() and word.isascii():
        return word
    name = language if language in _ALGORITHMS else "en"
    if len(word) < 2 and not word.isdigit():  # noqa: PLR2004  # one letter carries no subject
        return ""
    function_words = words_by_language("function_words")[name]
    if word in function_words or word.partition("'")[0] in function_words:
        return ""
    return strip_accents(str(snowballstemmer.stemmer(_ALGORITHMS[name]).stemWord(word)))


def strip_accents(word: str) -> str:
    """The word without Unicode's combining marks."""
    if word.isascii():
        return word
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


def normalise_text(text: str) -> str:
    """Normalise case, typographic quotes, dashes and white space, for comparing strings."""
    even = text if text.isascii() else text.translate(_EVEN)
    return " ".join(even.casefold().split())


def content_stems(text: str, language: str | None = None) -> frozenset[str]:
    """The stems of the content words. If the language is unknown, the stems of every stemmer."""
    known_language = language or detect_language(text)
    bare = _LINKS.sub(" ", text)
    words = [*folded_words(bare)]
    stems = frozenset(
        stem for name in ([known_language] if known_language else _ALGORITHMS) for stem in stem_list(words, name)
    )
    return frozenset(stem for stem in stems if not all_words("function_letters").issuperset(stem))


def is_spaced(text: str) -> bool:
    """Return True if the text's script separates words with spaces, unlike Chinese and Japanese."""
    return text.isascii() or not _SPACED.search(text)
