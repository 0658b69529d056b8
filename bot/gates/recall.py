"""Follow-ups in threads that are older than Redis' memory: Slack is asked whether Orion spoke there (A2).

Promises: a thread is looked at until its standing is known; where Orion never spoke it is a stranger for an hour. Only
the worker looks, never whoever acknowledges an event. Must never say a word in a thread where Orion was not addressed.
"""

from __future__ import annotations

from typing import Final

import structlog

from agent.texts.catalogue import LANGUAGES, say
from agent.thread.conversation import ThreadKey
from bot.queue.lease import Lease
from bot.queue.queue import Claimed
from bot.queue.worker import OK, Ending, Handle, OnDead, later
from bot.slack.history import ThreadReader
from bot.slack.message import Incoming, ThreadMode
from bot.slack.web_api import DeliveryFailed
from bot.stores.thread_mode import ThreadModes

log = structlog.get_logger()

AGAIN_S: Final = 30.0
MESSAGES_SEEN: Final = 1_000
_MUTED: Final = frozenset(say("muted", language) for language in LANGUAGES)


async def standing_in_slack(reader: ThreadReader, place: ThreadKey, *, before: str) -> ThreadMode:
    """Where Orion stands by what it last said in the thread before ``before`` (a ts). Raises ``DeliveryFailed``."""
    earlier = await reader.messages(place, before=before, limit=MESSAGES_SEEN)
    own = [message.text for message in earlier if message.role == "assistant"]
    if not own:
        return "unknown"
    return "muted" if own[-1] in _MUTED else "engaged"


class Recalling:
    """Stands before whoever answers (``handle``, ``on_dead``): a message without proof goes on once it has one."""

    def __init__(self, handle: Handle, on_dead: OnDead, *, thread_modes: ThreadModes, reader: ThreadReader) -> None:
        self._handle = handle
        self._on_dead = on_dead
        self._thread_modes = thread_modes
        self._reader = reader

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Answer the message, unless it needs a proof and there is none. A Slack that is away is waited for."""
        incoming = _unproven(claimed)
        if incoming is None:
            return await self._handle(claimed, lease)
        try:
            thread_mode = await self._thread_mode(incoming)
        except DeliveryFailed as failure:
            log.warning("standing_not_recalled", thread=claimed.thread, reason=failure.reason)
            return OK if failure.permanent else later(AGAIN_S)
        return await self._handle(claimed, lease) if thread_mode == "engaged" else OK

    async def tell_dead(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """Tell the person that the message was given up, if it was Orion they spoke to."""
        incoming = _unproven(claimed)
        if incoming is None or await self._thread_modes.of(incoming.thread) == "engaged":
            await self._on_dead(claimed, lease, reason)

    async def _thread_mode(self, incoming: Incoming) -> ThreadMode:
        """Where Orion stood when the message was written. A mention that came after it is no proof for it."""
        known = await self._thread_modes.of(incoming.thread)
        if known in {"unknown", "muted"}:
            return known
        if (told := await self._thread_modes.at(incoming.thread, incoming.ts)) is not None:
            return told
        found = await standing_in_slack(self._reader, incoming.thread, before=incoming.ts)
        await self._thread_modes.note_at(incoming.thread, incoming.ts, found)
        log.info("standing_recalled", thread=str(incoming.thread), thread_mode=found)
        if known == "lost":
            await self._note(incoming.thread, found)
        return found

    async def _note(self, thread: ThreadKey, found: ThreadMode) -> None:
        match found:
            case "engaged":
                await self._thread_modes.engage(thread)
            case "muted":
                await self._thread_modes.mute(thread)
            case _:
                await self._thread_modes.pass_by(thread)


def _unproven(claimed: Claimed) -> Incoming | None:
    """The message if it needs a proof; what cannot be read is left to whoever answers."""
    incoming = Incoming.in_body(claimed.body)
    return incoming if incoming and incoming.unproven else None
