"""Takes messages in before Slack's ack: stores them, cancels the turns they replace, carries out an admin's order.

No step waits for a model. Only the confirmation of an order waits for Slack.
"""

from dataclasses import KW_ONLY, dataclass, field
from typing import Final

import structlog

from agent.texts.catalogue import say
from bot.gates.stop import receive_stop, turn_at_head
from bot.install.workspaces import Workspaces
from bot.queue.queue import Cancel, Cancellation
from bot.slack.message import Access, Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores, read_facts

log = structlog.get_logger()

DELETED: Final = "deleted"
TWIN_WAIT_S: Final = 0.2
"""Wait of a mention without its files for the ``message`` event of the same message."""


@dataclass(frozen=True, slots=True)
class Enqueuer:
    """Takes messages in."""

    stores: Stores
    cancel: Cancel
    access: Access
    _twins: set[tuple[str, str]] = field(default_factory=set)

    async def receive(self, incoming: Incoming) -> bool:
        """Store a message. Return whether it was new. Raises ``RedisError`` if it could not be stored."""
        if incoming.kind == "stop":
            await receive_stop(incoming, self.stores, self.cancel, self.access)
            return True
        if incoming.kind == "delete":
            await self._cancel_deleted_turn(incoming)
        await self.stores.save_token(incoming)
        thread = str(incoming.thread)
        keys = incoming.event_ids or (f"ts:{thread}:{incoming.ts}",)
        said_at = incoming.event_ts or incoming.ts
        new = await self.stores.mailbox.enqueue(
            thread, incoming.to_json(), event_ids=keys, said=said_at,
            hold_s=self._hold_s(incoming), fuller=incoming.addressed == "mention" and incoming.files != "unknown",
        )  # fmt: skip
        if new and incoming.kind == "edit":
            await self._cancel_outdated_turn(incoming)
        # Also for a repeated event: the first one may have failed before this line.
        async with self.stores.redis.pipeline(transaction=False) as pipe:
            if incoming.addressed != "overheard":
                self.stores.served.record(pipe, incoming.thread, incoming.ts)
            self.stores.direct_chats.record(pipe, incoming.thread, incoming.ts)
            self.stores.thread_modes.record_message(pipe, incoming, new=new)
            await pipe.execute()
        return new

    def _hold_s(self, incoming: Incoming) -> float:
        """Return the seconds to hold the message: only if both events of a mention are known to come."""
        place = incoming.thread.team, incoming.thread.channel
        if incoming.files == "unknown":
            return TWIN_WAIT_S if place in self._twins else 0.0
        if incoming.addressed == "mention":
            self._twins.add(place)
        return 0.0

    async def _cancel_outdated_turn(self, incoming: Incoming) -> None:
        """Cancel the turn over the words before an edit, unless another message was asked after them.

        It continues if the edit would not be answered now: then its answer is the only one.
        """
        thread = str(incoming.thread)
        stored = await self.stores.mailbox.list_messages(thread)
        running = turn_at_head(stored)
        messages = (Incoming.from_body(one.body) for one in stored)
        alone = all(one and one.ts == incoming.ts for one in messages)
        if not (running and alone) or running[1].edited_ts == incoming.edited_ts:
            return
        facts = await read_facts(self.stores, incoming, "")
        if not (facts.pause or facts.exhausted):
            await self.cancel(Cancellation(thread=thread, reason="edited", message_id=running[0]))

    async def _cancel_deleted_turn(self, incoming: Incoming) -> None:
        """Cancel the turn of a deleted question. The event is stored too, so that its answer is deleted.

        A turn that waits for an outage to end is ended now.
        """
        await self.stores.cancellations.record_deletion(incoming)
        thread = str(incoming.thread)
        running = turn_at_head(await self.stores.mailbox.list_messages(thread))
        if running and running[1].ts == incoming.ts:
            await self.cancel(Cancellation(thread=thread, reason=DELETED, message_id=running[0]))
            await self.stores.mailbox.make_due_now(thread)


def admin_order(incoming: Incoming, admins: frozenset[str]) -> tuple[str, str]:
    """Return the order (``pause`` or ``resume``) and its reason; two empty texts for any other message.

    ``pause: REASON`` gives a reason. More words without the colon are a question. An app cannot give orders in a
    person's name.
    """
    typed = incoming.kind == "question" and incoming.channel_type == "im" and not incoming.by_app
    if not typed or incoming.user not in admins:
        return "", ""
    word, colon, reason = incoming.text.partition(":")
    order = word.strip(" .!`").casefold()
    if order == "pause":
        return order, reason.strip()
    return (order, "") if order == "resume" and not colon else ("", "")


@dataclass(frozen=True, slots=True)
class AdminCommands:
    """Carries out an admin's "pause" and "resume" at once and only once. Other messages go to the queue."""

    enqueuer: Enqueuer
    _: KW_ONLY
    admins: frozenset[str]
    workspaces: Workspaces

    async def receive(self, incoming: Incoming) -> bool:
        """Carry out or store a message. Return whether it was new. Raises ``RedisError`` if both failed."""
        order, reason = admin_order(incoming, self.admins)
        if not order:
            return await self.enqueuer.receive(incoming)
        stores = self.enqueuer.stores
        if not await stores.cancellations.was_handled(incoming):
            await (stores.pausing.pause(reason) if order == "pause" else stores.pausing.resume())
            if await stores.cancellations.mark_handled(incoming):
                log.info("admin_order", order=order)
                await self._confirm(incoming, order)
                return True
        return False

    async def _confirm(self, incoming: Incoming, order: str) -> None:
        try:
            delivery = await self.workspaces.delivery_of(incoming.thread.team)
            text = say("paused_now" if order == "pause" else "resumed_now", None)
            await delivery.post_own_text(incoming.thread, text, incoming.ts)
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", reason=failure.reason)
