"""Reader of Word documents: their text as Markdown, as it looks on paper. Only this module imports docx."""

import re
from collections.abc import Iterable, Iterator
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
    numeral,
    open_package,
    part_note_marks,
    raise_or_lower,
    refusing_damage,
    whole,
)
from agent.knowledge.readers.drawing import drawing_ids, drawing_text

_MAX_HEADING: Final = 6
_HEADING: Final = re.compile(r"heading (?P<depth>[1-9])")
_HEADING_SIGN: Final = re.compile(r"^(?=#{1,6}\s)", re.MULTILINE)  # as in "# of seats"
_INDENT: Final = "    "
_MAX_LEVEL: Final = 8
_MAX_SPAN: Final = 200  # columns
_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_LINK_ID: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_NOTES: Final = (("footnoteReference", RELATIONSHIP_TYPE.FOOTNOTES), ("endnoteReference", RELATIONSHIP_TYPE.ENDNOTES))
# Deletions are not text, a fallback repeats its choice, and a text box is a separate block.
_SKIPPED: Final = frozenset({"del", "moveFrom", "Fallback", "txbxContent", "pPr", "rPr", "sdtPr"})
_SIGNS: Final = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# A field of Word, such as a link: its beginning, the end of its instruction, and its end.
_FIELD_SIGNS: Final = {"begin": "\ue000", "separate": "\ue001", "end": "\ue002"}
_ENDS: Final = {"p": "\n", "tc": "\n", "fldSimple": "\ue002"}
_FIELD: Final = re.compile("\ue000([^\ue000-\ue002]*)(?:\ue001([^\ue000-\ue002]*))?\ue002")
_FIELD_LINK: Final = re.compile(r"\s*HYPERLINK\s+\"([^\"]*)\"(?:\s+\\l\s+\"([^\"]*)\")?")
_PLACE: Final = re.compile(r"%([1-9])")  # of a level's number
_OFF: Final = frozenset({"0", "false", "off"})
_GONE: Final = ("strike", "dstrike", "vanish")
# Signs of the fonts Wingdings and Symbol, which are no letters of Unicode.
_SYMBOLS: Final = {
    "F0FC": "✓", "F0FB": "✗", "F0FE": "☑", "F0FD": "☒", "F0A8": "☐", "F06F": "☐", "F0E0": "→", "F0A7": "▪", "F0B7": "•",
    "F0B3": "≥", "F0A3": "≤", "F0B1": "±", "F0B4": "×", "F0B0": "°", "F06D": "µ", "F0B9": "≠", "F0BB": "≈", "F0A5": "∞",
}  # fmt: skip


