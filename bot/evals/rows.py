"""Labelled rows, one JSON object per line, and the figures of reports."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from bot.errors import WrongUse
from bot.evals.files import json_of, read_json
from verification.types import Source

Read = TypeVar("Read")
Item = TypeVar("Item")
R = TypeVar("R", bound="Row")

Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""An optional text; null counts as absent."""


def _unique_ids(sources: "list[SourceRow]") -> "list[SourceRow]":
    numbers = [source.id for source in sources]
    # "[2]" in a text must mean exactly one source.
    if twice := next((number for number in numbers if numbers.count(number) > 1), None):
        message = f"two sources have the id {twice}, so [{twice}] could mean either"
        raise ValueError(message)
    return sources


def _not_blank(text: str) -> str:
    if not text.strip():
        message = "without a text nothing that cites the source can be verified"
        raise ValueError(message)
    return text


class Given(BaseModel):
    """A value from a file. Fields have exactly their type; other fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


class SourceRow(Given):
    """A source in a file."""

    id: int
    title: Text = ""
    url: Text = ""
    text: Annotated[str, AfterValidator(_not_blank)]
    updated_at: Text = ""


Sources = Annotated[
    list[SourceRow], BeforeValidator(lambda value: [] if value is None else value), AfterValidator(_unique_ids)
]


class Row(Given):
    """A labelled row. Its id may be written as a number."""

    id: Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]


def sources_of(rows: Iterable[SourceRow]) -> tuple[Source, ...]:
    """Return the sources of these rows."""
    return tuple(Source(**row.model_dump()) for row in rows)


def read_sources(path: Path) -> tuple[Source, ...]:
    """Read a JSON list of sources."""
    return sources_of(
        validate(TypeAdapter(Sources), read_json(path), f"{path} is not a list of {{id, title, url, text}}")
    )


def read_rows(path: Path, kind: type[R]) -> Iterator[R]:
    """Yield the rows of one file. Empty lines are skipped."""
    adapter = TypeAdapter(kind)
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield validate(adapter, json_of(line, f"{path}, line {number}"), f"{path}, line {number}")
    except OSError as error:
        raise WrongUse(why=f"cannot read {path}: {error.strerror}") from None


def validate(adapter: TypeAdapter[Read], value: Any, place: str) -> Read:
    """Return a JSON value as its type. Raises ``WrongUse`` with the first fault and its place."""
    # JSON can contain half a character, which UTF-8 cannot encode, so replace it with a question mark here.
    whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    try:
        return adapter.validate_json(whole)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(map(str, fault["loc"]))
        raise WrongUse(why=f"{place}: '{field}': {fault['msg']}" if field else f"{place}: {fault['msg']}") from None


def by_kind(items: Iterable[Item], kind_of: Callable[[Item], str]) -> dict[str, list[Item]]:
    """Group items by their kind; those without a kind are left out."""
    kinds: dict[str, list[Item]] = {}
    for one in items:
        if kind := kind_of(one):
            kinds.setdefault(kind, []).append(one)
    return dict(sorted(kinds.items()))


def share(part: int, whole: int) -> float:
    """Return ``part / whole`` to four places, or 0 if ``whole`` is 0."""
    return round(part / whole, 4) if whole else 0.0


def percentile(values: Sequence[float], rank: float) -> float:
    """Return the value at ``rank`` (0 to 1) of the sorted values, or 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(rank * len(ordered)))] if ordered else 0.0
