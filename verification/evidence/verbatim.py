"""Recognise quotations: claims that repeat a sentence of a source, or a row of a table, word for word.

In doubt a claim does not count as a quotation and is checked. A writer quotes what a page shows, not its Markdown, so
``text_as_read`` removes the syntax. ``shared_words`` and ``shorten_text`` prepare a passage for people to read.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from html import unescape
from itertools import chain, groupby, pairwise, zip_longest
from typing import Final

from verification.evidence.evidence import Evidence
from verification.evidence.passages import analyse, is_false_boundary
from verification.markup.inline import HTML_TAGS
from verification.markup.lines import ANY_CITATION, is_delimiter, split_cells
from verification.text.language import folded_words, stems_of, terms

_CITED: Final = re.compile(rf"(?<!\s)\s*{ANY_CITATION.pattern}")
_BEFORE: Final = re.compile(r"(?:\A|\n|[.!?][\"”’)]?\s+|[。！？]\s*)(?:[ \t]*(?:[-*•+–]|\d{1,3}[.)])[ \t]+)?\Z")
_AFTER: Final = re.compile(r"\s*(?:\Z|\n(?![ \t]*[a-zà-ÿ])|[。！]|[.!](?=\s+[^\sa-zà-ÿ]|\s*\Z))")
_PARAGRAPH_START: Final = re.compile(
    r"\n[ \t]*(?=\n)|^[ \t]*(?:#{1,6}[ \t].*|\|.*|(?:[-*•+–]|\d{1,3}[.)])[ \t]+)", re.MULTILINE
)
_LINK: Final = re.compile(r"(?:[^\W\d_]+ ?){0,3}\((https?://[^\s()]+)\)")
_MARKS: Final = " \t*_~"
_END_MARKS: Final = f"{_MARKS}.。"
_UNIT: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]|[^\\W_\u3040-\u30ff\u3400-\u9fff]+")
_WRAPPED: Final = re.compile(r"(?<=[^\n]{60})\n(?![\s#|>*+•–-]|\d{1,3}[.)]\s)")
_MIN_LETTERS: Final = 8
_LOOK_BACK: Final = 24
_MAX_MATCHES: Final = 4  # a hostile source may repeat the words endlessly
_MIN_CELL: Final = 60  # characters: less of a cell says nothing

Span = tuple[int, int]


def is_verbatim_sentence(
    claim: str, texts: Iterable[str], is_source: Callable[[str], bool] = lambda _url: False
) -> bool:
    """Return True if the claim, without citations and marks around it, is a sentence of one of the texts."""
    bare = _CITED.sub("", claim) if "[" in claim else claim
    if "|" not in bare:
        return _is_source_sentence(bare, texts)
    # Each cell of a row is a sentence or a link to a source. Back-ticks are ignored in tables.
    cells, plain = split_cells(bare), [text.replace("`", "") for text in texts]
    links = [link is not None and is_source(link[1]) for link in map(_LINK.fullmatch, cells)]
    unlinked = [cell for cell, link in zip(cells, links, strict=True) if not link]
    return bool(unlinked) and all(_is_source_sentence(cell, plain) for cell in unlinked)


def is_quoted(claim: str, sentences: Iterable[str], *, exactly: bool) -> bool:
    """Return True if a sentence has the claim's words in order (``exactly``: and no others). Marks do not count."""
    found = find_quoted(claim, sentences)
    return any(is_whole for is_whole, _ in found) if exactly else bool(found)


def find_quoted(claim: str, sentences: Iterable[str]) -> list[tuple[bool, int]]:
    """Return the numbers of the sentences that have the claim's words in order, each after True if it has no others."""
    words = _plain_words(_CITED.sub("", claim))
    if not words.strip() or "?" in claim or "？" in claim:
        return []
    plain = enumerate(map(_plain_words, sentences))
    return [(words == sentence, number) for number, sentence in plain if words in sentence]


def is_quotation(evidence: Evidence, *, exactly: bool) -> bool:
    """Return True if a sentence, a wrapped line or a table row of a cited source has the claim's words, as shown."""
    claim = text_as_read(evidence.claim.text)
    if is_quoted(claim, [text_as_read(hit.text) for hit in evidence.hits], exactly=exactly):
        return True
    pages = [text_as_read(cited.passage.text) for cited in evidence.cited]
    joined = (_WRAPPED.sub(" ", page) for page in pages)  # text laid out for paper continues on the next line
    return is_verbatim_sentence(claim, joined) or _is_row_in_words(claim, pages)


