"""Values of the knowledge base: documents, passages, sources and their state."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

PATH: Final = " › "  # between the headings of a path
UNREAD: Final = "unread:"  # prefix of notes about documents that were not read completely
FETCHED: Final = "fetched:"  # prefix of notes about fetched documents; the document's key follows


class KnowledgeAwayError(Exception):
    """The index cannot be reached at the moment. The text names the kind of failure and is safe to log."""


Trouble = Literal["unreadable", "big", "slow"]


class ReadError(Exception):
    """A document that cannot be read. ``reason`` is for people. ``temporary``: the index keeps its earlier version.

    ``trouble`` says whether reading it takes too much memory (``big``) or time.
    """

    def __init__(self, reason: str, *, temporary: bool = False, trouble: Trouble = "unreadable") -> None:
        super().__init__(reason)
        self.reason = reason
        self.temporary = temporary
        self.trouble = trouble


@dataclass(eq=False)
class NotModifiedError(Exception):
    """The document has not changed since it was indexed. ``size`` is in bytes."""

    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document. ``id`` is its path inside its root, with ``/``; ``text`` is empty in lists.

    ``updated_at`` is an ISO 8601 date: the one stated in the document, else the day on which its file changed (UTC).
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
class FoundPassage:
    """A part of a document. ``line`` counts from 1. ``page`` is 0 if the format has no pages.

    ``heading`` joins all headings above it with ``PATH``; ``url`` links to the lowest one. ``number`` counts the
    document's passages from 0, ``of`` is their total.
    """

    document: str
    title: str
    path: tuple[str, ...]  # the headings above it, from the top
    text: str
    url: str = ""
    line: int = 1
    page: int = 0
    updated_at: str = ""
    audience: str = "public"
    number: int = 0
    of: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Totals of one source in the index. ``oldest`` and ``newest`` are ISO 8601 dates of its documents."""

    source: str
    documents: int = 0
    passages: int = 0
    oldest: str = ""
    newest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """Result of one index run. ``failed`` pairs a document's path with the reason in plain words."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """State of one source after a run. Times are seconds since 1970. ``synced`` is the last success, 0 for never.

    ``part`` names the part of the source that was read. ``read`` counts the examined documents, ``size`` their bytes,
    ``failures`` the unreadable ones; ``failed`` pairs the first of them with reasons. ``skipped`` counts files that
    were not examined, by suffix. ``tried`` is 0 while the source is read for the first time.
    """

    tried: float
    part: str = ""
    synced: float = 0.0
    seconds: float = 0.0
    read: int = 0
    size: int = 0
    failures: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()


def due_at(states: Mapping[str, SourceState], names: Sequence[str], every_s: float) -> float:
    """Return the time of the next sync in seconds since 1970; 0 if one of the sources was never read."""
    return min((states[name].tried + every_s if name in states else 0.0 for name in names), default=float("inf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """A document at its source. ``id`` is the path people see, ``key`` is unique in the index, ``name`` a file name.

    ``url`` is its own link; if empty, the configured prefix makes one. ``place`` says what to add to the link: the
    ``anchor`` of a heading, the ``line``, or nothing. ``read`` returns the bytes and the time of the last change
    (seconds since 1970, 0 if unknown), which counts more than dates in the text if ``is_committed``. It raises
    ``ReadError`` and ``NotModifiedError``. ``title`` is the source's; if empty, the document's own counts.
    """

    id: str
    key: str
    name: str
    source: str
    read: Callable[[], tuple[bytes, float]]
    audience: str = "public"
    url: str = ""
    place: str = ""
    is_committed: bool = False
    title: str = ""


@dataclass(slots=True, kw_only=True)
class IndexRun:
    """State that all sources share during one run. ``missing`` lists sources that could not be reached.

    ``known`` maps each key in the index to its digest, id, audience and link. ``notes`` come from earlier runs,
    ``new_notes`` are for later ones. ``failed`` pairs documents with reasons. ``skipped`` counts files by
    source and suffix.
    """

    failed: list[tuple[str, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    known: Mapping[str, tuple[str, str, str, str]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    new_notes: dict[str, str] = field(default_factory=dict)
    skipped: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _ids: set[str] = field(default_factory=set)

    def unique_id(self, inside: str, prefix: str) -> str:
        """Return the path inside a source, with the source's name in front if an earlier source has the same path."""
        name = inside
        while name in self._ids:
            name = f"{prefix}/{name}"
        self._ids.add(name)
        return name


class DocumentSource(Protocol):
    """A place with documents that is not a plain folder."""

    @property
    def key(self) -> str:
        """Prefix of the keys of all its documents."""

    @property
    def part(self) -> str:
        """The configured part of the source, empty for all of it. If it changes, the source is read again."""
        return ""

    def documents(self, run: IndexRun) -> Iterator[Readable]:
        """Yield every document. Add unreadable ones to ``run.failed``, unreachable keys to ``run.missing``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredSource:
    """A source that this run skips. Its documents stay in the index if they have this ``audience``; empty: any."""

    key: str
    part: str = ""
    audience: str = ""
