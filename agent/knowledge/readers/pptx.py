"""Reader of PowerPoint presentations: slides with their titles, tables and notes. The only importer of pptx."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from pptx import Presentation
from pptx.exc import PythonPptxError

from agent.knowledge.readers.document import (
    MAX_PAGES,
    Content,
    Limits,
    clean,
    join_parts,
    refusing_damage,
    table_row,
)
from agent.knowledge.readers.package import open_package

_INDENT: Final = "    "
_MAX_SHAPE_DEPTH: Final = 20


def read_pptx(data: bytes, limits: Limits) -> Content:
    """Read the slides that are shown, each as a page under its title."""
    with refusing_damage("PowerPoint presentation", PythonPptxError):
        presentation = Presentation(open_package(data))
        slides = (slide for slide in islice(presentation.slides, MAX_PAGES))
        texts = limits.take(map(_slide_text, slides, range(1, MAX_PAGES + 1)), "slide", len)
        return Content(title=clean(presentation.core_properties.title or ""), parts=join_parts(map(clean, texts)))


def _slide_text(slide: Any, number: int) -> str:
    if slide.element.get("show") in {"0", "false"}:
        return ""
    title = slide.shapes.title
    blocks = [*_shape_texts((shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id), 0)]
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
            rows = [table_row(cell.text for cell in row.cells) for row in shape.table.rows]
            yield "\n".join([*rows[:1], f"|{' --- |' * len(shape.table.columns)}", *rows[1:]])
        elif shape.has_text_frame and shape.text_frame.text.strip():
            lines = [paragraph for paragraph in shape.text_frame.paragraphs if paragraph.text.strip()]
            bullets = len(lines) > 1
            yield "\n".join(
                f"{_INDENT * line.level}{'- ' if bullets else ''}{' '.join(line.text.split())}" for line in lines
            )