def continues_paragraph(claim: str, before: str, texts: Iterable[str]) -> bool:
    """Return True if a quotation follows a sentence in its source that is not ``before`` it in the answer.

    That sentence may say what the quotation is about: a place, a product, a case.
    """
    words, lead = (_plain_words(_CITED.sub("", text_as_read(each))) for each in (claim, before))
    parts = (each for text in texts for each in _PARAGRAPH_START.split(_BREAK.sub("\n\n", text)))
    found = [each for each in (_plain_words(text_as_read(part)) for part in parts) if words in each]
    follows = (lead.strip() and f"{lead}{words[1:]}" in each for each in found)
    return bool(found) and not any(each.startswith(words) for each in found) and not any(follows)


def _is_row_in_words(claim: str, texts: Iterable[str]) -> bool:
    """Return True if the claim is a table row with each cell after its column's name."""
    words = _plain_words(unescape(_CITED.sub("", claim)))
    for text in texts if ":" in claim else ():
        names: list[str] = []
        for above, line in pairwise(text.splitlines()) if "|" in text else ():
            if "|" not in line:
                names = []
            elif is_delimiter(line):
                names = split_cells(above)
            elif names:
                cells = split_cells(line)
                pairs = zip_longest(names[: len(cells)], cells, fillvalue="")
                if words == _plain_words(" ".join(chain.from_iterable(pair for pair in pairs if pair[1]))):
                    return True
    return False


def _plain_words(text: str) -> str:
    """The case-folded words with a space around each. Chinese and Japanese give single characters."""
    return f" {' '.join(_UNIT.findall(text.casefold()))} "


def _is_source_sentence(words: str, texts: Iterable[str]) -> bool:
    words = words.lstrip(_MARKS).rstrip(_END_MARKS)
    if len(words) < _MIN_LETTERS or "?" in words or "？" in words:
        return False
    for text in texts:
        at = -1
        for _ in range(_MAX_MATCHES):
            at = text.find(words, at + 1)
            match = _AFTER.match(text, at + len(words)) if at >= 0 and _begins_sentence(text, at) else None
            if match and not (match[0].endswith(".") and is_false_boundary(text, 0, match.end())):
                return True
    return False


def _begins_sentence(text: str, at: int) -> bool:
    lead = text[max(0, at - _LOOK_BACK) : at]
    match = _BEFORE.search(lead)
    if match is None or (match.start() == 0 and at > _LOOK_BACK and lead[-2:] not in {". ", "! "}):
        return False
    # A line in lower case continues the one before. A date or an abbreviation does not end a sentence.
    return not (text[at].islower() and match[0].startswith("\n")) and not is_false_boundary(text, 0, at)


def without_citations(claim: str) -> str:
    """The claim without its citations."""
    return _CITED.sub("", claim).strip()


def shared_words(claim: str, passage: str) -> tuple[Span, ...]:
    """The spans of the words of a passage that the claim shares."""
    language = analyse(passage).language
    wanted = stems_of(folded_words(claim), language)
    spans: list[Span] = []
    for term in terms(passage, language):
        if term.stem not in wanted:
            continue
        if spans and term.start <= spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], max(term.end, spans[-1][1]))
        else:
            spans.append((term.start, term.end))
    return tuple(spans)


def shorten_text(claim: str, text: str, room: int) -> str:
    """Return the sentences of a text that share most words with the claim. "…" replaces the others."""
    wanted = stems_of(folded_words(claim), analyse(text).language)
    return text if len(text) <= room else _sentences_with(wanted, text, room)


def shorten_row(claim: str, facts: Iterable[tuple[str, str]], room: int) -> str:
    """Return a row's first cell and those that share most words with the claim, each after its column's name.

    ``facts``: the column and the text of each cell. "…" replaces the others.
    """
    cells = [(f"{column}: " if column else "", cell) for column, cell in facts if cell] or [("", "")]
    cells[0] = ("", cells[0][1])
    language = analyse(" ".join(chain.from_iterable(cells))).language
    stems = [stems_of(folded_words(f"{column}{cell}"), language) for column, cell in cells]
    left = stems_of(folded_words(claim), language)
    shown: dict[int, str] = {}
    has_shared = any(map(left.intersection, stems[1:]))
    number: int | None = 0
    while number is not None:
        column, cell = cells[number]
        room -= len(f"{column} · … · ")
        space = room if shown else room // 2
        if space < min(_MIN_CELL, len(cell)):
            break
        shown[number] = column + (cell if len(cell) <= space else _sentences_with(left, cell, space))
        left -= stems[number]
        room -= len(shown[number]) - len(column)
        others = [each for each in range(len(cells)) if each not in shown and (left & stems[each] or not has_shared)]
        number = max(others, key=lambda each: len(left & stems[each]), default=None)
    return " · ".join(part for part, _ in groupby(shown.get(each, "…") for each in range(len(cells))))


