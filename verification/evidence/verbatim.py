"""Tells whether a claim is a quotation: word for word a sentence of a source, a row of a table, or one made of such.

In doubt it is none, and the claim is looked at closely. For a person to see, it finds the words of a source that bear
out a claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from itertools import chain, pairwise, zip_longest
from typing import Final, NamedTuple

from verification.evidence.passages import analyse, is_broken
from verification.markup.tables import cells, is_delimiter
from verification.text.words import terms

_CITED: Final = re.compile(r"(?<!\s)\s*\[\d{1,12}(?:\s*[,;–-]\s*\d{1,12})*\]")
_BEFORE: Final = re.compile(r"(?:\A|\n|[.!?][\"”’)]?\s+|[。！？]\s*)(?:[ \t]*(?:[-*•+–]|\d{1,3}[.)])[ \t]+)?\Z")
_BEHIND: Final = re.compile(r"\s*(?:\Z|\n(?![ \t]*[a-zà-ÿ])|[。！]|[.!](?=\s+[^\sa-zà-ÿ]|\s*\Z))")
_LINK: Final = re.compile(r"(?:[^\W\d_]+ ?){0,3}\((https?://[^\s()]+)\)")
_PARTED: Final = frozenset({". ", "! "})
_MARKS: Final = " \t*_~"
_END_MARKS: Final = f"{_MARKS}.。"
_UNIT: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]|[^\\W_\u3040-\u30ff\u3400-\u9fff]+")
_WRAPPED: Final = re.compile(r"(?<=[^\n]{60})\n(?![\s#|>*+•–-]|\d{1,3}[.)]\s)")
_LEAST: Final = 8
_LOOK_BACK: Final = 24
_TRIES: Final = 4  # a hostile source may repeat the words without end, and the look must stay linear
_LONGEST_SHOWN: Final = 420  # characters of a passage that is shown: some five lines in a dialog

Span = tuple[int, int]


def is_recited(claim: str, texts: Iterable[str], is_source: Callable[[str], bool] = lambda _url: False) -> bool:
    """Whether the claim, its citations and outer marks aside, is a sentence of one of the texts.

    ``is_source`` tells the addresses of sources.
    """
    words = _CITED.sub("", claim) if "[" in claim else claim
    return _is_row_recited(words, texts, is_source) if "|" in words else _is_sentence(words, texts)


def is_quoted(claim: str, sentences: Iterable[str], *, whole: bool) -> bool:
    """Whether the claim's words stand together in one of the sentences, in its order; marks and letter case aside.

    ``whole``: and that has no other words. A shortened sentence may have lost a condition.
    """
    words = _units(_CITED.sub("", claim))
    if not words.strip() or "?" in claim or "？" in claim:
        return False
    return any(words == said if whole else words in said for said in map(_units, sentences))


def unwrapped(text: str) -> str:
    """The text with long lines joined to those they go on in, as a page of paper breaks them."""
    return _WRAPPED.sub(" ", text)


def is_row_read_out(claim: str, texts: Iterable[str]) -> bool:
    """Whether the claim is a row of a table, each cell behind the name of its column; marks and letter case aside."""
    words = _units(unescape(_CITED.sub("", claim)))
    return ":" in claim and any(words == row for text in texts if "|" in text for row in _rows_read_out(text))


def _rows_read_out(text: str) -> Iterator[str]:
    names: list[str] = []
    for above, line in pairwise(text.splitlines()):
        if "|" not in line:
            names = []
        elif is_delimiter(line):
            names = cells(above)
        elif names:
            said = cells(line)
            pairs = zip_longest(names[: len(said)], said, fillvalue="")
            yield _units(" ".join(chain.from_iterable((name, cell) for name, cell in pairs if cell)))


def _units(text: str) -> str:
    """The words, case-folded, a space round each; of Chinese and Japanese the letters."""
    return f" {' '.join(_UNIT.findall(text.casefold()))} "


def _is_row_recited(row: str, texts: Iterable[str], is_source: Callable[[str], bool]) -> bool:
    """Whether each cell is a sentence of its own or a link to a source; back-ticks are not drawn in tables."""
    said = cells(row)
    links = [link is not None and is_source(link[1]) for link in map(_LINK.fullmatch, said)]
    bare = [text.replace("`", "") for text in texts]
    return not all(links) and all(link or _is_sentence(cell, bare) for cell, link in zip(said, links, strict=True))


def _is_sentence(words: str, texts: Iterable[str]) -> bool:
    words = words.lstrip(_MARKS).rstrip(_END_MARKS)
    asks = "?" in words or "？" in words
    return len(words) >= _LEAST and not asks and any(_holds(text, words) for text in texts)


def _holds(text: str, words: str) -> bool:
    at = text.find(words)
    for _ in range(_TRIES):
        if at < 0:
            return False
        if _begins(text, at) and _ends(text, at + len(words)):
            return True
        at = text.find(words, at + 1)
    return False


def _begins(text: str, at: int) -> bool:
    if text[at - 2 : at] not in _PARTED:
        lead = text[max(0, at - _LOOK_BACK) : at]
        match = _BEFORE.search(lead)
        if match is None or (match.start() == 0 and at > _LOOK_BACK):
            return False
        # A line may go on from the one before: its beginning is then no sentence's.
        if text[at].islower() and match[0].startswith("\n"):
            return False
    # A date or an abbreviation ends no sentence.
    return not is_broken(text, 0, at)


def _ends(text: str, end: int) -> bool:
    match = _BEHIND.match(text, end)
    return match is not None and not (match[0].endswith(".") and is_broken(text, 0, match.end()))


class Marked(NamedTuple):
    """A passage, and the spans of the words in it that the claim has too. Both empty where they share none."""

    text: str
    spans: tuple[Span, ...]


def without_citations(claim: str) -> str:
    """The claim as a person reads it."""
    return _CITED.sub("", claim).strip()


def borne_out_by(claim: str, source: str) -> Marked:
    """The sentence of the source that shares most content words with the claim, with neighbours that share more."""
    read = analyse(source)
    wanted = frozenset(term.stem for term in terms(without_citations(claim), read.language) if term.stem)
    shared = [stems & wanted for stems in read.sentence_stems]
    if not any(shared):
        return Marked("", ())
    best = max(range(len(shared)), key=lambda index: len(shared[index]))
    first, last = _grown(best, read.spans, shared)
    return _marked(source[read.spans[first][0] : read.spans[last][1]].strip(), wanted, read.language)


def _grown(best: int, spans: Sequence[Span], shared: Sequence[frozenset[str]]) -> tuple[int, int]:
    """From the best sentence to its neighbours, as long as they add words and the passage stays short."""
    first = last = best
    known = shared[best]
    for step in (1, -1):
        following = best + step
        while 0 <= following < len(spans) and shared[following] - known:
            start, end = min(first, following), max(last, following)
            if spans[end][1] - spans[start][0] > _LONGEST_SHOWN:
                break
            first, last, known = start, end, known | shared[following]
            following += step
    return first, last


def _marked(passage: str, wanted: frozenset[str], language: str | None) -> Marked:
    """The passage, cut to what fits around its first shared word; words that stand side by side are one span."""
    found = [term for term in terms(passage, language) if term.stem in wanted]
    start = max(0, found[0].start - _LONGEST_SHOWN // 4) if len(passage) > _LONGEST_SHOWN else 0
    text = passage[start : start + _LONGEST_SHOWN]
    spans: list[Span] = []
    for term in found:
        begin, end = term.start - start, term.end - start
        if end > len(text):
            break
        if spans and begin <= spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((begin, end))
    return Marked(text, tuple(spans))
