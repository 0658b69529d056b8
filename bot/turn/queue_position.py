"""Show people the queue position of a question that waits for a free worker."""

from dataclasses import asdict, dataclass

import structlog

from agent.texts.catalogue import translate_status
from bot.delivery.answer_key import AnswerKey
from bot.delivery.delivery import Delivery
from bot.delivery.pending_checks import ENDS_SESSION
from bot.install.workspaces import Workspaces
from bot.queue.queue import Mailbox, Waiting
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from verification.text.language import detect_language

log = structlog.get_logger()

BUSY = "is busy: you are number {number} in the queue…"
BEHIND = "is working on an earlier question; yours is next…"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePace:
    """Frequency of the notices, as arguments of ``Mailbox.waiting``. Slack removes a status after two minutes."""

    for_s: float = 3.0
    again_s: float = 30.0
    limit: int = 10
    each_s: float = 1.5


@dataclass(frozen=True, slots=True)
class QueueNotices:
    """Shows waiting people their position."""

    mailbox: Mailbox
    workspaces: Workspaces
    pace: QueuePace = QueuePace()

    async def sweep(self) -> None:
        """Notify everyone whose notice is due. Raises ``RedisError``."""
        for waiting in await self.mailbox.list_waiting(**asdict(self.pace)):
            incoming = Incoming.from_body(waiting.body)  # an unreadable message is handled by its turn
            is_question = incoming is not None and incoming.kind in {"question", "edit"}
            if incoming and is_question and incoming.addressed != "follow_up" and not incoming.refused:
                await self.notify(waiting, incoming)

    async def notify(self, waiting: Waiting, incoming: Incoming) -> None:
        """Notify one person, unless their Slack is away. Raises ``RedisError``."""
        try:
            delivery = await self.workspaces.delivery_of(incoming.thread.team)
            if not await self.mailbox.is_waiting(waiting.thread) and waiting.place:
                return  # its turn began while others were notified
            stood_in = await self._show_position(delivery, incoming, waiting.place)
            if all(one.id != waiting.id for one in await self.mailbox.list_messages(waiting.thread)):
                if stood_in:  # the answer came first, so nothing else will clear this notice
                    await delivery.delete_placeholders(incoming.thread, AnswerKey(question_ts=incoming.ts))
                else:
                    await delivery.end_session(incoming.thread)
            elif not await self.mailbox.is_waiting(waiting.thread):
                await delivery.check_later(
                    incoming.thread, ENDS_SESSION
                )  # its turn may have cleared the status before us
        except DeliveryFailed as failure:
            log.info("queue_not_shown", thread=waiting.thread, reason=failure.reason)
        else:
            log.info("queue_shown", thread=waiting.thread, message_id=waiting.id, place=waiting.place)

    async def _show_position(self, delivery: Delivery, incoming: Incoming, place: int) -> bool:
        """Show the position. Return whether a placeholder had to replace the status."""
        text = translate_status(BUSY if place else BEHIND, detect_language(incoming.text)).format(number=place)
        try:
            await delivery.set_status(incoming.thread, text)
        except DeliveryFailed as failure:
            if not failure.permanent:
                raise
        else:
            return False
        if not any(message.placeholder for message in await delivery.reader.find_posts(incoming.thread, incoming.ts)):
            await delivery.show_placeholder(incoming.thread, f"_Orion {text}_", AnswerKey(question_ts=incoming.ts))
        return True
