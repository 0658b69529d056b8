"""Labelled rows, one JSON object a line, and the numbers that reports make of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from bot.errors import WrongUse
from bot.evals.files import json_of, read_json
from verification.types import Source

Read = TypeVar("Read")
Found = TypeVar("Found")
R = TypeVar("R", bound="Row")

Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A text that may be left out; null counts as absent."""


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _one_each(sources: list[SourceRow]) -> list[SourceRow]:
    numbers = [source.id for source in sources]
    # "[2]" in a text must mean one source.
    if twice := next((number for number in numbers if numbers.count(number) > 1), None):
        message = f"two sources have the id {twice}, so [{twice}] could mean either"
        raise ValueError(message)
    return sources


def _some(text: str) -> str:
    if not text.strip():
        message = "without a text nothing that cites the source can be verified"
        raise ValueError(message)
    return text


class Given(BaseModel):
    """Fields are of exactly their type; further fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


class SourceRow(Given):
    """A source as files have it."""

    id: int
    title: Text = ""
    url: Text = ""
    text: Annotated[str, AfterValidator(_some)]
    updated_at: Text = ""


Sources = Annotated[
    list[SourceRow], BeforeValidator(lambda value: [] if value is None else value), AfterValidator(_one_each)
]


class Row(Given):
    """What each labelled row has: an id, which may be written as a number."""

    id: Annotated[str, BeforeValidator(_as_text)]


def sources_of(rows: Iterable[SourceRow]) -> tuple[Source, ...]:
    """The sources that these rows stand for."""
    return tuple(Source(**row.model_dump()) for row in rows)


def read_sources(path: Path) -> tuple[Source, ...]:
    """A JSON list of sources."""
    return sources_of(checked(TypeAdapter(Sources), read_json(path), str(path)))


def read_rows(path: Path, kind: type[R]) -> Iterator[R]:
    """The rows of one file; empty lines are skipped."""
    adapter = TypeAdapter(kind)
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield checked(adapter, json_of(line, f"{path}, line {number}"), f"{path}, line {number}")
    except OSError as error:
        raise WrongUse(why=f"cannot read {path}: {error.strerror}") from None


def checked(adapter: TypeAdapter[Read], value: Any, place: str) -> Read:
    """A JSON value in its form. Raises ``WrongUse`` with the first fault and where it is."""
    # JSON can spell half of a character, which UTF-8 cannot carry: it becomes a question mark here, once for all.
    whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    try:
        return adapter.validate_json(whole)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(map(str, fault["loc"]))
        raise WrongUse(why=f"{place}: '{field}': {fault['msg']}" if field else f"{place}: {fault['msg']}") from None


def by_kind(found: Iterable[Found], kind_of: Callable[[Found], str]) -> dict[str, list[Found]]:
    """What is of the same kind, by that; what has none is left out."""
    kinds: dict[str, list[Found]] = {}
    for one in found:
        if kind := kind_of(one):
            kinds.setdefault(kind, []).append(one)
    return dict(sorted(kinds.items()))


def share(part: int, whole: int) -> float:
    """``part / whole`` to four places; 0 of nothing is 0."""
    return round(part / whole, 4) if whole else 0.0


def percentile(values: Sequence[float], rank: float) -> float:
    """The value at ``rank`` (0 to 1) of the sorted values, the nearest one; 0 of nothing."""
    admin_order = sorted(values)
    return admin_order[min(len(admin_order) - 1, int(rank * len(admin_order)))] if admin_order else 0.0
