"""`orion pause`, `resume`, `forget` and `dead-letters`, as an admin types them. No person's words are ever printed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from bot.cli.output import JsonOption, LocalOption, prefix_of, print_json, print_text, with_redis
from bot.errors import WrongUse

if TYPE_CHECKING:  # what only annotations name is not worth the time to import it
    from bot.cli.forget import Forgetting
    from bot.queue.dead_letters import DeadLetter, DeadLetters, Fate

app = typer.Typer()

EXIT_NOT_FOUND = 1
DONE = {"retry": "is tried again", "drop": "is dropped"}
_NOT_OURS = (
    "Not Orion's to delete: the messages in Slack{traces}; log lines, which hold ids and lengths but nobody's words."
)
_TRACES = ", and the traces in Langfuse (under the user id {user}, delete them there)"


@app.command()
def pause(
    reason: Annotated[str, typer.Option(help="Shown to people who ask meanwhile.")] = "", local: LocalOption = None
) -> None:
    """Answer nobody until `orion resume`. Questions are taken and kept, people are told so."""
    from bot.stores.pause import Pausing

    with_redis(lambda redis: Pausing(redis, prefix=prefix_of(local)).pause(reason))
    print_text("Paused. Running turns end; new questions are kept until `orion resume`.")


@app.command()
def resume(local: LocalOption = None) -> None:
    """Go on after `orion pause`: what waited is answered, thread by thread in order."""
    from bot.stores.pause import Pausing

    was_paused = with_redis(lambda redis: Pausing(redis, prefix=prefix_of(local)).resume())
    print_text("Orion goes on; what waited is answered within seconds." if was_paused else "Orion was not paused.")


@app.command()
def forget(
    user: Annotated[str, typer.Option(metavar="U…", help="A person's Slack id.")] = "",
    thread: Annotated[str, typer.Option(metavar="LINK", help="A message's link, or team:channel:ts.")] = "",
    local: LocalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete what Orion keeps of a person or of a thread."""
    from bot.cli import forget as forgetting

    if bool(user) == bool(thread):
        message = "Name either a person or a thread: orion forget --user U024BE7LH, or orion forget --thread LINK."
        raise WrongUse(message)
    found = with_redis(lambda redis: forgetting.forget(redis, user=user, thread=thread, prefix=prefix_of(local)))
    langfuse_user = forgetting.langfuse_user(user) if user else ""
    if as_json:
        shown = {"deleted": {kind: n for kind, n in found.counts.items() if n}, "still_running": found.running}
        print_json(shown | ({"langfuse_user": langfuse_user} if user else {}))
    else:
        _show_forgotten(found, langfuse_user)
    raise typer.Exit(1 if found.running else 0)


def _show_forgotten(found: Forgetting, langfuse_user: str) -> None:
    counts = {kind: n for kind, n in found.counts.items() if n}
    for kind, n in counts.items():
        print_text(f"{n:>6}  {kind}")
    print_text("Forgotten." if counts else "There was nothing (any more).")
    for place in found.running:
        print_text(f"A turn still runs in {place}. Run the same command again in a minute.")
    traces = _TRACES.format(user=langfuse_user) if langfuse_user else " and traces in Langfuse"
    print_text(_NOT_OURS.format(traces=traces))


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
    from bot.queue.dead_letters import DeadLetters

    if action == "list":
        letters = with_redis(lambda redis: DeadLetters(redis, prefix=prefix_of(local)).newest(limit))
        shown = list(map(_letter_json, letters))
        print_json(shown) if as_json else _show_letters(shown)
        return
    if action not in DONE or bool(ids) == every:
        message = "Say what to do with which: orion dead-letters retry ID…, drop ID…, or either with --all."
        raise WrongUse(message)
    fate = cast("Fate", action)
    decided = with_redis(lambda redis: _decided(DeadLetters(redis, prefix=prefix_of(local)), ids or [], fate))
    if as_json:
        print_json([{"id": entry_id, "found": found} for entry_id, found in decided.items()])
    else:
        for entry_id, found in decided.items():
            print_text(f"{entry_id} {DONE[action] if found else 'is not there (any more): nothing was changed'}.")
        if not decided:
            print_text("No dead letters.")
    raise typer.Exit(0 if all(decided.values()) else EXIT_NOT_FOUND)


def _show_letters(letters: Sequence[dict[str, Any]]) -> None:
    for letter in letters:
        tried = "1 try" if letter["tries"] == 1 else f"{letter['tries']} tries"
        age, length = timedelta(seconds=letter["age_s"]), letter["length"]
        print_text(f"{letter['id']}  {letter['thread']}  {letter['reason']} ({tried}, {age} ago, {length} characters)")
    if not letters:
        print_text("No dead letters.")


def _letter_json(letter: DeadLetter) -> dict[str, Any]:
    """What an operator may see of a letter. ``length`` counts the characters of what the person wrote."""
    from bot.slack.message import Incoming

    try:
        length = len(Incoming.from_json(letter.body).text)
    except ValueError:
        length = len(letter.body)
    names = {"id": letter.entry_id, "thread": letter.thread, "message_id": letter.id}
    age_s = max(0, round(time.time() - letter.died_at))
    return {**names, "reason": letter.reason, "tries": letter.tries, "age_s": age_s, "length": length}


async def _decided(letters: DeadLetters, ids: Sequence[str], fate: Fate) -> dict[str, bool]:
    """Each id, and whether there was such a letter. Without ids: all, in the order in which they died."""
    from bot.queue.queue import DEAD_KEPT

    named = ids or [letter.entry_id for letter in reversed(await letters.newest(DEAD_KEPT))]
    return {entry_id: await letters.decide(entry_id, fate) for entry_id in dict.fromkeys(named)}
