"""The claims of an answer: its sentences that state something, each with the citations that it is checked against.

A sentence that has none of its own takes those of its paragraph, list item, list or table. List items, table rows and
the lines of code blocks are sentences too. Greetings, questions, offers, headings and introductions are no claims
unless they state something nonetheless. Spans refer to the text given; citations inside code count for nothing. Linear
in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, pairwise, takewhile
from typing import Literal, NamedTuple

from verification.claims.small_talk import (
    digits,
    is_bare_answer,
    is_interjection,
    is_sentence,
    label_end,
    opens_with_sentence,
    own_digits,
    states_nothing,
)
from verification.evidence.passages import readable, sentence_spans
from verification.markup.lines import CITATION, TextLine, ends_in_colon, ids_in, lines, pieces
from verification.markup.lines import Kind as LineKind
from verification.types import Claim

Kind = Literal["text", "intro", "heading", "item", "lead", "row", "head"]
"""Where a sentence stands: in prose, at its end before a colon, in a heading, in a list item, in one that introduces
others, in a row or the head of a table."""

_LISTED: frozenset[Kind] = frozenset({"item", "lead", "row", "head"})
_NO_GROUP = -1
_LONGEST_SECTION = 60  # sentences: a longer section would make this quadratic
_VALUE = re.compile(r"[\d`\"“”„«»「」『』]|://")
_HIDDEN = re.compile(r"`[^`\n]*`|<[^<>\n]*>|https?://\S+")
# A bold line that ends as a sentence or an introduction does is no heading.
_NO_HEADING = re.compile(r"\*.*(?:[.!?。！？:：]\*{1,2}|\*:)")
_ONLY_LABEL = re.compile(
    r"(?:\W*(?:sources?|quellen?|fuentes?|sumber|see|siehe|voir|véase|lihat|出典|来源|参考))?\W*", re.IGNORECASE
)
_MARKS = re.compile(r"[*_~\s]+")
_BARE_LINK = re.compile(r"(?<![`|<\w])(?:<https?://[^\s<>|]+>|https?://[^\s<>|`]+)")
_TWO_WORDS = re.compile(r"[^\W_][\W_]+[^\W_]")
_LATE = re.compile(r"(?:\[[\d\s,;–-]+\]\s*)+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_TITLES: frozenset[Kind] = frozenset({"heading", "head"})
_INTRODUCING: frozenset[Kind] = frozenset({"intro", "lead"})
_APART: frozenset[Kind | None] = frozenset({"heading", "head", "row"})
_ITEMS: frozenset[Kind | None] = frozenset({"item", "lead"})
_KINDS: dict[LineKind, Kind] = {"text": "text", "heading": "heading", "item": "item", "row": "row", "head": "head"}
_NO_LINE = TextLine(0, 0, "blank", 0)


class Sentence(NamedTuple):
    """A sentence with the citations that stand in it."""

    start: int
    end: int
    kind: Kind
    group: int  # the same for all of a paragraph, list item or row
    indent: int  # how far its line is set in
    cited: tuple[int, ...]
    states: bool
    refers: bool  # it holds nothing but a citation or a link, and belongs to what stands before it


def claims(text: str, known: str = "", *, judged: bool = False) -> tuple[Claim, ...]:
    """The sentences of ``text`` that state something, in order, with what each cites or shares.

    ``known`` is text whose numbers state nothing new: the question, the thread. ``judged``: a judge will be asked, so
    an opening or a closing without a citation is a claim for it to decide.
    """
    plain = readable(text)
    lined = [*lines(plain)]
    # Else the same answer passed or failed with the order of its sentences (docs/decisions/0034).
    sentences = _shared([sentence for place in _places(plain, lined) for sentence in _sentences(plain, *place)])
    if judged:
        sentences = _at_the_edges(sentences, plain)
    told = [
        Claim(text=text[s.start : s.end], start=s.start, end=s.end, cited=s.cited)
        for s in _alone(_telling(plain, sentences, known), plain)
        if s.states and s.end > s.start
    ]
    coded = [
        Claim(text=text[start:end], start=start, end=end, cited=_round(sentences, start, end), code=code)
        for line in lined
        if line.kind == "fence"
        for start, end, code in pieces(plain[line.content : line.end].rstrip().removesuffix("```"), line.content)
    ]
    return tuple(sorted([*told, *coded], key=lambda claim: claim.start)) if coded else tuple(told)


def _round(sentences: list[Sentence], start: int, end: int) -> tuple[int, ...]:
    """What the text round a code block cites: right before it, right behind it, in its section, or anywhere."""
    place = bisect_left(sentences, start, key=lambda sentence: sentence.start)
    behind = sentences[place : place + _LONGEST_SECTION]
    before = sentences[max(0, place - _LONGEST_SECTION) : place]
    # "Source: [2]" right below the block is meant for it, more than what stands above.
    following = next((sentence for sentence in behind if sentence.start >= end), None)
    if following and following.cited and following.kind != "heading" and not following.states:
        return following.cited
    for sentence in reversed(before):
        if sentence.cited:
            return sentence.cited
        if sentence.kind == "heading":
            break
    return _union((*behind, *before))


def cited_ids(text: str) -> tuple[int, ...]:
    """The source numbers that ``text`` cites outside code and links, each once, in order."""
    if "[" not in text:
        return ()
    shown = CITATION.findall(_HIDDEN.sub(" ", text))
    return tuple(dict.fromkeys(number for inside in shown for number in ids_in(inside)))


def _places(text: str, lined: list[TextLine]) -> Iterator[tuple[TextLine, Kind, int]]:
    """The lines that may hold sentences, each with its kind and the group of lines that it shares citations with."""
    group = 0
    above, kind_above = _NO_LINE, None
    for line, below in pairwise([*lined, _NO_LINE]):
        written = text[line.start : line.end]
        kind = _KINDS.get(line.kind)
        if kind is None:
            group += 1
        else:
            if kind == "heading" and _NO_HEADING.fullmatch(CITATION.sub("", written).strip()):
                kind = "text"
            if kind == "text" and line.indent and (kind_above in _ITEMS or above.indent):
                kind = "item"  # it hangs below one
            if kind == "item" and (ends_in_colon(written) or (below.kind == "item" and below.indent > line.indent)):
                kind = "lead"
            group += line.content > line.start or kind in _APART or kind_above in _APART
            yield line, kind, group
        above, kind_above = line, kind


def _sentences(text: str, line: TextLine, kind: Kind, group: int) -> Iterator[Sentence]:
    piece = text[line.content : line.end].replace("\n", " ")
    language = None if piece.isascii() else "ja" if _CJK.search(piece) else "de"
    spans = [*_with_late_citations(piece, [*sentence_spans(piece, language)])]
    for start, end in spans:
        written = piece[start:end]
        cited = cited_ids(written)
        bare = CITATION.sub("", written) if cited else written
        introduces = end == spans[-1][1] and kind == "text" and ends_in_colon(bare)
        role: Kind = "intro" if introduces else kind
        yield Sentence(
            start=line.content + start,
            end=line.content + end,
            kind=role,
            group=group,
            indent=line.indent,
            cited=cited,
            states=_states(bare, role, cited=bool(cited)),
            refers=bool(cited) and _is_only_label(_BARE_LINK.sub("", bare)),
        )


def _with_late_citations(piece: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Citations that the splitter left at the head of the next sentence go back to the one they stand behind."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        head = _LATE.match(piece[start:end]) if piece[start] == "[" else None
        following = piece[start + head.end() : start + head.end() + 1] if head else ""
        moved = head.end() if head and merged and not (following.islower() or following in ",;") else 0
        if head and moved:
            merged[-1] = (merged[-1][0], start + len(head.group().rstrip()))
        if start + moved < end:
            merged.append((start + moved, end))
    yield from merged


def _is_only_label(bare: str) -> bool:
    return not _TWO_WORDS.search(bare) and bool(_ONLY_LABEL.fullmatch(_MARKS.sub(" ", bare)))


def _states(bare: str, kind: Kind, *, cited: bool) -> bool:
    if kind in _TITLES or _is_only_label(bare):
        return False
    if cited:
        return not (bare.rstrip("*_~ ").rstrip().endswith(("?", "？")) and states_nothing(bare))
    if kind in _INTRODUCING or states_nothing(bare):
        return False
    return kind in _LISTED or not is_interjection(bare)


def _telling(text: str, sentences: list[Sentence], known: str) -> list[Sentence]:
    """The sentences, with those that state something although they look as if they did not."""
    quiet = [index for index, sentence in enumerate(sentences) if not sentence.states and not sentence.refers]
    written = {i: CITATION.sub("", text[sentences[i].start : sentences[i].end]) for i in quiet}
    own = {i: own_digits(words) for i, words in written.items()}
    given: frozenset[str] = frozenset()
    if any(own.values()):
        given = digits(known).union(*(digits(text[s.start : s.end]) for s in sentences if s.cited and s.states))
    telling = {i for i in quiet if own[i] - given - _counts(sentences, i) or _tells(sentences[i], written[i])}
    return [_told(sentence, text) if i in telling else sentence for i, sentence in enumerate(sentences)]


def _counts(sentences: list[Sentence], index: int) -> frozenset[str]:
    """How many items the list below an introduction has: "There are 3 steps:"."""
    if sentences[index].kind not in _INTRODUCING:
        return frozenset()
    below = takewhile(lambda each: each.kind in _LISTED, islice(sentences, index + 1, None))
    indents = Counter(each.indent for each in {each.group: each for each in below}.values())
    return frozenset(str(count) for count in indents.values())


def _tells(sentence: Sentence, written: str) -> bool:
    if sentence.kind == "heading":
        return is_sentence(written)
    return sentence.kind in _INTRODUCING and opens_with_sentence(written)


def _told(sentence: Sentence, text: str) -> Sentence:
    """The sentence as a claim, a heading without its label."""
    start = sentence.start
    if sentence.kind == "heading":
        start += label_end(text[sentence.start : sentence.end])
    return sentence._replace(start=start if start < sentence.end else sentence.start, states=True)


def _alone(sentences: list[Sentence], text: str) -> list[Sentence]:
    """The sentences; where none of them states anything, headings alone do, and so does a bare yes or no."""
    if any(sentence.states for sentence in sentences):
        return sentences
    only_headings = all(sentence.kind in _TITLES for sentence in sentences)
    only_answers = all(is_bare_answer(text[sentence.start : sentence.end]) for sentence in sentences)
    return [s._replace(states=True) for s in sentences] if only_headings or only_answers else sentences


def _shared(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Each sentence with what it is to be checked against; a heading or an introduction gets what is cited below it."""
    blocks = [[*block] for _, block in groupby(_within_groups(sentences), key=_block)]
    for index, block in enumerate(blocks):
        before = blocks[index - 1] if index else []
        after = blocks[index + 1] if index + 1 < len(blocks) else []
        if block[0].kind in _LISTED:
            blocks[index] = [*_listed(block, before, after)]
        elif _is_reference(after):
            blocks[index] = [_citing(each, _union(after)) for each in block]
    _introduce(blocks)
    return [sentence for block in blocks for sentence in block]


