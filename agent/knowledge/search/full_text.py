"""Full-text search: the words that an index stores and looks up, their ranking by BM25F, and the expansion of hits.

Stored words are stems, pairs of an identifier's parts and pairs of characters, each with its weight in the passage. Any
change to the stored words needs a new version of the indexes. A hit expands to its section and what is around it, as a
basis for an answer. Texts stay as in the document; headings that the passages lack are put back.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from itertools import groupby, pairwise, takewhile
from pathlib import Path
from typing import Final

import snowballstemmer  # type: ignore[import-untyped]  # ships no types

from agent.knowledge.types import PATH, FoundPassage
from verification.text.language import detect_language
from verification.text.language import words_by_language as listed_words

# more terms than this come from a pasted log, not from a question, and each one is looked up in the index
MAX_TERMS: Final = 60
MAX_WORDS: Final = 200  # an identifier can have thousands of parts, but a statement takes a limited number of values
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_CJK_RUN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+")
_TOKEN: Final = re.compile(r"[^\s\"'“”„«»‘’`()\[\]{}<>|,;!?！？。！、，：…]+")
_OUTSIDE: Final = ".:-_/*=#~+&%$@^\\"
_WORD: Final = re.compile(r"[^\W_]+")
_JOINED: Final = re.compile(r"[^\W_]+(?:(?:[^\w\s\"'“”„«»‘’`()\[\]{}<>|,;!?]|_)+[^\W_]+)*")
"""Words without the separators that end an identifier."""
# Parts joined to a word by an apostrophe: "who's", "we're", "l'hôtel". They are not words.
_APOSTROPHE: Final = re.compile(r"(?<=[^\W_])['’](?:s|re|ve|ll|d|m|t)\b|\b[^\W\d_]['’](?=[^\W\d_])", re.IGNORECASE)
_LINK_TARGET: Final = re.compile(r"(?<=\])\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+[\"'][^\"'\n]*[\"'])?\)")
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_EDGES: Final = ".,:;()\"'"
_MAX_CHARS: Final = 200  # longer runs of letters are not words
MAX_IMPACT: Final = 255
_SATURATION: Final = 1.2
_LENGTH_SHARE: Final = 0.75  # BM25's usual parameters
_HEAD_WORDS: Final = 26
_BODY_WORDS: Final = 136
"""In a field of this length a word counts once; in shorter fields it counts up to four times, in longer ones less.

These are the mean lengths of the collection that the ranking was tuned on. They are fixed, so stored weights stay
valid.
"""
# Question words that do not name a subject.
_ASKING: Final = frozenset(Path(__file__).with_name("asking.txt").read_text(encoding="utf-8").split())


def tokens(text: str) -> list[str]:
    """Return words as written and identifiers whole (``--force``, ``v2.3``, ``FH-2002``), without outer punctuation."""
    return [token for raw in _TOKEN.findall(text) if (token := raw.strip(_OUTSIDE))]


def subject_tokens(text: str) -> list[str]:
    """Return the distinct tokens that name a subject."""
    language = detect_language(text)
    parts = {token: _WORD.findall(token.lower()) for token in tokens(text)}
    return [
        token
        for token, words in parts.items()
        if _CJK.search(token) or not all(_is_function_word(word, language) or word in _ASKING for word in words)
    ]


def _is_function_word(word: str, language: str | None) -> bool:
    listed = listed_words("function_words")  # an unknown language counts as English
    return word in listed.get(language or "en", listed["en"])


def words_of(query: str) -> list[str]:
    """Return the words to look up: stems, pairs of the parts of an identifier, pairs of characters."""
    found: dict[str, None] = {}
    for term in query_terms(query):
        words = [term] if _CJK_RUN.fullmatch(term) else _words_and_pairs(term)[0][:MAX_TERMS]
        found.update(dict.fromkeys(words if len(words) == 1 else map(" ".join, pairwise(words))))
    return list(found)[:MAX_WORDS]


def query_terms(query: str) -> list[str]:
    """Return a query's words, the words of its identifiers, and pairs of characters; function words only if alone."""
    query = _APOSTROPHE.sub("", query)
    language, about_something = detect_language(query), subject_tokens(query)
    terms: dict[str, None] = {}
    for token in tokens(query):
        if about_something and _is_function_word(token.lower(), language):
            continue
        terms |= dict.fromkeys(_pairs(token))
        words = _WORD.findall(_CJK_RUN.sub(" ", token))
        if words:
            terms[" ".join(words)] = None
        if len(words) > 1:
            terms |= {part: None for part in words if len(part) > 1 and not _is_function_word(part.lower(), "en")}
    return list(terms)[:MAX_TERMS]


