"""Listeners for dialogs: saving an answer, the lists of answers in App Home, and channel settings."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import structlog

from agent.json_data import mapping, string
from agent.knowledge.slack_message import read_message
from agent.knowledge.sources.answers import SavedAnswer
from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey
from bot.answers import Proposal, SavedAnswers, find_fault
from bot.channel_settings import ChannelSettings, ChannelSettingsError, parse_settings
from bot.delivery import dialogs
from bot.delivery.blocks import button, escape, section
from bot.delivery.delivery import Delivery, today_utc
from bot.delivery.dialogs import DOCUMENTS, QUESTION, SaveRequest
from bot.delivery.rich_text import Block
from bot.events.clicks import LOOKUP_TIMEOUT_S, Click, ListenerServices
from bot.slack.history import is_direct
from bot.slack.web_api import DeliveryFailed

Report = Callable[[Delivery], Awaitable[None]]
_READABLE: Final = frozenset({"", "file_share", "thread_broadcast"})
_DELETED: Final = "thread_not_found"
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Saving:
    """One method for each kind of event. Without a folder for answers, people are told why nothing is saved."""

    services: ListenerServices

    async def on_save(self, click: Click) -> None:
        """Open the dialog for the shortcut, or for a button whose value is the turn's id and the thread's ts."""
        place, message = click.place, mapping(click.body, "message")
        turn_id, _, thread_ts = click.value.partition(" ")
        if turn_id and place.thread_ts == place.channel:  # a post outside threads may have replies
            place = replace(place, thread_ts=thread_ts or click.ts)
        named = string(message, "metadata", "event_payload", "turn_id")

        async def open_dialog(delivery: Delivery) -> None:
            nonlocal turn_id
            # Any app can write metadata, so a turn that it names must be of this conversation.
            if not turn_id and named and await self.services.records.load_for(named, place):
                turn_id = named
            language, saved = await click.language(), self.services.saved_answers
            refusal = await click.refusal()
            if not refusal and not (saved and saved.admins | saved.editors):
                refusal = "save_closed" if saved else "save_off"
            if refusal or saved is None:
                view = dialogs.notice_dialog(say(refusal, language), language)
            else:
                own = turn_id or string(message, "user") == (await delivery.workspace.identity()).user
                owner = click.user if saved.may_save(click.user) else min(saved.editors or saved.admins)
                answer = "" if own else read_message(message).text
                draft = SavedAnswer(
                    question="", answer=answer, audience="", owner=owner, name="", confirmed=today_utc()
                )
                view = await self._dialog(delivery, click, SaveRequest(place=place, turn_id=turn_id), draft, language)
            await delivery.open_modal(click.trigger_id, view)

        if click.user and place.channel and place.team:
            click.after_ack(open_dialog)

    async def _dialog(
        self, delivery: Delivery, click: Click, request: SaveRequest, draft: SavedAnswer, language: str | None
    ) -> Block:
        """Return the dialog for the message of a click, without facts that Slack is slow to return."""
        place, channel = request.place, ""
        record = await self.services.records.load(request.turn_id) if request.turn_id else None
        draft = replace(draft, question=string(record, "question"))
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                draft = await _read_draft(delivery, place, click.ts, draft)
                people = (await self.services.workspaces.of(place.team)).people
                question, answer = [await people.name_ids(place, text) for text in (draft.question, draft.answer)]
                draft = replace(draft, question=question, answer=answer)
                linked = click.ts if is_direct(place) else place.thread_ts
                request = replace(request, link=await delivery.reader.permalink(place.channel, linked))
                channel = await people.channel_name(place.team, place.channel, within=place.channel)
        except (DeliveryFailed, TimeoutError) as failure:
            reason = getattr(failure, "reason", "slow")
            if reason == _DELETED:
                return dialogs.notice_dialog(say("save_deleted", language), language)
            log.info("thread_not_read", reason=reason)
        return dialogs.save_dialog(request, draft, dialogs.audiences_at(place, click.user, channel, language), language)

    async def on_submit(self, click: Click) -> dict[str, str]:
        """Write the answer, or propose it to its owner, before the ack. Return its faults, by block."""
        submission, saved = dialogs.read_submission(click.body, today_utc()), self.services.saved_answers
        if not (submission and saved):
            return {}
        language = await click.language()
        wrong = await self._carry_out(saved, *submission, click)
        return {block: say(text, language) for block, text in wrong.items()}

    async def _carry_out(
        self, saved: SavedAnswers, request: SaveRequest, answer: SavedAnswer, click: Click
    ) -> dict[str, str]:
        """Save or propose. If a block is faulty, save nothing and return the name of a text for each."""
        team, user = request.place.team, click.user
        old = (await asyncio.to_thread(saved.editable, team, user)).get(request.replaces)
        if refusal := await click.refusal(request.place.channel):
            return {QUESTION: refusal}
        if team != click.team or (request.replaces and old is None):
            return {QUESTION: "save_gone"}
        direct = old is not None or saved.may_save(user)
        allowed = [old.audience] if old else dialogs.audiences_at(request.place, user, "", None)
        fault = find_fault(answer)
        checks = (
            (answer.audience in allowed, dialogs.AUDIENCE, "save_wide"),
            (not answer.is_overdue(today_utc()), dialogs.REVIEW, "save_past"),
            (direct or saved.may_save(answer.owner), dialogs.OWNER, "save_not_owner"),
            (fault is None, dialogs.ANSWER, f"save_fault_{fault}"),
        )
        if wrong := {block: text for passes, block, text in checks if not passes}:
            return wrong
        language = await click.language()
        answer = replace(answer, name=(await click.person()).name or user)

        async def thank(delivery: Delivery) -> None:
            await _notify(delivery, request.place, user, say("save_done", language))
            await click.show_home(delivery)

        if direct:
            return await self._write(saved, answer, request.replaces, click, thank)
        if not await saved.proposals.add(team, Proposal(answer=answer, proposer=user)):
            return {QUESTION: "save_full"}
        text = say("save_sent", language, who=f"<@{answer.owner}>")
        click.after_ack(lambda delivery: _notify(delivery, request.place, user, text))
        return {}

    async def _write(
        self, saved: SavedAnswers, answer: SavedAnswer, replaces: str, click: Click, then: Report
    ) -> dict[str, str]:
        """Write the file. After the ack index it, ``then`` report that."""
        try:
            await asyncio.to_thread(saved.book.write, answer, replaces=replaces)
        except FileExistsError:
            return {QUESTION: "save_known"}
        except OSError as error:
            log.error("answer_not_written", reason=type(error).__name__)  # noqa: TRY400 - a trace may quote it
            return {QUESTION: "save_not_written"}

        async def publish(delivery: Delivery) -> None:
            await asyncio.to_thread(saved.sync)
            await self.services.observers.correct(answer.turn_id, answer.answer)
            await then(delivery)

        click.after_ack(publish)
        return {}

    async def on_edit(self, click: Click) -> None:
        """Open the dialog with a saved answer."""

        async def edit(delivery: Delivery) -> None:
            language = await click.language()
            view = dialogs.notice_dialog(say("save_gone", language), language)
            if answer := await self._editable(click):
                place = ThreadKey(team=click.team, channel="", thread_ts="")
                request = SaveRequest(place=place, link=answer.link, turn_id=answer.turn_id, replaces=click.value)
                draft = replace(answer, confirmed=today_utc(), owner=answer.owner or click.user)
                view = dialogs.save_dialog(request, draft, {answer.audience: answer.audience}, language)
            await delivery.open_modal(click.trigger_id, view)

        click.after_ack(edit)

    async def _editable(self, click: Click) -> SavedAnswer | None:
        saved = self.services.saved_answers
        if saved is None or await click.refusal():
            return None
        return (await asyncio.to_thread(saved.editable, click.team, click.user)).get(click.value)

    async def on_withdraw(self, click: Click) -> None:
        """Delete a saved answer, also from the index."""
        saved, answer = self.services.saved_answers, await self._editable(click)
        if not (saved and answer):
            return
        await asyncio.to_thread(saved.book.delete, click.value)

        async def publish(delivery: Delivery) -> None:
            await asyncio.to_thread(saved.sync)
            await click.show_home(delivery)

        click.after_ack(publish)

    async def on_decide(self, click: Click, *, approved: bool) -> None:
        """Save or drop a proposal, and notify its author. If two people click, only one click counts."""
        saved = self.services.saved_answers
        waiting = await saved.waiting_for(click.team, click.user) if saved and not await click.refusal() else []
        proposal = next((one for one in waiting if one.answer.key == click.value), None)
        if saved is None or proposal is None:
            return

        async def report(delivery: Delivery) -> None:
            if await saved.proposals.take(click.team, proposal.answer.key):
                name = "save_approved" if approved else "save_rejected"
                their, owner = await click.language(proposal.proposer), f"<@{click.user}>"
                text = say(name, their, question=escape(proposal.answer.question), who=owner)
                await delivery.send_direct_message(proposal.proposer, text)
            await click.show_home(delivery)

        if not approved:
            click.after_ack(report)
            return
        name = (await click.person()).name or click.user
        answer = replace(proposal.answer, name=name, confirmed=today_utc())
        if wrong := await self._write(saved, answer, "", click, report):
            text = say(next(iter(wrong.values())), await click.language())
            click.after_ack(lambda delivery: delivery.send_direct_message(click.user, text))

    def offer(self, click: Click) -> None:
        """Offer to save a person's first reply in a thread that was handed over. Only they see the offer."""
        event = mapping(click.body, "event")
        user, thread_ts, channel = (string(event, name) for name in ("user", "thread_ts", "channel"))
        place = ThreadKey(team=click.team, channel=channel, thread_ts=thread_ts)
        plain = string(event, "type") == "message" and string(event, "subtype") in _READABLE
        if not (plain and thread_ts and user) or "bot_id" in event:
            return

        async def offer(delivery: Delivery) -> None:
            if turn_id := await self.services.thread_modes.claim_first_reply(place, user):
                if await click.refusal(channel):
                    return
                text = say("save_offer", language := await click.language())
                control = button(say("save_title", language), dialogs.SAVE_ACTION, f"{turn_id} {thread_ts}")
                blocks = [section(text), {"type": "actions", "elements": [control]}]
                await delivery.post_ephemeral(place, user, text, blocks=blocks)

        click.after_ack(offer)


