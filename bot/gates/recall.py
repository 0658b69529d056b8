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
from bot.slack.message import Incoming, Standing
from bot.slack.web_api import DeliveryFailed
from bot.stores.thread_mode import Standings

log = structlog.get_logger()

AGAIN_S: Final = 30.0
MESSAGES_SEEN: Final = 1_000
_MUTED: Final = frozenset(say("muted", language) for language in LANGUAGES)


async def standing_in_slack(reader: ThreadReader, place: ThreadKey, *, before: str) -> Standing:
    """Where Orion stands by what it last said in the thread before ``before`` (a ts). Raises ``DeliveryFailed``."""
    earlier = await reader.messages(place, before=before, limit=MESSAGES_SEEN)
    own = [message.text for message in earlier if message.role == "assistant"]
    if not own:
        return "unknown"
    return "muted" if own[-1] in _MUTED else "engaged"


class Recalling:
    """Stands before whoever answers (``handle``, ``on_dead``): a letter without proof goes on once it has one."""

    def __init__(self, handle: Handle, on_dead: OnDead, *, standings: Standings, reader: ThreadReader) -> None:
        self._handle = handle
        self._on_dead = on_dead
        self._standings = standings
        self._reader = reader

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Answer the letter, unless it needs a proof and there is none. A Slack that is away is waited for."""
        letter = _unproven(claimed)
        if letter is None:
            return await self._handle(claimed, lease)
        try:
            standing = await self._standing(letter)
        except DeliveryFailed as failure:
            log.warning("standing_not_recalled", thread=claimed.thread, reason=failure.reason)
            return OK if failure.permanent else later(AGAIN_S)
        return await self._handle(claimed, lease) if standing == "engaged" else OK

    async def tell_dead(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """Tell the person that the letter was given up, if it was Orion they spoke to."""
        letter = _unproven(claimed)
        if letter is None or await self._standings.of(letter.thread) == "engaged":
            await self._on_dead(claimed, lease, reason)

    async def _standing(self, letter: Incoming) -> Standing:
        """Where Orion stood when the letter was written. A mention that came after it is no proof for it."""
        known = await self._standings.of(letter.thread)
        if known in {"unknown", "muted"}:
            return known
        if (told := await self._standings.at(letter.thread, letter.ts)) is not None:
            return told
        found = await standing_in_slack(self._reader, letter.thread, before=letter.ts)
        await self._standings.note_at(letter.thread, letter.ts, found)
        log.info("standing_recalled", thread=str(letter.thread), standing=found)
        if known == "lost":
            await self._note(letter.thread, found)
        return found

    async def _note(self, thread: ThreadKey, found: Standing) -> None:
        match found:
            case "engaged":
                await self._standings.engage(thread)
            case "muted":
                await self._standings.mute(thread)
            case _:
                await self._standings.pass_by(thread)


def _unproven(claimed: Claimed) -> Incoming | None:
    """The letter if it needs a proof; what cannot be read is left to whoever answers."""
    letter = Incoming.in_body(claimed.body)
    return letter if letter and letter.unproven else None
