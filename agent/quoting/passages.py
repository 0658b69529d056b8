"""A source's text as units that can be quoted, and the best passages of them for a question, as cited Markdown."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, groupby, zip_longest
from operator import attrgetter
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from agent.files import ORIGIN as FILE
from agent.knowledge.search.full_text import impacts, words_of
from agent.quoting.small_talk import Line, phrase
from verification.evidence.passages import sentence_spans
from verification.text.language import detect_language
from verification.types import Source

Kind = Literal["sentence", "field", "item", "step", "row", "code"]  # a field: ``Owner: the platform team``

_PARSER: Final = MarkdownIt("commonmark").enable("table")
_FIELD: Final = re.compile(r"[*_]{0,2}[^\W\d][\w ./-]{1,30}:[*_]{0,2} \S.{0,80}")
_ENDS: Final = re.compile(r"[.!?:;,。！？：；，…][\"'”’»)*_`\]]*$")
_LABEL_CHARS: Final = 60
_LABEL_SHARE: Final = 0.6
_CJK_EDGE: Final = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u9fff。、，])\n(?=[\u3040-\u30ff\u3400-\u9fff])")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotableUnit:
    """One quotable piece."""

    source: Source
    text: str
    kind: Kind
    block: int  # the number of its paragraph, list or table
    context: str = ""  # the headings above it from the top, joined by " › "
    marker: str = ""  # the beginning of a list item (``-``, ``3.``)
    depth: int = 0  # its nesting


@lru_cache(maxsize=256)
def units_of(source: Source) -> tuple[QuotableUnit, ...]:
    """Return all units of a source, in order."""
    reader = _Reader(source=source, language=detect_language(source.text[:4_000]))
    reader.read(SyntaxTreeNode(_PARSER.parse(source.text)))
    return tuple(reader.units)


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Walks through the blocks of a text. ``label`` is a line that serves as a heading but is not marked up as one."""

    source: Source
    language: str | None
    units: list[QuotableUnit] = field(default_factory=list)
    block: int = 0
    headings: dict[int, str] = field(default_factory=dict)
    label: str = ""

    def read(self, blocks: SyntaxTreeNode) -> None:
        for node in blocks.children:
            self.block += 1
            self._read_block(node, 0)

    def _read_block(self, node: SyntaxTreeNode, depth: int) -> None:
        match node.type:
            case "heading":
                level = int(node.tag[1])
                above = {each: title for each, title in self.headings.items() if each < level}
                self.headings, self.label = {**above, level: " ".join(_content(node).split())}, ""
            case "paragraph":
                self._read_paragraph(_content(node))
            case "bullet_list" | "ordered_list":
                self._read_list(node, depth)
            case "table":
                self._read_table(node)
            case "fence" | "code_block":
                self._add(node.content.strip("\n"), "code")
            case "blockquote":
                self.read(node)
            case _:  # HTML and rules contain nothing to quote
                pass

    def _read_list(self, node: SyntaxTreeNode, depth: int) -> None:
        kind: Kind = "step" if node.type == "ordered_list" else "item"
        for item in node.children:
            quotations = (each.children if each.type == "blockquote" else [each] for each in item.children)
            parts = chain.from_iterable(quotations)
            for number, (is_text, some) in enumerate(groupby(parts, lambda part: part.type == "paragraph")):
                if not is_text:
                    for part in some:
                        self._read_block(part, depth + 1)
                elif number:  # the paragraph continues after code or a table
                    self._add_sentences([_content(part) for part in some])
                else:
                    own = " ".join(_one_line(_content(part)) for part in some)
                    self._add(own, kind, marker=f"{item.info}." if item.info else "-", depth=depth)

    def _read_table(self, node: SyntaxTreeNode) -> None:
        """Read rows under the names of their columns, which are in the first row."""
        head, *rows = [
            [_one_line(_content(cell)) for cell in row.children] for part in node.children for row in part.children
        ]
        for cells in rows:
            named = zip_longest(head[: len(cells)], cells, fillvalue="")
            self._add("; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell), "row")

    def _read_paragraph(self, content: str) -> None:
        lines = content.split("\n")
        longest = max(map(len, lines))
        held: list[str] = []
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            text, begins = line.strip(), following.strip()[:1]
            is_field = _FIELD.fullmatch(text) is not None
            # A heading without markup: a short line above longer ones, not the beginning of a sentence.
            is_short = 0 < len(text) <= min(_LABEL_CHARS, _LABEL_SHARE * longest)
            is_label = is_short and not _ENDS.search(text) and (begins.isupper() or begins.isdigit())
            if not is_field and not is_label:
                held.append(line)
                continue
            self._add_sentences(held)
            held = []
            self.block += 1
            if is_field:
                self._add(text, "field")
                self.block += 1
            else:
                self.label = text
        self._add_sentences(held)

    def _add_sentences(self, lines: Sequence[str]) -> None:
        text = _one_line("\n".join(lines))
        begin: int | None = None
        for start, end in sentence_spans(text, self.language):
            begin = start if begin is None else begin
            if text.count("`", begin, end) % 2 == 0 or end == len(text):  # a sentence does not end inside code
                self._add(text[begin:end], "sentence")
                begin = None

    def _add(self, text: str, kind: Kind, *, marker: str = "", depth: int = 0) -> None:
        if text.strip():
            context = " › ".join(part for part in (*self.headings.values(), self.label) if part)
            unit = QuotableUnit(source=self.source, text=text, kind=kind, block=self.block, context=context)
            self.units.append(replace(unit, marker=marker, depth=depth))


def _content(node: SyntaxTreeNode) -> str:
    return node.children[0].content if node.children else ""


def _one_line(text: str) -> str:
    return " ".join(_CJK_EDGE.sub("", text).split())  # no space between lines of a script without spaces


MIN_SCORE: Final = 0.18
"""Minimum score of a passage to show. A higher one hides as many answers as it avoids misses (decision 3)."""
MAX_PASSAGE_CHARS: Final = 300  # a longer sentence, item or row is shown whole
MAX_PROCEDURE_CHARS: Final = 900
MAX_PASSAGES: Final = 3
_STOPS: Final = (".", "!", "?", "。", "！", "？")  # "Warning: never in winter." is a sentence, "Owner: Ann" is not
_EARLIER_WEIGHT: Final = 0.5  # weight of a word from an earlier question; words of this question have weight 1
_MAX_QUESTION_CHARS: Final = 2_000  # a longer question contains pasted text


def word_weights(text: str, earlier: str = "") -> Mapping[str, float]:
    """Return the weights of a question's words, and of the words of ``earlier`` questions that complete it."""
    before = dict.fromkeys(words_of(earlier[:_MAX_QUESTION_CHARS]), _EARLIER_WEIGHT)
    return before | dict.fromkeys(words_of(text[:_MAX_QUESTION_CHARS]), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPassage:
    """Units of one section in order, and the ``best`` one among them."""

    units: tuple[QuotableUnit, ...]
    best: QuotableUnit
    covered: float  # the share of the question's weight that they, their title and headings cover
    closest: float  # the same share for ``best`` alone
    is_excerpt: bool = False  # the section has more

    @property
    def score(self) -> float:
        """Score of the passage: words in the same sentence count more than scattered words."""
        return (self.covered + self.closest) / 2


def best_passages(
    weights: Mapping[str, float], sources: Sequence[Source], barred: set[QuotableUnit]
) -> tuple[RankedPassage, ...]:
    """Return the passages to show, the one with the closest sentence first; none if even the best covers too little.

    Of search results show the best passage of each of the first sources: the search ranks better than these scores.
    """
    searched: dict[str, RankedPassage] = {}
    attached: dict[str, RankedPassage] = {}
    for source in sources:
        allowed = [unit for unit in units_of(source) if unit not in barred]
        # A line such as "Last updated: …" does not help a person who asks about something else.
        units = [
            unit
            for unit in allowed
            if unit.kind != "field" or unit.text.endswith(_STOPS) or weights.keys() & _words(unit.text)
        ]
        sections = groupby(units or allowed, key=lambda unit: unit.context)
        best = (_best_window(list(section), weights) for _, section in sections)
        passages = sorted(best, key=attrgetter("score"), reverse=True)
        if source.origin == FILE:
            attached |= {each.best.text: each for each in passages if each.score >= MIN_SCORE}
        elif passages:
            searched.setdefault(passages[0].best.text, passages[0])
    first = dict([*searched.items()][:MAX_PASSAGES])
    shown = sorted({**attached, **first}.values(), key=_closest_newest)[:MAX_PASSAGES]
    return tuple(shown) if max((each.score for each in shown), default=0.0) >= MIN_SCORE else ()


def _best_window(section: Sequence[QuotableUnit], weights: Mapping[str, float]) -> RankedPassage:
    """Return the best window; among equals, the one that begins shortly before the first of the best sentences."""
    shares = [_share(weights, (unit,)) for unit in section]
    ranked: dict[tuple[float, int, int], RankedPassage] = {}
    for start, units in enumerate(windows(section)):
        at = max(range(start, start + len(units)), key=shares.__getitem__)
        passage = RankedPassage(
            units=tuple(units),
            best=section[at],
            covered=_share(weights, units),
            closest=shares[at],
            is_excerpt=len(units) < len(section),
        )
        ranked[passage.score, -at, start] = passage
    return ranked[max(ranked)]


def _closest_newest(passage: RankedPassage) -> tuple[float, int]:
    digits = "".join(filter(str.isdigit, passage.best.source.updated_at[:10]))
    return -round(passage.closest, 2), -int(digits or 0)


def _share(weights: Mapping[str, float], units: Sequence[QuotableUnit]) -> float:
    """Return the share of the total weight that these units cover, together with the title and headings above them."""
    words = _words(units[0].source.title).union(_words(units[0].context), *(_words(unit.text) for unit in units))
    whole = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in words) / whole if whole else 0.0


def windows(section: Sequence[QuotableUnit]) -> Iterator[Sequence[QuotableUnit]]:
    """Yield the whole section if it is short, else for each unit as much as fits from there on."""
    for start in range(len(section)):
        end, size = start + 1, len(section[start].text)
        while end < len(section):
            unit, following = section[end - 1], section[end]
            # The steps of one procedure stay together if they can.
            is_procedure = unit.kind == following.kind == "step" and unit.block == following.block
            if size + len(following.text) >= (MAX_PROCEDURE_CHARS if is_procedure else MAX_PASSAGE_CHARS):
                break
            size += len(following.text) + 1
            end += 1
        yield section[start:end]
        if end == len(section):
            return


@lru_cache(maxsize=8_192)
def _words(text: str) -> frozenset[str]:  # stems, as the index stores them
    return frozenset(impacts("", "", text))


_FENCE: Final = re.compile(r"`{3,}")
_MARKED: Final = re.compile(r"[*_\[\]<>|~]")
_SENTENCE_ENDS: Final = (".", "!", "?", "…", ":", ";", "。", "！", "？", '."', ".)", ".”")


def render_passages(passages: Sequence[RankedPassage], weights: Mapping[str, float], language: str | None) -> str:
    """Return all passages: the first as the quotation, the others as "also from", the closest sentence in bold."""
    spans = [(unit.text, span) for each in passages for unit in each.units for span in sentence_spans(unit.text, None)]
    sentences = [text[start:end] for text, (start, end) in spans]
    bold = max(sentences, key=lambda text: sum(weights.get(word, 0.0) for word in _words(text)), default="")
    parts = []
    for number, passage in enumerate(passages):
        name: Line = ("also_part" if number else "part") if passage.is_excerpt else ("also" if number else "quoted")
        title, context = passage.best.source.title, passage.best.context.split(" › ")
        path = (title, *(part for part in context if part and part not in title.split(" › ")))
        head = phrase(name, language, title=" › ".join(path))
        parts.append(_render(head, passage.units, bold))
        bold = "" if any(bold in unit.text for unit in passage.units) else bold
    return "\n\n".join(parts)


def render_units(source: Source, units: Sequence[QuotableUnit], language: str | None) -> str:
    """Return units of a source shown on its own: a list, or the beginning of an attached file."""
    return _render(phrase("quoted", language, title=source.title), units, "")


def _render(opening: str, units: Sequence[QuotableUnit], bold: str) -> str:
    lines: list[str] = [opening]
    previous: QuotableUnit | None = None
    for unit in units:
        number = f"[{unit.source.id}]"
        text = unit.text.replace(bold, _bold(bold), 1) if bold else unit.text
        bold = "" if text != unit.text else bold
        same_block = previous is not None and previous.block == unit.block
        if unit.kind == "code":
            fence = "`" * (max(map(len, _FENCE.findall(unit.text)), default=2) + 1)  # longer than any back-ticks inside
            lines += ["", f"{fence}\n{unit.text}\n{fence}", *([number] if previous is None else [])]
        elif unit.kind == "sentence" and previous is not None and previous.kind == "sentence" and same_block:
            lines[-1] += f" {text} {number}"
        elif unit.kind in {"sentence", "field"}:
            lines += ["", f"{text} {number}"]
        else:
            marker = "-" if unit.kind == "row" else unit.marker
            # The last of several sentences also needs a full stop: only then does the citation count for all of them.
            is_ended = unit.text.endswith(_SENTENCE_ENDS) or len(sentence_spans(unit.text, None)) <= 1
            ended = text if is_ended else f"{text}."
            goes_on = previous is not None and same_block and previous.kind != "sentence"
            lines += [*([] if goes_on else [""]), f"{'    ' * unit.depth}{marker} {ended} {number}"]
        previous = unit
    return "\n".join(lines)


def _bold(text: str) -> str:
    """Make a sentence bold, but not its final punctuation, which belongs to the citation, nor text with markup."""
    words = text.rstrip(".!?。！？")
    # Slack shows no bold that begins or ends with code.
    plain = words and words == words.strip("`") and not _MARKED.search(words)
    return f"**{words}**{text[len(words) :]}" if plain else text
