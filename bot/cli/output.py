"""Settings, output, exit codes and key prefixes for all commands.

Every command imports this first, so it loads logging, terminal libraries and Redis only when needed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bot.errors import WrongUse

if TYPE_CHECKING:  # for annotations: importing them takes too long
    from redis.asyncio import Redis
    from rich.console import Console
    from rich.table import Table

    from agent.model.protocol import Judge
    from bot.settings import Settings

Result = TypeVar("Result")
FOUND_NONE = (
    "No document was found: Orion reads Markdown, HTML, PDF, Word, PowerPoint, Excel, CSV, notebooks, text and code. "
    "Name another folder."
)
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130  # 128 plus the number of SIGINT, as shells report it

LocalOption = Annotated[
    int | None,
    typer.Option(
        "--local", metavar="PORT", min=1, max=65535, help="Use the local workspace on this port, not Slack's Orion."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
JudgeOption = Annotated[bool, typer.Option("--judge", help="Ask the model about what rules cannot decide.")]


def local_prefix(port: int) -> str:
    """Prefix of the local workspace's keys on ``port``, so that trying Orion out is safe (decision 15)."""
    return f"orion-local-{port}"


def configure(*, log: str = "WARNING", **options: Any) -> Settings:
    """Return the settings and set up logging with them, in JSON unless a person watches."""
    from structlog import get_logger

    from bot.settings import find_unknown_names, load_settings, unreadable_lines

    settings = load_settings(**options)
    log_at("DEBUG" if settings.debug else log, settings)
    for name, nearest in find_unknown_names().items():
        get_logger().warning("setting_unknown", name=name, nearest=nearest)
    if lines := unreadable_lines():
        get_logger().warning("dotenv_lines_not_understood", lines=lines)
    return settings


def log_at(level: str, settings: Settings) -> None:
    """Set up logging from this level on."""
    from observability.logging import configure

    configure(json=not sys.stderr.isatty(), debug=settings.debug, level=level, secrets=settings.secrets)


def print_text(text: str) -> None:
    """Print a text without wrapping, colours or commands to the terminal."""
    _write(printable(text) + "\n")


def printable(text: str) -> str:
    """Return the text without control characters other than tabs and line endings, and without invisible ones."""
    from verification.markup.mrkdwn import remove_unsendable

    return remove_unsendable(text)[0].replace("\r", "")


def count(number: int, noun: str) -> str:
    """Return a number with its noun, as in "1 page" or "2 pages"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    _write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_table(table: Table) -> None:
    """Print a table in the terminal's width. Its cells are text, not markup."""
    from rich.console import Console

    Console(markup=False, highlight=False, emoji=False).print(table)


def note(text: str, style: str = "", *, to_stderr: bool = True) -> None:
    """Write a line to standard error, without secrets, and in colour if a person watches."""
    from observability.redaction import redact

    text = redact(text)  # an address in an error may contain a password
    stream = sys.stderr if to_stderr else sys.stdout
    if stream.isatty():
        terminal(to_stderr=to_stderr).print(printable(text), style=style)
    else:
        stream.write(printable(text) + "\n")


def terminal(*, to_stderr: bool = True) -> Console:
    """Return a console for output while a person waits."""
    from rich.console import Console

    return Console(stderr=to_stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's work. If another service fails, print a sentence and exit with code 1."""
    import asyncio

    try:
        return asyncio.run(work)
    except tuple(_known_errors()) as error:
        text, code = next(end for kind, end in _known_errors().items() if isinstance(error, kind))
        note(text(error), "red")
        raise typer.Exit(code) from None


def _known_errors() -> dict[type[Exception], tuple[Callable[[Any], str], int]]:
    """Return the errors that can end a command, with sentence and exit code. This imports for a fifth of a second."""
    from redis.exceptions import RedisError

    from agent.knowledge.types import KnowledgeAwayError
    from bot.cli.signals import EndedAtOnce
    from bot.redis.client import plain_cause
    from bot.redis.server import EmbeddedRedisError

    knowledge = "The shared index cannot be used ({}). Check ORION_KNOWLEDGE_URL and that PostgreSQL runs."
    at_once = "Ended at once. Running turns are resumed at the next start."
    return {
        RedisError: (lambda e: f"Redis cannot be used ({plain_cause(e)}). `orion doctor` says more.", EXIT_FAILED),
        EmbeddedRedisError: (str, EXIT_FAILED),
        KnowledgeAwayError: (knowledge.format, EXIT_FAILED),
        EndedAtOnce: (lambda _: at_once, EXIT_INTERRUPTED),
    }


def with_redis(work: Callable[[Redis, str], Awaitable[Result]], port: int | None = None) -> Result:
    """Run ``work`` with the configured Redis and a key prefix: this Orion's, or the local workspace's on ``port``."""
    from bot.install.identity import find_prefix
    from bot.redis.server import open_redis

    settings = configure()

    async def over() -> Result:
        async with open_redis(settings) as redis:
            return await work(redis, await find_prefix(redis, settings) if port is None else local_prefix(port))

    return run(over())


def with_judge(work: Callable[[Judge | None], Coroutine[Any, Any, Result]], *, wanted: bool) -> Result:
    """Run ``work`` with the configured judge, or without one, and return its result."""
    if not wanted:
        return run(work(None))
    from bot.turn.engine import TurnTimeouts, open_judge

    settings = configure()
    if not settings.uses_server:
        raise WrongUse(why="--judge needs a model. Set OPENAI_API_KEY or OPENAI_BASE_URL, or leave --judge out.")

    async def ask() -> Result:
        on = settings.model_copy(update={"judge": True})
        async with open_judge(on, timeouts=TurnTimeouts.of(settings).judge) as judge:
            return await work(judge)

    return run(ask())


def _write(text: str) -> None:
    """Write UTF-8 to any terminal: JSON needs it, and half an emoji must not raise."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