async def _read_draft(delivery: Delivery, place: ThreadKey, ts: str, draft: SavedAnswer) -> SavedAnswer:
    """Return the draft with its question and answer. Raises ``DeliveryFailed``, even if the answer was deleted."""
    if is_direct(place):  # outside a thread the question may be anywhere
        exists = not draft.answer or bool((await delivery.reader.find_message(place, ts))[0])
    else:
        messages = (await delivery.reader.read_conversation(place)).messages
        exists = not draft.answer or any(message.ts == ts for message in messages)
        question, answer = dialogs.draft_of(messages, ts, draft.question)
        draft = replace(draft, question=question, answer=answer)
    if not exists:
        raise DeliveryFailed(_DELETED, permanent=True)
    return draft


async def _notify(delivery: Delivery, place: ThreadKey, user: str, text: str) -> None:
    """Notify one person in the thread, or in a direct message if that fails."""
    if place.channel:
        with suppress(DeliveryFailed):
            await delivery.post_ephemeral(place, user, text)
            return
    await delivery.send_direct_message(user, text)


@dataclass(frozen=True, slots=True)
class ChannelDialogs:
    """One method for each click. Only ``admins`` can change anything."""

    services: ListenerServices

    async def on_edit(self, click: Click) -> None:
        """Open the dialog for a channel, or for one that is chosen there."""
        listed = self.services.channels.channels_of(click.team)
        chosen = click.value if click.value in listed else ""

        async def edit(delivery: Delivery) -> None:
            view = dialogs.channel_dialog(chosen, listed.get(chosen, ChannelSettings()), await click.language())
            await delivery.open_modal(click.trigger_id, view)

        if click.user in self.services.admins and not await click.refusal():
            click.after_ack(edit)

    async def on_submit(self, click: Click) -> dict[str, str]:
        """Write the settings before the ack. Return why they are not written, by block."""
        channels, language = self.services.channels, await click.language()
        if click.user not in self.services.admins:
            return {}
        if refusal := await click.refusal():  # even if Slack is slow: an admin must not think that it was saved
            return {DOCUMENTS: say(refusal, language)}
        channel, table = dialogs.read_channel_dialog(click.body)
        if channel in channels.channels_of(click.team) and not string(click.body, "view", "private_metadata"):
            return {dialogs.WHICH: say("channel_known", language, file=channels.path.name)}
        try:
            channels.save(click.team, channel, parse_settings(channel, table))
        except ChannelSettingsError as fault:
            typed = fault.field in {DOCUMENTS, dialogs.INSTRUCTION, dialogs.HANDOFF}
            name = f"channel_fault_{fault.field}" if typed else "channel_not_changed"
            return {fault.field if typed else DOCUMENTS: say(name, language, file=channels.path.name)}
        except OSError as error:
            log.warning("channel_settings_not_written", reason=type(error).__name__)
            return {DOCUMENTS: say("channel_not_written", language, file=channels.path.name)}
        log.info("channel_settings_saved", team=click.team, channel=channel, user=click.user)
        click.after_ack(click.show_home)
        return {}
