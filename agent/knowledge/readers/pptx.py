"""Reader of PowerPoint presentations: slides with their titles, tables and notes. Only this module imports pptx."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pptx import Presentation
from pptx.exc import PythonPptxError
from pptx.oxml import parse_xml
from pptx.oxml.ns import qn

from agent.knowledge.readers.document import (
    MAX_PAGES,
    Content,
    ReadLimits,
    clean,
    join_parts,
    markdown_table,
    numeral,
    open_package,
    raise_or_lower,
    refusing_damage,
)
from agent.knowledge.readers.drawing import drawing_ids, drawing_text

_INDENT: Final = "    "
_MAX_SHAPE_DEPTH: Final = 20


def read_pptx(data: bytes, limits: ReadLimits) -> Content:
    """Read the visible slides, each as a page under its title."""
    with refusing_damage("PowerPoint presentation", PythonPptxError):
        presentation = Presentation(open_package(data))
        texts = limits.take(map(_slide_text, presentation.slides, range(1, MAX_PAGES + 1)), "slide", len)
        return Content(title=clean(presentation.core_properties.title or ""), parts=join_parts(map(clean, texts)))


def _slide_text(slide: Any, number: int) -> str:
    if slide.element.get("show") in {"0", "false"}:
        return ""
    title = slide.shapes.title
    shapes = (shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id)
    blocks = [*_shape_texts(shapes, 0)]
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) and frame.text.strip():
        blocks.append(f"Notes: {frame.text.strip()}")
    heading = " ".join(title.text.split()) if title is not None and title.has_text_frame else ""
    level = "#" if number == 1 and heading else "##"  # the first slide titles the presentation
    return "\n\n".join([f"{level} {heading or f'Slide {number}'}", *blocks]) if heading or blocks else ""


def _shape_texts(shapes: Iterable[Any], depth: int) -> Iterator[str]:
    for shape in shapes:
        if getattr(shape, "shapes", None) is not None and depth < _MAX_SHAPE_DEPTH:  # a group
            yield from _shape_texts(shape.shapes, depth + 1)
        elif getattr(shape, "has_table", False):
            yield markdown_table(list(_table_cells(shape.table)))
        elif shape.has_text_frame:
            lines = [*_lines(shape.text_frame)]
            is_plain = len(lines) == 1 and lines[0][1] == "-"
            texts = (f"{_INDENT * level}{'' if is_plain else f'{marker} '}{text}" for level, marker, text in lines)
            yield from filter(None, ["\n".join(texts)])
        else:
            parts = (shape.part.rels.get(key) for key in drawing_ids(shape.element))
            yield from (drawing_text(parse_xml(each.target_part.blob)) for each in parts if each is not None)


def _lines(frame: Any) -> Iterator[tuple[int, str, str]]:
    """Yield the level, the marker and the text of each paragraph."""
    counts: dict[int, int] = {}
    for paragraph in frame.paragraphs:
        if not (text := " ".join(_inline(paragraph).split())):
            continue
        level, marker = paragraph.level, "-"
        numbering = paragraph._p.find(f"{qn('a:pPr')}/{qn('a:buAutoNum')}")  # noqa: SLF001 - the library has no other way
        counts = {
            each: count for each, count in counts.items() if each < level or (each == level and numbering is not None)
        }
        if numbering is not None:
            counts[level] = counts.get(level, int(numbering.get("startAt") or 1) - 1) + 1
            kind = numbering.get("type") or ""
            form = ("upper" if "Uc" in kind else "lower") + ("Letter" if kind.startswith("alpha") else "Roman")
            sign = ")" if "Paren" in kind else "."
            is_decimal = not kind.startswith(("alpha", "roman"))
            marker = f"{counts[level]}." if is_decimal else f"- {numeral(form, counts[level])}{sign}"
        yield level, marker, text


def _table_cells(table: Any) -> Iterator[list[str]]:
    """Yield rows. A cell that spans columns is followed by empty ones, a cell that spans rows is repeated."""
    above: list[str] = []
    for row in table.rows:
        cells = [" ".join(map(_inline, cell.text_frame.paragraphs)) for cell in row.cells]
        merged = zip(row.cells, cells, above or cells, strict=True)
        above = [over if cell.is_spanned and cell._tc.vMerge else text for cell, text, over in merged]  # noqa: SLF001 - only there
        yield above


def _inline(paragraph: Any) -> str:
    """Return the text of a paragraph with its links, without struck-out text."""
    links: Any = paragraph.part.rels
    pieces = []
    for element in paragraph._p.content_children:  # noqa: SLF001 - the library shows neither breaks nor these styles
        font = getattr(element, "rPr", None)
        if font is None:
            pieces.append(element.text)
        elif font.get("strike", "noStrike") == "noStrike":
            raised = int(font.get("baseline") or 0)
            text = raise_or_lower(element.text, "sup" if raised > 0 else "sub") if raised else element.text
            link: Any = links.get(font.hlinkClick.rId) if font.hlinkClick is not None else None
            is_web = link is not None and link.is_external and link.target_ref.startswith("http") and text.strip()
            pieces.append(f"[{text}]({link.target_ref})" if is_web else text)
    return "".join(pieces)
