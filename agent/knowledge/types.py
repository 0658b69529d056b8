"""The values of knowledge: documents, passages, where they come from, and what is known of each source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

PATH: Final = " › "  # what stands between the headings of a path
FETCHED: Final = "fetched:"  # what the names of notes about single documents begin with; the rest is the document's key


class KnowledgeAwayError(Exception):
    """The index cannot be reached now, and may be again. The text is the kind of failure, fit for a log."""


class ReadError(Exception):
    """A document that cannot be read; ``reason`` is for people. ``passing``: what was read before stands for now."""

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.passing = passing


class NotModifiedError(Exception):
    """The document stands as the index has it, and need not be read. ``size`` is in bytes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document. ``id`` is its path inside its root, with ``/``; ``text`` is empty in lists.

    ``updated_at`` is an ISO 8601 date: the one the document states, else the day its file was changed (UTC).
    ``source`` is the folder, repository, export or site it came from.
    """

    id: str
    title: str
    url: str = ""
    updated_at: str = ""
    audience: str = "public"
    source: str = ""
    passages: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A part of a document as it was found. ``line`` counts from 1; ``page`` is 0 where there are no pages.

    ``heading`` are all headings above it with ``PATH`` between, ``url`` leads to the last. ``number`` is its place in
    the document from 0, ``of`` how many there are.
    """

    document: str
    title: str
    heading: str
    text: str
    url: str = ""
    line: int = 1
    page: int = 0
    updated_at: str = ""
    audience: str = "public"
    number: int = 0
    of: int = 1

    @property
    def path(self) -> tuple[str, ...]:
        """The headings above it, from the top."""
        return tuple(self.heading.split(PATH)) if self.heading else ()

    @property
    def label(self) -> str:
        """The document's title and the headings below it, or the page."""
        return titled(self.title, self.path, self.page)


def titled(title: str, path: Sequence[str], page: int) -> str:
    """``Title › Heading › Heading``, without a first heading that is the title again; ``Title › page 2``."""
    place = path[1:] if path and path[0] == title else path
    return PATH.join((title, *(place or ([f"page {page}"] if page else []))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What the index has of one source; ``oldest`` and ``newest`` are ISO 8601 dates of its documents."""

    source: str
    documents: int = 0
    passages: int = 0
    oldest: str = ""
    newest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What one indexing did. ``failed`` pairs a document's path with the reason in plain words."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """One source after a run. Times are seconds since 1970; ``synced`` is when it was last there, 0 for never.

    ``part`` is which part of it was read, ``read`` documents of ``size`` bytes were looked at, ``failures`` could not
    be read; ``failed`` pairs the first of those with reasons.
    """

    tried: float
    part: str = ""
    synced: float = 0.0
    seconds: float = 0.0
    read: int = 0
    size: int = 0
    failures: int = 0
    failed: tuple[tuple[str, str], ...] = ()


def due_at(states: Mapping[str, SourceState], names: Sequence[str], every_s: float) -> float:
    """When these sources are to be gone over again, in seconds since 1970; 0 where one never was."""
    return min((states[name].tried + every_s if name in states else 0.0 for name in names), default=float("inf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """A document where it lies. People know it by its ``id``; ``key`` tells it from every other; ``name`` is a file's.

    ``url`` is its own link, empty where the configured prefix makes one; ``place`` what follows it: ``anchor`` of a
    heading, ``line``, or nothing. ``read`` gives its bytes and when it was changed (seconds since 1970); it raises
    ``ReadError`` and ``NotModifiedError``.
    """

    id: str
    key: str
    name: str
    source: str
    read: Callable[[], tuple[bytes, float]]
    audience: str = "public"
    url: str = ""
    place: str = ""


@dataclass(slots=True, kw_only=True)
class Ground:
    """What sources share while one run goes over them. ``missing`` are sources that are not there.

    ``known`` is what the index has of each key (digest, id, audience, link), ``notes`` what earlier runs noted, and
    ``noted`` what is to be noted for the next. ``failed`` pairs documents with reasons.
    """

    failed: list[tuple[str, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    known: Mapping[str, tuple[str, str, str, str]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    noted: dict[str, str] = field(default_factory=dict)
    _ids: set[str] = field(default_factory=set)

    def unique(self, inside: str, prefix: str) -> str:
        """The path inside a source; where an earlier one has the same, with this one's name before it."""
        name = inside
        while name in self._ids:
            name = f"{prefix}/{name}"
        self._ids.add(name)
        return name


class Source(Protocol):
    """Documents that are no files of a folder."""

    @property
    def key(self) -> str:
        """What all its documents' keys begin with."""

    @property
    def part(self) -> str:
        """Which part of it is read, where settings choose one: another part is another thing to read."""

    def documents(self, ground: Ground) -> Iterator[Readable]:
        """All of them; what cannot be read, or is away (its keys' beginning, less ``/``), is told to ``ground``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOff:
    """A source that this run does not go over: what the index has of it stays, if it is for the same ``audience``."""

    key: str
    part: str = ""
    audience: str = "public"
