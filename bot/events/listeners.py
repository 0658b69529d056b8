"""Bolt listeners: an event is parsed and stored in the queue, and only then does Slack get its ack.

Without an ack Slack sends an event again. The app must run with ``process_before_response``: otherwise Bolt
acknowledges first and calls the listener later.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
from redis.exceptions import RedisError
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltContext
from slack_bolt.response import BoltResponse

from agent.payload import mapping, string
from agent.quoting.small_talk import is_question
from agent.texts.catalogue import SUGGESTED_PROMPTS, help_text, say
from agent.thread.audience import Viewers
from agent.thread.conversation import ThreadKey
from bot.answers.desk import AnswerDesk
from bot.channel_settings import ChannelFile
from bot.delivery.blocks import (
    HAND_OFF_ACTION,
    HELPFUL_ACTION,
    NOT_HELPFUL_ACTION,
    TRUST_ACTION,
    UNASKED_DISLIKE_ACTION,
)
from bot.delivery.delivery import Delivery
from bot.delivery.feedback import COMPLAINT, feedback_modal
from bot.delivery.home import TRY_ACTION, HomeFigures
from bot.delivery.links import escape
from bot.delivery.trust import trust_modal
from bot.events import interactions as clicks
from bot.events.channels import ChannelDialogs
from bot.events.gestures import Gesture, Gestures, Homes, Intake
from bot.events.parse import apply_thread_mode, parse_event
from bot.events.private import PrivateAsking
from bot.events.saving import Saving
from bot.install.oauth import InstallPages
from bot.install.workspaces import Workspaces, register_uninstall_listeners
from bot.redis.url import plain_cause
from bot.slack.manifest import ASK_SHORTCUT
from bot.slack.message import Access, BotIdentity, Ignored, Incoming, Refused
from bot.slack.web_api import DeliveryFailed
from bot.stores.listening import Listening
from bot.stores.thread_mode import ThreadModes
from bot.stores.turn_records import TurnRecords
from bot.turn.unasked import MAX_QUESTION_CHARS
from bot.turn.visibility import Visibility
from verification.text.language import detect_language

_ANY = re.compile(".*")
_log = structlog.get_logger()
Body = dict[str, Any]


class Judgements(Protocol):
    """Keeps what people say about answers, and counts events (``bot.turn.observer``)."""

    async def feedback(self, turn_id: str, user: str, *, good: bool) -> None:
        """Keep a judgement; return when it is durable, or raise."""

    async def complaint(self, turn_id: str, user: str, *, reasons: Sequence[str], said: str) -> None:
        """Keep what was wrong with an answer; return when it is durable, or raise."""

    async def correct(self, turn_id: str, answer: str = "") -> None:
        """Pass on the right answer of a turn."""

    def slack_event(self, fate: str) -> None:
        """Count an event by the kind of message it was stored as, or by why it was ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The collaborators of the listeners."""

    access: Access
    thread_modes: ThreadModes
    channels: ChannelFile
    listening: Listening
    intake: Intake
    judgements: Judgements
    records: TurnRecords
    visibility: Visibility
    homes: Homes
    workspaces: Workspaces
    admins: frozenset[str] = frozenset()
    desk: AnswerDesk | None = None


def register(
    app: AsyncApp, services: Services, tasks: asyncio.TaskGroup, installing: InstallPages | None = None
) -> Listeners:
    """Register the listeners, and return them. What they do after an ack runs in ``tasks``.

    Raises ``ValueError`` for an app that would acknowledge before it stores.
    """
    if not app.process_before_response:
        message = "the app must run with process_before_response, else events are acknowledged before they are stored"
        raise ValueError(message)
    if installing is not None:  # first: Bolt calls only the first listener that matches an event
        register_uninstall_listeners(app, installing.installations)
    gestures = Gestures(services.access, services.workspaces, tasks)
    saving = Saving(
        desk=services.desk, records=services.records, thread_modes=services.thread_modes, homes=services.homes,
        gestures=gestures, correct=services.judgements.correct,
    )  # fmt: skip
    listeners = Listeners(services, gestures, saving)
    app.event("app_home_opened")(listeners.on_home_opened)
    app.event("member_joined_channel")(listeners.on_member_joined)
    app.event(_ANY)(listeners.on_event)
    app.action(HELPFUL_ACTION)(listeners.on_feedback)
    app.action(NOT_HELPFUL_ACTION)(listeners.on_feedback)
    app.action(UNASKED_DISLIKE_ACTION)(listeners.on_unasked_dislike)
    app.action(TRUST_ACTION)(listeners.on_trust)
    app.action(HAND_OFF_ACTION)(listeners.on_hand_off)
    app.action(re.compile(TRY_ACTION))(listeners.on_try)
    app.view(COMPLAINT)(listeners.on_complaint)
    app.shortcut(ASK_SHORTCUT)(listeners.on_shortcut)
    saving.register(app)
    ChannelDialogs(
        channels=services.channels, admins=services.admins, homes=services.homes, gestures=gestures
    ).register(app)
    PrivateAsking(
        intake=services.intake, records=services.records, visibility=services.visibility, gestures=gestures
    ).register(app)
    for family in (app.action, app.view, app.shortcut, app.command, app.options):
        family(_ANY)(listeners.on_unknown)
    app.error(listeners.on_error)
    return listeners


@dataclass(frozen=True, slots=True)
class Listeners:
    """One method for each thing that arrives."""

    services: Services
    gestures: Gestures
    saving: Saving

    async def on_event(self, body: Body, context: AsyncBoltContext) -> None:
        """Take any event. Other kinds than messages and stops are ignored by name."""
        await self.take(body, BotIdentity(user=context.bot_user_id or "", bot=context.bot_id or ""))
        self.saving.offer(body, context)

    async def take(self, body: Body, own: BotIdentity) -> None:
        """Store the message of an event, also of one that was looked up. Return when it is durable, or raise."""
        found = parse_event(body, own, self.services.access)
        if isinstance(found, Refused):
            found = found.without_content()
        elif isinstance(found, Incoming) and found.addressed == "overheard":
            found = found if self._listens(found) else Ignored(reason="not_addressed")
        elif isinstance(found, Incoming):
            always = found.addressed == "mention" and found.kind != "edit"  # counts in every mode of the thread
            found = found if always else apply_thread_mode(found, await self.services.thread_modes.get(found.thread))
        if isinstance(found, Ignored):
            _log.debug("event_ignored", reason=found.reason)
            self.services.judgements.slack_event(found.reason)
            return
        if not await self.services.intake.receive(found):
            # A mention in a channel comes as two events: the second one is not worth a line.
            _log.debug("event_known_already", thread=str(found.thread), kind=found.kind)
            self.services.judgements.slack_event("known_already")
            return
        self.services.judgements.slack_event(found.refused or found.kind)
        about = {"thread": str(found.thread), "ts": found.ts, "kind": found.kind, "addressed": found.addressed}
        _log.info("event_stored", **about, text_length=len(found.text))

    def _listens(self, incoming: Incoming) -> bool:
        """Return whether a message that nobody addressed to Orion is worth a look in its channel."""
        settings = self.services.channels.of(incoming.thread.team, incoming.thread.channel)
        if settings.mode != "listen" or incoming.through_app:
            return False
        asks = (
            incoming.kind == "question"
            and incoming.files == "none"
            and is_question(incoming.text)
            and len(incoming.text) <= MAX_QUESTION_CHARS
        )
        return asks or incoming.kind in {"mute", "unmute"}

    async def on_unasked_dislike(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Count a dislike of an answer that nobody asked for, and delete it if the asker dislikes it."""
        clicked = clicks.read_feedback(body)
        if clicked and await self._may_judge(context, clicked):
            await self.services.judgements.feedback(clicked.turn_id, clicked.user, good=clicked.good)
            await self.services.listening.count_dislike(clicked.place.team, clicked.place.channel)
            record = await self.services.records.load(clicked.turn_id)
            if string(record, "user") == clicked.user:
                self.gestures.after_ack(context, self._delete_unasked(clicked))
            else:
                self.gestures.after_ack(context, self._thank(clicked))
        await ack()

    def _delete_unasked(self, clicked: clicks.Feedback) -> Gesture:
        async def delete(delivery: Delivery) -> None:
            await delivery.delete_answer(clicked.place, clicked.place.thread_ts)

        return delete

    async def on_feedback(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Store "helpful" at once. "Not helpful" opens a dialog, and counts when that is sent."""
        clicked = clicks.read_feedback(body)
        if clicked and await self._may_judge(context, clicked):
            if clicked.good or not clicked.trigger_id:
                await self.services.judgements.feedback(clicked.turn_id, clicked.user, good=clicked.good)
                self.gestures.after_ack(context, self._thank(clicked))
            else:
                self.gestures.after_ack(context, self._ask_what_was_wrong(clicked))
        await ack()

    async def on_complaint(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Store the dialog that asks what was wrong, then thank its author alone."""
        complaint = clicks.read_complaint(body)
        if complaint and await self._may_judge(context, complaint):
            judgements, about = self.services.judgements, (complaint.turn_id, complaint.user)
            await judgements.feedback(*about, good=False)
            if complaint.reasons or complaint.said:
                await judgements.complaint(*about, reasons=complaint.reasons, said=complaint.said)
            self.gestures.after_ack(context, self._thank(complaint))
        await ack()

    async def _may_judge(self, context: AsyncBoltContext, clicked: clicks.Feedback | clicks.Complaint) -> bool:
        """Return whether this person has access, and the answer belongs to this channel."""
        record = await self.services.records.load_for(clicked.turn_id, clicked.place)
        reason = (
            "turn_unknown"
            if record is None
            else await self.gestures.refusal(context, clicked.user, clicked.place.channel)
        )
        if reason:
            _log.info("judgement_ignored", reason=reason)
        return not reason

    def _ask_what_was_wrong(self, clicked: clicks.Feedback) -> Gesture:
        async def ask(delivery: Delivery) -> None:
            view = feedback_modal(clicked.private_metadata, await self._question_language(clicked))
            try:
                await delivery.open_modal(clicked.trigger_id, view)
            except DeliveryFailed:
                # Without the dialog the click has to do.
                await self.services.judgements.feedback(clicked.turn_id, clicked.user, good=clicked.good)
                raise

        return ask

    def _thank(self, clicked: clicks.Feedback | clicks.Complaint) -> Gesture:
        async def thank(delivery: Delivery) -> None:
            text = say("thanks", await self._question_language(clicked))
            await delivery.post_ephemeral(clicked.place, clicked.user, text)

        return thank

    async def _question_language(self, clicked: clicks.Feedback | clicks.Complaint) -> str | None:
        """Return the language of the question; None if its record is gone."""
        return detect_language(string(await self.services.records.load_for(clicked.turn_id, clicked.place), "question"))

    async def on_trust(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Show the stored record in a modal, as far as this person may see its sources now."""
        turn_id, trigger_id = clicks.button_value(body), string(body, "trigger_id")
        user, place, _ = clicks.click_location(body)

        async def show(delivery: Delivery) -> None:
            services, record, missing = self.services, None, await self.gestures.refusal(context, user, place.channel)
            if not missing and (found := await services.records.load_for(turn_id, place)):
                viewer = Viewers(team=place.team, channel=place.channel, user=user)
                record = await services.visibility.visible_record(found, viewer)
            language = detect_language(string(record, "question")) or await self.gestures.language_for(context, user)
            view = trust_modal(record, delivery.today(), language, missing=missing or "trust_unknown")
            await delivery.open_modal(trigger_id, view)

        if turn_id and trigger_id and user:
            self.gestures.after_ack(context, show)
        await ack()

    async def on_hand_off(self, body: Body, ack: AsyncAck) -> None:
        """Store a click on "Ask a human" as a message, so that people are asked once."""
        await self._store(clicks.read_hand_off(body), "hand_off")
        await ack()

    async def on_shortcut(self, body: Body, ack: AsyncAck) -> None:
        """Store the message that the shortcut was used on as a question."""
        await self._store(clicks.read_shortcut(body), "shortcut")
        await ack()

    async def _store(self, incoming: Incoming | None, what: str) -> None:
        if incoming and not self.services.access.refusal(incoming.user, incoming.thread.channel):
            await self.services.intake.receive(incoming)
            self.services.judgements.slack_event(what)

    async def on_try(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Take a button of App Home: its question is asked in the direct chat. Without a question Orion says hello."""
        user, question = string(body, "user", "id"), clicks.button_value(body)

        async def ask(delivery: Delivery) -> None:
            refusal = await self.gestures.refusal(context, user)
            if refusal or question in {"", "home"}:
                language = await self.gestures.language_for(context, user)
                await delivery.send_direct_message(user, say(refusal, language) if refusal else help_text(language))
                return
            channel, ts = await delivery.send_direct_message(user, f"_{escape(question)}_")
            thread = ThreadKey(team=context.team_id or "", channel=channel, thread_ts=ts)
            incoming = Incoming(
                kind="question", thread=thread, user=user, ts=ts, addressed="direct", text=question,
                event_ids=(f"try:{thread}",),
            )  # fmt: skip
            await self.services.intake.receive(incoming)
            self.services.judgements.slack_event("question")

        self.gestures.after_ack(context, ask)
        await ack()

    async def on_member_joined(self, body: Body, context: AsyncBoltContext) -> None:
        """Say once how to ask, in a channel that Orion was invited to."""
        event, own = mapping(body, "event"), context.bot_user_id
        inviter, channel, ts = (string(event, name) for name in ("inviter", "channel", "event_ts"))

        async def welcome(delivery: Delivery) -> None:
            place = ThreadKey(team=string(body, "team_id"), channel=channel, thread_ts=channel)
            text = say("welcome", await self.gestures.language_for(context, inviter))
            await delivery.post_notice(place, text, f"{ts}:welcome")

        ours = own and string(event, "user") == own and channel and ts
        if ours and not self.services.access.refusal(inviter, channel):
            self.gestures.after_ack(context, welcome)

    async def on_home_opened(self, body: Body, context: AsyncBoltContext) -> None:
        """Show App Home, or the suggested prompts of the direct chat, to people with access."""
        event = mapping(body, "event")
        user, tab = string(event, "user"), string(event, "tab")

        async def show(delivery: Delivery) -> None:
            language, refusal = (
                await self.gestures.language_for(context, user),
                await self.gestures.refusal(context, user),
            )
            if tab == "messages" and refusal:
                return
            figures = HomeFigures(refusal=refusal)
            if not refusal:
                figures = await self.services.homes.figures(context.team_id or "", user, language)
            if tab == "home":
                await delivery.publish_home(user, figures, language)
            else:
                prompts = [{"title": question, "message": question} for question in figures.questions]
                await delivery.suggest_prompts(string(event, "channel"), prompts or SUGGESTED_PROMPTS)

        if user and tab in {"home", "messages"}:
            self.gestures.after_ack(context, show)

    async def on_unknown(self, ack: AsyncAck) -> None:
        """Acknowledge a button that is not, or no longer, Orion's."""
        _log.info("interaction_ignored")
        await ack()

    async def on_error(self, error: Exception) -> BoltResponse:
        """Answer 500 for a listener that failed, so that Slack sends the event again. The error's text may quote."""
        cause = {"cause": plain_cause(error)} if isinstance(error, RedisError) else {}
        _log.error("listener_failed", error_type=type(error).__name__, **cause)
        return BoltResponse(status=500, body="")
