"""`orion dead-letters [list|retry|drop]`: messages that were given up. A person's words are never printed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

from bot.cli.output import LocalOption, prefix_of
from bot.errors import WrongUse

if TYPE_CHECKING:  # what only annotations name is not worth the time to import it
    from bot.queue.dead_letters import DeadLetter, Fate
    from bot.settings import Settings

app = typer.Typer(help="Messages that were given up: list them, try them again, or drop them.")
_out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)

EXIT_NOT_FOUND = 1
SHOWN = 100
DONE = {"retry": "is tried again", "drop": "is dropped"}

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="How many, the newest first.")]
IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="ID…", help="As `orion dead-letters` shows them.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every one that is there now.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """What was said before the name of a command counts for it too."""

    prefix: str
    as_json: bool


@app.callback(invoke_without_command=True)
def dead_letters(context: typer.Context, local: LocalOption = None, as_json: JsonOption = False) -> None:  # noqa: FBT002 - a flag
    """Messages that were given up: list them, try them again, or drop them."""
    context.obj = GroupOptions(prefix=prefix_of(local), as_json=as_json)
    if context.invoked_subcommand is None:
        _list(context.obj.prefix, SHOWN, as_json=as_json)


@app.command("list")
def list_them(context: typer.Context, limit: LimitOption = SHOWN, as_json: JsonOption = False) -> None:  # noqa: FBT002 - a flag
    """What was given up, why, and when. The people were told at the time."""
    _list(context.obj.prefix, limit, as_json=as_json or context.obj.as_json)


@app.command()
def retry(
    context: typer.Context,
    ids: IdsArgument = None,
    every: AllOption = False,  # noqa: FBT002 - a flag
    as_json: JsonOption = False,  # noqa: FBT002 - a flag
) -> None:
    """Put these at the end of their threads' mailboxes, once."""
    decided = _decide(context.obj.prefix, ids or [], every, "retry")
    _show(decided, "retry", as_json=as_json or context.obj.as_json)


@app.command()
def drop(
    context: typer.Context,
    ids: IdsArgument = None,
    every: AllOption = False,  # noqa: FBT002 - a flag
    as_json: JsonOption = False,  # noqa: FBT002 - a flag
) -> None:
    """Forget these."""
    decided = _decide(context.obj.prefix, ids or [], every, "drop")
    _show(decided, "drop", as_json=as_json or context.obj.as_json)


def _list(prefix: str, limit: int, *, as_json: bool) -> None:
    from bot.cli.output import configured, print_json, run

    letters = run(_newest(configured(), prefix, limit))
    if as_json:
        print_json(letters)
        return
    for letter in letters:
        tried = "1 try" if letter["tries"] == 1 else f"{letter['tries']} tries"
        age, length = timedelta(seconds=letter["age_s"]), letter["length"]
        _out.print(f"{letter['id']}  {letter['thread']}  {letter['reason']} ({tried}, {age} ago, {length} characters)")
    if not letters:
        _out.print("No dead letters.")


async def _newest(settings: Settings, prefix: str, limit: int) -> list[dict[str, Any]]:
    from bot.queue.dead_letters import DeadLetters
    from bot.redis.connect import open_redis

    async with open_redis(settings) as redis:
        return [_shown(letter) for letter in await DeadLetters(redis, prefix=prefix).newest(limit)]


def _shown(letter: DeadLetter) -> dict[str, Any]:
    """What an operator may see of a letter. ``length`` counts the characters of what the person wrote."""
    from bot.slack.message import Incoming

    try:
        length = len(Incoming.from_json(letter.body).text)
    except ValueError:
        length = len(letter.body)
    return {
        "id": letter.entry_id,
        "thread": letter.thread,
        "message_id": letter.id,
        "reason": letter.reason,
        "tries": letter.tries,
        "age_s": max(0, round(time.time() - letter.died_at)),
        "length": length,
    }


def _decide(prefix: str, ids: Sequence[str], every: bool, fate: Fate) -> dict[str, bool]:  # noqa: FBT001 - a flag of the command
    from bot.cli.output import configured, run

    if bool(ids) == every:
        message = f"Name dead letters by their ids, or all of them: orion dead-letters {fate} ID…, or --all."
        raise WrongUse(message)
    return run(_decided(configured(), prefix, ids, fate))


def _show(decided: Mapping[str, bool], fate: Fate, *, as_json: bool) -> NoReturn:
    from bot.cli.output import print_json

    if as_json:
        print_json([{"id": entry_id, "found": found} for entry_id, found in decided.items()])
    else:
        for entry_id, found in decided.items():
            _out.print(f"{entry_id} {DONE[fate] if found else 'is not there (any more): nothing was changed'}.")
        if not decided:
            _out.print("No dead letters.")
    raise typer.Exit(0 if all(decided.values()) else EXIT_NOT_FOUND)


async def _decided(settings: Settings, prefix: str, ids: Sequence[str], fate: Fate) -> dict[str, bool]:
    """Each id, and whether there was such a letter. Without ids: all, in the order in which they died."""
    from bot.queue.dead_letters import DeadLetters
    from bot.queue.queue import DEAD_KEPT
    from bot.redis.connect import open_redis

    async with open_redis(settings) as redis:
        letters = DeadLetters(redis, prefix=prefix)
        named = ids or [letter.entry_id for letter in reversed(await letters.newest(DEAD_KEPT))]
        return {entry_id: await letters.decide(entry_id, fate) for entry_id in dict.fromkeys(named)}
