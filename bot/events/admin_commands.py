"""`pause` and `resume` from an admin in a direct chat with Orion (A12); everything else is stored.

The word works at once, whatever waits in that chat, and once however often Slack sends it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass

import structlog

from agent.texts.catalogue import say
from bot.install.workspaces import DeliveryOf
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.cancellations import Cancellations
from bot.stores.pause import Pausing

log = structlog.get_logger()


def ordered(incoming: Incoming, admins: frozenset[str]) -> tuple[str, str]:
    """The order (``pause`` or ``resume``) and an admin's reason; two empty texts where the message is none.

    ``pause: REASON`` gives a reason; anything longer without the colon is a question.
    """
    if incoming.kind != "question" or incoming.user not in admins or incoming.channel_type != "im":
        return "", ""
    word, colon, reason = incoming.text.partition(":")
    order = word.strip(" .!`").casefold()
    if order == "pause":
        return order, reason.strip()
    return (order, "") if order == "resume" and not colon else ("", "")


@dataclass(frozen=True, slots=True)
class AdminChat:
    """Stands before the reception (``store``)."""

    store: Callable[[Incoming], Awaitable[bool]]
    _: KW_ONLY
    admins: frozenset[str]
    pausing: Pausing
    cancellations: Cancellations
    delivery_of: DeliveryOf

    async def receive(self, incoming: Incoming) -> bool:
        """Obey, or store; whether the message was new. Raises ``RedisError`` when neither could be done."""
        order, reason = ordered(incoming, self.admins)
        if not order:
            return await self.store(incoming)
        if not await self.cancellations.heard(incoming):
            await (self.pausing.pause(reason) if order == "pause" else self.pausing.resume())
            if await self.cancellations.note_heard(incoming):
                log.info("admin_order", order=order)
                await self._confirm(incoming, order)
                return True
        return False

    async def _confirm(self, incoming: Incoming, order: str) -> None:
        try:
            delivery = await self.delivery_of(incoming.thread.team)
            text = say("paused_now" if order == "pause" else "resumed_now", None)
            await delivery.say(incoming.thread, text, incoming.ts)
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", reason=failure.reason)
