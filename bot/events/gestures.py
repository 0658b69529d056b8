"""What every listener of clicks needs: the gate, the person's language, and work after the ack."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from redis.exceptions import RedisError
from slack_bolt.async_app import AsyncBoltContext

from bot.delivery.delivery import Delivery
from bot.delivery.home import HomeFigures
from bot.gates.access import Visit, find_refusal
from bot.install.workspaces import Workspaces
from bot.slack.message import Access, Incoming
from bot.slack.web_api import DeliveryFailed

LOOKUP_TIMEOUT_S: Final = 1.0  # Slack waits three seconds for an ack, and a modal's trigger expires then too
# A fault in what one click shows must not end the process that takes everyone's questions.
_FAULTS: Final = (RedisError, LookupError, TypeError, ValueError, AttributeError, OSError)
_log = structlog.get_logger()
Gesture = Callable[[Delivery], Awaitable[object]]


class Homes(Protocol):
    """Gathers what App Home shows one person (``bot.events.home``)."""

    async def figures(self, team: str, user: str, language: str | None) -> HomeFigures:
        """Return all that this person may see."""


class Intake(Protocol):
    """Takes messages in (``bot.events.enqueue``)."""

    async def receive(self, incoming: Incoming) -> bool:
        """Store a message. Return whether it was new, or raise if it could not be stored."""


@dataclass(frozen=True, slots=True)
class Gestures:
    """Shared by the listeners. What they do after an ack runs in ``tasks``."""

    access: Access
    workspaces: Workspaces
    tasks: asyncio.TaskGroup

    async def refusal(self, context: AsyncBoltContext, user: str, channel: str = "") -> str:
        """Return why this person is shown nothing here, or an empty text. What Slack does not tell soon is refused."""
        team = context.team_id or ""
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                people = await self.workspaces.people_of(team)
                return await find_refusal(Visit(team=team, user=user, channel=channel), self.access, people)
        except (DeliveryFailed, TimeoutError) as failure:
            _log.warning("access_unknown", reason=failure.reason if isinstance(failure, DeliveryFailed) else "slow")
            return "unknown_person"

    async def language_for(self, context: AsyncBoltContext, user: str) -> str | None:
        """Return the language this person uses Slack in; None if Slack does not tell it soon: a click needs its ack."""
        team = context.team_id or ""
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                return await (await self.workspaces.people_of(team)).language_of(team, user)
        except (DeliveryFailed, TimeoutError) as failure:
            _log.warning("language_unknown", reason=failure.reason if isinstance(failure, DeliveryFailed) else "slow")
            return None

    def after_ack(self, context: AsyncBoltContext, gesture: Gesture) -> None:
        """Run what Slack need not wait for, and what a modal's trigger cannot wait for."""

        async def run() -> None:
            """May fail: what matters of the click is stored and acknowledged."""
            try:
                await gesture(await self.workspaces.delivery_of(context.team_id or ""))
            except DeliveryFailed as failure:
                _log.warning("gesture_failed", reason=failure.reason)
            except _FAULTS as error:
                _log.error("gesture_failed", reason=type(error).__name__)

        self.tasks.create_task(run(), name="after_ack")