def impacts(title: str, path: str, text: str) -> dict[str, int]:
    """Return the weight of each word in a passage under the headings ``path``, from 1 to ``MAX_IMPACT``."""
    head, head_length = _head(title, path)
    text = _LINK_TARGET.sub("", text)  # link targets are not words
    words, pairs = _words_and_pairs(text)
    words += _pairs(path) + _pairs(text)
    body = Counter([*words, *pairs])
    in_head, from_body = (
        1 / (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / usual)
        for length, usual in ((head_length, _HEAD_WORDS), (len(words), _BODY_WORDS))
    )
    said = {word: count * from_body for word, count in body.items()}
    for word, count in head.items():
        said[word] = said.get(word, 0.0) + count * in_head
    return {word: math.ceil(MAX_IMPACT * often / (often + _SATURATION)) for word, often in said.items()}


@lru_cache(maxsize=64)
def _head(title: str, path: str) -> tuple[Mapping[str, int], int]:  # the passages of a section share it
    words, pairs = _words_and_pairs(f"{title}\n{path}")
    return Counter([*words, *pairs]), len(words)


def _words_and_pairs(text: str) -> tuple[list[str], list[str]]:
    """Return stems in order, and each pair of neighbouring parts of identifiers (``FH-2002``, ``full-text``)."""
    if not text.isascii():  # without accents, and without Chinese, Japanese and Thai, which are handled in pairs
        text = unicodedata.normalize("NFKD", _CJK_RUN.sub(" ", text))
        text = _NOT_ASCII.sub(lambda found: "".join(c for c in found[0] if not unicodedata.combining(c)), text)
    words: list[str] = []
    pairs: list[str] = []
    for written in text.lower().split():
        token = written if written.isalnum() else written.strip(_EDGES)
        if token.isalnum():
            words.append(_stem(token))
            continue
        for joined in _JOINED.findall(token):
            parts = [_stem(part) for part in _WORD.findall(joined)]
            words += parts
            pairs += map(" ".join, pairwise(parts))
    return words, pairs


def _pairs(text: str) -> list[str]:
    """Return the character pairs of all Chinese, Japanese and Thai runs; a single character is returned alone."""
    runs = _CJK_RUN.findall(text)
    return [pair for run in runs for pair in ([run[i : i + 2] for i in range(len(run) - 1)] or [run])]


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    """Return Porter's stem. Each call creates its own stemmer, because stemmers keep state while they work."""
    if not word.isascii() or word.isdigit():
        return word[:_MAX_CHARS]
    # Snowball's newer stems of English found less (docs/measurements/answers.md).
    stem = str(snowballstemmer.stemmer("porter").stemWord(word[:_MAX_CHARS]))
    return stem or word  # "s" alone would become empty


REACH: Final = 16  # passages before and after a hit to consider
STRETCHES: Final = 5  # at least this many fit: each gets at most this share of the room
_BYTES_A_TOKEN: Final = 4  # of English on average; other scripts have fewer letters in a token, but as many bytes

_TABLE_HEAD: Final = re.compile(r"[^\n|]*+\|[^\n]*+\n(?=[ \t|:]*+-)[ \t|:-]++\n")

Read = Callable[[str, int, int], Sequence[FoundPassage]]
"""Reads the passages of a document from one number to another, both included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Neighbouring passages of one document, in order; ``hit`` is the one that was found."""

    passages: tuple[FoundPassage, ...]
    hit: FoundPassage

    @property
    def above(self) -> tuple[str, ...]:
        """Headings above all of it, from the top."""
        levels = zip(*(passage.path for passage in self.passages), strict=False)
        return tuple(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels))

    @property
    def title(self) -> str:
        """Title with its headings, ``Title › Heading``, or ``Title › page 2``, without a first heading equal to it."""
        path = self.above[1:] if self.above[:1] == (self.hit.title,) else self.above
        return PATH.join((self.hit.title, *(path or ([f"page {self.hit.page}"] if self.hit.page else []))))

    @property
    def text(self) -> str:
        """Passages, each under the headings that the previous one lacks. The parts of a table are one again."""
        texts, before = [""], self.above
        for passage in self.passages:
            first, path = _heading_words(passage.text.partition("\n")[0]), passage.path
            known = len([*takewhile(lambda pair: pair[0] == pair[1], zip(path, before, strict=False))])
            for depth, heading in enumerate(path[known:], start=known + 1):
                if _heading_words(heading) not in first:
                    texts.append(f"{'#' * depth} {heading}")
            head = _TABLE_HEAD.match(passage.text)
            if head and path == before and texts[-1].rpartition("\n\n")[2].startswith(head[0]):
                texts[-1] += passage.text[head.end() - 1 :]
            else:
                texts.append(passage.text)
            before = path
        return "\n\n".join(texts[1:])

    @property
    def sections(self) -> tuple[tuple[int, str, str], ...]:
        """The offsets in the text at which the link of the passages changes, the links, and the titles there."""
        starts, text, at = list[tuple[int, str, str]](), self.text, 0
        for link, (first, *_) in groupby(self.passages, key=lambda passage: passage.url):
            if (found := text.find(first.text, at)) >= 0:  # not a part of the table above
                at = found
                starts.append((at, link, Stretch(passages=(first,), hit=first).title))
        return tuple(starts) if len(starts) > 1 else ()


