"""The claims of an answer: its sentences that state something, each with the citations that belong to it.

Promises: spans refer to the text given and ``claim.text`` is exactly that span; list items and table rows are sentences
too; citations inside code count for nothing. Greetings, questions, offers, headings, introductions ending in a colon
are no claims, unless they state something nonetheless (``headlines``): a heading then shares what its section cites, an
introduction what its list cites, a code block what stands round it. Must never raise. Linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Literal, NamedTuple

from verification.claims.headlines import digits, is_sentence, label_end, opens_with_sentence, own_digits
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
_LAST = re.compile(r"(?:\[[\d\s,;–-]+\][\s.]*)+$")
_SPACE = re.compile(r"\s")
_NO_LINE_END = re.compile(r"[^\n]")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_ENDS = frozenset(".!?。！？…")
_LONGEST_RANGE = 31  # numbers
_LONGEST_LINE = 2_000
_LONGEST_SECTION = 60

Kind = Literal["text", "item", "intro", "heading", "head"]
_TITLES: frozenset[Kind] = frozenset({"heading", "head"})


class _Line(NamedTuple):
    """One line with a kind; ``group`` is the same for lines that may share a citation (a paragraph, a list item)."""

    start: int
    end: int
    kind: Kind
    group: int


class _Sentence(NamedTuple):
    """A sentence with the citations that stand in it; ``trailing`` if the last of them stands after its full stop.

    One that ``refers`` holds nothing but a citation or a link: it belongs to what stands before it.
    """

    start: int
    end: int
    line: _Line
    cited: tuple[int, ...]
    trailing: bool
    states: bool
    refers: bool


def claims(text: str, known: str = "") -> tuple[Claim, ...]:
    """The sentences of ``text`` that state something, in order, with what each cites.

    ``known`` is text whose numbers state nothing new: the question, the thread.
    """
    plain = readable(text)
    shown, tabled = _prose(plain)
    sentences = [sentence for line in _lines(shown, tabled) for sentence in _sentences(shown, line)]
    shared = _shared(sentences)
    told = [
        Claim(text=text[s.start : s.end], start=s.start, end=s.end, cited=s.cited)
        for s in _alone(_telling(shown, shared, known), shown)
        if s.states and s.end > s.start
    ]
    coded = [
        Claim(text=text[start:end], start=start, end=end, cited=_round(shared, start, end), code=code)
        for start, end, code in _code(plain, shown)
    ]
    return tuple(sorted([*told, *coded], key=lambda claim: claim.start)) if coded else tuple(told)


def _code(text: str, shown: str) -> Iterator[tuple[int, int, bool]]:
    """The runs of lines in those code blocks that are no tables."""
    for fence in _FENCE.finditer(text):
        inside = fence.group().removesuffix("```") if len(fence.group()) > 5 else "```"  # noqa: PLR2004  # two fences
        if not shown[fence.start() : fence.end()].strip():
            yield from pieces(inside[3:], fence.start() + 3)


def _round(sentences: list[_Sentence], start: int, end: int) -> tuple[int, ...]:
    """What the text round a code block cites: right before it, right behind it, in its section, or anywhere."""
    place = bisect_left(sentences, start, key=lambda sentence: sentence.start)
    behind = sentences[place : place + _LONGEST_SECTION]
    before = sentences[max(0, place - _LONGEST_SECTION) : place]
    following = next((sentence for sentence in behind if sentence.start >= end), None)
    if following and _is_alone(following):
        return following.cited
    for sentence in reversed(before):
        if sentence.cited:
            return sentence.cited
        if sentence.line.kind == "heading":
            break
    return tuple(dict.fromkeys(number for sentence in (*behind, *before) for number in sentence.cited))


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
"""Where the lines of tables set in code blocks begin: their heads (``head``) and their rows (``item``)."""


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
            tabled[position] = "head" if index < ruling else "item"
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
    for index, line in enumerate(lines):
        start, position = position, position + len(line) + 1
        bare = line.strip()
        marker = _ITEM.match(line) if bare else None
        group += bool(marker) or not bare
        if not bare or _RULING.match(bare):
            previous = ""
            continue
        kind = "head" if _is_table_head(lines, index) else tabled.get(start) or _kind(line, previous)
        group += kind == "intro" or kind in _TITLES
        offset = marker.end() if marker else 0
        yield _Line(start=start + offset, end=start + len(line), kind=kind, group=group)
        previous = line


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
    bare = _CITATION.sub("", line)
    if _HEADING.match(bare.strip()):
        return "heading"
    if _COLON_END.search(bare):
        return "intro"
    indented = line[:1] in " \t" and bool(previous) and bool(_ITEM.match(previous) or previous[:1] in " \t")
    return "item" if _ITEM.match(line) or _ROW.match(line.strip()) or indented else "text"


def _sentences(text: str, line: _Line) -> Iterator[_Sentence]:
    piece = text[line.start : line.end].replace("\n", " ")
    language = None if piece.isascii() else "ja" if _CJK.search(piece) else "de"
    for start, end in _with_late_citations(piece, [*sentence_spans(piece, language)]):
        written = piece[start:end]
        cited = cited_ids(written)
        bare = _CITATION.sub("", written) if cited else written
        yield _Sentence(
            start=line.start + start,
            end=line.start + end,
            line=line,
            cited=cited,
            trailing=bool(cited) and _is_trailing(written),
            states=_states(bare, line.kind, cited=bool(cited)),
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


def _is_trailing(written: str) -> bool:
    """True if the last citation stands behind the full stop."""
    whole = written.rstrip()
    before = _LAST.split(whole)[0] if whole.endswith(("]", ".")) else whole
    before = before.rstrip("*_~\"'”’)» ")
    return len(before) < len(whole) and before[-1:] in _ENDS


def _is_only_label(bare: str) -> bool:
    return not _TWO_WORDS.search(bare) and bool(_ONLY_LABEL.fullmatch(_MARKS.sub(" ", bare)))


def _states(bare: str, kind: Kind, *, cited: bool) -> bool:
    if kind in _TITLES or _is_only_label(bare):
        return False
    if cited:
        return not (bare.rstrip("*_~ ").rstrip().endswith(("?", "？")) and states_nothing(bare))
    if kind == "intro" or states_nothing(bare):
        return False
    return kind == "item" or not is_interjection(bare)


def _shared(sentences: list[_Sentence]) -> list[_Sentence]:
    """Each uncited sentence with the citation it shares.

    That is the one behind its paragraph or item, the one alone on the line below (of a list: below all of it), or that
    of the list's introduction.
    """
    shared = list(sentences)
    trailing: tuple[int, ...] = ()
    stands_alone = False
    for index in range(len(shared) - 1, -1, -1):
        sentence, following = shared[index], shared[index + 1] if index + 1 < len(shared) else None
        if sentence.cited:
            stands_alone = _is_alone(sentence)
            trailing = sentence.cited if sentence.trailing or stands_alone else ()
        elif following and (
            following.line.group == sentence.line.group
            or _is_alone(following)
            or (stands_alone and sentence.line.kind == following.line.kind == "item")
        ):
            shared[index] = sentence._replace(cited=trailing)
        else:
            trailing = ()
    return _from_introductions(shared)


def _is_alone(sentence: _Sentence) -> bool:
    return bool(sentence.cited) and (sentence.refers or not sentence.states)


def _from_introductions(sentences: list[_Sentence]) -> list[_Sentence]:
    introduced: tuple[int, ...] = ()
    result: list[_Sentence] = []
    for sentence in sentences:
        if sentence.line.kind == "intro":
            introduced = sentence.cited
        elif sentence.line.kind not in {"item", "head"}:
            introduced = ()
        elif not sentence.cited and sentence.line.kind == "item":
            sentence = sentence._replace(cited=introduced)  # noqa: PLW2901  # the same sentence, completed
        result.append(sentence)
    return result


def _telling(text: str, sentences: list[_Sentence], known: str) -> list[_Sentence]:
    """The sentences, with those that state something although they look as if they did not."""
    quiet = [index for index, sentence in enumerate(sentences) if not sentence.states]
    written = {i: _CITATION.sub("", text[sentences[i].start : sentences[i].end]) for i in quiet}
    own = {i: own_digits(words) for i, words in written.items()}
    given: frozenset[str] = frozenset()
    if any(own.values()):
        given = digits(known).union(*(digits(text[s.start : s.end]) for s in sentences if s.cited and s.states))
    telling = {i for i in quiet if own[i] - given or _tells(sentences[i], written[i])}
    return [_told(sentences, i, text) if i in telling else sentence for i, sentence in enumerate(sentences)]


def _tells(sentence: _Sentence, written: str) -> bool:
    if sentence.line.kind == "heading":
        return is_sentence(written)
    return sentence.line.kind == "intro" and opens_with_sentence(written)


def _told(sentences: list[_Sentence], index: int, text: str) -> _Sentence:
    """The sentence as a claim: a heading with what its section cites, an introduction with what its list cites."""
    sentence = sentences[index]
    cited = sentence.cited or tuple(dict.fromkeys(_below(sentences, index)))
    start = sentence.start
    if sentence.line.kind == "heading":
        start += label_end(text[sentence.start : sentence.end])
    return sentence._replace(start=start if start < sentence.end else sentence.start, cited=cited, states=True)


def _below(sentences: list[_Sentence], index: int) -> Iterator[int]:
    """What the section of a heading, or the list or the sentence behind an introduction, cites."""
    kind = sentences[index].line.kind
    for following in sentences[index + 1 : index + 1 + _LONGEST_SECTION] if kind in _TITLES | {"intro"} else ():
        if following.line.kind == "heading" and following.line.group != sentences[index].line.group:
            return
        if kind == "intro" and following.line.kind != "item":
            yield from following.cited
            return
        yield from following.cited


def _alone(sentences: list[_Sentence], text: str) -> list[_Sentence]:
    """The sentences; where none of them states anything, headings alone do, and so does a bare yes or no."""
    if any(sentence.states for sentence in sentences):
        return sentences
    only_headings = all(sentence.line.kind in _TITLES for sentence in sentences)
    only_answers = all(is_bare_answer(text[sentence.start : sentence.end]) for sentence in sentences)
    return [s._replace(states=True) for s in sentences] if only_headings or only_answers else sentences
