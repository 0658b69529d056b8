"""What an index stores of a passage and looks for: stems, pairs of an identifier's parts, pairs of characters.

The weight is BM25F's for the passage alone, so that it can be stored. A change here needs a new version of the indexes.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final

import snowballstemmer  # type: ignore[import-untyped]  # ships no types

from agent.knowledge.search.postings import MOST_IMPACT
from agent.knowledge.search.tokens import is_function_word, subject_tokens, tokens
from verification.text.language import detect

MAX_TERMS: Final = 60
"""More terms than this come from a pasted log, not from a question; each is read from the index."""

CJK_RUN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+")
_WORD: Final = re.compile(r"[^\W_]+")
_JOINED: Final = re.compile(r"[^\W_]+(?:(?:[^\w\s\"'“”„«»‘’`()\[\]{}<>|,;!?]|_)+[^\W_]+)*")
"""Words with nothing between them that ends an identifier."""
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_EDGES: Final = ".,:;()\"'"
_MOST_CHARS: Final = 200
"""Longer runs of letters are no words."""

_SATURATION: Final = 1.2
_LENGTH_SHARE: Final = 0.75
"""BM25's usual parameters."""
_HEAD_WORDS: Final = 26
_BODY_WORDS: Final = 136
"""Fields of this length count a word as it stands; shorter ones more, up to four times, longer ones less.
The means of the collection that the ranking was chosen on; fixed, so that a passage stays as it was written."""


def lexemes(text: str) -> list[str]:
    """The stems of all words, in order, in lower case and without accents."""
    return _words_and_pairs(text)[0]


def impacts(title: str, path: str, text: str) -> dict[str, int]:
    """What each word says in one passage, from 1 to ``MOST_IMPACT``; ``path`` are its headings."""
    head, head_length = _head(title, path)
    words, pairs = _words_and_pairs(text)
    words += grams(path, text).split()
    body = Counter(words)
    body.update(pairs)
    in_head, in_body = _share(head_length, _HEAD_WORDS), _share(len(words), _BODY_WORDS)
    said = {word: count * in_body for word, count in body.items()}
    for word, count in head.items():
        said[word] = said.get(word, 0.0) + count * in_head
    return {word: math.ceil(MOST_IMPACT * often / (often + _SATURATION)) for word, often in said.items()}


@lru_cache(maxsize=64)
def _head(title: str, path: str) -> tuple[Mapping[str, int], int]:
    """The passages of a section share what stands above them. The title of most documents is a heading as well."""
    words, pairs = _words_and_pairs(f"{title}\n{path}")
    return Counter([*words, *pairs]), len(words)


def _share(length: int, usual: int) -> float:
    return 1 / (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / usual)


def words_of(query: str) -> list[str]:
    """What to look for: stems, pairs of the parts of an identifier, pairs of characters."""
    found: dict[str, None] = {}
    for term in query_terms(query):
        words = [term] if CJK_RUN.fullmatch(term) else lexemes(term)
        found.update(dict.fromkeys(words if len(words) == 1 else map(" ".join, pairwise(words))))
    return list(found)


def _words_and_pairs(text: str) -> tuple[list[str], list[str]]:
    """Stems in order, and of identifiers (``FH-2002``, ``full-text``) each two that stand together."""
    words: list[str] = []
    pairs: list[str] = []
    for written in _plain(text).split():
        token = written if written.isalnum() else written.strip(_EDGES)
        if token.isalnum():
            words.append(_stem(token))
            continue
        for joined in _JOINED.findall(token):
            parts = [_stem(part) for part in _WORD.findall(joined)]
            words += parts
            pairs += map(" ".join, pairwise(parts))
    return words, pairs


def _plain(text: str) -> str:
    """Lower case without accents; Chinese, Japanese and Thai are left to the pairs."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", CJK_RUN.sub(" ", text))
    return _NOT_ASCII.sub(_without_marks, apart).lower()


def _without_marks(found: re.Match[str]) -> str:
    return "".join(c for c in found[0] if not unicodedata.combining(c))


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    """Porter's stem. Each call has a stemmer of its own: they keep state while they work."""
    if not word.isascii() or word.isdigit():
        return word[:_MOST_CHARS]
    stem = str(snowballstemmer.stemmer("porter").stemWord(word[:_MOST_CHARS]))
    return stem or word  # of "s" nothing would be left


def query_terms(query: str) -> list[str]:
    """What to look for: a word, the words of an identifier that stand together, or a pair of characters."""
    terms: dict[str, None] = {}
    for token in _worth_looking_for(query):
        runs = CJK_RUN.findall(token)
        for run in runs:
            terms.update(dict.fromkeys(_pairs(run)))
        rest = _WORD.findall(CJK_RUN.sub(" ", token))
        if rest:
            terms[" ".join(rest)] = None
        if len(rest) > 1:
            terms.update(dict.fromkeys(part for part in rest if _says_something(part)))
    return list(terms)[:MAX_TERMS]


def _worth_looking_for(query: str) -> list[str]:
    """All tokens but those that carry only grammar, once each; all of them if none says what the question is about.

    Words that only ask ("use", "get") are looked for as well: they tell little, which their frequency says by itself.
    """
    every, language = list(dict.fromkeys(tokens(query))), detect(query)
    if not subject_tokens(query):
        return every
    return [token for token in every if not is_function_word(token.lower(), language)]


def _says_something(part: str) -> bool:
    return len(part) > 1 and not is_function_word(part.lower(), "en")


def grams(*texts: str) -> str:
    """The character pairs of all Chinese, Japanese and Thai runs, for a column of their own."""
    return " ".join(pair for text in texts for run in CJK_RUN.findall(text) for pair in _pairs(run))


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]