def _heading_words(line: str) -> str:
    """Return the words of a heading, which are the same with and without its markup."""
    return " ".join(_WORD.findall(_LINK_TARGET.sub("", unescape(line)))) or line


def expand_hits(
    found: Sequence[FoundPassage], read: Read, *, tokens: int
) -> tuple[tuple[Stretch, ...], tuple[FoundPassage, ...]]:
    """Return stretches in the order of their hits, up to ``tokens`` in all, and the hits that do not fit.

    With no tokens, return the hits as they are.
    """
    if not tokens:
        return tuple(Stretch(passages=(hit,), hit=hit) for hit in found), ()
    stretches: list[Stretch] = []
    left_out: list[FoundPassage] = []
    taken: set[tuple[str, int]] = set()
    room = tokens * _BYTES_A_TOKEN
    largest = room // STRETCHES
    for hit in found:
        if (hit.document, hit.number) in taken:
            continue
        near = read(hit.document, hit.number - REACH, hit.number + REACH)
        whole = _grow(hit, [each for each in near if (each.document, each.number) not in taken], largest)
        sized = ((each, len(each.text.encode())) for each in (whole, Stretch(passages=(hit,), hit=hit)))
        fitting, size = next(((each, size) for each, size in sized if size <= room), (None, 0))
        if fitting is None:
            left_out.append(hit)
            continue
        stretches.append(fitting)
        taken.update((each.document, each.number) for each in fitting.passages)
        room -= size
    return tuple(stretches), tuple(left_out)


def _size(passages: Sequence[FoundPassage]) -> int:
    return sum(len(each.text.encode()) for each in passages)


def _grow(hit: FoundPassage, near: Sequence[FoundPassage], largest: int) -> Stretch:
    """Return the hit with its section, the sections beside it and above, up to the page, as far as they fit."""
    # Up to another page, or to what another hit took: a section with a gap would look whole.
    runs = groupby(enumerate(near), key=lambda each: (each[1].number - each[0], each[1].page))
    lists = ([each for _, each in run] for _, run in runs)
    near = next((run for run in lists if run[0].number <= hit.number <= run[-1].number), [])
    if not near:  # the document changed since it was found
        return Stretch(passages=(hit,), hit=hit)
    low = high = hit.number - near[0].number
    for depth in range(len(hit.path), -1, -1):
        low, high = _extend(near, (low, high), largest, hit.path[:depth], is_whole=depth < len(hit.path))
    return Stretch(passages=tuple(near[low : high + 1]), hit=hit)


def _extend(
    near: Sequence[FoundPassage], reach: tuple[int, int], largest: int, path: tuple[str, ...], *, is_whole: bool
) -> tuple[int, int]:
    """Add neighbours under ``path``, following ones first, up to ``largest`` bytes in total.

    If ``is_whole``, add whole sections: a sub-section without its section's introduction misleads.
    """
    low, high = reach
    while True:
        for place in (high + 1, low - 1):
            if not (0 <= place < len(near) and near[place].path[: len(path)] == path):
                continue
            # Without it a model thought that the table of the section above was missing.
            first, last = _section(near, place, len(path) + 1) if is_whole else (place, place)
            wider = (min(low, first), max(high, last))
            if _size(near[wider[0] : wider[1] + 1]) <= largest and (first or not is_whole or not near[0].number):
                low, high = wider
                break
        else:
            return low, high


def _section(near: Sequence[FoundPassage], place: int, depth: int) -> tuple[int, int]:
    path = near[place].path[:depth]
    before = takewhile(lambda at: near[at].path[:depth] == path, range(place, -1, -1))
    behind = takewhile(lambda at: near[at].path[:depth] == path, range(place, len(near)))
    return min(before), max(behind)
