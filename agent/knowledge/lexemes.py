"""What PostgreSQL indexes and looks for: the same words, stems and character pairs that FTS5 makes by itself.

Promises: pure, linear, any text; the same in every database, whatever its locale and dictionaries are. A lexeme holds
only letters and digits, so none can act as query syntax.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import snowballstemmer  # type: ignore[import-untyped]  # ships no types

from agent.knowledge.fts_query import CJK_RUN, grams, query_terms

_WORD: Final = re.compile(r"[^\W_]+")
_MOST_CHARS: Final = 200
"""Longer runs of letters are no words; PostgreSQL refuses lexemes of more than 2 KB."""
_LAST_POSITION: Final = 16_000
_GAP: Final = 8
"""Between fields, so that no phrase goes from one into the next."""

Phrase = tuple[str, ...]


def lexemes(text: str) -> list[str]:
    """The stems of all words, in order, in lower case and without accents."""
    return [_stem(word) for word in _WORD.findall(_plain(text))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """A passage as it is indexed. ``vector`` is the text form of a ``tsvector``, ``length`` in words.

    ``counts`` has the words that count for more than one occurrence, with how many.
    """

    vector: str
    length: int
    words: frozenset[str]
    counts: Mapping[str, float]


def indexed(title: str, path: str, text: str) -> Indexed:
    """One passage. A word of title or headings counts for two, as in the index of one machine."""
    places: dict[str, list[int]] = {}
    counts: Counter[str] = Counter()
    at = length = 0
    for weight, found in ((2, lexemes(title)), (2, lexemes(path)), (1, lexemes(text)), (1, grams(path, text).split())):
        for lexeme in found:
            at += 1
            places.setdefault(lexeme, []).append(min(at, _LAST_POSITION))
            counts[lexeme] += weight
        at += _GAP
        length += len(found)
    return Indexed(
        vector=" ".join(f"'{lexeme}':{','.join(map(str, where))}" for lexeme, where in places.items()),
        length=length,
        words=frozenset(places),
        counts={lexeme: count for lexeme, count in counts.items() if count > 1},
    )


def phrases_of(query: str) -> list[Phrase]:
    """What to look for: single lexemes, and those of an identifier that must stand together."""
    found: dict[Phrase, None] = {}
    for term in query_terms(query):
        phrase = (term,) if CJK_RUN.fullmatch(term) else tuple(lexemes(term))
        if phrase:
            found[phrase] = None
    return list(found)


def as_query(phrase: Phrase) -> str:
    """The text form of a ``tsquery`` for one phrase."""
    return " <-> ".join(f"'{lexeme}'" for lexeme in phrase)


def _plain(text: str) -> str:
    """Lower case without accents; Chinese, Japanese and Thai are left to the pairs."""
    rest = CJK_RUN.sub(" ", text)
    if rest.isascii():
        return rest.lower()
    apart = unicodedata.normalize("NFKD", rest)
    return "".join(c for c in apart if not unicodedata.combining(c)).lower()


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    """Porter's stem, as FTS5 has it. Each call has a stemmer of its own: they keep state while they work."""
    if not word.isascii() or word.isdigit():
        return word[:_MOST_CHARS]
    stem = str(snowballstemmer.stemmer("porter").stemWord(word[:_MOST_CHARS]))
    return stem or word  # of "s" nothing would be left