def _union(sentences: Iterable[Sentence]) -> tuple[int, ...]:
    """All numbers that the sentences cite, each once, in order."""
    return tuple(dict.fromkeys(number for sentence in sentences for number in sentence.cited))


def _at_the_edges(sentences: Sequence[Sentence], text: str) -> list[Sentence]:
    """The sentences, those of an uncited first or last paragraph with all that the answer cites.

    An opening or a closing may state nothing; whether it does is for a judge to say. One with a number, a quotation,
    code or a link does state something, and is left without a citation.
    """
    everything = _union(sentences)
    plain = [each for each in sentences if each.kind != "heading"]
    edges = {plain[0].group, plain[-1].group} if plain else set[int]()
    edges -= {each.group for each in plain if each.kind != "text" or _VALUE.search(text, each.start, each.end)}
    return [_citing(each, everything) if each.group in edges else each for each in sentences]


def _block(sentence: Sentence) -> int:
    """A key that is the same for all of a list or table, and for all of a paragraph."""
    return _NO_GROUP if sentence.kind in _LISTED else sentence.group


def _is_reference(block: Sequence[Sentence]) -> bool:
    """Whether it is a line like "Source: [7]", which closes what stands above it."""
    return bool(block) and all(each.refers or (each.cited and not each.states) for each in block)


