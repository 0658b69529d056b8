"""Bolt listeners: an event is parsed and stored in the queue, and only then does Slack get its ack.

While Redis is down there is no ack (``on_error``), and Slack resends the event for about six minutes. Later
``bot.events.catch_up`` looks for lost messages in the threads that were used last.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import structlog
from redis.exceptions import RedisError
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltContext
from slack_bolt.response import BoltResponse

from agent.json_data import string
from agent.knowledge.slack_message import read_message
from agent.quoting.small_talk import is_question
from agent.texts.catalogue import SUGGESTED_PROMPTS, help_text, say
from agent.thread.conversation import ThreadKey, Viewers
from bot.delivery import blocks, dialogs
from bot.delivery.delivery import Delivery
from bot.delivery.home import TRY_ACTION, HomeFigures
from bot.delivery.trust import trust_modal
from bot.events.clicks import (
    Body,
    Click,
    ClickHandler,
    ListenerServices,
    acknowledge_after,
    as_message,
    read_click,
    read_shortcut,
)
from bot.events.dialogs import ChannelDialogs, Saving
from bot.events.intake import apply_thread_mode, event_of, parse_event
from bot.events.private import PrivateAsking
from bot.install.installations import InstallPages
from bot.install.workspaces import register_uninstall_listeners
from bot.redis.client import plain_cause
from bot.slack.manifest import ASK_SHORTCUT, PRIVATE_SHORTCUT, SAVE_SHORTCUT
from bot.slack.message import BotIdentity, Ignored, Incoming
from bot.slack.web_api import DeliveryFailed
from bot.turn.job import visible_record
from bot.turn.unasked import MAX_QUESTION_CHARS

_ANY, _MESSAGE = re.compile(".*"), re.compile("^(app_mention|message)$")
_VERDICTS = ("approve", "reject")
INVITATION_S = 600.0  # Slack offers to invite an app whom a message mentions
_ACKNOWLEDGES_FIRST = "without process_before_response events are acknowledged before they are stored"
log = structlog.get_logger()


def register(app: AsyncApp, services: ListenerServices, installing: InstallPages | None = None) -> "Listeners":
    """Register the listeners. Raises ``ValueError`` for an app that would acknowledge before it stores."""
    if not app.process_before_response:
        raise ValueError(_ACKNOWLEDGES_FIRST)
    saving, private, channels = Saving(services), PrivateAsking(services), ChannelDialogs(services)
    listeners = Listeners(services, saving)
    # Bolt calls only the first listener that matches an event. Each try is slow, and most events are messages.
    app.event(_MESSAGE)(listeners.on_event)
    if installing is not None:
        register_uninstall_listeners(app, installing.installations)
    app.event("app_home_opened")(listeners.on_home_opened)
    app.event("member_joined_channel")(listeners.on_member_joined)
    app.event(_ANY)(listeners.on_event)
    buttons: dict[str | re.Pattern[str], ClickHandler] = {
        blocks.HELPFUL_ACTION: listeners.on_feedback,
        blocks.NOT_HELPFUL_ACTION: listeners.on_feedback,
        blocks.UNASKED_DISLIKE_ACTION: listeners.on_unasked_dislike,
        blocks.TRUST_ACTION: listeners.on_trust,
        blocks.SHARE_ACTION: private.on_share,
        re.compile(TRY_ACTION): listeners.on_try,
        dialogs.EDIT_CHANNEL: channels.on_edit,
        dialogs.SAVE_ACTION: saving.on_save,
        f"{dialogs.DECISIONS}edit": saving.on_edit,
        f"{dialogs.DECISIONS}withdraw": saving.on_withdraw,
        **{f"{dialogs.DECISIONS}{one}": partial(saving.on_decide, approved=one == "approve") for one in _VERDICTS},
        blocks.HAND_OFF_ACTION: partial(listeners.store_click, "hand_off"),
    }
    shortcuts: dict[str | re.Pattern[str], ClickHandler] = {
        ASK_SHORTCUT: partial(listeners.store_click, "shortcut"), PRIVATE_SHORTCUT: private.on_ask,
        SAVE_SHORTCUT: saving.on_save,
    }  # fmt: skip
    views: dict[str | re.Pattern[str], ClickHandler] = {
        dialogs.COMPLAINT: listeners.on_complaint, dialogs.SAVE_DIALOG: saving.on_submit,
        dialogs.CHANNEL_DIALOG: channels.on_submit,
    }  # fmt: skip
    for add, handlers in ((app.action, buttons), (app.shortcut, shortcuts), (app.view, views)):
        for name, handle in handlers.items():
            add(name)(acknowledge_after(services, handle))
    for family in (app.action, app.view, app.view_closed, app.shortcut, app.command, app.options):
        family(_ANY)(listeners.on_unknown)
    app.error(listeners.on_error)
    return listeners


@dataclass(frozen=True, slots=True)
class Listeners:
    """One method for each kind of event."""

    services: ListenerServices
    saving: Saving

    async def on_event(self, body: Body, context: AsyncBoltContext) -> None:
        """Store any event. Kinds other than messages and stops are ignored."""
        await self.store_event(body, BotIdentity(user=context.bot_user_id or "", bot=context.bot_id or ""))
        if self.services.saved_answers is not None:
            self.saving.offer(read_click(self.services, body, context))

    async def store_event(self, body: Body, own: BotIdentity) -> None:
        """Store the message of an event, or of one that ``CatchUp`` looked up. Return when it is durable, or raise."""
        try:
            incoming = parse_event(body, own, self.services.access)
            if incoming.addressed == "overheard":
                self._check_overheard(incoming)
            elif incoming.addressed != "mention" or incoming.kind == "edit":
                # Any other mention counts in every mode of the thread.
                incoming = apply_thread_mode(incoming, await self.services.thread_modes.get(incoming.thread))
        except Ignored as ignored:
            log.debug("event_ignored", reason=ignored.reason)
            self.services.observers.slack_event(ignored.reason)
            return
        if await self.services.intake.store_or_carry_out(incoming):
            fate = incoming.refused or incoming.kind
            about = {"thread": str(incoming.thread), "ts": incoming.ts, "kind": incoming.kind}
            log.info("event_stored", **about, addressed=incoming.addressed, text_length=len(incoming.text))
        else:
            # A mention in a channel comes as two events; the second one needs no log line.
            fate = "known_already"
            log.debug("event_known_already", thread=str(incoming.thread), kind=incoming.kind)
        self.services.observers.slack_event(fate)

    def _check_overheard(self, incoming: Incoming) -> None:
        """Raise ``Ignored`` unless the message is worth a look in its channel."""
        settings = self.services.channels.of(incoming.thread.team, incoming.thread.channel)
        is_short = incoming.files == "none" and len(incoming.text) <= MAX_QUESTION_CHARS
        if settings.mode == "listen" and not incoming.through_app:
            if incoming.kind in {"mute", "unmute"}:
                return
            if incoming.kind == "question" and is_short and is_question(incoming.text):
                return
        raise Ignored(reason="not_addressed")

    async def on_unasked_dislike(self, click: Click) -> None:
        """Count a dislike of an unasked answer, and delete it if the asker dislikes it."""
        turn_id = click.value.partition(":")[2]
        if (record := await self._judged_record(click, turn_id)) is not None:
            await self.services.observers.feedback(turn_id, click.user, good=False)
            await self.services.listening.count_dislike(click.place.team, click.place.channel)
            if string(record, "user") == click.user:
                click.after_ack(lambda delivery: delivery.delete_answer(click.place, click.place.thread_ts))
            else:
                await _thank(click, record)

    async def on_feedback(self, click: Click) -> None:
        """Store "helpful" at once. "Not helpful" opens a dialog, and counts when that is sent."""
        verdict, _, turn_id = click.value.partition(":")
        record = await self._judged_record(click, turn_id) if verdict in {"good", "bad"} else None
        if record is None:
            return
        if verdict == "good" or not click.trigger_id:
            await self.services.observers.feedback(turn_id, click.user, good=verdict == "good")
            await _thank(click, record)
            return

        async def ask_what_was_wrong(delivery: Delivery) -> None:
            about = f"{turn_id} {click.place.channel} {click.place.thread_ts}"
            view = dialogs.feedback_modal(about, await click.record_language(record))
            try:
                await delivery.open_modal(click.trigger_id, view)
            except DeliveryFailed:  # without the dialog the click alone must count
                await self.services.observers.feedback(turn_id, click.user, good=False)
                raise

        click.after_ack(ask_what_was_wrong)

    async def on_complaint(self, click: Click) -> None:
        """Store the reply to the dialog that asks what was wrong, then thank its author privately."""
        turn_id, channel, thread_ts, *_ = [*string(click.body, "view", "private_metadata").split(" "), "", "", ""]
        click = replace(click, place=replace(click.place, channel=channel, thread_ts=thread_ts))
        if (record := await self._judged_record(click, turn_id)) is not None:
            reasons, comment = dialogs.read_complaint(click.body)
            await self.services.observers.feedback(turn_id, click.user, good=False)
            if reasons or comment:
                await self.services.observers.complaint(turn_id, click.user, reasons=reasons, said=comment)
            await _thank(click, record)

    async def _judged_record(self, click: Click, turn_id: str) -> Mapping[str, Any] | None:
        """Return the record of an answer in this channel; None without access, or if it expired. The person is told."""
        record = await self.services.records.load_for(turn_id, click.place)
        if reason := await click.refusal() if click.user else "turn_unknown":
            log.info("judgement_ignored", reason=reason)
            return None
        if record is None:
            log.info("judgement_ignored", reason="turn_unknown")
            text = say("trust_unknown", await click.language())
            click.after_ack(lambda delivery: delivery.post_ephemeral(click.place, click.user, text))
        return record

    async def on_trust(self, click: Click) -> None:
        """Show the stored record in a modal, with the sources that this person may see now."""
        place, services = click.place, self.services

        async def show(delivery: Delivery) -> None:
            record, missing = None, await click.refusal()
            if not missing and (turn_record := await services.records.load_for(click.value, place)):
                viewer = Viewers(team=place.team, channel=place.channel, user=click.user)
                record = await visible_record(services.index, turn_record, viewer)
            language = await click.record_language(record)
            view = trust_modal(record, delivery.today(), language, missing=missing or "trust_unknown")
            await delivery.open_modal(click.trigger_id, view)

        if click.value and click.trigger_id and click.user:
            click.after_ack(show)

    async def store_click(self, what: Literal["hand_off", "shortcut"], click: Click) -> None:
        """Store a click as a message, so that its work is done once, or a shortcut's message as a question."""
        incoming = read_shortcut(click.body) if what == "shortcut" else as_message(click, what)
        if incoming and not self.services.access.refusal(incoming.user, incoming.thread.channel):
            if what == "shortcut":  # Slack's reply is cached, so its turn refuses a person who has lost access
                await click.refusal()
            await self.services.intake.store_or_carry_out(incoming)
            self.services.observers.slack_event(what)

    async def on_try(self, click: Click) -> None:
        """Handle a button in App Home: ask its question as a direct message. Without a question Orion says hello."""

        async def ask(delivery: Delivery) -> None:
            refusal, question = await click.refusal(), click.value
            if refusal or question in {"", "home"}:
                language = await click.language()
                text = say(refusal, language) if refusal else help_text(language)
                await delivery.send_direct_message(click.user, text)
                return
            channel, ts = await delivery.send_direct_message(click.user, f"_{blocks.escape(question)}_")
            thread = ThreadKey(team=click.team, channel=channel, thread_ts=ts)
            incoming = Incoming(
                kind="question", thread=thread, user=click.user, ts=ts, addressed="direct", text=question,
                event_ids=(f"try:{thread}",),
            )  # fmt: skip
            await self.services.intake.store_or_carry_out(incoming)
            self.services.observers.slack_event("question")

        click.after_ack(ask)

    async def on_member_joined(self, body: Body, context: AsyncBoltContext) -> None:
        """Say once how to ask, in a channel that Orion was invited to, and answer who mentioned it before that."""
        click, names = read_click(self.services, body, context), ("user", "inviter", "channel", "event_ts")
        user, inviter, channel, ts = (string(body, "event", name) for name in names)
        click = replace(click, user=inviter or user)

        async def welcome(delivery: Delivery) -> None:
            place, language = ThreadKey(team=click.team, channel=channel, thread_ts=channel), await click.language()
            refusal = await click.refusal(channel)
            if refusal not in {"", "unknown_person"}:  # if Slack did not say soon, each question is checked anyway
                await delivery.post_ephemeral(place, click.user, say(refusal, language))
                return
            await delivery.post_notice(place, say("welcome", language), f"{ts}:welcome")
            own = await delivery.workspace.identity()
            for message in await delivery.reader.read_since(place, f"{float(ts) - INVITATION_S:.6f}"):
                if own.user in read_message(message).mentioned:
                    await self.store_event(event_of(place, message, own), own)

        if user and user == context.bot_user_id and channel and ts:
            click.after_ack(welcome)

    async def on_home_opened(self, body: Body, context: AsyncBoltContext) -> None:
        """Show App Home, or the suggested prompts in direct messages, to people with access."""
        click, tab = read_click(self.services, body, context), string(body, "event", "tab")

        async def show(delivery: Delivery) -> None:
            refusal = await click.refusal()
            if tab == "home" and not refusal:
                await click.show_home(delivery)
            elif tab == "home":
                await delivery.publish_home(click.user, HomeFigures(refusal=refusal), await click.language())
            elif not refusal:
                figures = await self.services.home.figures(click.team, click.user, await click.language())
                prompts = [{"title": question, "message": question} for question in figures.questions]
                # Without a thread_ts, which would make the call fail silently.
                suggested = {"channel_id": string(body, "event", "channel"), "prompts": prompts or SUGGESTED_PROMPTS}
                await delivery.calls.call_once("assistant.threads.setSuggestedPrompts", suggested)

        if click.user and tab in {"home", "messages"}:
            click.after_ack(show)

    async def on_unknown(self, ack: AsyncAck) -> None:
        """Acknowledge a button that is not, or no longer, Orion's."""
        log.info("interaction_ignored")
        await ack()

    async def on_error(self, error: Exception) -> BoltResponse:
        """Withhold the ack after an error in a listener or in authorising the event, so that Slack resends it.

        Over HTTP Slack gets the 500, in Socket Mode nothing. The error's text is not logged.
        """
        cause = {"cause": plain_cause(error)} if isinstance(error, RedisError) else {}
        log.error("listener_failed", error_type=type(error).__name__, **cause)
        return BoltResponse(status=500, body="")


async def _thank(click: Click, record: Mapping[str, Any]) -> None:
    text = say("thanks", await click.record_language(record))
    click.after_ack(lambda delivery: delivery.post_ephemeral(click.place, click.user, text))
