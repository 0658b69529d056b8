"""Listeners that save an answer: the shortcut, the buttons, the dialog, and the lists in App Home."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltContext

from agent.knowledge.saved_answer import SavedAnswer
from agent.knowledge.slack_message import read_message
from agent.payload import mapping, objects, string
from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey
from bot.answers.answer_book import find_fault
from bot.answers.desk import AnswerDesk
from bot.answers.proposals import Proposal
from bot.delivery.blocks import Block, button, section
from bot.delivery.delivery import Delivery, today_utc
from bot.delivery.links import escape
from bot.delivery.save_answer import (
    ANSWER,
    AUDIENCE,
    DECISIONS,
    OWNER,
    QUESTION,
    REVIEW,
    SAVE_ACTION,
    SAVE_DIALOG,
    SaveRequest,
    audiences_at,
    draft_of,
    notice_dialog,
    read_submission,
    save_dialog,
)
from bot.events.gestures import LOOKUP_TIMEOUT_S, Gestures, Homes
from bot.events.interactions import button_value, click_location
from bot.slack.history import ANSWER_EVENT, is_direct
from bot.slack.manifest import SAVE_SHORTCUT
from bot.slack.web_api import DeliveryFailed
from bot.stores.thread_mode import ThreadModes
from bot.stores.turn_records import TurnRecords

Body = dict[str, Any]
Published = Callable[[Delivery, bool], Awaitable[None]]
_READABLE: Final = frozenset({"", "file_share", "thread_broadcast"})
_log = structlog.get_logger()


class MessageDeletedError(Exception):
    """The message that the shortcut was used on is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """One method for each thing that arrives. Without ``desk`` nothing can be saved, and people are told why."""

    desk: AnswerDesk | None
    records: TurnRecords
    thread_modes: ThreadModes
    homes: Homes
    gestures: Gestures
    correct: Callable[[str, str], Awaitable[None]]  # takes a turn's id and its right answer

    def register(self, app: AsyncApp) -> None:
        """Register the listeners."""
        app.shortcut(SAVE_SHORTCUT)(self.on_save)
        app.action(SAVE_ACTION)(self.on_save)
        app.view(SAVE_DIALOG)(self.on_submit)
        app.action(f"{DECISIONS}edit")(self.on_edit)
        app.action(f"{DECISIONS}withdraw")(self.on_withdraw)
        app.action(f"{DECISIONS}approve")(self.on_decide)
        app.action(f"{DECISIONS}reject")(self.on_decide)

    async def on_save(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Open the dialog for the shortcut, or for a button whose value is the turn's id and the thread's ts."""
        user, place, ts = click_location(body)
        turn_id, _, thread_ts = button_value(body).partition(" ")
        if turn_id and place.thread_ts == place.channel:  # a post outside threads may have replies
            place = replace(place, thread_ts=thread_ts or ts)
        metadata = mapping(body, "message", "metadata")
        if string(metadata, "event_type") == ANSWER_EVENT:
            turn_id = turn_id or string(metadata, "event_payload", "turn_id")

        own = string(body, "message", "user") == context.bot_user_id or bool(turn_id)

        async def open_dialog(delivery: Delivery) -> None:
            language = await self.gestures.language_for(context, user)
            refusal = await self.gestures.refusal(context, user, place.channel) or self._missing()
            request = SaveRequest(place=place, turn_id=turn_id)
            answer = "" if own else read_message(mapping(body, "message")).text
            try:
                view = None if refusal else await self._dialog(delivery, request, user, (ts, answer), language)
            except MessageDeletedError:
                view, refusal = None, "save_deleted"
            await delivery.open_modal(
                string(body, "trigger_id"), view or notice_dialog(say(refusal, language), language)
            )

        if user and place.channel and place.team:
            self.gestures.after_ack(context, open_dialog)
        await ack()

    def _missing(self) -> str:
        if self.desk is None:
            return "save_off"
        return "" if self.desk.admins | self.desk.editors else "save_closed"

    async def _dialog(
        self, delivery: Delivery, request: SaveRequest, user: str, message: tuple[str, str], language: str | None
    ) -> Block:
        """Return the dialog for a ``message`` (ts and text). What Slack does not tell soon is left out of it."""
        place, (ts, answer) = request.place, message
        record = await self.records.load(request.turn_id) if request.turn_id else None
        question, channel = string(record, "question"), ""
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                question, answer = await _read_draft(delivery, place, ts, question, answer)
                request = replace(
                    request,
                    link=await delivery.reader.permalink(place.channel, ts if is_direct(place) else place.thread_ts),
                )
                channel = await (await self.gestures.workspaces.people_of(place.team)).channel_name(
                    place.team, place.channel
                )
        except (DeliveryFailed, TimeoutError) as failure:
            reason = failure.reason if isinstance(failure, DeliveryFailed) else "slow"
            if reason == "thread_not_found":
                raise MessageDeletedError from None
            _log.info("thread_not_read", reason=reason)
        owner = self.desk.default_owner(user) if self.desk else user
        draft = SavedAnswer(
            question=question, answer=answer, audience="", owner=owner, name="", confirmed=today_utc()
        )  # fmt: skip
        return save_dialog(request, draft, audiences_at(place, user, channel, language), language)

    async def on_submit(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Write the answer, or propose it to its owner, before the ack. Show in the dialog what is wrong with it."""
        submission, errors, user = read_submission(body, today_utc()), {}, string(body, "user", "id")
        if submission and self.desk:
            language = await self.gestures.language_for(context, user)
            wrong = await self._carry_out(self.desk, *submission, user, context)
            errors = {block: say(text, language) for block, text in wrong.items()}
        await (ack(response_action="errors", errors=errors) if errors else ack())

    async def _carry_out(
        self, desk: AnswerDesk, request: SaveRequest, answer: SavedAnswer, user: str, context: AsyncBoltContext
    ) -> dict[str, str]:
        """Save or propose. Return the name of a text for each block that is wrong; nothing is saved then."""
        team = request.place.team
        old = (await asyncio.to_thread(desk.editable, team, user)).get(request.replaces)
        if refusal := await self.gestures.refusal(context, user, request.place.channel):
            return {QUESTION: refusal}
        if team != context.team_id or (request.replaces and old is None):
            return {QUESTION: "save_gone"}
        direct = old is not None or desk.may_save(user)
        allowed = [old.audience] if old else audiences_at(request.place, user, "", None)
        fault = find_fault(answer)
        checks = (
            (answer.audience in allowed, AUDIENCE, "save_wide"),
            (not answer.is_overdue(today_utc()), REVIEW, "save_past"),
            (direct or desk.may_save(answer.owner), OWNER, "save_not_owner"),
            (fault is None, ANSWER, f"save_fault_{fault}"),
        )
        if wrong := {block: text for passes, block, text in checks if not passes}:
            return wrong
        language = await self.gestures.language_for(context, user)
        answer = replace(answer, name=await self._name(team, user))
        if direct:
            thank = self._thank(request.place, user, language)
            return await self._write(desk, answer, request.replaces, context, thank)
        if not await desk.proposals.add(team, Proposal(answer=answer, proposer=user)):
            return {QUESTION: "save_full"}
        text = say("save_sent", language, who=f"<@{answer.owner}>")
        self.gestures.after_ack(context, lambda delivery: _notify(delivery, request.place, user, text))
        return {}

    async def _write(
        self, desk: AnswerDesk, answer: SavedAnswer, replaces: str, context: AsyncBoltContext, then: Published
    ) -> dict[str, str]:
        """Write the file. After the ack commit and index it, and ``then`` say so with whether Git took it."""
        try:
            files = await asyncio.to_thread(desk.book.write, answer, replaces=replaces)
        except FileExistsError:
            return {QUESTION: "save_known"}
        except OSError as error:
            _log.error("answer_not_written", reason=type(error).__name__)
            return {QUESTION: "save_not_written"}

        async def publish(delivery: Delivery) -> None:
            committed = await asyncio.to_thread(desk.publish, f"Save answer: {answer.question}", files)
            await self.correct(answer.turn_id, answer.answer)
            await then(delivery, committed)

        self.gestures.after_ack(context, publish)
        return {}

    def _thank(self, place: ThreadKey, user: str, language: str | None) -> Published:
        async def thank(delivery: Delivery, committed: bool) -> None:  # noqa: FBT001 - the one thing to report
            text = say("save_done", language) + ("" if committed else f" {say('save_not_committed', language)}")
            await _notify(delivery, place, user, text)
            await self._show_home(delivery, place.team, user, language)

        return thank

    async def _name(self, team: str, user: str) -> str:
        """Return what people call this person; their id if Slack does not tell it soon."""
        with suppress(DeliveryFailed, TimeoutError):
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                return (await (await self.gestures.workspaces.people_of(team)).find_person(team, user)).name or user
        return user

    async def _show_home(self, delivery: Delivery, team: str, user: str, language: str | None) -> None:
        await delivery.publish_home(user, await self.homes.figures(team, user, language), language)

    async def on_edit(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Open the dialog with a saved answer."""
        user, key, team = string(body, "user", "id"), button_value(body), context.team_id or ""

        async def edit(delivery: Delivery) -> None:
            language = await self.gestures.language_for(context, user)
            answer = await self._editable(context, user, key)
            view = notice_dialog(say("save_gone", language), language)
            if answer:
                place = ThreadKey(team=team, channel="", thread_ts="")
                request = SaveRequest(place=place, link=answer.link, turn_id=answer.turn_id, replaces=key)
                draft = replace(answer, confirmed=today_utc(), owner=answer.owner or user)
                view = save_dialog(request, draft, {answer.audience: answer.audience}, language)
            await delivery.open_modal(string(body, "trigger_id"), view)

        self.gestures.after_ack(context, edit)
        await ack()

    async def _editable(self, context: AsyncBoltContext, user: str, key: str) -> SavedAnswer | None:
        if self.desk is None or await self.gestures.refusal(context, user):
            return None
        return (await asyncio.to_thread(self.desk.editable, context.team_id or "", user)).get(key)

    async def on_withdraw(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Delete a saved answer, and index that."""
        user, key, desk = string(body, "user", "id"), button_value(body), self.desk
        answer = await self._editable(context, user, key)
        if desk and answer:
            files = await asyncio.to_thread(desk.book.delete, key)

            async def publish(delivery: Delivery) -> None:
                await asyncio.to_thread(desk.publish, f"Withdraw answer: {answer.question}", files)
                language = await self.gestures.language_for(context, user)
                await self._show_home(delivery, context.team_id or "", user, language)

            self.gestures.after_ack(context, publish)
        await ack()

    async def on_decide(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Save or drop a proposal, and tell its author. Of two clicks one counts."""
        user, key, team, desk = string(body, "user", "id"), button_value(body), context.team_id or "", self.desk
        waiting = await desk.waiting_for(team, user) if desk and not await self.gestures.refusal(context, user) else []
        proposal = next((one for one in waiting if one.answer.key == key), None)
        action = string(next(iter(objects(body, "actions")), {}), "action_id")
        if desk and proposal:
            await self._decide(desk, proposal, context, approved=action.endswith("approve"))
        await ack()

    async def _decide(self, desk: AnswerDesk, proposal: Proposal, context: AsyncBoltContext, *, approved: bool) -> None:
        team, owner = context.team_id or "", proposal.answer.owner
        language = await self.gestures.language_for(context, owner)

        async def report(delivery: Delivery, _committed: bool = True) -> None:  # noqa: FBT001, FBT002 - as published
            if await desk.proposals.take(team, proposal.answer.key):
                name = "save_approved" if approved else "save_rejected"
                their = await self.gestures.language_for(context, proposal.proposer)
                text = say(name, their, question=escape(proposal.answer.question), who=f"<@{owner}>")
                await delivery.send_direct_message(proposal.proposer, text)
            await self._show_home(delivery, team, owner, language)

        if not approved:
            self.gestures.after_ack(context, report)
            return
        answer = replace(proposal.answer, name=await self._name(team, owner), confirmed=today_utc())
        if wrong := await self._write(desk, answer, "", context, report):
            text = say(next(iter(wrong.values())), language)
            self.gestures.after_ack(context, lambda delivery: delivery.send_direct_message(owner, text))

    def offer(self, body: Body, context: AsyncBoltContext) -> None:
        """Offer to save the first reply of a person in a thread that was handed over. Only they see the offer."""
        event = mapping(body, "event")
        user, thread_ts, channel = (string(event, name) for name in ("user", "thread_ts", "channel"))
        place = ThreadKey(team=context.team_id or "", channel=channel, thread_ts=thread_ts)
        plain = string(event, "type") == "message" and string(event, "subtype") in _READABLE
        if self.desk is None or not (plain and thread_ts and user) or "bot_id" in event:
            return

        async def offer(delivery: Delivery) -> None:
            if turn_id := await self.thread_modes.claim_first_reply(place, user):
                if await self.gestures.refusal(context, user, channel):
                    return
                language = await self.gestures.language_for(context, user)
                text = say("save_offer", language)
                control = button(say("save_title", language), SAVE_ACTION, f"{turn_id} {thread_ts}")
                blocks = [section(text), {"type": "actions", "elements": [control]}]
                await delivery.post_ephemeral(place, user, text, blocks=blocks)

        self.gestures.after_ack(context, offer)


async def _read_draft(delivery: Delivery, place: ThreadKey, ts: str, question: str, answer: str) -> tuple[str, str]:
    """Return question and answer as the thread has them. Raises ``MessageDeletedError`` and ``DeliveryFailed``."""
    if is_direct(place):  # outside a thread the question may be anywhere
        if answer and not (await delivery.reader.find_message(place, ts))[0]:
            raise MessageDeletedError
        return question, answer
    messages = (await delivery.reader.read_conversation(place)).messages
    if answer and all(message.ts != ts for message in messages):
        raise MessageDeletedError
    return draft_of(messages, ts, question)


async def _notify(delivery: Delivery, place: ThreadKey, user: str, text: str) -> None:
    """Tell one person in the thread, or in their direct chat if that is impossible there."""
    if place.channel:
        with suppress(DeliveryFailed):
            await delivery.post_ephemeral(place, user, text)
            return
    await delivery.send_direct_message(user, text)
