"""`orion dead-letters [list|retry|drop]`: messages that were given up. A person's words are never printed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from bot.cli.output import JsonOption, LocalOption, prefix_of, print_json, print_text, with_redis
from bot.errors import WrongUse

if TYPE_CHECKING:  # what only annotations name is not worth the time to import it
    from redis.asyncio import Redis

    from bot.queue.dead_letters import DeadLetter, Fate

app = typer.Typer()

EXIT_NOT_FOUND = 1
DONE = {"retry": "is tried again", "drop": "is dropped"}


@app.command("dead-letters")
def dead_letters(  # noqa: PLR0913, PLR0917 - the options of the command
    action: Annotated[str, typer.Argument(metavar="list|retry|drop")] = "list",
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID…", help="As the list shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every one that is there now.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many to list, the newest first.")] = 100,
    local: LocalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Messages that were given up: list them, put them once more at the end of their threads, or forget them."""
    if action == "list":
        letters = with_redis(lambda redis: _newest(redis, prefix_of(local), limit))
        print_json(letters) if as_json else _show(letters)
        return
    if action not in DONE or bool(ids) == every:
        message = "Say what to do with which: orion dead-letters retry ID…, drop ID…, or either with --all."
        raise WrongUse(message)
    decided = with_redis(lambda redis: _decided(redis, prefix_of(local), ids or [], cast("Fate", action)))
    if as_json:
        print_json([{"id": entry_id, "found": found} for entry_id, found in decided.items()])
    else:
        for entry_id, found in decided.items():
            print_text(f"{entry_id} {DONE[action] if found else 'is not there (any more): nothing was changed'}.")
        if not decided:
            print_text("No dead letters.")
    raise typer.Exit(0 if all(decided.values()) else EXIT_NOT_FOUND)


def _show(letters: Sequence[dict[str, Any]]) -> None:
    for letter in letters:
        tried = "1 try" if letter["tries"] == 1 else f"{letter['tries']} tries"
        age, length = timedelta(seconds=letter["age_s"]), letter["length"]
        print_text(f"{letter['id']}  {letter['thread']}  {letter['reason']} ({tried}, {age} ago, {length} characters)")
    if not letters:
        print_text("No dead letters.")


async def _newest(redis: Redis, prefix: str, limit: int) -> list[dict[str, Any]]:
    from bot.queue.dead_letters import DeadLetters

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


async def _decided(redis: Redis, prefix: str, ids: Sequence[str], fate: Fate) -> dict[str, bool]:
    """Each id, and whether there was such a letter. Without ids: all, in the order in which they died."""
    from bot.queue.dead_letters import DeadLetters
    from bot.queue.queue import DEAD_KEPT

    letters = DeadLetters(redis, prefix=prefix)
    named = ids or [letter.entry_id for letter in reversed(await letters.newest(DEAD_KEPT))]
    return {entry_id: await letters.decide(entry_id, fate) for entry_id in dict.fromkeys(named)}
