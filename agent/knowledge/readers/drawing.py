"""Text of the charts and the SmartArt in Word documents and PowerPoint presentations."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from agent.knowledge.readers.document import markdown_table
from agent.knowledge.readers.spreadsheet import number_text

_OFFICE: Final = "http://schemas.openxmlformats.org"
_A: Final = f"{{{_OFFICE}/drawingml/2006/main}}"
_C: Final = f"{{{_OFFICE}/drawingml/2006/chart}}"
_R: Final = f"{{{_OFFICE}/officeDocument/2006/relationships}}"
_PARTS: Final = {f"{_C}chart": f"{_R}id", f"{{{_OFFICE}/drawingml/2006/diagram}}relIds": f"{_R}dm"}


def drawing_ids(element: Any) -> Iterator[str]:
    """Yield the ids of the charts and the SmartArt to which an element, or one below it, refers."""
    yield from (each.get(name) or "" for tag, name in _PARTS.items() for each in element.iter(tag))


def drawing_text(root: Any) -> str:
    """Return the lines of SmartArt as a list, or a chart's title and a table with a row per category."""
    series = [*root.iter(f"{_C}ser")]
    if not series:
        return "\n".join(f"- {line}" for line in _lines(root))
    names = [" ".join(value.text or "" for value in each.iterfind(f"{_C}tx//{_C}v")) for each in series]
    columns = [_points(series[0], "cat", "xVal"), *(_points(each, "val", "yVal") for each in series)]
    rows = [[values.get(at, "") for values in columns] for at in sorted(set().union(*columns))]
    title = " ".join(line for found in root.iterfind(f"{_C}chart/{_C}title") for line in _lines(found))
    return "\n\n".join(filter(None, [title, markdown_table([["", *names], *rows])]))


def _lines(root: Any) -> Iterator[str]:
    lines = ("".join(run.text or "" for run in line.iter(f"{_A}t")).strip() for line in root.iter(f"{_A}p"))
    return filter(None, lines)


def _points(series: Any, *kinds: str) -> dict[int, str]:
    """Return the values of a series by their position, as the chart shows them."""
    points: dict[int, str] = {}
    for cache in (each for kind in kinds for each in series.iterfind(f"{_C}{kind}//{_C}pt/..")):
        form = cache.findtext(f"{_C}formatCode", "")
        for point in cache.iterfind(f"{_C}pt"):
            points[int(point.get("idx"))] = _shown(point.findtext(f"{_C}v", ""), form)
    return points


def _shown(value: str, form: str) -> str:
    with suppress(ValueError, OverflowError):  # "#N/A", or a date beyond the calendar
        return number_text(float(value), form) if form else value
    return value
