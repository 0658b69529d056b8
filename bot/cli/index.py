"""`orion index`, `orion docs` and `orion feed`: sync the document index, list its contents, print a wiki's pages."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bot.cli import output
from bot.errors import WrongUse

if TYPE_CHECKING:  # for annotations only: importing them takes too long
    from agent.knowledge.types import Document
    from bot.documents.corpus import Corpus, KnowledgeFigures, SourceFigures
    from bot.settings import Settings

app = typer.Typer()

_NO_DOCUMENTS = (
    "No documents yet. Name folders: orion index DIR, or set ORION_DOCS, ORION_GIT_DOCS, ORION_WEB_DOCS or "
    "ORION_SLACK_EXPORTS."
)
_NO_WORKSPACE = (
    "No local workspace has run on port {port}: {home} holds no documents of one.{known} `make run` starts one and "
    "says its port."
)
_INTERRUPTED = (
    "Ended early; documents looked at: {seen:,}. What was read is in the index, and nothing was removed yet. "
    "`orion index` continues from there."
)


@app.command()
def index(
    folders: Annotated[list[Path] | None, typer.Argument(help="Folders in place of those in ORION_DOCS.")] = None,
) -> None:
    """Sync the document index; only changed documents are read again.

    Afterwards it has exactly these folders and the configured repositories, web sites and exports.
    """
    from bot.documents.open import corpus_of

    settings = output.configure()
    corpus = corpus_of(settings.model_copy(update={"docs": tuple(folders)}) if folders else settings)
    if not corpus.names:
        raise WrongUse(_NO_DOCUMENTS.replace("No documents yet", "There is nothing to index"))
    for root in corpus.roots:
        if root.resolve() in {Path(root.resolve().anchor), Path.home()}:
            raise WrongUse(why=f"{root} is a whole disk or home folder. Nothing was read. Name a folder of documents.")
    output.run(_index(settings, corpus, folders or []))


async def _index(settings: Settings, corpus: Corpus, folders: Sequence[Path]) -> None:
    from bot.documents.corpus import figures_of
    from bot.documents.open import make_vectors, open_index, open_meaning
    from observability.redaction import redact

    named = [*map(str, corpus.roots), *(redact(source.key) for source in corpus.sources)]
    with _progress() as tell:
        async with open_index(corpus, tell, fetch=True, wait_s=float("inf")) as (opened, report):
            figures = figures_of(opened, corpus.names)
            async with open_meaning(settings, opened) as meaning:
                having, every = await make_vectors(meaning, lambda n, of: output.note(f"vectors: {n} of {of}", "dim"))
                failure = meaning.failure if meaning else ""
    count = figures.documents
    output.print_text(
        f"{report.added} added, {report.changed} changed, {report.removed} removed, {report.unchanged} unchanged.\n"
        f"The index has {output.count(count, 'document')}, exactly those of {', '.join(named)}."
    )
    if not count:
        output.note(output.FOUND_NONE, "yellow")
    if every:
        output.print_text(f"{having} of {every} passages can be found by meaning.")
    if failure:
        output.note(f"Search goes by words alone: {failure}.", "yellow")
    _note_unread(figures)
    if folders and settings.docs and {f.resolve() for f in settings.docs} != {f.resolve() for f in folders}:
        kept = os.pathsep.join(map(str, settings.docs))
        output.note(f"ORION_DOCS names {kept}: the next command will bring the index back to that.", "yellow")


class _Interrupted(Exception):  # noqa: N818 - not an error
    """The command was interrupted while a thread was reading."""


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show progress for each document, on one line at a terminal. Leaving the block stops the reading."""
    import asyncio

    from rich.text import Text

    interrupted = threading.Event()
    with output.terminal().status("Looking for documents …", spinner_style="dim") as status:
        seen = 0

        def tell(document: str) -> None:
            nonlocal seen
            if interrupted.is_set():
                raise _Interrupted
            seen += 1
            status.update(Text(f"{seen:,} documents · {output.printable(document)}", style="dim"))

        try:
            yield tell
        except asyncio.CancelledError:
            output.note(_INTERRUPTED.format(seen=seen), "yellow")
            raise
        finally:
            interrupted.set()


