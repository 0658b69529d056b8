"""The text of a Word document as Markdown. The only importer of docx, loaded for the first such document.

How much a package would unpack to is checked before anything is unpacked. Raises ``ReadError`` only.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from docx import Document
from docx.document import Document as Opened
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import OpcError
from docx.table import Table, _Cell
from docx.text.paragraph import Paragraph

from agent.knowledge.readers.reading import damaged
from agent.knowledge.types import ReadError

MAX_ENTRIES: Final = 5_000
MAX_UNPACKED: Final = 200_000_000
MAX_XML: Final = 60_000_000  # bytes of one XML part: it is parsed whole, into several times its size
_LOCKED: Final = b"\xd0\xcf\x11\xe0"  # an encrypted package lies inside a container of the older kind
_ENCRYPTED_ENTRY: Final = 0x1
_DEEPEST_HEADING: Final = 6
_HEADING: Final = re.compile(r"heading (?P<depth>[1-9])")
_LIST_OF: Final = "./w:num[@w:numId='{num}']/w:abstractNumId/@w:val"
_LEVEL_OF: Final = "./w:abstractNum[@w:abstractNumId='{list}']/w:lvl[@w:ilvl='{level}']/{what}/@w:val"
_AGAIN_OF: Final = "./w:num[@w:numId='{num}']/w:lvlOverride[@w:ilvl='{level}']/w:startOverride/@w:val"
# A control that shows its placeholder has no text of the document, and a table of contents repeats its headings.
_WRAPPERS: Final = (
    ".//w:ins | .//w:moveTo | .//w:smartTag | .//w:customXml | .//w:fldSimple | .//w:sdt"
    " | .//w:sdtContent[not(../w:sdtPr/w:showingPlcHdr or ../w:sdtPr//w:docPartGallery[@w:val='Table of Contents'])]"
)
_INDENT: Final = "    "
_DEEPEST_LEVEL: Final = 8


def docx_markdown(data: bytes) -> tuple[str, str]:
    """The title of the properties (or nothing) and the text as Markdown."""
    if data.startswith(_LOCKED):
        raise ReadError(reason="is locked with a password, or of the form before 2007 (.doc)")
    with damaged("Word document", OpcError):
        _bearable(data)
        document = Document(io.BytesIO(data))
        _unwrap(document.element.body)
        return (document.core_properties.title or "").strip(), "\n\n".join(_blocks(document)) + "\n"


def _bearable(data: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as package:  # no entry yields more bytes than it is said to have
        entries = package.infolist()
    if any(entry.flag_bits & _ENCRYPTED_ENTRY for entry in entries):
        raise ReadError(reason="is locked with a password")
    largest = max((entry.file_size for entry in entries if entry.filename.endswith((".xml", ".rels"))), default=0)
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_ENTRIES or unpacked > MAX_UNPACKED or largest > MAX_XML:
        msg = f"would unpack to {unpacked // 1_000_000} MB in {len(entries)} files, which is more than is read"
        raise ReadError(msg)


def _unwrap(body: Any) -> None:
    """Puts what tracked changes, content controls and fields hold in their place: inside of them nothing is read."""
    for wrapper in reversed(body.xpath(_WRAPPERS)):  # the inner ones first
        for inside in list(wrapper):
            wrapper.addprevious(inside)
        wrapper.getparent().remove(wrapper)


def _blocks(document: Opened) -> Iterator[str]:
    """Paragraphs and tables; the items of a list that stand together are one."""
    numbers = _Numbers(numbering=_numbering(document))
    blocks = zip(document.iter_inner_content(), document.element.body.inner_content_elements, strict=True)
    read = ((block, "" if isinstance(block, Table) else numbers.marker(block, element)) for block, element in blocks)
    for is_list, together in groupby(read, key=lambda pair: bool(pair[1])):
        if is_list:
            yield "\n".join(
                _items([(marker, _line(block.text)) for block, marker in together if isinstance(block, Paragraph)])
            )
        else:
            yield from filter(None, (_table(b) if isinstance(b, Table) else _paragraph(b) for b, _ in together))


def _items(items: list[tuple[str, str]]) -> Iterator[str]:
    """Lines of a list, none deeper than one step below the line above it."""
    depth = -1
    for marker, text in items:
        depth = min(marker.count(_INDENT), depth + 1)
        yield f"{_INDENT * depth}{marker.strip()} {text}"


def _paragraph(paragraph: Paragraph) -> str:
    text, style = paragraph.text.strip(), _style(paragraph)
    heading = _HEADING.fullmatch(style)
    depth = min(int(heading["depth"]), _DEEPEST_HEADING) if heading else int(style == "title")
    return f"{'#' * depth} {_line(text)}" if depth and text else text


@dataclass(slots=True, kw_only=True)
class _Numbers:
    """Counts the items of numbered lists as Word does: a list goes on behind other text, deeper levels begin anew."""

    numbering: Any
    counts: dict[tuple[str, int], int] = field(default_factory=dict)
    begun: set[tuple[int, int]] = field(default_factory=set)

    def marker(self, paragraph: Paragraph, element: Any) -> str:
        """What a list item begins with, indented; nothing for anything else."""
        style = _style(paragraph)
        if style == "title" or _HEADING.fullmatch(style):
            return ""
        num, level = _listed(element) or (_listed(paragraph.style.element) if paragraph.style else None) or (None, 0)
        if not paragraph.text.strip() or num == 0 or (num is None and not style.startswith("list")):
            return ""
        key = self._key(num, level) if num else ("", level)
        form = self._value(_LEVEL_OF, "", list=key[0], level=level, what="w:numFmt")
        if form == "bullet" or (not form and "number" not in style):
            return f"{_INDENT * level}-"
        return f"{_INDENT * level}{self._next(num, key)}."

    def _key(self, num: int, level: int) -> tuple[str, int]:
        return str(int(self._value(_LIST_OF, f"-{num}", num=num))), level

    def _next(self, num: int | None, key: tuple[str, int]) -> int:
        listed, level = key
        again = int(self._value(_AGAIN_OF, "0", num=num, level=level)) if num else 0
        if again and num and (num, level) not in self.begun:
            self.begun.add((num, level))
            self.counts[key] = again - 1
        first = int(self._value(_LEVEL_OF, "1", list=listed, level=level, what="w:start"))
        self.counts[key] = self.counts.get(key, first - 1) + 1
        for deeper in [one for one in self.counts if one[0] == listed and one[1] > level]:
            del self.counts[deeper]
        return self.counts[key]

    def _value(self, path: str, default: str, **names: object) -> str:
        found = [] if self.numbering is None else self.numbering.xpath(path.format(**names))
        return str(found[0]) if found else default


def _numbering(document: Opened) -> Any:
    """What the package says of its lists; None where it says nothing."""
    related = {rel.reltype: rel for rel in document.part.rels.values()}
    return related[RELATIONSHIP_TYPE.NUMBERING].target_part.element if RELATIONSHIP_TYPE.NUMBERING in related else None


def _listed(element: Any) -> tuple[int, int] | None:
    """The number of a paragraph's list (0: of none) and how deep it stands there."""
    lists, levels = (element.xpath(f"./w:pPr/w:numPr/w:{name}/@w:val") for name in ("numId", "ilvl"))
    return (int(lists[0]), min(max(0, int(levels[0])), _DEEPEST_LEVEL) if levels else 0) if lists else None


def _style(paragraph: Paragraph) -> str:
    return (paragraph.style.name or "").lower() if paragraph.style else ""


def _table(table: Table) -> str:
    """Rows with bars between cells; a cell that spans several columns is there once."""
    rows = [[_cell(cell).replace("|", "\\|") for cell in dict.fromkeys(row.cells)] for row in table.rows]
    rows = [row for row in rows if any(row)]
    width = max(map(len, rows), default=0)
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join([*lines[:1], f"|{' --- |' * width}", *lines[1:]]) if rows else ""


def _cell(cell: _Cell) -> str:
    """A cell's text, that of tables inside it too."""
    inside = (
        block.text
        if isinstance(block, Paragraph)
        else " ".join(_cell(each) for row in block.rows for each in dict.fromkeys(row.cells))
        for block in cell.iter_inner_content()
    )
    return _line(" ".join(inside))


def _line(text: str) -> str:
    return " ".join(text.split())
