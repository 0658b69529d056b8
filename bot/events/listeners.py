"""Bolt listeners: an event is parsed and stored in the queue, and only then does Slack get its ack.

What could not be stored is not acknowledged, so Slack sends it again. The app must run with
``process_before_response``: without it Bolt acknowledges first and listens later.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from redis.exceptions import RedisError
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltContext
from slack_bolt.response import BoltResponse

from agent.texts.catalogue import help_text, say
from agent.thread.conversation import ThreadKey
from bot.delivery.blocks import HAND_OFF_ACTION, HELPFUL_ACTION, NOT_HELPFUL_ACTION, TRUST_ACTION
from bot.delivery.delivery import Delivery
from bot.delivery.feedback import COMPLAINT, feedback_modal
from bot.delivery.home import TRY_ACTION, HomeFigures
from bot.delivery.links import escape
from bot.delivery.trust import trust_modal
from bot.events import interactions as clicks
from bot.events.parse import apply_thread_mode, parse_event
from bot.redis.url import plain_cause
from bot.slack.manifest import ASK_SHORTCUT
from bot.slack.message import Access, BotIdentity, Ignored, Incoming, Refused
from bot.slack.payload import mapping, string
from bot.slack.web_api import DeliveryFailed
from bot.stores.thread_mode import ThreadModes
from verification.text.language import detect_language

_ANY = re.compile(".*")
_ASKED_S = 1.0  # Slack waits three seconds for an ack, and a modal's trigger lives no longer
# No fault in what one click shows may end the process that takes everybody's questions.
_FAULTS = (RedisError, LookupError, TypeError, ValueError, AttributeError, OSError)
_log = structlog.get_logger()
Body = dict[str, Any]
Gesture = Callable[[Delivery], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the listeners hand things to. ``store`` and ``feedback`` return when the thing is durable, or raise.

    ``store`` tells whether the message was new. ``delivery_of`` finds where a team's posts go, ``language_of`` what a
    person of a team uses Slack in. ``count`` hears what became of each event: its message's kind once stored, or why
    it was ignored.
    """

    access: Access
    thread_modes: ThreadModes
    store: Callable[[Incoming], Awaitable[bool]]
    feedback: Callable[[clicks.Feedback], Awaitable[object]]
    record: Callable[[str], Awaitable[Mapping[str, Any] | None]]
    complaint: Callable[[clicks.Complaint], Awaitable[object]]
    figures: Callable[[str, str | None], Awaitable[HomeFigures]]
    delivery_of: Callable[[str], Awaitable[Delivery]]
    language_of: Callable[[str, str], Awaitable[str | None]]
    count: Callable[[str], None]


def register(app: AsyncApp, services: Services, tasks: asyncio.TaskGroup) -> Listeners:
    """Gives the app its listeners, which it returns. What they do after an ack runs in ``tasks``.

    Raises ``ValueError``: the app would acknowledge before it stores.
    """
    if not app.process_before_response:
        message = "the app must run with process_before_response, else events are acknowledged before they are stored"
        raise ValueError(message)
    listeners = Listeners(services, tasks)
    app.event("app_home_opened")(listeners.on_home_opened)
    app.event("member_joined_channel")(listeners.on_member_joined)
    app.event(_ANY)(listeners.on_event)
    app.action(HELPFUL_ACTION)(listeners.on_feedback)
    app.action(NOT_HELPFUL_ACTION)(listeners.on_feedback)
    app.action(TRUST_ACTION)(listeners.on_trust)
    app.action(HAND_OFF_ACTION)(listeners.on_hand_off)
    app.action(re.compile(TRY_ACTION))(listeners.on_try)
    app.view(COMPLAINT)(listeners.on_complaint)
    app.shortcut(ASK_SHORTCUT["callback_id"])(listeners.on_shortcut)
    for family in (app.action, app.view, app.shortcut, app.command, app.options):
        family(_ANY)(listeners.unknown)
    app.error(listeners.failed)
    return listeners


