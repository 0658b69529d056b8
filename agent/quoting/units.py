"""A source's text as units that can be quoted: sentences, list items, steps, table rows, code blocks, in order."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, groupby, zip_longest
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from verification.evidence.passages import sentence_spans
from verification.text.language import detect_language
from verification.types import Source

Kind = Literal["sentence", "field", "item", "step", "row", "code"]
"""Pattern of a field, a line such as ``Owner: the platform team``."""

_PARSER: Final = MarkdownIt("commonmark").enable("table")
_FIELD: Final = re.compile(r"[*_]{0,2}[^\W\d][\w ./-]{1,30}:[*_]{0,2} \S.{0,80}")
_ENDS: Final = re.compile(r"[.!?:;,。！？：；，…][\"'”’»)*_`\]]*$")
_LABEL_CHARS: Final = 60
_LABEL_SHARE: Final = 0.6
_CJK_EDGE: Final = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u9fff。、，])\n(?=[\u3040-\u30ff\u3400-\u9fff])")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotableUnit:
    """One quotable piece.

    ``block`` is the number of its paragraph, list or table. ``context`` are the headings above it from the top, joined
    by " › ". ``marker`` is the beginning of a list item (``-``, ``3.``), ``depth`` its nesting.
    """

    source: Source
    text: str
    kind: Kind
    block: int
    context: str = ""
    marker: str = ""
    depth: int = 0


@lru_cache(maxsize=256)
def units_of(source: Source) -> tuple[QuotableUnit, ...]:
    """Return all units of a source, in order."""
    reader = _Reader(source=source, language=detect_language(source.text[:4_000]))
    reader.read(SyntaxTreeNode(_PARSER.parse(source.text)))
    return tuple(reader.units)


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Walks through the blocks of a text. ``label`` is a line that serves as a heading without heading markup."""

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
            text = line.strip()
            is_field = _FIELD.fullmatch(text) is not None
            if not is_field and not _is_label(text, following, longest):
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


def _is_label(text: str, following: str, longest: int) -> bool:
    """Return True for a heading without markup: a short line above longer ones, not the beginning of a sentence."""
    begins = following.strip()[:1]
    is_short = 0 < len(text) <= min(_LABEL_CHARS, _LABEL_SHARE * longest)
    return is_short and not _ENDS.search(text) and (begins.isupper() or begins.isdigit())
