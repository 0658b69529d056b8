"""People's actions in Slack other than writing, parsed as a ``Click``: a button, a dialog, a shortcut, an opened page.

Fields missing from a payload are empty, so that no payload raises. ``ListenerServices`` are for all listeners.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog
from redis.exceptions import RedisError
from slack_bolt.async_app import AsyncAck, AsyncBoltContext

from agent.json_data import mapping, objects, string
from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.slack_message import read_message, shared_files
from agent.thread.conversation import ThreadKey
from bot.answers import SavedAnswers
from bot.channel_settings import ChannelFile
from bot.delivery.delivery import Delivery
from bot.events.home import HomePage
from bot.events.intake import Intake
from bot.gates.access import Visit, find_refusal
from bot.install.workspaces import Workspaces
from bot.slack.directory import Person
from bot.slack.message import Access, Incoming, Kind
from bot.slack.web_api import DeliveryFailed
from bot.stores.limits import Listening
from bot.stores.stores import ThreadModes
from bot.stores.turn_records import TurnRecords
from bot.turn.observer import Observers
from verification.text.language import detect_language

LOOKUP_TIMEOUT_S: Final = 1.0  # Slack waits three seconds for an ack, and a modal's trigger expires then too
# An error in the view for one click must not end the process that takes everyone's questions.
_FAULTS: Final = (RedisError, LookupError, TypeError, ValueError, AttributeError, OSError)
log = structlog.get_logger()
Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerServices:
    """The collaborators of the listeners. Work after an ack runs in ``tasks``."""

    access: Access
    workspaces: Workspaces
    tasks: asyncio.TaskGroup
    thread_modes: ThreadModes
    channels: ChannelFile
    listening: Listening
    intake: Intake
    observers: Observers
    records: TurnRecords
    index: KnowledgeIndex
    home: HomePage
    admins: frozenset[str] = frozenset()  # only they can change channel settings
    saved_answers: SavedAnswers | None = None  # without it no answer can be saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Click:
    """One action of a person."""

    services: ListenerServices
    body: Body
    team: str  # the workspace that Bolt authorised
    user: str
    place: ThreadKey  # the thread of the message with the button, or its channel
    ts: str  # of that message

    @property
    def value(self) -> str:
        """Value of the button that was pressed."""
        return string(next(iter(objects(self.body, "actions")), {}), "value")

    @property
    def trigger_id(self) -> str:
        """Key with which a dialog can be opened within three seconds."""
        return string(self.body, "trigger_id")

    async def refusal(self, channel: str | None = None) -> str:
        """Return the reason to refuse this person here, or an empty text. Refuse if Slack does not reply soon."""
        channel = self.place.channel if channel is None else channel
        visit = Visit(team=self.team, user=self.user, channel=channel, fresh=True)
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                people = (await self.services.workspaces.of(self.team)).people
                return await find_refusal(visit, self.services.access, people)
        except (DeliveryFailed, TimeoutError) as failure:
            log.warning("access_unknown", reason=getattr(failure, "reason", "slow"))
            return "unknown_person"

    async def person(self, user: str = "") -> Person:
        """Return the facts about this person, or another ``user``; none if Slack does not reply soon."""
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                people = (await self.services.workspaces.of(self.team)).people
                return await people.find_person(self.team, user or self.user)
        except (DeliveryFailed, TimeoutError) as failure:
            log.warning("person_unknown", reason=getattr(failure, "reason", "slow"))
            return Person()

    async def language(self, user: str = "") -> str | None:
        """Return the language in which they use Slack, if it is known."""
        return (await self.person(user)).language or None

    async def record_language(self, record: Mapping[str, Any] | None) -> str | None:
        """Return the language of a turn's question or, if its words do not show it, the person's in Slack."""
        return detect_language(string(record, "question")) or await self.language()

    def after_ack(self, show: Callable[[Delivery], Awaitable[object]]) -> None:
        """Do work for which Slack need not wait, or a modal's trigger cannot wait."""

        async def run() -> None:  # the important part is stored and acknowledged, so a failure is tolerated
            try:
                await show((await self.services.workspaces.of(self.team)).delivery)
            except DeliveryFailed as failure:
                log.warning("gesture_failed", reason=failure.reason)
            except _FAULTS as error:
                log.error("gesture_failed", reason=type(error).__name__)  # noqa: TRY400 - a trace may quote people

        self.services.tasks.create_task(run(), name="after_ack")

    async def show_home(self, delivery: Delivery) -> None:
        """Show this person App Home as it is now."""
        user, language = self.user, await self.language()
        await delivery.publish_home(user, await self.services.home.figures(self.team, user, language), language)


ClickHandler = Callable[[Click], Awaitable[Mapping[str, str] | None]]
"""Handles a click. A submitted dialog stays open with the returned texts, by faulty block."""


def read_click(services: ListenerServices, body: Body, context: AsyncBoltContext) -> Click:
    """Read an interaction, or an event of App Home."""
    channel = string(body, "channel", "id") or string(body, "container", "channel_id")
    thread_ts = string(body, "message", "thread_ts") or string(body, "container", "thread_ts")
    team = context.team_id or ""  # the payload of a dialog names its author's own workspace
    return Click(
        services=services, body=body, team=team,
        user=string(body, "user", "id") or string(body, "event", "user"),
        place=ThreadKey(team=team, channel=channel, thread_ts=thread_ts or channel),
        ts=string(body, "message", "ts") or string(body, "container", "message_ts"),
    )  # fmt: skip


def acknowledge_after(services: ListenerServices, handle: ClickHandler) -> Callable[..., Awaitable[None]]:
    """Return a Bolt listener that passes on the click and acknowledges it when ``handle`` is done."""

    async def listen(body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        errors = await handle(read_click(services, body, context))
        await (ack(response_action="errors", errors=dict(errors)) if errors else ack())

    return listen


def as_message(click: Click, kind: Kind) -> Incoming | None:
    """Return a click on an answer's button as a message, the same for every click. None if the click is malformed."""
    place, turn_id = click.place, click.value
    if not (turn_id and click.user and place.channel and click.ts):
        return None
    return Incoming(
        kind=kind,
        thread=place,
        user=click.user,
        ts=click.ts,
        addressed="direct",
        text=turn_id,
        event_ids=(f"{kind}:{place.team}:{turn_id}",),
    )


def read_shortcut(body: Mapping[str, Any]) -> Incoming | None:
    """Read a ``message_action``: the message becomes a question from the person who used the shortcut."""
    team, channel, user = (string(body, name, "id") for name in ("team", "channel", "user"))
    message = mapping(body, "message")
    ts, files = string(message, "ts") or string(body, "message_ts"), bool(shared_files(message))
    text = read_message(message).text
    if not (team and channel and user and ts) or not (text or files):
        return None
    thread = ThreadKey(team=team, channel=channel, thread_ts=string(message, "thread_ts") or ts)
    return Incoming(
        kind="question",
        thread=thread,
        user=user,
        ts=ts,
        addressed="mention",
        text=text,
        event_ids=(f"msg:{team}:{channel}:{ts}",),
        files="some" if files else "none",
    )
