"""Commands for an admin: `pause`, `resume`, `forget`, `dead-letters`, `stats`, `report` and `dashboards`."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bot.cli import output
from bot.errors import WrongUse

if TYPE_CHECKING:  # for annotations: importing them takes too long
    from redis.asyncio import Redis

    from bot.queue.queue import DeadLetter
    from bot.reports.report import Places, Report
    from bot.settings import Settings

app = typer.Typer()


@app.command()
def pause(
    reason: Annotated[str, typer.Option(help="Shown to people who ask meanwhile.")] = "",
    local: output.LocalOption = None,
) -> None:
    """Answer no questions until `orion resume`. They are stored, and people are told."""
    from bot.stores.limits import Pausing

    output.with_redis(lambda redis, prefix: Pausing(redis, prefix=prefix).pause(reason), local)
    output.print_text("Paused. Running turns end; new questions are kept until `orion resume`.")


@app.command()
def resume(local: output.LocalOption = None) -> None:
    """Continue after `orion pause`: stored questions are answered, in order within each thread."""
    from bot.stores.limits import Pausing

    was_paused = output.with_redis(lambda redis, prefix: Pausing(redis, prefix=prefix).resume(), local)
    goes_on = "Orion continues; stored questions are answered within seconds."
    output.print_text(goes_on if was_paused else "Orion was not paused.")


@app.command()
def forget(
    user: Annotated[str, typer.Option(metavar="U…", help="A person's Slack id.")] = "",
    thread: Annotated[str, typer.Option(metavar="LINK", help="A message's link, or team:channel:ts.")] = "",
    local: output.LocalOption = None,
) -> None:
    """Delete everything that Orion stores about a person or a thread."""
    from bot.cli import forget as forgetting
    from observability.langfuse.tracing import hash_id

    if bool(user) == bool(thread):
        raise WrongUse(
            why="Name either a person or a thread: orion forget --user U024BE7LH, or orion forget --thread LINK."
        )
    found = output.with_redis(
        lambda redis, prefix: forgetting.forget(redis, user=user, thread=thread, prefix=prefix), local
    )
    counts = {kind: n for kind, n in found.counts.items() if n}
    for kind, n in counts.items():
        output.print_text(f"{n:>6}  {kind}")
    output.print_text("Forgotten." if counts else "There was nothing (any more).")
    for place in found.running:
        output.print_text(f"A turn still runs in {place}. Run the same command again in a minute.")
    traces = " and traces in Langfuse"
    if user:
        traces = f", and the traces in Langfuse (under the user id {hash_id(user)}, delete them there)"
    output.print_text(
        f"Not Orion's to delete: the messages in Slack{traces}; log lines, which have ids and lengths but no texts."
    )
    raise typer.Exit(1 if found.running else 0)


@app.command("dead-letters")
def dead_letters(
    action: Annotated[Literal["list", "retry", "drop"], typer.Argument(metavar="list|retry|drop")] = "list",
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID…", help="As the list shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    local: output.LocalOption = None,
) -> None:
    """List messages that Orion gave up, newest first, retry them at the end of their threads, or drop them."""
    from bot.queue.queue import MAX_DEAD_LETTERS, Mailbox

    if action != "list" and bool(ids) == every:
        raise WrongUse(why="Say what to do with which: orion dead-letters retry ID…, drop ID…, or either with --all.")

    async def work(redis: Redis, prefix: str) -> dict[str, str]:
        """Return a line for each letter, or an empty one if it does not exist."""
        mailbox = Mailbox(redis, prefix=prefix)
        newest = await mailbox.list_dead_letters(MAX_DEAD_LETTERS)
        if action == "list":
            return {letter.entry_id: _describe_letter(letter) for letter in newest}
        named = dict.fromkeys(ids or [letter.entry_id for letter in reversed(newest)])
        done = "is tried again" if action == "retry" else "is dropped"
        return {one: f"{one} {done}." if await mailbox.end_dead_letter(one, action) else "" for one in named}

    lines = output.with_redis(work, local)
    for entry_id, line in lines.items():
        output.print_text(line or f"{entry_id} is not there (any more): nothing was changed.")
    if not lines:
        output.print_text("No dead letters.")
    raise typer.Exit(0 if all(lines.values()) else 1)


def _describe_letter(letter: DeadLetter) -> str:
    """Return what an operator may see of a letter, with the length of the person's text."""
    from bot.slack.message import Incoming

    incoming = Incoming.from_body(letter.body)
    length = len(incoming.text if incoming else letter.body)
    tried = "1 try" if letter.tries == 1 else f"{letter.tries} tries"
    age = timedelta(seconds=max(0, round(time.time() - letter.died_at)))
    return f"{letter.entry_id}  {letter.thread}  {letter.reason} ({tried}, {age} ago, {length} characters)"


