"""Reader of Word documents: their text as Markdown, as it looks on paper. The only importer of docx."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, NamedTuple

from docx import Document
from docx.document import Document as WordDocument
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import OpcError
from docx.oxml import parse_xml

from agent.knowledge.readers.document import (
    Content,
    ReadLimits,
    clean,
    markdown_table,
    open_package,
    part_note_marks,
    raise_or_lower,
    refusing_damage,
    whole,
)

_MAX_HEADING: Final = 6
_HEADING: Final = re.compile(r"heading (?P<depth>[1-9])")
_LIST_OF: Final = "./w:num[@w:numId='{num}']/w:abstractNumId/@w:val"
_LEVEL_OF: Final = "./w:abstractNum[@w:abstractNumId='{list}']/w:lvl[@w:ilvl='{level}']/{what}/@w:val"
_RESTART_OF: Final = "./w:num[@w:numId='{num}']/w:lvlOverride[@w:ilvl='{level}']/w:startOverride/@w:val"
_INDENT: Final = "    "
_MAX_LEVEL: Final = 8
_MAX_SPAN: Final = 200  # columns
_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LINK_ID: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_NOTES: Final = (("footnoteReference", RELATIONSHIP_TYPE.FOOTNOTES), ("endnoteReference", RELATIONSHIP_TYPE.ENDNOTES))
# Deletions are not text, a fallback repeats its choice, and a text box is a separate block.
_SKIPPED: Final = frozenset({"del", "moveFrom", "Fallback", "txbxContent", "pPr", "rPr", "sdtPr", "instrText"})
_SIGNS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_OFF: Final = frozenset({"0", "false", "off"})


class _Block(NamedTuple):
    """A paragraph, a table or a note as Markdown. ``marker`` begins a list item."""

    text: str
    marker: str = ""


def read_docx(data: bytes, limits: ReadLimits) -> Content:
    """Read a document with its lists, tables, notes and text boxes."""
    with refusing_damage("Word document", OpcError):
        document = Document(open_package(data))
        body = _Body(document)
        blocks = list(limits.take(body.blocks_in(document.element.body), "block", lambda block: len(block.text)))
        text = clean(part_note_marks("\n\n".join(_join_lists(blocks))))
        return Content(title=clean(document.core_properties.title or ""), parts=whole(text + "\n"))


def _join_lists(blocks: list[_Block]) -> Iterator[str]:
    """Yield blocks. Consecutive list items become one block, each indented at most one step below the one above."""
    for is_list, group in groupby(blocks, key=lambda block: bool(block.marker)):
        lines, depth = [], -1
        for block in group:
            depth = min(block.marker.count(_INDENT), depth + 1)
            lines.append(f"{_INDENT * depth}{block.marker.strip()} {block.text}" if is_list else block.text)
        yield ("\n" if is_list else "\n\n").join(lines)


def _name(element: Any) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


class _Body:
    """The blocks of a document's body with their notes and text boxes."""

    def __init__(self, document: WordDocument) -> None:
        related = {rel.reltype: rel.target_part for rel in document.part.rels.values() if not rel.is_external}
        numbering = related.get(RELATIONSHIP_TYPE.NUMBERING)
        self._numbers = _Numbers(numbering=numbering.element if numbering else None)
        self._styles = _styles_of(document.styles.element)
        self._links = {key: rel.target_ref for key, rel in document.part.rels.items() if rel.is_external}
        roots = {kind: parse_xml(related[reltype].blob) for kind, reltype in _NOTES if reltype in related}
        self._notes = {(kind, note.get(f"{_W}id")): note for kind, root in roots.items() for note in root}
        self._referenced: list[tuple[int, Any]] = []
        self._boxes: list[Any] = []

    def blocks_in(self, parent: Any) -> Iterator[_Block]:
        """Yield the blocks in order. Notes and text boxes follow the block that refers to them."""
        for element in parent:
            name = _name(element)
            if name == "p":
                yield from self._paragraph(element)
            elif name == "tbl":
                yield from filter(lambda block: block.text, [_Block(self._table(element))])
            elif name == "sdt":
                yield from (block for content in _control(element) for block in self.blocks_in(content))
            elif name in {"ins", "moveTo", "customXml", "smartTag"}:
                yield from self.blocks_in(element)
            yield from self._boxes_and_notes()

    def _boxes_and_notes(self) -> Iterator[_Block]:
        while self._boxes or self._referenced:
            boxes, self._boxes = self._boxes, []
            for box in boxes:
                yield from self.blocks_in(box)
            notes, self._referenced = self._referenced, []
            for number, note in notes:
                yield _Block(f"{raise_or_lower(str(number), 'sup')} {' '.join(self._inline(note).split())}")

    def _paragraph(self, element: Any) -> Iterator[_Block]:
        text = self._inline(element).strip()
        if not text:
            return
        properties = element.find(f"{_W}pPr")
        style, listed = self._styles.get(_value(properties, "pStyle"), ("", None))
        heading = _HEADING.fullmatch(style)
        if heading or style == "title":
            depth = min(int(heading["depth"]), _MAX_HEADING) if heading else 1
            yield _Block(f"{'#' * depth} {' '.join(text.split())}")
        elif marker := self._numbers.marker(style, _list_level(properties) or listed):
            yield _Block(" ".join(text.split()), marker)
        else:
            yield _Block(text)

    def _inline(self, element: Any) -> str:
        """Return the text of an element without deletions, struck-out and hidden text."""
        pieces = []
        for child in element:
            name = _name(child)
            if name in _SKIPPED:
                self._boxes += [child] if name == "txbxContent" else []
            elif name == "t":
                pieces.append(child.text or "")
            elif name == "r":
                pieces.append(self._run(child))
            elif name == "hyperlink":
                text, url = self._inline(child), self._links.get(child.get(_LINK_ID), "")
                is_link = text.strip() and url.startswith(("http", "mailto:")) and url != text
                pieces.append(f"[{text}]({url})" if is_link else text)
            elif name == "sdt":
                pieces += [self._inline(content) for content in _control(child)]
            elif name in {"footnoteReference", "endnoteReference"}:
                pieces.append(self._refer(name, child.get(f"{_W}id")))
            else:
                pieces.append(_SIGNS.get(name) or self._inline(child) + ("\n" if name in {"p", "tc"} else ""))
        return "".join(pieces)

    def _run(self, run: Any) -> str:
        marks = {_name(mark): mark.get(f"{_W}val") or "" for mark in run.iterfind(f"{_W}rPr/*")}
        if any(marks.get(name, "off").lower() not in _OFF for name in ("strike", "dstrike", "vanish")):
            return ""
        text, way = self._inline(run), marks.get("vertAlign", "")
        return raise_or_lower(text, "sup" if way == "superscript" else "sub") if way.endswith("script") else text

    def _refer(self, kind: str, key: str) -> str:
        note = self._notes.pop((kind, key), None)
        if note is None:
            return ""
        self._numbers.notes += 1
        self._referenced.append((self._numbers.notes, note))
        return f" {raise_or_lower(str(self._numbers.notes), 'sup')}"

    def _table(self, table: Any) -> str:
        """Return rows of equal width. A cell across columns is followed by empty ones, one across rows is repeated."""
        rows: list[list[str]] = []
        for row in table.iter(f"{_W}tr"):
            if next(row.iterancestors(f"{_W}tbl")) is not table:  # of a table inside a cell
                continue
            above = rows[-1] if rows else []
            cells = [""] * _span(row.find(f"{_W}trPr"), "gridBefore", 0)
            for cell in _cells(row):
                properties = cell.find(f"{_W}tcPr")
                merge = properties.find(f"{_W}vMerge") if properties is not None else None
                goes_on = merge is not None and merge.get(f"{_W}val") != "restart"
                at = len(cells)
                text = above[at] if goes_on and at < len(above) else " ".join(self._inline(cell).split())
                cells += [text, *[""] * (_span(properties, "gridSpan", 1) - 1)]
                if len(cells) > _MAX_SPAN:
                    break
            rows += [cells] if any(cells) else []
        return markdown_table(rows)