@app.command()
def docs(local: output.LocalOption = None, as_json: output.JsonOption = False) -> None:
    """List the documents and sources, with the time of the last sync and everything that could not be read."""
    from bot.answers import AnswerBook

    settings, today = output.configure(), datetime.now(UTC).date()
    documents, figures = output.run(_docs(settings, local))
    overdue = AnswerBook(folder=settings.answers).overdue(today) if settings.answers else []
    if as_json:
        sources = [{"kind": s.kind, "where": s.where, **asdict(s.held), **asdict(s.state)} for s in figures.sources]
        output.print_json({
            "documents": list(map(asdict, documents)),
            "sources": sources,
            "overdue_answers": [answer.question for answer in overdue],
        })  # fmt: skip
        return
    for document in documents:  # as lines, because a table folds long paths, which then cannot be copied
        dated = f", updated {document.updated_at}" if document.updated_at else ""
        passages = output.count(document.passages, "passage")
        output.print_text(f"{document.id}\n  {document.title}{dated}, for {document.audience}, {passages}")
    for source in figures.sources:  # at the end, where people look
        output.print_text(_format_source(source))
    if not documents:
        output.print_text(_NO_DOCUMENTS)
    _note_unread(figures)
    for answer in overdue:
        output.note(f"Review overdue since {answer.review}: {answer.question} (owner: {answer.owner})", "yellow")


async def _docs(settings: Settings, local: int | None) -> tuple[tuple[Document, ...], KnowledgeFigures]:
    from bot.documents.corpus import figures_of
    from bot.documents.open import corpus_of, local_corpus, open_index

    corpus = corpus_of(settings) if local is None else local_corpus(settings, local)
    if local is not None and not corpus.index_path.exists():
        ports = sorted(int(file.stem.rpartition("-")[2]) for file in settings.home.glob("knowledge-local-*.sqlite3"))
        known = f" One has on {', '.join(map(str, ports))}." if ports else ""
        raise WrongUse(_NO_WORKSPACE.format(port=local, home=settings.home, known=known))
    async with open_index(corpus, wait_s=0.0) as (opened, _):
        return opened.documents(), figures_of(opened, corpus.names)


def _note_unread(figures: KnowledgeFigures) -> None:
    for line in (line for source in figures.sources for line in source.unread_lines):
        output.note(f"Not read: {line}", "yellow")


def _format_source(source: SourceFigures) -> str:
    """Format a source in two lines: a table would be too wide for a terminal."""
    from rich.filesize import decimal

    held, state = source.held, source.state
    facts = [output.count(held.documents, "document"), output.count(held.passages, "passage"), decimal(state.size)]
    if held.newest:
        facts.append(f"changed {held.newest if held.oldest == held.newest else f'{held.oldest} to {held.newest}'}")
    read = datetime.fromtimestamp(state.synced).astimezone().strftime("%Y-%m-%d %H:%M") if state.synced else "never"
    facts.append(f"read {read}")
    if state.failures:
        facts.append(f"{state.failures:,} not read")
    return f"{source.kind} {source.where}\n  {', '.join(facts)}"


@app.command()
def feed(
    system: Annotated[Literal["confluence", "notion"], typer.Argument(help="Where the pages are.")],
    config: Annotated[Path, typer.Argument(help="TOML file with address, token and audiences (docs/knowledge.md).")],
    *,
    dry_run: Annotated[bool, typer.Option("--list", help="List the pages and who may see them; read no text.")] = False,
) -> None:
    """Print pages with their audiences, one JSON object per line. Name it in ORION_FEEDS."""
    from agent.knowledge.feeds import confluence, notion
    from agent.knowledge.feeds.lines import FeedError, Printer, read_config, read_known

    try:
        known = {} if dry_run or sys.stdin.isatty() else read_known(sys.stdin.buffer)
        printer = Printer(known=known, dry_run=dry_run)
        read = confluence.print_pages if system == "confluence" else notion.print_pages
        read(read_config(config), printer)
        printer.finish()
    except FeedError as error:
        raise WrongUse(str(error)) from None