@app.command()
def stats(
    days: Annotated[int, typer.Option(min=1, max=400, help="How many days back.")] = 14,
    local: output.LocalOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Pass rate, attempts, reasons, latency, tokens and, with prices.toml in ORION_HOME, cost of the last days."""
    from bot.settings import load_settings
    from observability.stats import Stats
    from observability.stats_table import cost, read_prices, stats_table

    prices = read_prices(load_settings().home)
    summary = output.with_redis(lambda redis, prefix: Stats(redis, prefix=prefix).read(days), local)
    of = "workspaces served" if local is None else f"local workspace on port {local}"
    if as_json:
        output.print_json({"of": of, **summary.to_json(), "cost": cost(summary, prices)})
    else:
        output.print_table(stats_table(summary, of=of, prices=prices))


@app.command()
def dashboards() -> None:
    """Make the dashboard of Orion's figures in Langfuse; existing charts stay unchanged."""
    from observability.langfuse.dashboards import CHARTS, NAME, DashboardsError, make_dashboard

    settings = output.configure()
    public, secret = settings.langfuse_public_key, settings.langfuse_secret_key.get_secret_value()
    if not (public and secret):
        raise WrongUse(
            why="Set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY (and LANGFUSE_BASE_URL for your own server) first."
        )
    try:
        added, url = make_dashboard(public_key=public, secret_key=secret, host=settings.langfuse_url)
    except DashboardsError as error:
        output.note(str(error), "red")
        raise typer.Exit(output.EXIT_FAILED) from None
    for title in added:
        output.print_text(f"added  {title}")
    output.print_text(f"The dashboard {NAME} has {len(CHARTS)} charts: {url}")


@app.command()
def report(local: output.LocalOption = None) -> None:
    """Show the last seven days: unanswered questions by topic, disliked answers, what is out of date, and figures.

    Texts from private channels are left out, except from the channel of ORION_REPORT itself.
    """
    from bot.reports.blocks import report_text

    settings = output.configure()
    found = output.with_redis(lambda redis, prefix: _gather(settings, redis, prefix, local), local)
    output.print_text(report_text(found, datetime.now(UTC).date()))


async def _gather(settings: Settings, redis: Redis, prefix: str, port: int | None) -> Report:
    from bot.documents.open import corpus_of, open_index
    from bot.reports.report import Gathering
    from bot.stores.turn_records import TurnRecords
    from observability.stats import Stats
    from observability.stats_table import read_prices

    async with AsyncExitStack() as stack:
        corpus = replace(corpus_of(settings), roots=(), sources=())  # the state after the last sync
        index, _ = await stack.enter_async_context(open_index(corpus))
        places = await _places(stack, settings, redis, prefix, port)
        gathering = Gathering(
            records=TurnRecords(redis, prefix=prefix), stats=Stats(redis, prefix=prefix), index=index, places=places,
            prices=read_prices(settings.home), answers=settings.answers,
        )  # fmt: skip
        return await gathering.report(datetime.now(UTC) + timedelta(days=1))


async def _places(stack: AsyncExitStack, settings: Settings, redis: Redis, prefix: str, port: int | None) -> Places:
    """Return the places as the report's channel sees them. If Slack is unreachable, no place counts as public."""
    from agent.thread.conversation import ThreadKey, Viewers
    from bot.reports.report import Places
    from bot.slack.client import SlackWorkspace, open_client
    from bot.slack.directory import SlackDirectory
    from bot.slack.hand_off_place import HandOffPlace
    from bot.slack.web_api import DeliveryFailed, SlackCalls

    everyone = Viewers(team="", channel="")
    if port is not None:  # a local workspace
        return Places(viewers=everyone, all_open=True)
    token = settings.slack_bot_token.get_secret_value()
    if not token:
        output.note("Without SLACK_BOT_TOKEN no channel is known to be public, so questions are only counted.")
        return Places(viewers=everyone)
    client = await stack.enter_async_context(open_client(token, api_url=settings.slack_api_url))
    workspace = SlackWorkspace(SlackCalls(client, patience_s=0))
    people = SlackDirectory(workspace, redis, prefix=prefix)
    try:
        team = (await workspace.identity()).team
        nowhere = ThreadKey(team=team, channel="", thread_ts="")
        place = await HandOffPlace(settings.report, people).find(nowhere) if settings.report else nowhere
    except DeliveryFailed as failure:
        output.note(f"Slack says {failure.reason}, so questions are only counted. `orion doctor` says more.")
        return Places(viewers=everyone)
    return Places(viewers=Viewers(team=team, channel=place.channel), people=people)
