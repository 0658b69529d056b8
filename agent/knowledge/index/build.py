"""One pass over the sources into an index. Documents are written in batches; a killed run loses only the last one."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from agent.knowledge.index import tables
from agent.knowledge.index.tables import IndexSession, Parsed, document_url
from agent.knowledge.readers.process import DocumentReader, FileToRead
from agent.knowledge.readers.reading import digest_of
from agent.knowledge.sources.folders import Folders
from agent.knowledge.types import (
    FETCHED,
    UNREAD,
    DeferredSource,
    DocumentSource,
    IndexReport,
    IndexRun,
    NotModifiedError,
    Readable,
    ReadError,
    SourceState,
)

log = structlog.get_logger()

MAX_FAILURES: Final = 100  # this many per source are kept by name; others are only counted
MAX_SUFFIXES: Final = 40  # suffixes of unread files that are counted per source
_MAX_NAME_BYTES: Final = 2_000  # an index of PostgreSQL takes 2,700
_BATCH_DOCUMENTS: Final = 64  # as much as a killed run loses
_BATCH_CHARS: Final = 2_000_000  # and as much as is in memory meanwhile


class IndexBuilder:
    """One pass. Unchanged files are not parsed again; unreadable ones are reported."""

    def __init__(self, session: IndexSession, progress: Callable[[str], None] | None) -> None:
        self._session = session
        self._progress = progress
        rows = session.execute(tables.KNOWN)
        self._known = {key: (digest, shown, audience, url) for key, digest, shown, audience, url in rows}
        self._run = IndexRun(known=self._known, notes=tables.notes(session, FETCHED))
        self._notes = tables.notes(session, UNREAD)
        self._docs_url = tables.notes(session, "docs_url").get("docs_url", "")
        self._reader = DocumentReader()
        self._seen: set[str] = set()
        self._deferred: list[str] = []
        self._states = tables.states(session)
        self._kept: set[str] = set()
        self._unreadable: set[str] = set()
        self._batch: list[Parsed] = []
        self._chars = self._read = self._size = 0
        self._counts = {"added": 0, "changed": 0, "unchanged": 0}

    def take_all(self, sources: Sequence[Path | DocumentSource | DeferredSource]) -> IndexReport:
        """Index everything under these folders and sources, and remove all other documents."""
        folders = {str(source.expanduser().resolve()): source for source in sources if isinstance(source, Path)}
        others = {source.key: source for source in sources if not isinstance(source, Path)}
        to_read = {*folders, *(name for name, source in others.items() if not isinstance(source, DeferredSource))}
        tables.put_states(self._session, dict.fromkeys(to_read - self._states.keys(), SourceState(tried=0.0)))
        with self._reader:
            in_folders = Folders([*folders.values()], self._run)
            for name, folder in folders.items():
                self._go_over(name, "", in_folders.documents_in(folder))
            for name, source in others.items():
                if isinstance(source, DeferredSource):
                    self._leave(source)
                else:
                    self._go_over(name, source.part, source.documents(self._run))
        tables.put_states(self._session, dict.fromkeys(self._states.keys() - folders.keys() - others.keys()))
        return self._finish()

    def _leave(self, source: DeferredSource) -> None:
        """Remove the documents whose audience changed; a source whose audience or part changed is read again soon."""
        held = {key: audience for key, (_, _, audience, _) in self._known.items() if key.startswith(f"{source.key}/")}
        stays = {key for key, audience in held.items() if source.audience in {"", audience}}
        self._kept |= stays
        self._deferred.append(f"{source.key}/")
        before = self._states.get(source.key)
        if stays != held.keys() or (before and before.part != source.part):
            tables.put_states(self._session, {source.key: None})

    def _go_over(self, name: str, part: str, found: Iterable[Readable]) -> None:
        began, failed_before = time.time(), len(self._run.failed)
        self._read = self._size = 0
        for file in found:
            self._take(file)
        self._write_batch()
        ended, failed = time.time(), self._run.failed[failed_before:]
        state = self._states.get(name) or SourceState(tried=ended)
        if name not in self._run.missing:
            seconds = round(ended - began, 3)
            state = SourceState(tried=ended, synced=ended, seconds=seconds, read=self._read, size=self._size)
        skipped = tuple(self._run.skipped[name].most_common(MAX_SUFFIXES))
        failures, named = len(failed), tuple(failed[:MAX_FAILURES])
        state = replace(state, tried=ended, part=part, skipped=skipped, failures=failures, failed=named)
        tables.put_states(self._session, {name: state})

    def _take(self, file: Readable) -> None:
        self._seen.add(f"{UNREAD}{file.key}")
        if self._progress:
            self._progress(file.id)
        try:
            data, changed_at = file.read()
            self._read, self._size = self._read + 1, self._size + len(data)
            digest = digest_of(
                f"{file.title}\n{changed_at}\n".encode("utf-8", "replace") + data if file.title else data
            )
            if self._known.get(file.key) == (digest, file.id, file.audience, file.url):
                self._counts["unchanged"] += 1
                self._run.failed += [(file.id, cut)] if (cut := self._note_of(file, digest)) else []
            else:
                self._parse(file, digest, data, changed_at)
            self._kept.add(file.key)
        except NotModifiedError as unchanged:
            self._read, self._size = self._read + 1, self._size + unchanged.size
            self._counts["unchanged"] += 1
            self._kept.add(file.key)
            self._run.failed += [(file.id, cut)] if (cut := self._note_of(file)) else []
        except ReadError as error:
            self._run.failed.append((file.id, error.reason))
            self._unreadable.add(file.id)
            if error.temporary and file.key in self._known:
                self._kept.add(file.key)

    def _parse(self, file: Readable, digest: str, data: bytes, changed: float) -> None:
        """Read a new or changed document. An unreadable one is not tried again until it changes."""
        if max(len(name.encode()) for name in (file.id, file.key)) > _MAX_NAME_BYTES:
            raise ReadError(reason="has a name that is too long")
        if file.key not in self._known and (reason := self._note_of(file, digest)):
            raise ReadError(reason)
        url = file.url or document_url(self._docs_url, file.id)
        times = {"committed" if file.is_committed else "changed": changed}
        try:
            document, chunks = self._reader.read(FileToRead(file.name, data, url=url, title=file.title, **times))
        except ReadError as error:
            if not error.temporary:
                self._run.new_notes[f"{UNREAD}{file.key}"] = f"{digest} {error.reason}"
            raise
        if document.cut:
            self._run.failed.append((file.id, document.cut))
        if document.cut or f"{UNREAD}{file.key}" in self._notes:
            self._run.new_notes[f"{UNREAD}{file.key}"] = document.cut and f"{digest} {document.cut}"
        self._counts["changed" if file.key in self._known else "added"] += 1
        self._batch.append((file, digest, document, chunks[: tables.MAX_PASSAGES]))
        self._chars += sum(len(part.text) for part in document.parts)
        if len(self._batch) >= _BATCH_DOCUMENTS or self._chars >= _BATCH_CHARS:
            self._write_batch()

    def _note_of(self, file: Readable, digest: str = "") -> str:
        noted, _, reason = self._notes.get(f"{UNREAD}{file.key}", "").partition(" ")
        return reason if digest in {"", noted} else ""

    def _write_batch(self) -> None:
        if self._batch:
            tables.replace(self._session, self._batch)
        # written after the documents, so that a killed run reads them again
        tables.put_notes(self._session, self._run.new_notes)
        self._batch.clear()
        self._run.new_notes.clear()
        self._chars = 0

    def _finish(self) -> IndexReport:
        """Remove deleted documents. Documents of an unreachable source stay."""
        below_missing = tuple(f"{root}/" for root in self._run.missing)
        gone = [key for key in self._known if key not in self._kept and not key.startswith(below_missing)]
        if gone:
            tables.replace(self._session, (), gone)
            new_notes = self._run.notes.keys() & {f"{FETCHED}{key}" for key in gone}
            tables.put_notes(self._session, dict.fromkeys(new_notes, ""))
        untouched = tuple(f"{UNREAD}{prefix}" for prefix in (*self._deferred, *below_missing))
        forgotten = [note for note in self._notes.keys() - self._seen if not note.startswith(untouched)]
        tables.put_notes(self._session, dict.fromkeys(forgotten, ""))
        removed = sum(self._known[key][1] not in self._unreadable for key in gone)
        report = IndexReport(**self._counts, removed=removed, failed=tuple(self._run.failed))
        news = removed + self._counts["added"] + self._counts["changed"] + len(report.failed)
        write = log.info if news else log.debug  # the local workspace syncs every minute
        write("knowledge_indexed", **self._counts, removed=removed, failed=len(report.failed))
        return report
