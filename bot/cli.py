"""`orion …`: every command, thin. Options and their checks stand here, the work elsewhere.

Each command imports what it needs: `orion verify` must not pay for Slack, a model and traces.

Promises: wrong use ends with exit code 2 and a sentence that says what is wrong and how to mend it. Must never show a
stack trace for something a person typed or configured.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from bot.embedded_redis import EmbeddedRedisError, connect
from bot.settings import Settings, load_settings
from bot.wrong_use import WrongUse
from observability.logging import configure
from verification.answer import Verdict

app = typer.Typer(
    name="orion",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Answers in Slack from your team's documents, and posts nothing it has not verified.",
)
out = Console()
err = Console(stderr=True)

EXIT_WRONG_USE = 2
LARGEST_PORT = 65535

DocsOption = Annotated[list[Path] | None, typer.Option("--docs", help="Folder of documents; may be given again.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
PortOption = Annotated[int | None, typer.Option("--port", min=0, max=LARGEST_PORT, help="Default: ORION_PORT, 3000.")]
ConcurrencyOption = Annotated[int, typer.Option("--concurrency", min=0, help="Turns at once.")]
Result = TypeVar("Result")


@app.command()
def serve(
    mode: Annotated[str, typer.Option(help="How events arrive: 'socket' or 'http'.")] = "socket",
    host: Annotated[str, typer.Option(help="Address to bind.")] = "127.0.0.1",
    port: PortOption = None,
    concurrency: ConcurrencyOption = 50,
) -> None:
    """Take events from Slack and answer them, in one process (--concurrency 0: only take them)."""
    if mode not in {"socket", "http"}:
        message = f"--mode must be 'socket' or 'http', not '{mode}'."
        raise WrongUse(message)
    from bot import serving

    settings = _settings(log="INFO", port=port)
    _run(serving.serve(settings, mode=mode, host=host, concurrency=concurrency))


@app.command()
def worker(port: PortOption = None, concurrency: ConcurrencyOption = 50) -> None:
    """Work on stored questions only; any number of these, on any machine with the same Redis."""
    from bot import serving

    _run(serving.work(_settings(log="INFO", port=port), concurrency=concurrency))


@app.command()
def local(
    port: Annotated[int, typer.Option(min=0, max=LARGEST_PORT, help="Port of the page; 0 takes a free one.")] = 8765,
    docs: DocsOption = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Open the local workspace: a page like Slack, over sample documents, with no key and no server."""
    from bot import serving

    _run(serving.local(_settings(), port=port, docs=docs, browser=not no_browser))


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    docs: DocsOption = None,
    thread: Annotated[str, typer.Option(help="Go on with this conversation.")] = "",
    as_json: JsonOption = False,  # noqa: FBT002 - a flag
) -> None:
    """Ask the real agent one question in the terminal. Exit code 0: answered or partly; 3: any other outcome."""
    from bot.ask import ask as ask_once
    from bot.ask import exit_code

    if not question.strip():
        message = 'The question is empty. Write it in quotes: orion ask "How do I …?"'
        raise WrongUse(message)
    result = _run(ask_once(_settings(), question, docs=docs, thread=thread))
    if as_json:
        _print_json(result)
    else:
        out.print(result["answer"], markup=False, highlight=False)
        for source in result["sources"]:
            out.print(
                f"[{source['id']}] {source['title']}  {source['url']}", markup=False, highlight=False, style="dim"
            )
    raise typer.Exit(exit_code(result))


@app.command()
def verify(  # noqa: PLR0913, PLR0917 - the options of the outside contract
    file: Annotated[str, typer.Argument(help="A text file, or - for standard input.")] = "-",
    question: Annotated[str, typer.Option(help="The question that the text answers.")] = "",
    sources: Annotated[Path | None, typer.Option(help="JSON list of {id, title, url, text}.")] = None,
    no_repair: Annotated[bool, typer.Option("--no-repair", help="Form faults count instead of being mended.")] = False,  # noqa: FBT002 - a flag
    dialect: Annotated[str, typer.Option(help="'mrkdwn' or 'markdown'.")] = "mrkdwn",
    jsonl: Annotated[
        tuple[Path, Path] | None, typer.Option(metavar="IN OUT", help="One object a line in, one out.")
    ] = None,
    as_json: JsonOption = False,  # noqa: FBT002 - a flag
) -> None:
    """Verify any text, without Slack, Redis or a model. Exit code 0: it passes; 1: it does not."""
    from bot.verify_text import Terms, verdict_json, verify_file, verify_stream

    if dialect not in {"mrkdwn", "markdown"}:
        message = f"--dialect must be 'mrkdwn' or 'markdown', not '{dialect}'."
        raise WrongUse(message)
    terms = Terms(repair=not no_repair, dialect="markdown" if dialect == "markdown" else "mrkdwn")
    if jsonl:
        _, failed = verify_stream(*jsonl, terms)
        raise typer.Exit(1 if failed else 0)
    verdict = verify_file(file, question=question, sources=sources, terms=terms)
    if as_json:
        _print_json(verdict_json(verdict))
    else:
        _print_verdict(verdict)
    raise typer.Exit(0 if verdict.passed else 1)


