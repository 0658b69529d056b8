"""The parts that serve one workspace, over a local one: people cannot be asked, and nothing is searched in Slack."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from agent.budget import Budget
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.types import IndexReport
from agent.model.protocol import Model
from agent.quoting.model import ExtractiveModel
from agent.turn.progress import Policy
from bot.channel_settings import ChannelFile
from bot.install.workspaces import TeamBot, Workspaces
from bot.local.model.roster import TEAM_ID
from bot.queue.claim import Claimed, Ending, Lease
from bot.slack.directory import Memberships, SlackDirectory
from bot.slack.files import Attachments
from bot.slack.hand_off_place import HandOffPlace
from bot.slack.search import SlackSearch
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores
from bot.stores.turn_records import TurnRecords
from bot.turn.engine import Engine
from bot.turn.job import TeamServices
from bot.turn.observer import Observers
from observability.langfuse.connection import Connection
from observability.langfuse.tracing import Tracer
from observability.metrics import Metrics
from observability.stats import Stats
from tests.support.fakes import LIMITS, PassageTool
from tests.support.local_slack import Slack


def observers_over(redis: Redis) -> Observers:
    """Watchers that send no traces."""
    tracer = Tracer(Connection())
    return Observers(metrics=Metrics(), stats=Stats(redis), records=TurnRecords(redis), tracer=tracer)


class UnusedHandler:
    """A handler for tests in which no message is handled."""

    async def handle(self, _claimed: Claimed, _lease: Lease) -> Ending:
        raise AssertionError

    async def notify_given_up(self, claimed: Claimed, _lease: Lease, reason: str) -> None:
        raise AssertionError(claimed.id, reason)


@dataclass(frozen=True)
class WorkspacesBy(Workspaces):
    """Workspaces that a function finds."""

    find: Callable[[str], Awaitable[TeamBot]]

    async def of(self, team: str) -> TeamBot:
        return await self.find(team)

    async def teams(self) -> Sequence[str]:
        return (TEAM_ID,)


def workspaces_of(slack: Slack, redis: Redis) -> Workspaces:
    """The one local workspace."""

    async def of(team: str) -> TeamBot:
        if team != TEAM_ID:
            reason = "not_installed"
            raise DeliveryFailed(reason, permanent=True)
        people = SlackDirectory(slack.workspace, redis)
        return TeamBot(delivery=slack.delivery, people=people, handler=UnusedHandler())

    return WorkspacesBy(of)


def services_in(
    slack: Slack, redis: Redis, stores: Stores, index: SqliteIndex, model: Model | None = None, **more: Any
) -> TeamServices:
    people = SlackDirectory(slack.workspace, redis)
    engine = Engine(
        model=model or ExtractiveModel(),
        tools={"search": PassageTool(LIMITS)},
        index=index,
        policy=Policy(),
        budget=Budget(),
        report=IndexReport(),
    )
    parts: dict[str, Any] = {
        "delivery": slack.delivery,
        "observers": observers_over(redis),
        "handoff": HandOffPlace("", people),
        "channels": ChannelFile(Path("absent")),
        **more,
    }
    return TeamServices(
        engine=engine,
        stores=stores,
        people=people,
        memberships=Memberships(people, index),
        attachments=Attachments(slack.reader),
        search=SlackSearch(slack.calls),
        **parts,
    )
