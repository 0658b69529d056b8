"""`pause` and `resume` from an admin in a direct chat with Orion (A12); everything else goes its usual way.

Promises: the word works at once, whatever waits in that chat, and once however often Slack sends it. Must never obey
anybody but the configured admins, nor in a channel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from agent.texts.notices import notice
from bot.install.workspaces import DeliveryOf
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.cancellations import Withdrawals
from bot.stores.pause import Pausing

log = structlog.get_logger()

_PAUSE: Final = "pause"
_RESUME: Final = "resume"


def ordered(letter: Incoming, admins: frozenset[str]) -> tuple[str, str]:
    """The order (``pause`` or ``resume``) and an admin's reason; two empty texts where the letter is none.

    ``pause: REASON`` gives a reason; anything longer without the colon is a question.
    """
    if letter.kind != "question" or letter.user not in admins or letter.channel_type != "im":
        return "", ""
    word, colon, reason = letter.text.partition(":")
    order = word.strip(" .!`").casefold()
    if order == _PAUSE:
        return order, reason.strip()
    return (order, "") if order == _RESUME and not colon else ("", "")


class AdminChat:
    """Stands before the reception (``store``)."""

    def __init__(
        self,
        store: Callable[[Incoming], Awaitable[object]],
        *,
        admins: frozenset[str],
        pausing: Pausing,
        withdrawals: Withdrawals,
        delivery_of: DeliveryOf,
    ) -> None:
        self._store = store
        self._admins = admins
        self._pausing = pausing
        self._withdrawals = withdrawals
        self._delivery_of = delivery_of

    async def receive(self, letter: Incoming) -> None:
        """Obey, or store. Raises ``RedisError`` when neither could be done."""
        order, reason = ordered(letter, self._admins)
        if not order:
            await self._store(letter)
        elif not await self._withdrawals.heard(letter):
            await (self._pausing.pause(reason) if order == _PAUSE else self._pausing.resume())
            if await self._withdrawals.note_heard(letter):
                log.info("admin_order", order=order)
                await self._confirm(letter, order)

    async def _confirm(self, letter: Incoming, order: str) -> None:
        try:
            delivery = await self._delivery_of(letter.thread.team)
            await delivery.greet(letter.user, notice("paused_now" if order == _PAUSE else "resumed_now", None))
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", reason=failure.reason)
