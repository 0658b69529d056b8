"""Show people the queue position of a question that waits for a free worker."""

from dataclasses import dataclass

import structlog

from agent.texts.catalogue import translate_status
from bot.delivery.pending_checks import ENDS_SESSION
from bot.install.workspaces import Workspaces
from bot.queue.queue import Mailbox, Waiting
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from verification.text.language import detect_language

log = structlog.get_logger()

BUSY = "is busy: you are number {number} in the queue…"
BEHIND = "is working on an earlier question; yours is next…"


@dataclass(frozen=True, slots=True)
class QueueNotices:
    """Shows waiting people their position after ``for_s``, and again each ``again_s``: Slack removes it after 120 s.

    One process in all shows at most ``limit`` of them in ``each_s``.
    """

    mailbox: Mailbox
    workspaces: Workspaces
    for_s: float = 3.0
    again_s: float = 30.0
    limit: int = 10
    each_s: float = 1.5

    async def sweep(self) -> None:
        """Notify everyone whose notice is due. Raises ``RedisError``."""
        paces = {"for_s": self.for_s, "again_s": self.again_s, "each_s": self.each_s}
        for waiting in await self.mailbox.list_waiting(limit=self.limit, **paces):
            incoming = Incoming.from_body(waiting.body)  # an unreadable message is handled by its turn
            is_question = incoming is not None and incoming.kind in {"question", "edit"}
            if incoming and is_question and incoming.addressed != "follow_up" and not incoming.refused:
                await self.notify(waiting, incoming)

    async def notify(self, waiting: Waiting, incoming: Incoming) -> None:
        """Notify one person, unless their Slack is away or has no statuses. Raises ``RedisError``."""
        text = translate_status(BUSY if waiting.place else BEHIND, detect_language(incoming.text))
        try:
            delivery = await self.workspaces.delivery_of(incoming.thread.team)
            if not await self.mailbox.is_waiting(waiting.thread) and waiting.place:
                return  # its turn began while others were notified
            await delivery.set_status(incoming.thread, text.format(number=waiting.place))
            if all(one.id != waiting.id for one in await self.mailbox.list_messages(waiting.thread)):
                await delivery.end_session(incoming.thread)  # the answer came first, so only this clears the notice
            elif not await self.mailbox.is_waiting(waiting.thread):  # its turn may have cleared the status before us
                await delivery.check_later(incoming.thread, ENDS_SESSION)
        except DeliveryFailed as failure:
            log.info("queue_not_shown", thread=waiting.thread, reason=failure.reason)
        else:
            log.info("queue_shown", thread=waiting.thread, message_id=waiting.id, place=waiting.place)
