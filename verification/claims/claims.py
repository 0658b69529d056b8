"""The claims of an answer: its sentences that state something, each with the citations that it is checked against.

List items, table rows and the lines of code blocks are sentences too. Greetings, questions, offers, headings and
introductions are no claims unless they state something nonetheless. Spans refer to the text given; citations inside
code count for nothing. Linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from verification.claims.headlines import digits, is_sentence, label_end, opens_with_sentence, own_digits
from verification.claims.sharing import LISTED, Kind, Sentence, at_the_edges, shared, union
from verification.claims.small_talk import is_bare_answer, is_interjection, states_nothing
from verification.evidence.code_lines import pieces
from verification.evidence.passages import readable, sentence_spans
from verification.types import Claim

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_HIDDEN = re.compile(r"`[^`\n]*`|<[^<>\n]*>|https?://\S+")
_CITATION = re.compile(r"\[(\d{1,12}(?:\s*[,;–-]\s*\d{1,12})*)\](?!\()")
_ITEM = re.compile(r"[ \t]*(?:[-*•◦▪▸‣–+☐☑]|\d{1,3}[.)]|[a-z][.)])[ \t]+")
_HEADING = re.compile(r"#{1,6}[ \t]|\*{1,2}[^*\n]*[^*\n.!?。！？:：]\*{1,2}$")
# These are matched against a line without the white space at its ends: anything else would be quadratic in it.
_RULING = re.compile(r"[-|+─═┼:=_* \t]{3,}$")
_ROW = re.compile(r"\|.*\|$")
_COLON_END = re.compile(r"[:：][*_~\s]*$")
_ONLY_LABEL = re.compile(
    r"(?:\W*(?:sources?|quellen?|fuentes?|sumber|see|siehe|voir|véase|lihat|出典|来源|参考))?\W*", re.IGNORECASE
)
_MARKS = re.compile(r"[*_~\s]+")
_BARE_LINK = re.compile(r"(?<![`|<\w])(?:<https?://[^\s<>|]+>|https?://[^\s<>|`]+)")
_TWO_WORDS = re.compile(r"[^\W_][\W_]+[^\W_]")
_LATE = re.compile(r"(?:\[[\d\s,;–-]+\]\s*)+")
_SPACE = re.compile(r"\s")
_NO_LINE_END = re.compile(r"[^\n]")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_LONGEST_RANGE = 31  # numbers
_LONGEST_LINE = 2_000
_LONGEST_SECTION = 60
_TITLES: frozenset[Kind] = frozenset({"heading", "head"})
_INTRODUCING: frozenset[Kind] = frozenset({"intro", "lead"})
_APART: frozenset[Kind] = frozenset({"heading", "head", "row"})


class _Line(NamedTuple):
    """One line with a kind; ``group`` is the same for lines that share citations (a paragraph, an item, a row)."""

    start: int
    end: int
    kind: Kind
    group: int
    indent: int


def claims(text: str, known: str = "", *, judged: bool = False) -> tuple[Claim, ...]:
    """The sentences of ``text`` that state something, in order, with what each cites or shares.

    ``known`` is text whose numbers state nothing new: the question, the thread. ``judged``: a judge will be asked, so
    an opening or a closing without a citation is a claim for it to decide.
    """
    plain = readable(text)
    shown, tabled = _prose(plain)
    sentences = shared([sentence for line in _lines(shown, tabled) for sentence in _sentences(shown, line)])
    if judged:
        sentences = at_the_edges(sentences, shown)
    told = [
        Claim(text=text[s.start : s.end], start=s.start, end=s.end, cited=s.cited)
        for s in _alone(_telling(shown, sentences, known), shown)
        if s.states and s.end > s.start
    ]
    coded = [
        Claim(text=text[start:end], start=start, end=end, cited=_round(sentences, start, end), code=code)
        for start, end, code in _code(plain, shown)
    ]
    return tuple(sorted([*told, *coded], key=lambda claim: claim.start)) if coded else tuple(told)


def _code(text: str, shown: str) -> Iterator[tuple[int, int, bool]]:
    """The runs of lines in those code blocks that are no tables."""
    for fence in _FENCE.finditer(text):
        inside = fence.group().removesuffix("```") if len(fence.group()) > 5 else "```"  # noqa: PLR2004  # two fences
        if not shown[fence.start() : fence.end()].strip():
            yield from pieces(inside[3:], fence.start() + 3)


def _round(sentences: list[Sentence], start: int, end: int) -> tuple[int, ...]:
    """What the text round a code block cites: right before it, right behind it, in its section, or anywhere."""
    place = bisect_left(sentences, start, key=lambda sentence: sentence.start)
    behind = sentences[place : place + _LONGEST_SECTION]
    before = sentences[max(0, place - _LONGEST_SECTION) : place]
    following = next((sentence for sentence in behind if sentence.start >= end), None)
    if following and following.cited and following.kind != "heading" and not following.states:
        return following.cited
    for sentence in reversed(before):
        if sentence.cited:
            return sentence.cited
        if sentence.kind == "heading":
            break
    return union((*behind, *before))


def cited_ids(text: str) -> tuple[int, ...]:
    """The source numbers that ``text`` cites outside code and links, each once, in order."""
    if "[" not in text:
        return ()
    found: dict[int, None] = {}
    for match in _CITATION.finditer(_HIDDEN.sub(_blank, text)):
        if match[1].isdecimal():
            found[int(match[1])] = None
            continue
        for part in match[1].replace(";", ",").split(","):
            first, _, last = _SPACE.sub("", part).replace("–", "-").partition("-")
            span = range(int(first), int(last or first) + 1)
            found.update(dict.fromkeys(span if len(span) <= _LONGEST_RANGE else (int(first), int(last))))
    return tuple(found)


def _blank(match: re.Match[str]) -> str:
    hidden = match.group()
    return _NO_LINE_END.sub(" ", hidden) if "\n" in hidden else " " * len(hidden)


Tabled = dict[int, Kind]
"""Where the lines of tables set in code blocks begin: their heads (``head``) and their rows (``row``)."""


def _prose(text: str) -> tuple[str, Tabled]:
    """The text with code blocks blanked out; a block that holds a table keeps its rows."""
    tabled: Tabled = {}

    def kept(match: re.Match[str]) -> str:
        return _table(match.group(), match.start(), tabled) or _blank(match)

    return _FENCE.sub(kept, text), tabled


def _table(block: str, start: int, tabled: Tabled) -> str:
    """The head and the rows of a table set in a code block, everything else blank; empty if it is no table."""
    lines = block.removeprefix("```").removesuffix("```").splitlines(keepends=True)
    ruling = next((i for i, line in enumerate(lines[:4]) if line.strip() and _RULING.match(line.strip())), None)
    if ruling is None or ruling == 0:
        return ""
    position = start + 3
    for index, line in enumerate(lines):
        if index >= ruling - 1:
            tabled[position] = "head" if index < ruling else "row"
        position += len(line)
    shown = [
        line if index == ruling - 1 or index > ruling else _NO_LINE_END.sub(" ", line)
        for index, line in enumerate(lines)
    ]
    tail = "   " if block.endswith("```") and len(block) > 5 else ""  # noqa: PLR2004  # two fences need six characters
    return "   " + "".join(shown) + tail


def _lines(text: str, tabled: Tabled) -> Iterator[_Line]:
    """The lines that may hold sentences, with their kind and group."""
    group, position, previous = 0, 0, ""
    lines = _unwrapped(text, tabled)
    apart = False
    for index, line in enumerate(lines):
        start, position = position, position + len(line) + 1
        bare = line.strip()
        if not bare or _RULING.match(bare):
            group, previous = group + 1, ""
            continue
        kind: Kind = "head" if _is_table_head(lines, index) else tabled.get(start) or _kind(line, previous)
        marker = _ITEM.match(line)
        group += bool(marker) or apart or kind in _APART
        apart = kind in _APART
        indent = len(line) - len(line.lstrip())
        if kind == "item" and _introduces(lines, index, indent):
            kind = "lead"
        offset = marker.end() if marker else 0
        yield _Line(start=start + offset, end=start + len(line), kind=kind, group=group, indent=indent)
        previous = line


def _introduces(lines: list[str], index: int, indent: int) -> bool:
    """Whether an item ends in a colon, or the next line is an item set in deeper."""
    following = lines[index + 1] if index + 1 < len(lines) else ""
    is_deeper = bool(_ITEM.match(following)) and len(following) - len(following.lstrip()) > indent
    return is_deeper or bool(_COLON_END.search(_CITATION.sub("", lines[index])))


def _unwrapped(text: str, tabled: Tabled) -> list[str]:
    """The lines; one that goes on in small letters is joined to the one before (a space for the break)."""
    lines: list[str] = []
    position = 0
    for line in text.split("\n"):
        goes_on = line.lstrip()[:1].islower() and not _ITEM.match(line) and position not in tabled
        position += len(line) + 1
        if (
            goes_on
            and lines
            and lines[-1].strip()
            and not _COLON_END.search(lines[-1])
            and len(lines[-1]) < _LONGEST_LINE
        ):
            lines[-1] += " " + line
        else:
            lines.append(line)
    return lines


def _is_table_head(lines: list[str], index: int) -> bool:
    if "|" not in lines[index]:
        return False
    following = lines[index + 1] if index + 1 < len(lines) else ""
    return bool(_ROW.match(lines[index].strip()) and _RULING.match(following.strip()) and "-" in following)


def _kind(line: str, previous: str) -> Kind:
    if _HEADING.match(_CITATION.sub("", line).strip()):
        return "heading"
    if _ROW.match(line.strip()):
        return "row"
    indented = line[:1] in " \t" and bool(previous) and bool(_ITEM.match(previous) or previous[:1] in " \t")
    return "item" if _ITEM.match(line) or indented else "text"


def _sentences(text: str, line: _Line) -> Iterator[Sentence]:
    piece = text[line.start : line.end].replace("\n", " ")
    language = None if piece.isascii() else "ja" if _CJK.search(piece) else "de"
    spans = [*_with_late_citations(piece, [*sentence_spans(piece, language)])]
    for start, end in spans:
        written = piece[start:end]
        cited = cited_ids(written)
        bare = _CITATION.sub("", written) if cited else written
        introduces = end == spans[-1][1] and line.kind == "text" and bool(_COLON_END.search(bare))
        kind: Kind = "intro" if introduces else line.kind
        yield Sentence(
            start=line.start + start,
            end=line.start + end,
            kind=kind,
            group=line.group,
            indent=line.indent,
            cited=cited,
            states=_states(bare, kind, cited=bool(cited)),
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
    return kind in LISTED or not is_interjection(bare)


def _telling(text: str, sentences: list[Sentence], known: str) -> list[Sentence]:
    """The sentences, with those that state something although they look as if they did not."""
    quiet = [index for index, sentence in enumerate(sentences) if not sentence.states and not sentence.refers]
    written = {i: _CITATION.sub("", text[sentences[i].start : sentences[i].end]) for i in quiet}
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
    below = takewhile(lambda each: each.kind in LISTED, islice(sentences, index + 1, None))
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