def _cells(row: Any) -> Iterator[Any]:
    for child in row:
        if _name(child) == "tc":
            yield child
        elif _name(child) in {"sdt", "sdtContent", "customXml", "ins"}:
            yield from _cells(child)


def _span(properties: Any, name: str, default: int) -> int:
    return min(int(_value(properties, name) or default), _MAX_SPAN)


def _control(element: Any) -> Iterable[Any]:
    """Return the content of a control without placeholders, and without tables of contents, which repeat headings."""
    properties = element.find(f"{_W}sdtPr")
    if properties is not None:
        gallery = properties.find(f".//{_W}docPartGallery")
        is_contents = gallery is not None and gallery.get(f"{_W}val") == "Table of Contents"
        if is_contents or properties.find(f"{_W}showingPlcHdr") is not None:
            return ()
    return tuple(element.findall(f"{_W}sdtContent"))


@dataclass(slots=True, kw_only=True)
class _Numbers:
    """Counters of lists and notes. As in Word, a list continues after other text, and deeper levels restart."""

    numbering: Any
    counts: dict[tuple[str, int], int] = field(default_factory=dict)
    restarted: set[tuple[int, int]] = field(default_factory=set)
    notes: int = 0

    def marker(self, style: str, listed: tuple[int, int] | None) -> str:
        """Return the indented start of a list item; empty for another paragraph."""
        num, level = listed or (None, 0)
        if num == 0 or (num is None and not style.startswith("list")):
            return ""
        key = (self._value(_LIST_OF, f"-{num}", num=num), level) if num else ("", level)
        form = self._value(_LEVEL_OF, "", list=key[0], level=level, what="w:numFmt")
        if form == "bullet" or (not form and "number" not in style):
            return f"{_INDENT * level}-"
        return f"{_INDENT * level}{self._next(num, key)}."

    def _next(self, num: int | None, key: tuple[str, int]) -> int:
        list_id, level = key
        restart = int(self._value(_RESTART_OF, "0", num=num, level=level)) if num else 0
        if restart and num and (num, level) not in self.restarted:
            self.restarted.add((num, level))
            self.counts[key] = restart - 1
        first = int(self._value(_LEVEL_OF, "1", list=list_id, level=level, what="w:start"))
        self.counts[key] = self.counts.get(key, first - 1) + 1
        for deeper in [other for other in self.counts if other[0] == list_id and other[1] > level]:
            del self.counts[deeper]
        return self.counts[key]

    def _value(self, path: str, default: str, **names: object) -> str:
        values = [] if self.numbering is None else self.numbering.xpath(path.format(**names))
        return str(values[0]) if values else default


def _list_level(properties: Any) -> tuple[int, int] | None:
    """Return the number of a paragraph's list (0: not in a list) and its level."""
    numbers = properties.find(f"{_W}numPr") if properties is not None else None
    if not (num := _value(numbers, "numId")):
        return None
    return int(num), min(max(0, int(_value(numbers, "ilvl") or 0)), _MAX_LEVEL)


def _styles_of(styles: Any) -> dict[str, tuple[str, tuple[int, int] | None]]:
    """Return the name and list level of each paragraph style by id; the default style also has an empty id."""
    known: dict[str, tuple[str, tuple[int, int] | None]] = {}
    for style in styles.findall(f"{_W}style"):
        named = (_value(style, "name").lower(), _list_level(style.find(f"{_W}pPr")))
        known[style.get(f"{_W}styleId") or ""] = named
        if style.get(f"{_W}type") == "paragraph" and style.get(f"{_W}default") == "1":
            known[""] = named
    return known


def _value(parent: Any, name: str) -> str:
    child = parent.find(f"{_W}{name}") if parent is not None else None
    return "" if child is None else child.get(f"{_W}val") or ""