@dataclass(frozen=True, slots=True)
class Listeners:
    """One method per thing that arrives."""

    services: Services
    tasks: asyncio.TaskGroup

    async def on_event(self, body: Body, context: AsyncBoltContext) -> None:
        """Any event: a question, an edit, a deletion, a stop; all others are ignored by name."""
        await self.take(body, BotIdentity(user=context.bot_user_id or "", bot=context.bot_id or ""))

    async def take(self, body: Body, own: BotIdentity) -> None:
        """What an event does, also one that was never sent but looked up. Returns when it is durable, or raises."""
        found = parse_event(body, own, self.services.access)
        if isinstance(found, Refused):
            found = found.without_content()
        elif isinstance(found, Incoming):
            asked = found.addressed == "mention" and found.kind != "edit"  # wherever Orion stands, it is answered
            found = found if asked else apply_thread_mode(found, await self.services.thread_modes.get(found.thread))
        if isinstance(found, Ignored):
            _log.debug("event_ignored", reason=found.reason)
            self.services.count(found.reason)
            return
        new = await self.services.store(found)
        if not new:
            # A mention in a channel comes as two events: this is no news.
            _log.debug("event_known_already", thread=str(found.thread), kind=found.kind)
            self.services.count("known_already")
            return
        self.services.count(found.refused or found.kind)
        about = {"thread": str(found.thread), "ts": found.ts, "kind": found.kind, "addressed": found.addressed}
        _log.info("event_stored", **about, text_length=len(found.text))

    async def on_feedback(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """A feedback button: stored and acknowledged. Then "helpful" is thanked, "not helpful" asked what was wrong."""
        if found := clicks.read_feedback(body):
            await self.services.feedback(found)

            async def ask_what_was_wrong(delivery: Delivery) -> None:
                view = feedback_modal(found.private_metadata, await self._language(found.turn_id))
                await delivery.open_modal(found.trigger_id, view)

            self._after_ack(context, self._thank(found) if found.good or not found.trigger_id else ask_what_was_wrong)
        await ack()

    async def on_complaint(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """The dialog that asks what was wrong: stored and acknowledged, then thanked where only they see it."""
        if found := clicks.read_complaint(body):
            await self.services.complaint(found)
            self._after_ack(context, self._thank(found))
        await ack()

    def _thank(self, found: clicks.Feedback | clicks.Complaint) -> Gesture:
        async def thank(delivery: Delivery) -> None:
            await delivery.post_ephemeral(found.place, found.user, say("thanks", await self._language(found.turn_id)))

        return thank

    async def _language(self, turn_id: str) -> str | None:
        """The language of the question that was answered; None when its record is gone."""
        return detect_language(string(await self.services.record(turn_id), "question"))

    async def on_trust(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """The trust button: the stored record, as a modal."""
        turn_id, trigger_id = clicks.button_value(body), string(body, "trigger_id")

        async def show(delivery: Delivery) -> None:
            record = await self.services.record(turn_id)
            language = detect_language(string(record, "question")) or await self._language_for(
                context, string(body, "user", "id")
            )
            await delivery.open_modal(trigger_id, trust_modal(record, delivery.today(), language))

        if turn_id and trigger_id:
            self._after_ack(context, show)
        await ack()

    async def on_hand_off(self, body: Body, ack: AsyncAck) -> None:
        """The button for people: a message like any other, so that they are asked once whatever happens."""
        await self._store(clicks.read_hand_off(body), "hand_off")
        await ack()

    async def on_shortcut(self, body: Body, ack: AsyncAck) -> None:
        """The shortcut under a message: that message is a question, stored like any other."""
        await self._store(clicks.read_shortcut(body), "shortcut")
        await ack()

    async def _store(self, found: Incoming | None, what: str) -> None:
        if found and not self.services.access.refusal(found.user, found.thread.channel):
            await self.services.store(found)
            self.services.count(what)

    async def on_try(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """App Home's buttons: a question is repeated in the direct chat and answered there, else Orion says hello."""
        user, question = string(body, "user", "id"), clicks.button_value(body)

        async def greet(delivery: Delivery) -> None:
            await delivery.send_direct_message(user, help_text(await self._language_for(context, user)))

        async def ask(delivery: Delivery) -> None:
            channel, ts = await delivery.send_direct_message(user, f"_{escape(question)}_")
            thread = ThreadKey(team=context.team_id or "", channel=channel, thread_ts=ts)
            asked = Incoming(
                kind="question", thread=thread, user=user, ts=ts, addressed="direct", text=question,
                event_ids=(f"try:{thread}",),
            )  # fmt: skip
            await self.services.store(asked)
            self.services.count("question")

        asks = question not in {"", "home"} and not self.services.access.refusal(user, "")
        self._after_ack(context, ask if asks else greet)
        await ack()

    async def on_member_joined(self, body: Body, context: AsyncBoltContext) -> None:
        """Somebody joined a channel: where it is Orion, it says once how to ask it."""
        event, own = mapping(body, "event"), context.bot_user_id
        inviter, channel, ts = (string(event, name) for name in ("inviter", "channel", "event_ts"))

        async def welcome(delivery: Delivery) -> None:
            place = ThreadKey(team=string(body, "team_id"), channel=channel, thread_ts=channel)
            await delivery.post_notice(
                place, say("welcome", await self._language_for(context, inviter)), f"{ts}:welcome"
            )

        ours = own and string(event, "user") == own and channel and ts
        if ours and not self.services.access.refusal(inviter, channel):
            self._after_ack(context, welcome)

    async def on_home_opened(self, body: Body, context: AsyncBoltContext) -> None:
        """App Home: its view, or the prompts of the direct chat."""
        event = mapping(body, "event")
        user, tab = string(event, "user"), string(event, "tab")

        async def show(delivery: Delivery) -> None:
            language = await self._language_for(context, user)
            figures = await self.services.figures(user, language)
            if tab == "home":
                await delivery.publish_home(user, figures, language)
            else:
                await delivery.suggest_prompts(string(event, "channel"), figures.questions)

        if user and tab in {"home", "messages"}:
            self._after_ack(context, show)

    async def _language_for(self, context: AsyncBoltContext, user: str) -> str | None:
        """What a person uses Slack in; None where Slack does not tell, or not soon: a click has to be acknowledged."""
        try:
            async with asyncio.timeout(_ASKED_S):
                return await self.services.language_of(context.team_id or "", user)
        except (DeliveryFailed, TimeoutError) as failure:
            reason = failure.reason if isinstance(failure, DeliveryFailed) else "slow"
            _log.warning("language_unknown", reason=reason)
            return None

    async def unknown(self, ack: AsyncAck) -> None:
        """Something pressed that is not (or no longer) Orion's."""
        _log.info("interaction_ignored")
        await ack()

    async def failed(self, error: Exception) -> BoltResponse:
        """What a listener raised: no ack goes out, so Slack sends it again. Never the error's text: it may quote."""
        cause = {"cause": plain_cause(error)} if isinstance(error, RedisError) else {}
        _log.error("listener_failed", error_type=type(error).__name__, **cause)
        return BoltResponse(status=500, body="")

    def _after_ack(self, context: AsyncBoltContext, gesture: Gesture) -> None:
        """What Slack need not wait for, and a modal's trigger cannot: both live for three seconds."""

        async def politely() -> None:
            """What mattered of the click is stored, and acknowledged: this may fail."""
            try:
                await gesture(await self.services.delivery_of(context.team_id or ""))
            except DeliveryFailed as failure:
                _log.warning("gesture_failed", reason=failure.reason)
            except _FAULTS as error:
                _log.error("gesture_failed", reason=type(error).__name__)

        self.tasks.create_task(politely(), name="after_ack")
