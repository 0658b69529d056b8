"""`orion stats` and `orion dashboards`: the figures of the last days, here and in Langfuse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from bot.cli import output
from bot.errors import WrongUse

if TYPE_CHECKING:  # what only annotations name is not worth the time to import it
    from redis.asyncio import Redis

    from observability.stats import Summary
    from observability.stats_table import By, Prices

app = typer.Typer()


@app.command()
def stats(  # noqa: PLR0913, PLR0917 - the options of the command
    days: Annotated[int, typer.Option(min=1, max=400, help="How many days back.")] = 14,
    local: output.LocalOption = None,
    by: Annotated[str, typer.Option(help="'day', 'channel', 'rule' or 'model'.")] = "day",
    prices: Annotated[
        Path | None, typer.Option(help="TOML file of prices by model. Default: prices.toml in ORION_HOME.")
    ] = None,
    as_json: output.JsonOption = False,
    unanswered: Annotated[bool, typer.Option("--unanswered", help="List refused questions, by topic.")] = False,
    disliked: Annotated[bool, typer.Option("--disliked", help="List verified answers that people disliked.")] = False,
) -> None:
    """Pass rate, attempts, reasons, latency, tokens and cost of the last days."""
    from observability.stats_table import cost, stats_table

    if unanswered or disliked:
        turns = output.with_redis(lambda redis: _turns(redis, local, disliked=disliked))
        _print_turns(turns, disliked=disliked, as_json=as_json)
        return
    if by not in {"day", "channel", "rule", "model"}:
        message = f"--by must be 'day', 'channel', 'rule' or 'model', not '{by}'."
        raise WrongUse(message)
    known = _prices(prices)
    port, summary, others = output.with_redis(lambda redis: _read(redis, days, local))
    if as_json:
        output.print_json({"of": _name(port), **summary.to_json(), "cost": cost(summary, known)})
        return
    output.print_table(stats_table(summary, cast("By", by), of=_name(port), prices=known))
    for other in others:
        output.note(f"The {_name(other)} has figures of its own: orion stats --local {other}", "dim")


def _prices(named: Path | None) -> Prices:
    """The prices in the file that was named, else in that of the home; none where there is none."""
    from bot.settings import load_settings
    from observability.stats_table import read_prices

    path = named or load_settings().home / "prices.toml"
    try:
        return read_prices(path) if named or path.exists() else {}
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read as prices: {error}."
        raise WrongUse(message) from None


@app.command()
def dashboards() -> None:
    """Make the dashboard of Orion's figures in Langfuse; what is there already stays as it is."""
    from observability.langfuse.dashboards import NAME, DashboardsError, make_dashboard

    settings = output.configured()
    public, secret = settings.langfuse_public_key, settings.langfuse_secret_key.get_secret_value()
    if not (public and secret):
        message = "Set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY (and LANGFUSE_HOST for your own server) first."
        raise WrongUse(message)
    try:
        made = make_dashboard(public_key=public, secret_key=secret, host=settings.langfuse_host)
    except DashboardsError as error:
        output.note(str(error), "red")
        raise typer.Exit(output.EXIT_FAILED) from None
    for title in made.added:
        output.print_text(f"added  {title}")
    output.print_text(f"The dashboard {NAME} has {len(made.added) + len(made.kept)} charts: {made.url}")


async def _read(redis: Redis, days: int, port: int | None) -> tuple[int | None, Summary, list[int]]:
    """Whose figures are shown, the figures, and who else has some.

    What serves Slack comes first; where it has no figures, a local workspace may have some.
    """
    from observability.stats import Stats

    summary = await Stats(redis, prefix=output.prefix_of(port)).read(days)
    if summary.turns or port is not None:
        return port, summary, []
    found = {
        other: await Stats(redis, prefix=output.prefix_of(other)).read(days)
        for other in await output.local_ports(redis)
    }
    having = [other for other, figures in found.items() if figures.turns]
    return (having[0], found[having[0]], having[1:]) if having else (port, summary, [])


async def _turns(redis: Redis, port: int | None, *, disliked: bool) -> list[dict[str, Any]]:
    """The records of the latest turns that were refused or disliked, of the first Orion that has any."""
    from bot.stores.turn_records import MOST_LISTED, TurnRecords

    for one in [port] if port is not None else [None, *await output.local_ports(redis)]:
        records = TurnRecords(redis, prefix=output.prefix_of(one))
        if found := await (records.disliked(MOST_LISTED) if disliked else records.latest("refused", MOST_LISTED)):
            return found
    return []


def _print_turns(turns: list[dict[str, Any]], *, disliked: bool, as_json: bool) -> None:
    """The turns by the document that came nearest to each, the topic with most of them first."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for turn in turns:
        titles = (source["title"] for source in turn.get("sources", ()) if source.get("title"))
        topics.setdefault(next(titles, "No document near"), []).append(turn)
    ordered = sorted(topics.items(), key=lambda topic: -len(topic[1]))
    if as_json:
        output.print_json({topic: [turn["question"] for turn in found] for topic, found in ordered})
        return
    if not turns:
        output.print_text("Nobody disliked a verified answer." if disliked else "Every question was answered.")
    for topic, found in ordered:
        output.print_text(f"{topic}: {len(found)}")
        for turn in found:
            said = "; ".join(filter(None, (complaint["said"] for complaint in turn.get("complaints", ()))))
            output.print_text(f"  {' '.join(turn['question'].split())}" + (f" — {said}" if said else ""))


def _name(port: int | None) -> str:
    return "workspaces served" if port is None else f"local workspace on port {port}"
