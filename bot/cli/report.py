"""`orion report`: the last seven days, as the channel of ORION_REPORT sees each week on Monday."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import typer

from bot.cli import output

if TYPE_CHECKING:  # for annotations: importing them takes too long
    from redis.asyncio import Redis

    from bot.reports.report import Places, Report
    from bot.settings import Settings

app = typer.Typer()


@app.command()
def report(local: output.LocalOption = None, as_json: output.JsonOption = False) -> None:
    """Show the last seven days: unanswered questions by topic, disliked answers, what is out of date, and figures.

    Texts from private channels are left out, except from the channel of ORION_REPORT itself.
    """
    settings = output.configure()
    found = output.with_redis(lambda redis, prefix: _gather(settings, redis, prefix, local), local)
    if as_json:
        output.print_json(found.to_json())
        return
    from bot.reports.table import report_tables

    for table in report_tables(found):
        output.print_table(table)


async def _gather(settings: Settings, redis: Redis, prefix: str, port: int | None) -> Report:
    from bot.documents.open import corpus_of, open_index
    from bot.reports.report import Gathering, prices_in
    from bot.stores.turn_records import TurnRecords
    from observability.stats import Stats

    async with AsyncExitStack() as stack:
        corpus = replace(corpus_of(settings), roots=(), sources=())  # as the last sync left it
        index, _ = await stack.enter_async_context(open_index(corpus))
        places = await _places(stack, settings, redis, prefix, port)
        gathering = Gathering(
            records=TurnRecords(redis, prefix=prefix), stats=Stats(redis, prefix=prefix), index=index, places=places,
            prices=prices_in(settings.home), answers=settings.answers,
        )  # fmt: skip
        return await gathering.report(datetime.now(UTC) + timedelta(days=1))


async def _places(stack: AsyncExitStack, settings: Settings, redis: Redis, prefix: str, port: int | None) -> Places:
    """Return the places as the report's channel sees them. While Slack is unreachable, no place counts as public."""
    from agent.thread.audience import Viewers
    from agent.thread.conversation import ThreadKey
    from bot.reports.report import Places
    from bot.slack.client import SlackWorkspace, open_client
    from bot.slack.directory import SlackDirectory
    from bot.slack.hand_off_place import HandOffPlace
    from bot.slack.web_api import DeliveryFailed, SlackCalls

    everyone = Viewers(team="", channel="")
    if port is not None:  # a workspace for trying out
        return Places(viewers=everyone, all_open=True)
    token = settings.slack_bot_token.get_secret_value()
    if not token:
        output.note("Without SLACK_BOT_TOKEN no channel is known to be public, so questions are only counted.")
        return Places(viewers=everyone)
    client = await stack.enter_async_context(open_client(token, api_url=settings.slack_api_url))
    calls = SlackCalls(client, patience_s=0)
    workspace = SlackWorkspace(client, calls)
    people = SlackDirectory(workspace, redis, prefix=prefix)
    try:
        team = (await workspace.identity()).team
        nowhere = ThreadKey(team=team, channel="", thread_ts="")
        place = await HandOffPlace(settings.report, calls, people).find(nowhere) if settings.report else nowhere
    except DeliveryFailed as failure:
        output.note(f"Slack says {failure.reason}, so questions are only counted. `orion doctor` says more.")
        return Places(viewers=everyone)
    return Places(viewers=Viewers(team=team, channel=place.channel), calls=calls, people=people)