class _Style(NamedTuple):
    """A style with what it inherits. ``is_gone`` is set if its text is hidden or struck out."""

    name: str = ""
    listed: tuple[int, int] | None = None
    is_gone: bool = False


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
        self._related = document.part.related_parts
        related = {rel.reltype: rel.target_part for rel in document.part.rels.values() if not rel.is_external}
        numbering = related.get(RELATIONSHIP_TYPE.NUMBERING)
        self._numbers = _Numbers(numbering.element if numbering else None)
        self._styles = _styles_of(document.styles.element)
        self._links = {key: rel.target_ref for key, rel in document.part.rels.items() if rel.is_external}
        roots = {kind: parse_xml(related[reltype].blob) for kind, reltype in _NOTES if reltype in related}
        self._notes = {(kind, note.get(f"{_W}id")): note for kind, root in roots.items() for note in root}
        self._referenced: list[tuple[str, Any]] = []
        self._boxes: list[Any] = []
        self._note_count = 0

    def blocks_in(self, parent: Any) -> Iterator[_Block]:
        """Yield the blocks in order. Notes and text boxes follow the block that refers to them."""
        for element in parent:
            name = _name(element)
            if name in {"p", "oMathPara"}:
                yield from self._paragraph(element)
            elif name == "tbl":
                yield from filter(lambda block: block.text, [_Block(self._table(element))])
            elif name == "sdt":
                for content in _control(element):
                    yield from self.blocks_in(content)
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
                yield _Block(f"{raise_or_lower(number, 'sup')} {' '.join(_with_links(self._inline(note)).split())}")

    def _paragraph(self, element: Any) -> Iterator[_Block]:
        text = _with_links(self._inline(element)).strip()
        if not text:
            return
        properties = element.find(f"{_W}pPr")
        style, listed, is_gone = self._styles.get(_value(properties, "pStyle"), _Style())
        if is_gone:
            return
        heading = _HEADING.fullmatch(style)
        marker = self._numbers.marker(style, _list_level(properties) or listed)
        if heading or style == "title":
            depth = min(int(heading["depth"]), _MAX_HEADING) if heading else 1
            number = marker.strip().removeprefix("-").strip()
            yield _Block(" ".join(["#" * depth, *number.split(), *text.split()]))
        else:
            yield _Block(" ".join(text.split()) if marker else _HEADING_SIGN.sub(r"\\", text), marker)

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
                pieces.append(_to_link(text, url))
            elif name == "sdt":
                pieces += [self._inline(content) for content in _control(child)]
            elif (note := self._notes.pop((name, child.get(f"{_W}id")), None)) is not None:  # its first reference
                self._note_count += 1
                self._referenced.append((str(self._note_count), note))
                pieces.append(f" {raise_or_lower(str(self._note_count), 'sup')}")
            else:
                pieces.append(_SIGNS.get(name) or self._sign(name, child))
        return "".join(pieces)

    def _sign(self, name: str, element: Any) -> str:
        """Return a symbol, a part of an equation, or the text of another element."""
        if name == "sym":
            return _SYMBOLS.get((element.get(f"{_W}char") or "").upper(), "")
        if name == "graphicData":
            parts = (self._related.get(key) for key in drawing_ids(element))
            if drawn := "\n\n".join(drawing_text(parse_xml(part.blob)) for part in parts if part is not None):
                return f"\n\n{drawn}\n\n"
        text = self._inline(element)
        if str(element.tag).startswith(_M):  # a comment's tag is a function
            return _equation_part(name, element, text)
        return _field_sign(name, element) + text + _ENDS.get(name, "")

    def _run(self, run: Any) -> str:
        marks = {_name(mark): mark.get(f"{_W}val") or "" for mark in run.iterfind(f"{_W}rPr/*")}
        own = [marks[name].lower() not in _OFF for name in _GONE if name in marks]
        if any(own or [self._styles.get(marks.get("rStyle", "?"), _Style()).is_gone]):
            return ""
        text, way = self._inline(run), marks.get("vertAlign", "")
        if not way and text.strip().isdigit() and (position := marks.get("position", "0")).lstrip("-") != "0":
            way = "subscript" if position.startswith("-") else "superscript"
        return raise_or_lower(text, "sup" if way == "superscript" else "sub") if way.endswith("script") else text

    def _table(self, table: Any) -> str:
        """Return rows of equal width. Empty cells follow one that spans columns; one that spans rows is repeated."""
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
                text = above[at] if goes_on and at < len(above) else " ".join(_with_links(self._inline(cell)).split())
                cells += [text, *[""] * (_span(properties, "gridSpan", 1) - 1)]
                if len(cells) > _MAX_SPAN:
                    break
            rows += [cells] if any(cells) else []
        return markdown_table(rows)


def _equation_part(name: str, element: Any, text: str) -> str:
    """Return the text of a part of an equation with the signs that Word draws around it."""
    signs = {_name(sign): sign.get(f"{_M}val") or "" for sign in element.iterfind(f"{_M}{name}Pr/*")}
    if name in {"sup", "sub"}:
        return raise_or_lower(text, name)
    if name in {"num", "den"}:
        return ("/" if name == "den" else " ") + (text if text.isalnum() else f"({text})")
    if name == "f" and signs.get("type") == "noBar":  # a binomial coefficient
        return text.strip().replace("/", " over ", 1)
    if name == "e" and _name(element.getparent()) in {"mr", "eqArr"}:
        return f"{text} "
    if name == "deg":  # of a root, before what it covers
        return f"{raise_or_lower(text, 'sup')}√("
    before = {"nary": signs.get("chr", "∫"), "d": signs.get("begChr", "("), "lim": "_("}
    after = {"rad": ")", "d": signs.get("endChr", ")"), "lim": ")", "mr": "; ", "bar": "\u0304"}
    after["acc"] = signs.get("chr", "\u0302")
    return before.get(name, "") + text + after.get(name, "")


def _field_sign(name: str, element: Any) -> str:
    """Return the signs and the instruction of an element of a field; an empty text for another element."""
    if name == "fldSimple":
        return f"\ue000{element.get(f'{_W}instr') or ''}\ue001"
    if name == "instrText":
        return str(element.text or "")
    return _FIELD_SIGNS.get(element.get(f"{_W}fldCharType"), "") if name == "fldChar" else ""


def _to_link(text: str, url: str) -> str:
    is_link = text.strip() and url.startswith(("http", "mailto:")) and url != text
    return f"[{text}]({url})" if is_link else text


def _with_links(text: str) -> str:
    """Return a paragraph with the results of its fields, and with the addresses of those that are links."""

    def result(field: re.Match[str]) -> str:
        link = _FIELD_LINK.match(field[1])
        return _to_link(field[2] or "", "#".join(filter(None, link.groups())) if link else "")

    while (inner := _FIELD.sub(result, text)) != text:  # one field may be inside another
        text = inner
    return re.sub("\ue000[^\ue000-\ue002]*|[\ue001\ue002]", "", text)  # of a field over several paragraphs


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


