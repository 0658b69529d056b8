"""What the commands share: settings, output, exit codes, and which Orion in one Redis is meant."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import structlog
import typer
from rich.console import Console

from bot.errors import WrongUse

if TYPE_CHECKING:  # what only annotations name is not worth the time to import it
    from redis.asyncio import Redis

    from agent.model.judge import Judge
    from bot.settings import Settings

SERVED = "orion"
EXIT_FAILED = 1
out = Console()
Result = TypeVar("Result")
EXIT_INTERRUPTED = 130
plain = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
"""For lines that are shown as they are."""
err = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
_FIGURES = re.compile(r"orion-local-(\d{1,5}):stats:.*")

LocalOption = Annotated[
    int | None,
    typer.Option(
        "--local", metavar="PORT", min=1, max=65535, help="The local workspace on this port, not what serves Slack."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
JudgeOption = Annotated[bool, typer.Option("--judge", help="Ask the model about what rules cannot decide.")]


def prefix_of(port: int | None) -> str:
    """What the keys begin with, of the local workspace on ``port`` or of what serves Slack."""
    return SERVED if port is None else f"orion-local-{port}"


async def local_ports(redis: Redis) -> list[int]:
    """The ports of the local workspaces that have figures in this Redis. Reads every key's name: for small ones."""
    names = [str(name) async for name in redis.scan_iter(match="orion-local-*:stats:*", count=1000)]
    return sorted({int(found[1]) for name in names if (found := _FIGURES.fullmatch(name))})


def configured(*, log: str = "WARNING", **options: Any) -> Settings:
    """The settings in force, and logging set up by them: JSON unless a person watches."""
    from bot.settings import check_addresses, load_settings, unknown_names, unread_lines
    from observability.logging import configure

    settings = check_addresses(load_settings(**options))
    level = "DEBUG" if settings.debug else log
    configure(json=not sys.stderr.isatty(), debug=settings.debug, level=level, secrets=settings.secrets)
    for name, nearest in unknown_names().items():
        structlog.get_logger().warning("setting_unknown", name=name, nearest=nearest)
    if lines := unread_lines():
        structlog.get_logger().warning("dotenv_lines_not_understood", lines=lines)
    return settings


def print_text(text: str) -> None:
    """A text as it is: neither wrapped nor coloured, and never a command to the terminal."""
    _write(printable(text) + "\n")


def printable(text: str) -> str:
    """The text without control characters, but for tabs and line ends."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) != "Cc")


def print_json(value: Any) -> None:
    """A value as indented JSON."""
    _write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's work; what only somebody else can mend ends in a sentence and exit code 1."""
    from redis.exceptions import RedisError

    from agent.knowledge.types import KnowledgeAwayError
    from bot.cli.signals import EndedAtOnce
    from bot.redis.embedded import EmbeddedRedisError
    from bot.redis.url import plain_cause

    try:
        return asyncio.run(work)
    except RedisError as error:
        message = f"Redis cannot be used ({plain_cause(error)}). `orion doctor` says more."
    except EmbeddedRedisError as error:
        message = str(error)
    except KnowledgeAwayError as error:
        message = f"The shared index cannot be used ({error}). Check ORION_KNOWLEDGE_URL and that PostgreSQL runs."
    except EndedAtOnce:
        err.print("Ended at once. What was under way is taken up again at the next start.", style="red")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    err.print(message, style="red")
    raise typer.Exit(EXIT_FAILED)


def with_judge(work: Callable[[Judge | None], Coroutine[Any, Any, Result]], *, wanted: bool) -> Result:
    """What ``work`` gives with the configured judge, or with none where none is wanted."""
    if not wanted:
        return asyncio.run(work(None))
    from bot.timeouts import TurnTimeouts
    from bot.turn.engine import open_judge

    settings = configured()
    if not settings.uses_server:
        message = "--judge needs a model. Set OPENAI_API_KEY or OPENAI_BASE_URL, or leave --judge away."
        raise WrongUse(message)

    async def asked() -> Result:
        async with open_judge(settings.model_copy(update={"judge": True}), TurnTimeouts.of(settings).judge) as judge:
            return await work(judge)

    return run(asked())


def _write(text: str) -> None:
    """UTF-8 whatever the terminal's encoding: JSON is, and half an emoji must not end in an exception."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
