"""One pass over the sources into an index. What did not change is not parsed again; what cannot be read is named.

Files are read outside of transactions and written in batches, so that a killed run loses only its open batch. What
belongs to a source that is away stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from agent.knowledge.index.tables import MOST_PASSAGES, Parsed, Shelf
from agent.knowledge.readers.chunking import chunk_document
from agent.knowledge.readers.reading import digest_of, parse_document
from agent.knowledge.sources.folders import Folders
from agent.knowledge.types import (
    FETCHED,
    PREFIX,
    Ground,
    IndexReport,
    NotModifiedError,
    PutOff,
    Readable,
    ReadError,
    Source,
    SourceState,
    shortened,
    states_of,
)

log = structlog.get_logger()

_BATCH_DOCUMENTS: Final = 64
_BATCH_CHARS: Final = 2_000_000


class IndexRun:
    """One pass."""

    def __init__(self, shelf: Shelf, progress: Callable[[str], None] | None) -> None:
        self._shelf = shelf
        self._progress = progress
        self._known = shelf.known()
        self._ground = Ground(known=self._known, notes=shelf.notes(FETCHED))
        self._states = states_of(shelf.notes(PREFIX))
        self._kept: set[str] = set()
        self._unreadable: set[str] = set()
        self._batch: list[Parsed] = []
        self._chars = 0
        self._read = 0
        self._size = 0
        self._counts = {"added": 0, "changed": 0, "unchanged": 0}

    def take_all(self, sources: Sequence[Path | Source]) -> IndexReport:
        """Everything under these folders and sources; what is under none of them leaves the index."""
        folders = {str(source.expanduser().resolve()): source for source in sources if isinstance(source, Path)}
        others = {source.key: source for source in sources if not isinstance(source, Path)}
        found = Folders([*folders.values()], self._ground)
        for name, folder in folders.items():
            self._go_over(name, "", found.below(folder))
        for name, source in others.items():
            if isinstance(source, PutOff):
                self._leave(source)
            else:
                self._go_over(name, source.part, source.documents(self._ground))
        self._shelf.note({f"{PREFIX}{name}": "" for name in self._states if name not in {*folders, *others}})
        return self.finish()

    def _leave(self, source: PutOff) -> None:
        """What is for others now than it was goes at once.

        Then, and where another part is to be read than was, the source counts as never read: it soon is.
        """
        held = {key: audience for key, (_, _, audience, _) in self._known.items() if key.startswith(f"{source.key}/")}
        stays = {key for key, audience in held.items() if audience == source.audience}
        self._kept |= stays
        before = self._states.get(source.key)
        if stays != held.keys() or (before and before.part != source.part):
            self._shelf.note({f"{PREFIX}{source.key}": ""})

    def _go_over(self, name: str, part: str, found: Iterable[Readable]) -> None:
        """One source, and what is to be known of it afterwards."""
        began, failed_before = time.time(), len(self._ground.failed)
        self._read = self._size = 0
        for file in found:
            self.take(file)
        self._write_batch()
        ended = time.time()
        state = self._states.get(name) or SourceState(tried=ended)
        if name not in self._ground.missing:
            state = SourceState(
                tried=ended, synced=ended, seconds=round(ended - began, 3), read=self._read, size=self._size
            )
        failed, more = shortened(self._ground.failed[failed_before:])
        self._shelf.note(
            {f"{PREFIX}{name}": replace(state, tried=ended, part=part, failed=failed, more=more).to_note()}
        )

    def take(self, file: Readable) -> None:
        """Read one file and store it if its content, or what is said about it, is not what the index has."""
        if self._progress:
            self._progress(file.id)
        try:
            data, changed_at = file.read()
            self._read, self._size = self._read + 1, self._size + len(data)
            if self._known.get(file.key) == (digest_of(data), file.id, file.audience, file.url):
                self._counts["unchanged"] += 1
            else:
                document = parse_document(file.name, data, changed=changed_at)
                self._add(Parsed(file=file, document=document, chunks=chunk_document(document)[:MOST_PASSAGES]))
            self._kept.add(file.key)
        except NotModifiedError as unchanged:
            self._read, self._size = self._read + 1, self._size + unchanged.size
            self._counts["unchanged"] += 1
            self._kept.add(file.key)
        except ReadError as error:
            self._ground.failed.append((file.id, error.reason))
            self._unreadable.add(file.id)
            if error.passing and file.key in self._known:
                self._kept.add(file.key)

    def _add(self, parsed: Parsed) -> None:
        self._counts["changed" if parsed.file.key in self._known else "added"] += 1
        self._batch.append(parsed)
        self._chars += sum(len(part.text) for part in parsed.document.parts)
        if len(self._batch) >= _BATCH_DOCUMENTS or self._chars >= _BATCH_CHARS:
            self._write_batch()

    def _write_batch(self) -> None:
        if self._batch:
            self._shelf.put(self._batch)
        if self._ground.noted:
            self._shelf.note(self._ground.noted)
        self._batch.clear()
        self._ground.noted.clear()
        self._chars = 0

    def finish(self) -> IndexReport:
        """Drop what is gone; what stood under a source that is away stays."""
        below_missing = tuple(f"{root}/" for root in self._ground.missing)
        gone = [key for key in self._known if key not in self._kept and not key.startswith(below_missing or ("\0",))]
        if gone:
            self._shelf.drop(gone)
            self._shelf.note({f"{FETCHED}{key}": "" for key in gone if f"{FETCHED}{key}" in self._ground.notes})
        removed = sum(self._known[key][1] not in self._unreadable for key in gone)
        report = IndexReport(**self._counts, removed=removed, failed=tuple(self._ground.failed))
        log.info("knowledge_indexed", **self._counts, removed=removed, failed=len(report.failed))
        return report