class _Level(NamedTuple):
    """Definition of a list's level: the form of its numbers, the text around them (``%1.%2``), and the first number."""

    form: str = ""
    shown: str = ""
    start: str = ""


class _Numbers:
    """Counters of lists. As in Word, a list continues after other text, and deeper levels restart."""

    def __init__(self, numbering: Any) -> None:
        self._lists: dict[str, str] = {}
        self._levels: dict[tuple[str, int], _Level] = {}
        self._restarts: dict[tuple[str, int], int] = {}
        self._counts: dict[tuple[str, int], int] = {}
        for element in numbering if numbering is not None else ():
            num, list_id = element.get(f"{_W}numId"), element.get(f"{_W}abstractNumId")
            if num is not None:
                self._lists.setdefault(num, _value(element, "abstractNumId") or f"-{num}")
            for level in element.iterfind(f"{_W}lvlOverride"):
                if start := _value(level, "startOverride"):
                    self._restarts.setdefault((num, int(level.get(f"{_W}ilvl"))), int(start))
            for level in element.iterfind(f"{_W}lvl"):
                words = (_value(level, name) for name in ("numFmt", "lvlText", "start"))
                self._levels.setdefault((list_id, int(level.get(f"{_W}ilvl"))), _Level(*words))

    def marker(self, style: str, listed: tuple[int, int] | None) -> str:
        """Return the indented start of a list item; empty for another paragraph."""
        num, level = listed or (None, 0)
        if num == 0 or (num is None and not style.startswith("list")):
            return ""
        key = (self._lists.get(str(num), f"-{num}") if num else "", level)
        form, shown, _ = self._levels.get(key, _Level())
        if form == "bullet" or (not form and "number" not in style):
            return f"{_INDENT * level}-"
        self._count(str(num), key)
        if form in {"", "decimal"} and shown.rstrip(".)") in {"", f"%{level + 1}"}:
            return f"{_INDENT * level}{self._counts[key]}."
        return f"{_INDENT * level}- {_PLACE.sub(lambda place: self._label(key[0], int(place[1]) - 1), shown)}"

    def _label(self, list_id: str, level: int) -> str:
        """Return a level's count as it is printed, such as ``b`` or ``iv``."""
        form, count = self._levels.get((list_id, level), _Level()).form, self._counts.get((list_id, level), 1)
        return numeral(form, count)

    def _count(self, num: str, key: tuple[str, int]) -> None:
        if restart := self._restarts.pop((num, key[1]), 0):
            self._counts[key] = restart - 1
        first = int(self._levels.get(key, _Level()).start or 1)
        self._counts[key] = self._counts.get(key, first - 1) + 1
        for deeper in [other for other in self._counts if other[0] == key[0] and other[1] > key[1]]:
            del self._counts[deeper]


def _list_level(properties: Any) -> tuple[int, int] | None:
    """Return the number of a paragraph's list (0: not in a list) and its level."""
    numbers = properties.find(f"{_W}numPr") if properties is not None else None
    if not (num := _value(numbers, "numId")):
        return None
    return int(num), min(max(0, int(_value(numbers, "ilvl") or 0)), _MAX_LEVEL)


def _styles_of(styles: Any) -> dict[str, _Style]:
    """Return the styles by id, each with what it inherits; the default style of paragraphs also has an empty id."""
    elements = {style.get(f"{_W}styleId") or "": style for style in styles.findall(f"{_W}style")}
    known: dict[str, _Style] = {}
    for key, style in elements.items():
        chain: list[Any] = []
        above = style
        while above is not None and above not in chain:
            chain.append(above)
            above = elements.get(_value(above, "basedOn"))
        names = [_value(each, "name").lower() for each in chain]
        marks = [each.find(f"{_W}rPr/{_W}{mark}") for each in chain for mark in _GONE]
        known[key] = _Style(
            name=next((name for name in names if name == "title" or name.startswith(("heading ", "list"))), names[0]),
            listed=next(filter(None, (_list_level(each.find(f"{_W}pPr")) for each in chain)), None),
            is_gone=any(mark is not None and (mark.get(f"{_W}val") or "").lower() not in _OFF for mark in marks),
        )
        if style.get(f"{_W}type") == "paragraph" and style.get(f"{_W}default") == "1":
            known[""] = known[key]
    return known


def _value(parent: Any, name: str) -> str:
    child = parent.find(f"{_W}{name}") if parent is not None else None
    return "" if child is None else child.get(f"{_W}val") or ""
