"""All `orion` commands. Each imports what it needs; wrong use ends with exit code 2 and a sentence."""

import atexit
import gc
import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bot.cli import output
from bot.cli.admin import app as admin_app
from bot.cli.evaluate import app as eval_app
from bot.cli.index import app as index_app
from bot.errors import WrongUse

if TYPE_CHECKING:  # for annotations: importing them takes too long
    from verification.types import Verdict

app = typer.Typer(
    name="orion",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Answers in Slack from your team's documents, and posts nothing it has not verified.",
)
app.add_typer(eval_app, name="eval")
app.add_typer(index_app)
app.add_typer(admin_app)

EXIT_WRONG_USE = 2
EXIT_OTHER = 3
MAX_PORT = 65535
# In characters: with rule and severity in front this fits into 80 columns.
MAX_WORDS = 60


def print_version(asked: bool) -> None:  # noqa: FBT001 - the option's one value
    """Print Orion's version and exit, if requested."""
    if asked:
        from importlib.metadata import version

        typer.echo(f"orion {version('orion')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Handle the options before a command."""


DocsOption = Annotated[list[Path] | None, typer.Option("--docs", help="Folder of documents; may be given again.")]
PortOption = Annotated[int | None, typer.Option("--port", min=0, max=MAX_PORT, help="Default: ORION_PORT, 3000.")]
HostOption = Annotated[str, typer.Option("--host", help="Address to bind.")]
ConcurrencyOption = Annotated[int, typer.Option("--concurrency", min=0, help="Maximum turns at the same time.")]


@app.command()
def serve(
    mode: Annotated[Literal["socket", "http"], typer.Option(help="How events arrive: 'socket' or 'http'.")] = "socket",
    host: HostOption = "127.0.0.1",
    port: PortOption = None,
    concurrency: ConcurrencyOption = 50,
) -> None:
    """Take events from Slack and answer them, in one process (--concurrency 0: only take them)."""
    _serve(port, mode=mode, host=host, concurrency=concurrency)


@app.command()
def worker(
    port: PortOption = None,
    host: HostOption = "127.0.0.1",
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Maximum turns at the same time.")] = 50,
) -> None:
    """Work on stored questions only. Run any number of workers, on any machine with the same Redis."""
    _serve(port, host=host, concurrency=concurrency)


def _serve(port: int | None, **options: Any) -> None:
    from bot.cli.serve import serve as start

    output.run(start(output.configure(log="INFO", port=port), **options))


@app.command()
def local(
    port: Annotated[
        int | None,
        typer.Option(min=0, max=MAX_PORT, help="Port of the page. Default: 8765, or a free one if it is in use."),
    ] = None,
    docs: DocsOption = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Open the local workspace: a page like Slack, over sample documents, with no key and no server."""
    from bot.cli.local import local as open_local

    output.run(open_local(output.configure(), port=port, docs=docs, browser=not no_browser))


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    docs: DocsOption = None,
    thread: Annotated[str, typer.Option(help="Continue this conversation.")] = "",
    as_json: output.JsonOption = False,
) -> None:
    """Ask the real agent one question in the terminal. Exit code 0: answered or partly; 3: any other outcome."""
    from bot.cli.ask import ask as ask_once

    if not question.strip():
        raise WrongUse(why='The question is empty. Write it in quotes: orion ask "How do I …?"')
    # A person at a terminal wants to read the answer, not the log.
    settings = output.configure(log="ERROR" if sys.stderr.isatty() else "WARNING")
    with output.terminal().status("Looking it up …", spinner_style="dim") as waiting:

        def show(result: dict[str, Any]) -> None:
            waiting.stop()
            (output.print_json if as_json else _print_answer)(result)

        result = output.run(ask_once(settings, question, docs=docs, thread=thread, show=show))
    raise typer.Exit(0 if result["outcome"] in {"answered", "partial"} else EXIT_OTHER)


def _print_answer(result: dict[str, Any]) -> None:
    from datetime import UTC, datetime

    from agent.texts.catalogue import age
    from verification.markup.mrkdwn import strip_mrkdwn

    output.print_text(strip_mrkdwn(result["answer"]))
    cited = [source for source in result["sources"] if f"[{source['id']}]" in result["answer"]]
    if cited:
        output.print_text("")
    for source in cited:
        old = age(source["updated_at"], datetime.now(UTC).date())
        parts = (f"[{source['id']}] {source['title']}", source["url"] or source["path"], old)
        output.print_text("  ·  ".join(filter(None, parts)))


@app.command()
def verify(  # noqa: PLR0913, PLR0917 - the options of the outside contract
    file: Annotated[str, typer.Argument(help="A text file, or - for standard input.")] = "-",
    question: Annotated[str, typer.Option(help="The question that the text answers.")] = "",
    sources: Annotated[Path | None, typer.Option(help="JSON list of {id, title, url, text}.")] = None,
    no_repair: Annotated[
        bool, typer.Option("--no-repair", help="Report formatting faults instead of repairing them.")
    ] = False,
    dialect: Annotated[Literal["mrkdwn", "markdown"], typer.Option(help="'mrkdwn' or 'markdown'.")] = "mrkdwn",
    jsonl: Annotated[
        tuple[Path, Path] | None, typer.Option(metavar="IN OUT", help="One JSON object per line, in and out.")
    ] = None,
    judge: output.JudgeOption = False,
    as_json: output.JsonOption = False,
) -> None:
    """Verify any text, without Slack and Redis; --judge asks a model too. Exit code 0: it passes; 1: it does not."""
    from bot.evals.files import read_text, verdict_json
    from verification.check import check
    from verification.types import Draft

    draft = Draft(text="", question=question, dialect=dialect, repair=not no_repair)
    if jsonl:
        if file != "-" or question or sources:
            raise WrongUse(
                why="With --jsonl each row has its own text, question and sources: leave FILE and those out."
            )
        from bot.evals.verify import verify_stream

        if wrong := output.with_judge(lambda asked: verify_stream(*jsonl, draft, asked), wanted=judge):
            output.note(wrong, "red")
        raise typer.Exit(1 if wrong else 0)
    draft = replace(draft, text=read_text(file))
    if sources:
        from bot.evals.rows import read_sources

        draft = replace(draft, sources=read_sources(sources))
    if judge:
        from bot.evals.verify import verdict_on

        verdict = output.with_judge(partial(verdict_on, draft), wanted=True)
    else:
        verdict = check(draft)
    if as_json:
        output.print_json(verdict_json(verdict))
    else:
        _print_verdict(verdict)
    raise typer.Exit(0 if verdict.passed else 1)


def _print_verdict(verdict: "Verdict") -> None:
    output.print_text(verdict.text)
    for repair in verdict.repairs:
        output.note(f"repaired {repair.kind} ×{repair.count}", "cyan")
    for violation in verdict.violations:
        words = " ".join(output.printable(violation.words).split())
        shown = f' "{words[:MAX_WORDS]}"' if words else ""
        style = "red" if violation.severity == "error" else "yellow"
        output.note(f"{violation.severity:8} {violation.rule}{shown}: {violation.detail}", style)
    output.note("passes" if verdict.passed else "does not pass", "green" if verdict.passed else "red")


@app.command()
def doctor() -> None:
    """Check tokens, Redis, model, Langfuse and knowledge, and say what to do about each."""
    from bot.doctor.doctor import examine
    from bot.settings import read_settings

    settings, faults = read_settings()
    output.log_at("WARNING", settings)
    checks = output.run(examine(settings, faults=faults))
    for check in checks:
        style, mark = ("green", "ok") if check.ok else ("red", "wrong")
        output.note(f"{mark:>6}  {check.name}: {check.detail}", style, to_stderr=False)
        if not check.ok:
            output.note(f"        → {check.remedy}", to_stderr=False)
    raise typer.Exit(0 if all(check.ok for check in checks) else 1)


@app.command()
def mcp(
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP, with ORION_MCP_TOKENS.")] = False,
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=MAX_PORT, help="Port for --http.")] = 3001,
    user: Annotated[str, typer.Option(help="Slack id of the person who asks (without --http).")] = "public",
) -> None:
    """Offer ask, search and verify to editors and other agents as an MCP server, over standard input and output."""
    from bot.cli.mcp import serve_mcp

    if http and user != "public":
        raise WrongUse(why="With --http the token says who asks: name people in ORION_MCP_TOKENS, without --user.")
    output.run(serve_mcp(output.configure(), http=http, host=host, port=port, user=user))


@app.command()
def manifest(
    url: Annotated[str, typer.Option(help="Public address for HTTP mode; empty means Socket Mode.")] = "",
    slack_search: Annotated[bool, typer.Option("--slack-search", help="Also ask to search public channels.")] = False,
) -> None:
    """Print the Slack app manifest to create the app from."""
    from bot.setting_values import is_web_address
    from bot.slack.manifest import manifest as app_manifest

    # Slack sends events over TLS only.
    if url and not (is_web_address(url) and url.startswith("https://")):
        raise WrongUse(
            why=f"--url must be the address that Slack reaches, such as https://orion.example.com, not {url!r}."
        )
    output.print_json(app_manifest(url=url, slack_search=slack_search))


@app.command()
def bench(
    as_json: output.JsonOption = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds: takes seconds, but is less precise.")] = False,
) -> None:
    """Measure Orion's own cost next to the smallest useful bot's, in one run."""
    from bot.evals.bench import QUICK, Sizes, bench_table
    from bot.evals.bench import bench as run_bench
    from observability.logging import configure

    configure(json=False, debug=False, level="ERROR")
    results = output.run(run_bench(QUICK if quick else Sizes()))
    if as_json:
        output.print_json([row._asdict() for row in results])
    else:
        output.print_table(bench_table(results))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit. If a person can fix an error, show a sentence instead of a stack trace."""
    gc.set_threshold(100_000)  # objects between two collections: imports create many and leave hardly any garbage
    # No collection at exit: it would take a fifth of a short command.
    atexit.register(gc.freeze)
    # A terminal that lacks a character shows a question mark; the command continues.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(args=arguments, prog_name="orion")
    except WrongUse as error:
        output.note(str(error), "red")
        sys.exit(EXIT_WRONG_USE)
    except OSError as error:
        output.note(f"{error.filename or 'Input or output'}: {error.strerror or error}", "red")
        sys.exit(output.EXIT_FAILED)