@app.command()
def index(folders: Annotated[list[Path], typer.Argument(help="Folders of documents.")]) -> None:
    """Read folders into the document index; only what changed is read again."""
    _run(_index(_settings(docs=tuple(folders))))


async def _index(settings: Settings) -> None:
    from bot.engine import corpus_of, open_index

    async with open_index(corpus_of(settings), progress=lambda path: err.print(path, style="dim", markup=False)) as (
        _,
        report,
    ):
        out.print(
            f"{report.added} added, {report.changed} changed, {report.removed} removed, {report.unchanged} unchanged"
        )
        for path, reason in report.failed:
            err.print(f"Not read: {path}: {reason}", style="yellow", markup=False)


@app.command()
def docs(as_json: JsonOption = False) -> None:  # noqa: FBT002 - a flag
    """List the documents Orion knows."""
    _run(_docs(_settings(), as_json=as_json))


async def _docs(settings: Settings, *, as_json: bool) -> None:
    from bot.engine import corpus_of, open_index

    async with open_index(corpus_of(settings)) as (opened, _):
        documents = await asyncio.to_thread(opened.documents)
    if as_json:
        _print_json(
            [
                {"id": d.id, "title": d.title, "url": d.url, "updated_at": d.updated_at, "passages": d.passages}
                for d in documents
            ]
        )
        return
    table = Table("document", "title", "updated", "passages")
    for document in documents:
        table.add_row(document.id, document.title, document.updated_at, str(document.passages))
    out.print(table if documents else "No documents yet. Name folders: orion index DIR, or set ORION_DOCS.")


@app.command()
def stats(
    days: Annotated[int, typer.Option(min=1, max=400, help="How many days back.")] = 14,
    as_json: JsonOption = False,  # noqa: FBT002 - a flag
) -> None:
    """Pass rate, attempts, reasons, latency and cost from Redis."""
    _run(_stats(_settings(), days=days, as_json=as_json))


async def _stats(settings: Settings, *, days: int, as_json: bool) -> None:
    from observability.stats import Stats

    async with connect(settings.home, settings.redis_url.get_secret_value() or None) as redis:
        summary = await Stats(redis).read(days)
    if as_json:
        _print_json(summary.to_json())
    else:
        out.print(summary.table())


@app.command()
def doctor() -> None:
    """Check tokens, Redis, model, Langfuse and knowledge, and say what to do about each."""
    from bot.doctor import examine

    checks = _run(examine(_settings()))
    for check in checks:
        style, mark = ("green", "ok") if check.ok else ("red", "wrong")
        out.print(f"{mark:>6}  {check.name}: {check.detail}", style=style, markup=False, highlight=False)
        if not check.ok:
            out.print(f"        → {check.remedy}", markup=False, highlight=False)
    raise typer.Exit(0 if all(check.ok for check in checks) else 1)


@app.command()
def manifest(
    url: Annotated[str, typer.Option(help="Public address for HTTP mode; empty means Socket Mode.")] = "",
) -> None:
    """Print the Slack app manifest to create the app from."""
    from bot.manifest import manifest as app_manifest

    _print_json(app_manifest(url=url))


@app.command()
def bench(as_json: JsonOption = False) -> None:  # noqa: FBT002 - a flag
    """Measure Orion's own cost, as ratios within one run."""
    from bot.bench import bench as run_bench
    from bot.bench import bench_table

    configure(json=False, debug=False, level="ERROR")
    results = run_bench()
    if as_json:
        _print_json(results)
    else:
        out.print(bench_table(results))


def _settings(*, log: str = "WARNING", **options: Any) -> Settings:
    """The settings in force, and logging set up by them: JSON unless a person watches."""
    settings = load_settings(**options)
    configure(json=not sys.stderr.isatty(), debug=settings.debug, level="DEBUG" if settings.debug else log)
    return settings


def _print_verdict(verdict: Verdict) -> None:
    out.print(verdict.text, markup=False, highlight=False)
    for repair in verdict.repairs:
        err.print(f"mended   {repair.kind} ×{repair.count}", style="cyan", markup=False)
    for violation in verdict.violations:
        style = "red" if violation.severity == "error" else "yellow"
        err.print(f"{violation.severity:8} {violation.rule}: {violation.detail}", style=style, markup=False)
    err.print("passes" if verdict.passed else "does not pass", style="green" if verdict.passed else "red")


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


def main() -> None:
    """The entry point: sentences instead of stack traces for what a person can mend."""
    try:
        app()
    except (WrongUse, EmbeddedRedisError) as error:
        err.print(str(error), style="red", markup=False, highlight=False)
        sys.exit(EXIT_WRONG_USE)