def _sentences_with(wanted: frozenset[str], passage: str, room: int) -> str:
    """Return the sentences that together have most of the wanted stems, with "…" for omissions."""
    analysed = analyse(passage)
    left, length = wanted, room
    chosen: set[int] = set()
    lengths = [end - start for start, end in analysed.spans]
    shared = [*enumerate(analysed.sentence_stems)]
    while fitting := [(len(left & stems), -at) for at, stems in shared if left & stems and lengths[at] <= room]:
        at = -max(fitting)[1]
        chosen.add(at)
        left -= analysed.sentence_stems[at]
        room -= lengths[at]
    if not chosen:  # the sentences are too long
        first = next((term.start for term in terms(passage, analysed.language) if term.stem in wanted), 0)
        start = max(0, first - length // 4)
        text = passage[start : start + length]
        if start + length < len(passage):
            text = f"{text.rpartition(' ')[0] or text}…"
        return f"…{text.partition(' ')[2] or text}" if start else text
    sentences = (passage[slice(*span)] if index in chosen else "…" for index, span in enumerate(analysed.spans))
    return " ".join(part for part, _ in groupby(sentences))


_TARGET = r"\((?:[^()\n]|\([^()\n]{0,300}\)){0,2000}\)"
_IMAGE = re.compile(rf"!\[([^\[\]\n]{{0,300}})\]{_TARGET}")
# A label has a letter: "[1][2]" are citations.
_LABELLED = re.compile(
    rf"\[((?=[^\[\]\n]{{0,300}}[^\W\d_])(?:[^\[\]\n]|\[[^\[\]\n]{{0,100}}\]){{1,300}})\](?:{_TARGET}|\[[^\[\]\n]{{0,100}}\])"
)
_TOKEN = re.compile(r"<(?:[a-z][a-z0-9+.-]{1,30}:[^<>|\n]+)\|([^<>\n]*)>", re.IGNORECASE)
_AUTOLINK = re.compile(r"<(?:(?:mailto|tel):)?((?<=:)[^<>|\s]+|https?://[^<>|\s]+)>", re.IGNORECASE)
_MAIL = re.compile(r"(?<!\w)mailto:(?=[\w.+-]+@)", re.IGNORECASE)
_FOOTNOTE = re.compile(r"\[\^[\w.-]{1,40}\]:?|<sup>\s*\[?\d{1,3}\]?\s*</sup>", re.IGNORECASE)
_BREAK = re.compile(r"<(?:[bh]r|/?(?:p|div|li|t[dhr]|h[1-6]))\b[^<>\n]{0,1000}>", re.IGNORECASE)
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|\n]{1,300}\|)?([^\[\]|\n]{1,300})\]\]")
_FOOTNOTE_MARK = re.compile(r"(?<=[^\W\d_]{3})[¹²³⁰⁴-⁹]{1,3}")  # not the square of m²
_HTML = re.compile(
    rf"<!--.{{0,4000}}?-->|</?(?:{'|'.join(sorted(HTML_TAGS))})(?:\s[^<>\n]{{0,1000}})?/?>", re.DOTALL | re.IGNORECASE
)
_LINE_MARK = re.compile(r"^[ \t]{0,3}(?:(?:>[ \t]?)+|#{1,6}[ \t]+)", re.MULTILINE)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~\n])")


@lru_cache(maxsize=512)
def text_as_read(text: str, *, captions: bool = False) -> str:
    """Return the text as a page shows it. ``captions``: images give their alternative text instead of nothing."""
    if "[" in text:
        text = _IMAGE.sub(r"\1" if captions else "", _WIKI_LINK.sub(r"\1", text))
        text = _LABELLED.sub(r"\1", _FOOTNOTE.sub("", text))
    if "<" in text:
        text = _HTML.sub("", _AUTOLINK.sub(r"\1", _TOKEN.sub(r"\1", _FOOTNOTE.sub("", _BREAK.sub(" ", text)))))
    if "&" in text:
        text = unescape(text)
    if "@" in text:
        text = _MAIL.sub("", text)
    return _ESCAPE.sub(r"\1", _LINE_MARK.sub("", _FOOTNOTE_MARK.sub("", text)))
