"""`orion pause`, `resume` and `forget`, as an admin types them. Each ends with a sentence that says what holds now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.output import JsonOption, LocalOption, plain, prefix_of, print_json
from bot.errors import WrongUse

if TYPE_CHECKING:  # what only annotations name is not worth the time to import it
    from bot.cli.forget import Forgotten
    from bot.settings import Settings

app = typer.Typer()

_NOT_OURS = (
    "Not Orion's to delete: the messages in Slack{traces}; log lines, which hold ids and lengths but nobody's words."
)
_TRACES = ", and the traces in Langfuse (under the user id {user}, delete them there)"


@app.command()
def pause(
    reason: Annotated[str, typer.Option(help="Shown to people who ask meanwhile.")] = "", local: LocalOption = None
) -> None:
    """Answer nobody until `orion resume`. Questions are taken and kept, people are told so."""
    from bot.cli.output import configured, run

    run(_pause(configured(), reason, prefix_of(local)))


async def _pause(settings: Settings, reason: str, prefix: str) -> None:
    from bot.redis.connect import open_redis
    from bot.stores.pause import Pausing

    async with open_redis(settings) as redis:
        await Pausing(redis, prefix=prefix).pause(reason)
    plain.print("Paused. Running turns end; new questions are kept until `orion resume`.")


@app.command()
def resume(local: LocalOption = None) -> None:
    """Go on after `orion pause`: what waited is answered, thread by thread in order."""
    from bot.cli.output import configured, run

    run(_resume(configured(), prefix_of(local)))


async def _resume(settings: Settings, prefix: str) -> None:
    from bot.redis.connect import open_redis
    from bot.stores.pause import Pausing

    async with open_redis(settings) as redis:
        was_paused = await Pausing(redis, prefix=prefix).resume()
    plain.print("Orion goes on; what waited is answered within seconds." if was_paused else "Orion was not paused.")


@app.command()
def forget(
    user: Annotated[str, typer.Option(metavar="U…", help="A person's Slack id.")] = "",
    thread: Annotated[str, typer.Option(metavar="LINK", help="A message's link, or team:channel:ts.")] = "",
    local: LocalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete what Orion keeps of a person or of a thread."""
    from bot.cli.output import configured, run

    if bool(user) == bool(thread):
        message = "Name either a person or a thread: orion forget --user U024BE7LH, or orion forget --thread LINK."
        raise WrongUse(message)
    found = run(_forget(configured(), user, thread, prefix_of(local)))
    _show_json(found, user) if as_json else _show(found, user)
    raise typer.Exit(1 if found.running else 0)


async def _forget(settings: Settings, user: str, thread: str, prefix: str) -> Forgotten:
    from bot.cli.forget import Forgetting, checked_user
    from bot.queue.queue import Mailbox
    from bot.redis.connect import open_redis

    async with open_redis(settings) as redis:
        mailbox = Mailbox(redis, prefix=prefix)
        try:
            forgetting = Forgetting(redis, mailbox, prefix=prefix)
            return await (forgetting.person(checked_user(user)) if user else forgetting.thread(thread))
        finally:
            await mailbox.aclose()


def _show(found: Forgotten, user: str) -> None:
    from bot.cli.forget import langfuse_user

    counts = {kind: n for kind, n in found.counts.items() if n}
    for kind, n in counts.items():
        plain.print(f"{n:>6}  {kind}")
    plain.print("Forgotten." if counts else "There was nothing (any more).")
    for place in found.running:
        plain.print(f"A turn still runs in {place}. Run the same command again in a minute.")
    plain.print(
        _NOT_OURS.format(traces=_TRACES.format(user=langfuse_user(user)) if user else " and traces in Langfuse")
    )


def _show_json(found: Forgotten, user: str) -> None:
    from bot.cli.forget import langfuse_user

    shown = {"deleted": {kind: n for kind, n in found.counts.items() if n}, "still_running": found.running}
    traces = {"langfuse_user": langfuse_user(user)} if user else {}
    print_json({**shown, **traces})
