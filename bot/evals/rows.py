"""Reads labelled rows, one JSON object a line, and says file, line and fault where a line is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from bot.errors import WrongUse
from bot.evals.verify import parse_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One object of a file; ``place`` is ``FILE, line N``."""

    place: str
    fields: Mapping[str, Any]

    def text(self, name: str, default: str | None = None) -> str:
        """A text field; null counts as absent. Raises ``WrongUse``."""
        value = self.fields.get(name)
        value = default if value is None else value
        if not isinstance(value, str):
            self.refuse(f"'{name}' must be a text")
        return value

    def identity(self) -> str:
        """The row's id: a text or a whole number."""
        value = self.fields.get("id")
        if isinstance(value, bool) or not isinstance(value, str | int):
            self.refuse("'id' must be a text or a whole number")
        return str(value)

    def flag(self, name: str) -> bool:
        """A field that is true or false."""
        value = self.fields.get(name)
        if not isinstance(value, bool):
            self.refuse(f"'{name}' must be true or false")
        return value

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of texts, or None for null. The field must be there."""
        if name not in self.fields:
            self.refuse(f"'{name}' is missing: a list of texts, or null")
        value = self.fields[name]
        if value is None:
            return None
        if not isinstance(value, list) or not value or not all(isinstance(each, str) and each for each in value):
            self.refuse(f"'{name}' must be a list of texts, or null")
        return tuple(value)

    def refuse(self, what: str) -> NoReturn:
        """End the command: this is what is wrong with the row."""
        message = f"{self.place}: {what}."
        raise WrongUse(message)


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of one file. Raises ``WrongUse`` for a file that cannot be read and for a line that is no object."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _row(line, f"{path}, line {number}")
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror}"
        raise WrongUse(msg) from None


def _row(line: bytes, place: str) -> Row:
    try:
        value = parse_json(line.decode("utf-8"))
    except ValueError as error:
        msg = f"{place} is no JSON: {error}."
        raise WrongUse(msg) from None
    if not isinstance(value, Mapping):
        msg = f"{place} is no JSON object."
        raise WrongUse(msg)
    return Row(place=place, fields=value)


def share(part: int, whole: int) -> float:
    """``part / whole`` to four places; 0 of nothing is 0."""
    return round(part / whole, 4) if whole else 0.0


def percentile(values: Sequence[float], rank: float) -> float:
    """The value at ``rank`` (0 to 1) of the sorted values, the nearest one; 0 of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(rank * len(ordered)))] if ordered else 0.0
