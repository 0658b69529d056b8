"""`orion index` and `orion docs`: bring the document index up to date, and show what it holds."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bot.errors import WrongUse

if TYPE_CHECKING:  # what only annotations name is not worth the time to import it
    from agent.knowledge.types import Document
    from bot.documents.figures import KnowledgeFigures, SourceFigures
    from bot.settings import Settings

app = typer.Typer()
_out = Console()
_err = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)

_NONE = (
    "No documents yet. Name folders: orion index DIR, or set ORION_DOCS, ORION_GIT_DOCS, ORION_WEB_DOCS or "
    "ORION_SLACK_EXPORTS."
)
_STEP = 500
"""Without a terminal progress is told after so many documents."""


@app.command()
def index(
    folders: Annotated[list[Path] | None, typer.Argument(help="Folders in place of those in ORION_DOCS.")] = None,
) -> None:
    """Bring the document index up to date; only what changed is read again.

    Afterwards it holds exactly these folders and the repositories, web sites and exports that are configured: others
    leave it.
    """
    from bot.cli.output import configured, run

    run(_index(configured(), folders or []))


async def _index(settings: Settings, folders: Sequence[Path]) -> None:
    from bot.cli.output import print_text, printable
    from bot.documents.open import corpus_of, open_index
    from bot.documents.vectors import make_vectors

    corpus = corpus_of(settings.model_copy(update={"docs": tuple(folders)}) if folders else settings)
    named = [*map(str, corpus.roots), *(source.key for source in corpus.sources)]
    if not named:
        raise WrongUse(_NONE.replace("No documents yet", "There is nothing to index"))
    with _progress() as tell:
        async with open_index(corpus, tell, fetch=True, wait_s=float("inf")) as (opened, report):
            held = len(await asyncio.to_thread(opened.documents))
            having, every = await make_vectors(
                opened.meaning, lambda n, of: _err.print(f"vectors: {n} of {of}", style="dim")
            )
    print_text(
        f"{report.added} added, {report.changed} changed, {report.removed} removed, {report.unchanged} unchanged.\n"
        f"The index holds {held} document{'' if held == 1 else 's'}, exactly those of {', '.join(named)}."
    )
    if every:
        print_text(f"{having} of {every} passages can be found by meaning.")
    for path, reason in report.failed:
        _err.print(printable(f"Not read: {path}: {reason}"), style="yellow")
    if folders and settings.docs and {f.resolve() for f in settings.docs} != {f.resolve() for f in folders}:
        kept = os.pathsep.join(map(str, settings.docs))
        _err.print(f"ORION_DOCS names {kept}: the next command will bring the index back to that.", style="yellow")


class _Ended(Exception):  # noqa: N818 - it names what happened
    """The person ended the command while a thread was reading."""


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Told of each document; a person at a terminal sees one line that changes. Leaving the block ends the reading."""
    from bot.cli.output import printable

    left = threading.Event()
    with _err.status("Looking for documents …", spinner_style="dim") as status:
        seen = 0

        def tell(document: str) -> None:
            nonlocal seen
            if left.is_set():
                raise _Ended
            seen += 1
            if _err.is_terminal:
                status.update(Text(f"{seen:,} documents · {printable(document)}", style="dim"))
            elif seen % _STEP == 0:
                _err.print(f"{seen:,} documents looked at", style="dim")

        try:
            yield tell
        finally:
            left.set()


@app.command()
def docs(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False) -> None:  # noqa: FBT002 - a flag
    """List what Orion knows: its documents, where they come from, how old that is, and what could not be read."""
    from bot.cli.output import configured, print_json, run

    documents, figures = run(_docs(configured()))
    if as_json:
        print_json({"documents": list(map(_document, documents)), "sources": list(map(_source, figures.sources))})
        return
    _print_docs(documents, figures)


async def _docs(settings: Settings) -> tuple[tuple[Document, ...], KnowledgeFigures]:
    from bot.documents.figures import figures_of
    from bot.documents.open import corpus_of, open_index

    corpus = corpus_of(settings)
    async with open_index(corpus, wait_s=0.0) as (opened, _):
        documents = await asyncio.to_thread(opened.documents)
        return documents, await asyncio.to_thread(figures_of, opened, corpus.names)


def _document(document: Document) -> Mapping[str, Any]:
    names = ("id", "title", "url", "updated_at", "audience", "source", "passages")
    return {name: getattr(document, name) for name in names}


def _source(source: SourceFigures) -> Mapping[str, Any]:
    held, state = source.held, source.state
    return {
        "kind": source.kind,
        "where": source.where,
        "documents": held.documents,
        "passages": held.passages,
        "bytes": state.size,
        "oldest": held.oldest,
        "newest": held.newest,
        "synced_at": _iso(state.synced),
        "tried_at": _iso(state.tried),
        "seconds": state.seconds,
        "not_read": [{"document": name, "reason": reason} for name, reason in state.failed],
        "not_read_more": state.more,
    }


def _iso(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None


def _print_docs(documents: Sequence[Document], figures: KnowledgeFigures) -> None:
    """Documents first, so that their sources and what is wrong stand where a person at a terminal looks."""
    from bot.cli.output import print_text, printable

    if documents:
        table = Table("document", "title", "updated", "for", "passages")
        for document in documents:
            names = (Text(printable(document.id)), Text(printable(document.title)))
            table.add_row(*names, document.updated_at, document.audience, str(document.passages))
        _out.print(table)
    if figures.sources:
        _out.print(_sources(figures.sources))
    if not documents:
        print_text(_NONE)
    for source in figures.sources:
        for name, reason in source.state.failed:
            _err.print(printable(f"Not read: {name}: {reason}"), style="yellow")
        if source.state.more:
            _err.print(printable(f"Not read: {source.state.more} more of {source.where}"), style="yellow")


def _sources(sources: Sequence[SourceFigures]) -> Table:
    table = Table("source", "where", "documents", "passages", "size", "changed", "last read", "not read")
    for source in sources:
        held, state = source.held, source.state
        age = held.newest if held.oldest == held.newest else f"{held.oldest} to {held.newest}"
        read = datetime.fromtimestamp(state.synced).astimezone().strftime("%Y-%m-%d %H:%M") if state.synced else "never"
        counts = (f"{held.documents:,}", f"{held.passages:,}", _size(state.size))
        unread = f"{state.failures:,}" if state.failures else ""
        table.add_row(source.kind, Text(source.where), *counts, age, read, unread)
    return table


def _size(size: int) -> str:
    for unit, name in ((1_000_000, "MB"), (1_000, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} B"
