"""Post the report once a week, on Monday at 9:00 in the workspace's time zone."""

import asyncio
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import KnowledgeAwayError
from agent.thread.conversation import ThreadKey, Viewers
from bot.channel_settings import ChannelFile
from bot.install.workspaces import TeamBot, Workspaces
from bot.queue.claim import LeaseLost
from bot.reports.blocks import report_blocks, report_title
from bot.reports.report import WEEK, Gathering, Places
from bot.settings import Settings
from bot.slack.hand_off_place import HandOffPlace, find_fault
from bot.slack.web_api import DeliveryFailed
from bot.turn.observer import Observers
from observability.stats_table import read_prices

log = structlog.get_logger()

POST_AT: Final = time(9)
# after an outage; an Orion that is set up later in the week starts with the next one
MAX_LATE: Final = timedelta(days=4)
CHECK_EVERY_S: Final = 60.0
CLAIM_TTL_S: Final = 180  # a crashed worker's claim
POST_TIMEOUT_S: Final = 120.0  # nothing is posted later, so that another worker finds what this one posted
FAULT_TTL_S: Final = 3_600  # time until an unusable channel is tried again
DONE_TTL_S: Final = 8 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyReports:
    """Posts to the channel of ORION_REPORT in each workspace. Any number of workers may run it over one Redis."""

    settings: Settings
    redis: Redis
    prefix: str
    workspaces: Workspaces
    observers: Observers
    index: KnowledgeIndex
    channels: ChannelFile
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def run(self) -> None:
        """Look every minute whether a report is due, until cancelled."""
        while True:
            try:
                for team in await self.workspaces.teams():
                    try:
                        await self.post_if_due(await self.workspaces.of(team))
                    except (DeliveryFailed, KnowledgeAwayError, LeaseLost) as error:
                        log.warning("report_delayed", team=team, error_type=type(error).__name__)
            except RedisError as error:
                log.warning("report_delayed", error_type=type(error).__name__)
            await asyncio.sleep(CHECK_EVERY_S)

    def key(self, team: str, what: str) -> str:
        """Redis key of a week's claim, or of a fault that was logged."""
        return f"{self.prefix}:report:{team}:{what}"

    async def post_if_due(self, team_bot: TeamBot) -> bool:
        """Post the report unless this week's was posted or another worker is about to. Return whether it was posted.

        Raises ``RedisError``, ``DeliveryFailed``, ``KnowledgeAwayError`` and ``LeaseLost``; a later call tries again.
        """
        own = await team_bot.delivery.workspace.identity()
        zone = (await team_bot.people.find_person(own.team, own.user)).tz
        due = latest_due(self.now(), zone)
        week = f"{due:%G-W%V}"
        claim = self.key(own.team, week)
        until = clock.monotonic() + POST_TIMEOUT_S
        if self.now() - due > MAX_LATE or not await self.redis.set(claim, "claimed", nx=True, ex=CLAIM_TTL_S):
            return False
        try:
            if fault := await find_fault(team_bot.delivery.workspace.calls, self.settings.report, "ORION_REPORT"):
                await self._log_fault(own.team, *fault)
                await self.redis.expire(claim, FAULT_TTL_S)
                return False
            await self._post(team_bot, own.team, due, week, until)
        except DeliveryFailed as failure:
            if failure.permanent:
                await self._log_fault(
                    own.team, failure.reason, f"Check the channel {self.settings.report} of ORION_REPORT."
                )
                await self.redis.expire(claim, FAULT_TTL_S)
            raise
        await self.redis.set(claim, "posted", ex=DONE_TTL_S)
        log.info("report_posted", team=own.team, week=week)
        return True

    async def _post(self, team_bot: TeamBot, team: str, due: datetime, week: str, until: float) -> None:
        def check() -> None:
            if clock.monotonic() > until:
                raise LeaseLost

        delivery = team_bot.delivery
        place = await HandOffPlace(self.settings.report, team_bot.people).find(
            ThreadKey(team=team, channel="", thread_ts="")
        )
        channel, answers = self.channels.of(team, place.channel), self.settings.answers
        language = channel.language or None
        viewers = Viewers(team=team, channel=place.channel)
        gathering = Gathering(
            records=self.observers.records, stats=self.observers.stats_of(team), index=self.index,
            places=Places(viewers=viewers, people=team_bot.people),
            prices=read_prices(self.settings.home), answers=answers, documents=channel.documents,
        )  # fmt: skip
        report = await gathering.report(due)
        blocks = report_blocks(report, delivery.today(), language, can_save=answers is not None)
        # Look through the messages since then first, because a crashed worker may have posted the report.
        about = f"{due.timestamp():.6f}:report:{week}"
        await delivery.post_notice(place, report_title(report, language), about, check, blocks=blocks)

    async def _log_fault(self, team: str, detail: str, remedy: str) -> None:
        if await self.redis.set(self.key(team, "fault"), "1", nx=True, ex=DONE_TTL_S):
            log.warning("report_not_posted", reason=detail, remedy=remedy)


def latest_due(now: datetime, zone: str) -> datetime:
    """Return the last Monday at 9:00 that has passed in this time zone, an IANA name; UTC if it is unknown."""
    try:
        local = now.astimezone(ZoneInfo(zone or "UTC"))
    except (LookupError, ValueError, OSError):
        local = now.astimezone(UTC)
    monday = datetime.combine(local.date() - timedelta(days=local.weekday()), POST_AT, local.tzinfo)
    return monday if monday <= local else datetime.combine(monday.date() - WEEK, POST_AT, local.tzinfo)
