"""What the gates of one workspace work with, and what a gate is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bot.delivery.delivery import Delivery
from bot.queue.ending import Ending
from bot.slack.client import Workspace
from bot.slack.message import Access
from bot.slack.users import People
from bot.slack.web_api import SlackCalls
from bot.stores.stores import Stores
from bot.stores.turn_records import TurnRecords
from bot.turn.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Helpers:
    """Where one workspace's people are asked: ``handoff`` is a user group, a channel's id or its ``#name``.

    ``channels`` remembers the ids of names that were looked up.
    """

    handoff: str
    calls: SlackCalls
    workspace: Workspace
    channels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateServices:
    """The same for every message of a workspace."""

    access: Access
    stores: Stores
    people: People
    delivery: Delivery
    records: TurnRecords
    helpers: Helpers


Gate = Callable[[Job, GateServices], Awaitable[Ending | None]]
"""Returns how the message ends, or None: it goes on to the next gate. Raises ``RedisError`` and ``LeaseLost``."""
