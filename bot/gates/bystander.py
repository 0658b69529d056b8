"""What is said in a thread without asking Orion anything: beside an open question (B6), or a mere emoji (A1).

Promises: a message of somebody else that does not mention Orion neither answers the open question nor gets an answer;
it is remembered as what people told each other, and its writer is told once how to be answered. Whoever mentions Orion
is answered, and the open question stays open. A message of emoji alone is a reaction, unless it answers a question.
Must never put an answer into somebody else's mouth.
"""

from __future__ import annotations

import re
from typing import Final

import structlog

from agent.texts.catalogue import say
from agent.thread.conversation import Message
from agent.thread.state import StateNotSaved, ThreadState, remember, waits_for_another
from agent.thread.store import StateFenced, ThreadStore
from bot.delivery.delivery import Delivery
from bot.queue.lease import Lease, LeaseLost
from bot.queue.queue import Claimed
from bot.queue.worker import OK, Ending, Handle
from bot.slack.message import Incoming
from bot.slack.users import People
from bot.slack.web_api import DeliveryFailed
from verification.text.language import detect

log = structlog.get_logger()

_EMOJI: Final = re.compile(r"(?::[^\s:]+:\s*)+")


class Bystanders:
    """Stands before whoever answers (``handle``)."""

    def __init__(self, handle: Handle, *, threads: ThreadStore, people: People, delivery: Delivery) -> None:
        self._handle = handle
        self._threads = threads
        self._people = people
        self._delivery = delivery

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Note what was said beside an open question, or let the message through."""
        incoming = _follow_up(claimed)
        if incoming is None:
            return await self._handle(claimed, lease)
        state = await self._threads.load(incoming.thread)
        beside = waits_for_another(state, incoming.user)
        if only_emoji(incoming) and (beside or state.pending_question is None):
            log.info("reaction_left_alone", thread=claimed.thread)
            return OK
        if not beside:
            return await self._handle(claimed, lease)
        if all(message.ts != incoming.ts for message in state.history):
            await self._note(claimed, incoming, state)
            await self._tell_once(incoming)
        log.info("bystander_noted", thread=claimed.thread, text_length=len(incoming.text))
        return OK

    async def _note(self, claimed: Claimed, incoming: Incoming, state: ThreadState) -> None:
        said = Message(role="user", text=incoming.text, user=incoming.user, ts=incoming.ts, addressed=False)
        try:
            await self._threads.save(incoming.thread, remember(state, said), fence=claimed.fence)
        except StateFenced:
            raise LeaseLost from None
        except StateNotSaved as error:
            log.warning("state_save_failed", reason=type(error).__name__)

    async def _tell_once(self, incoming: Incoming) -> None:
        """How to be answered, where only they see it, once a day and thread."""
        team, user, subject = incoming.thread.team, incoming.user, f"beside:{incoming.thread.thread_ts}"
        if await self._people.tell_now(team, user, subject):
            try:
                await self._delivery.thank(incoming.thread, user, say("beside", detect(incoming.text)))
            except DeliveryFailed as failure:
                log.info("notice_not_delivered", reason=failure.reason)


def only_emoji(incoming: Incoming) -> bool:
    """Whether a message is but a reaction. Slack writes every emoji as ``:name:``."""
    return incoming.files == "none" and _EMOJI.fullmatch(incoming.text) is not None


def _follow_up(claimed: Claimed) -> Incoming | None:
    """The message if it is a question nobody addressed to Orion."""
    incoming = Incoming.in_body(claimed.body)
    return incoming if incoming and incoming.kind == "question" and incoming.addressed == "follow_up" else None
