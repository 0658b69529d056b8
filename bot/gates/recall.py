"""Follow-ups in threads that are older than Redis' memory: Slack is asked whether Orion spoke there (A2)."""

from __future__ import annotations

from typing import Final

import structlog

from agent.texts.catalogue import LANGUAGES, say
from bot.gates.services import GateServices
from bot.queue.queue import OK, Ending, later
from bot.slack.message import Incoming, ThreadMode
from bot.slack.web_api import DeliveryFailed
from bot.turn.job import Job

log = structlog.get_logger()

AGAIN_S: Final = 30.0
MESSAGES_SEEN: Final = 1_000
_MUTED: Final = frozenset(say("muted", language) for language in LANGUAGES)


async def proven(job: Job, at: GateServices) -> Ending | None:
    """Whether Orion was addressed in the thread of a follow-up that Redis does not know.

    Slack is asked until its answer is known; where Orion never spoke, the thread is left alone for an hour. A Slack
    that is away is waited for.
    """
    incoming = job.incoming
    if not incoming.unproven:
        # Whoever addressed Orion here may turn out to be somebody who may not.
        unaddressed = incoming.addressed == "follow_up" and job.facts.standing is None and not job.facts.state.version
        return OK if unaddressed and incoming.kind == "question" else None
    try:
        thread_mode = await _thread_mode(incoming, at)
    except DeliveryFailed as failure:
        log.warning("standing_not_recalled", reason=failure.reason)
        return OK if failure.permanent else later(failure.again_s or AGAIN_S)
    return None if thread_mode == "engaged" else OK


async def _thread_mode(incoming: Incoming, at: GateServices) -> ThreadMode:
    """Where Orion stood when the message was written. A mention that came after it is no proof for it."""
    thread_modes, thread = at.stores.thread_modes, incoming.thread
    known = await thread_modes.of(thread)
    if known in {"unknown", "muted"}:
        return known
    if (told := await thread_modes.at(thread, incoming.ts)) is not None:
        return told
    earlier = await at.delivery.reader.conversation(thread, before=incoming.ts, limit=MESSAGES_SEEN)
    own = [message.text for message in earlier.messages if message.role == "assistant"]
    found: ThreadMode = "unknown" if not own else "muted" if own[-1] in _MUTED else "engaged"
    await thread_modes.note_at(thread, incoming.ts, found)
    log.info("standing_recalled", thread_mode=found)
    if known == "lost":
        note = {"engaged": thread_modes.engage, "muted": thread_modes.mute}.get(found, thread_modes.pass_by)
        await note(thread)
    return found
