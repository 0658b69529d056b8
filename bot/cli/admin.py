"""`orion pause`, `resume` and `forget`, as an admin types them. Each ends with a sentence that says what holds now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.output import JsonOption, LocalOption, prefix_of, print_json, print_text, with_redis
from bot.errors import WrongUse

if TYPE_CHECKING:  # what only annotations name is not worth the time to import it
    from bot.cli.forget import Forgotten

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
        _show(found, langfuse_user)
    raise typer.Exit(1 if found.running else 0)


def _show(found: Forgotten, langfuse_user: str) -> None:
    counts = {kind: n for kind, n in found.counts.items() if n}
    for kind, n in counts.items():
        print_text(f"{n:>6}  {kind}")
    print_text("Forgotten." if counts else "There was nothing (any more).")
    for place in found.running:
        print_text(f"A turn still runs in {place}. Run the same command again in a minute.")
    traces = _TRACES.format(user=langfuse_user) if langfuse_user else " and traces in Langfuse"
    print_text(_NOT_OURS.format(traces=traces))