def _citing(sentence: Sentence, cited: tuple[int, ...]) -> Sentence:
    """The sentence; with these citations if it has none."""
    return sentence if sentence.cited or not cited else sentence._replace(cited=cited)


def _within_groups(sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    for _, group in groupby(sentences, key=lambda each: each.group):
        together = [*group]
        cited = _union(together)
        yield from (_citing(each, cited) for each in together)


def _listed(block: Sequence[Sentence], before: Sequence[Sentence], after: Sequence[Sentence]) -> Iterator[Sentence]:
    """The items or rows with what the item above them cites, else the head, else the lines round the list."""
    introduction = _union(before) if before and before[-1].kind != "heading" else ()
    closing = _union(after) if after and after[0].kind != "heading" else ()
    round_it = (closing if _is_reference(after) else ()) or introduction or closing
    above: list[Sentence] = []
    head: tuple[int, ...] = ()
    for index, sentence in enumerate(block):
        above = [each for each in above if each.indent < sentence.indent]
        whole = _citing(sentence, _union(above[-1:]) or head or (() if sentence.kind == "head" else round_it))
        head = whole.cited if whole.kind == "head" else head
        above.append(whole)
        yield _citing(whole, _union(_below(block, index))) if whole.kind in {"lead", "head"} else whole


def _below(block: Sequence[Sentence], index: int) -> Iterator[Sentence]:
    """The rows below a head, or the items that are set in deeper than this one, up to the next one that is not."""
    first = block[index]
    for each in block[index + 1 : index + 1 + _LONGEST_SECTION]:
        if first.kind == "lead" and each.indent <= first.indent and each.group != first.group:
            return
        yield each


def _introduce(blocks: list[list[Sentence]]) -> None:
    """Gives headings what their section cites, and paragraphs before a list, a table or code what that cites."""
    section: list[Sentence] = []
    for index in range(len(blocks) - 1, -1, -1):
        block, below = blocks[index], blocks[index + 1] if index + 1 < len(blocks) else []
        if block[0].kind == "heading":
            blocks[index] = [_citing(each, _union(section)) for each in block]
            section = []
        elif below and (below[0].kind in _LISTED or block[-1].kind == "intro"):
            blocks[index] = [_citing(each, _union(below)) for each in block]
        section = [*blocks[index][:_LONGEST_SECTION], *section][:_LONGEST_SECTION]
