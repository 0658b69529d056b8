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

from agent.texts.notices import notice
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
        """Note what was said beside an open question, or let the letter through."""
        letter = _follow_up(claimed)
        if letter is None:
            return await self._handle(claimed, lease)
        state = await self._threads.load(letter.thread)
        beside = waits_for_another(state, letter.user)
        if only_emoji(letter) and (beside or state.pending_question is None):
            log.info("reaction_left_alone", thread=claimed.thread)
            return OK
        if not beside:
            return await self._handle(claimed, lease)
        if all(message.ts != letter.ts for message in state.history):
            await self._note(claimed, letter, state)
            await self._tell_once(letter)
        log.info("bystander_noted", thread=claimed.thread, text_length=len(letter.text))
        return OK

    async def _note(self, claimed: Claimed, letter: Incoming, state: ThreadState) -> None:
        said = Message(role="user", text=letter.text, user=letter.user, ts=letter.ts, addressed=False)
        try:
            await self._threads.save(letter.thread, remember(state, said), fence=claimed.fence)
        except StateFenced:
            raise LeaseLost from None
        except StateNotSaved as error:
            log.warning("state_save_failed", reason=type(error).__name__)

    async def _tell_once(self, letter: Incoming) -> None:
        """How to be answered, where only they see it, once a day and thread."""
        team, user, subject = letter.thread.team, letter.user, f"beside:{letter.thread.thread_ts}"
        if await self._people.tell_now(team, user, subject):
            try:
                await self._delivery.thank(letter.thread, user, notice("beside", detect(letter.text)))
            except DeliveryFailed as failure:
                log.info("notice_not_delivered", reason=failure.reason)


def only_emoji(letter: Incoming) -> bool:
    """Whether a message is but a reaction. Slack writes every emoji as ``:name:``."""
    return letter.files == "none" and _EMOJI.fullmatch(letter.text) is not None


def _follow_up(claimed: Claimed) -> Incoming | None:
    """The letter if it is a question nobody addressed to Orion."""
    letter = Incoming.in_body(claimed.body)
    return letter if letter and letter.kind == "question" and letter.addressed == "follow_up" else None
