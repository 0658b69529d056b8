"""May Orion answer now: is it paused, is there something left to spend (A12). Who may ask was settled before.

Promises: what waits for an admin is kept in its place, told once per thread and pause, and logged with the reason; an
answer that was decided already is delivered whatever the budget says; what costs nothing (help, "mute", a deletion, a
click) passes. Must never ask a model.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import structlog

from agent.texts.catalogue import say
from bot.delivery.delivery import Delivery
from bot.delivery.links import escape
from bot.queue.lease import Lease
from bot.queue.queue import Claimed
from bot.queue.worker import OK, Ending, Handle, dead, later
from bot.slack.message import Incoming
from bot.slack.users import People
from bot.slack.web_api import DeliveryFailed
from bot.stores.budgets import Budgets, Holder, in_words
from bot.stores.pause import Pause, Pausing
from bot.stores.stores import Stores
from bot.turn.job import asks, gate_wait_s, turn_id_of, where_whispered

log = structlog.get_logger()

PAUSE_TOLD_S: Final = 30 * 86_400
_BUDGETS: Final[dict[Holder, str]] = {
    "user": "budget_user",
    "channel": "budget_channel",
    "workspace": "budget_workspace",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseAndBudgets:
    """The switch and the purse, the same for every workspace."""

    pausing: Pausing
    budgets: Budgets


class Allowance:
    """Stands before whoever answers (``handle``) in one workspace."""

    def __init__(
        self, handle: Handle, *, pause_and_budgets: PauseAndBudgets, stores: Stores, people: People, delivery: Delivery
    ) -> None:
        self._handle = handle
        self._pause_and_budgets = pause_and_budgets
        self._stores = stores
        self._people = people
        self._delivery = delivery

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Let the message through, let it wait, or say that nothing is left to spend."""
        incoming = Incoming.in_body(claimed.body)
        if incoming is None or not asks(incoming) or not await self._stores.cancellations.wanted(incoming):
            return await self._handle(claimed, lease)
        try:
            return await self._allow(claimed, lease, incoming)
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", thread=claimed.thread, reason=failure.reason)
            return dead(failure.reason) if failure.permanent else later(gate_wait_s(claimed))

    async def _allow(self, claimed: Claimed, lease: Lease, incoming: Incoming) -> Ending:
        pause, resumed = await self._pause_and_budgets.pausing.state()
        if pause is not None:
            log.info("question_waits", because="paused", thread=claimed.thread, message_id=claimed.id)
            await self._tell_paused(claimed, lease, incoming, pause)
            return later(gate_wait_s(claimed))
        turn_id = turn_id_of(incoming)
        holder = await self._pause_and_budgets.budgets.exhausted(incoming)
        if holder is not None and not await self._stores.mailbox.marked(str(incoming.thread), f"outbox:{turn_id}"):
            log.info("budget_used_up", holder=holder, thread=claimed.thread)
            text = self._used_up(holder, await self._people.spoken_by(incoming))
            if incoming.kind == "edit":
                await self._whisper(incoming, text)  # the answer to what stood there before stays as it is
            else:
                await self._delivery.say(incoming.thread, text, incoming.ts, lease.require)
            return OK
        # What was waited for on an admin's order is not to be taken for a far end's being away.
        asked = replace(claimed, enqueued_at=max(claimed.enqueued_at, resumed))
        async with self._pause_and_budgets.budgets.counting(turn_id, incoming):
            return await self._handle(asked, lease)

    async def _tell_paused(self, claimed: Claimed, lease: Lease, incoming: Incoming, pause: Pause) -> None:
        """Once per thread and pause; on an edit to its person alone. It is no answer: that one is still to come."""
        mailbox, name = self._stores.mailbox, f"paused:{pause.since}"
        if await mailbox.marked(claimed.thread, name) is not None:
            return
        text = say("paused", await self._people.spoken_by(incoming))
        text = f"{text}\n{escape(pause.reason)}".rstrip()
        if incoming.kind == "edit":
            await self._whisper(incoming, text)
        else:
            await self._delivery.notify(incoming.thread, text, f"{incoming.ts}:{name}", lease.require)
        await mailbox.mark(claimed, name, "told", ttl_s=PAUSE_TOLD_S)

    async def _whisper(self, incoming: Incoming, text: str) -> None:
        with suppress(DeliveryFailed):
            await self._delivery.thank(where_whispered(incoming), incoming.user, text)

    def _used_up(self, holder: Holder, language: str | None) -> str:
        left = in_words(self._pause_and_budgets.budgets.renewed_in_s)
        return f"{say(_BUDGETS[holder], language)} {say('budget_renewed', language, left=left)}"
