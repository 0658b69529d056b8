"""Follow-ups: whether what is said in a thread without a mention is meant for Orion.

In a thread that is older than Redis' memory Slack is asked whether Orion spoke there.
"""

from __future__ import annotations

import re
from typing import Final

import structlog

from agent.texts.catalogue import LANGUAGES, say
from agent.thread.conversation import Message
from agent.thread.state import is_waiting_for_another, with_messages
from bot.gates.services import GateServices
from bot.queue.queue import OK, Ending, retry_uncounted
from bot.slack.message import Incoming, ThreadMode
from bot.slack.web_api import DeliveryFailed
from bot.turn.job import Job

log = structlog.get_logger()

RETRY_S: Final = 30.0
MAX_MESSAGES: Final = 1_000
_EMOJI: Final = re.compile(r"(?::[^\s:]+:\s*)+")  # as Slack writes every one
_MUTED: Final = frozenset(say("muted", language) for language in LANGUAGES)


async def check_thread_member(job: Job, at: GateServices) -> Ending | None:
    """Whether Orion was addressed in the thread of a follow-up that Redis does not know.

    Slack is asked until its answer is known; where Orion never spoke, the thread is left alone for an hour. A Slack
    that is away is waited for.
    """
    incoming = job.incoming
    if not incoming.unproven:
        # Whoever addressed Orion here may turn out to be somebody who may not.
        unaddressed = (
            incoming.addressed == "follow_up" and job.facts.thread_mode is None and not job.facts.state.version
        )
        return OK if unaddressed and incoming.kind == "question" else None
    try:
        thread_mode = await _recall_thread_mode(incoming, at)
    except DeliveryFailed as failure:
        log.warning("standing_not_recalled", reason=failure.reason)
        return OK if failure.permanent else retry_uncounted(failure.again_s or RETRY_S)
    return None if thread_mode == "engaged" else OK


async def _recall_thread_mode(incoming: Incoming, at: GateServices) -> ThreadMode:
    """Where Orion stood when the message was written. A mention that came after it is no proof for it."""
    thread_modes, thread = at.stores.thread_modes, incoming.thread
    known = await thread_modes.get(thread)
    if known in {"unknown", "muted"}:
        return known
    if (told := await thread_modes.load_lookup(thread, incoming.ts)) is not None:
        return told
    earlier = await at.delivery.reader.read_conversation(thread, before=incoming.ts, limit=MAX_MESSAGES)
    own = [message.text for message in earlier.messages if message.role == "assistant"]
    found: ThreadMode = "unknown" if not own else "muted" if own[-1] in _MUTED else "engaged"
    await thread_modes.save_lookup(thread, incoming.ts, found)
    log.info("standing_recalled", thread_mode=found)
    if known == "lost":
        note = {"engaged": thread_modes.engage, "muted": thread_modes.mute}.get(found, thread_modes.mark_stranger)
        await note(thread)
    return found


async def check_pending(job: Job, at: GateServices) -> Ending | None:
    """Note what somebody else said beside an open question, and tell them once how to be answered.

    A message of emoji alone is a reaction, unless it answers a question. Whoever mentions Orion is answered.
    """
    incoming, state = job.incoming, job.facts.state
    if incoming.kind != "question" or incoming.addressed != "follow_up":
        return None
    beside = is_waiting_for_another(state, incoming.user)
    only_emoji = incoming.files == "none" and _EMOJI.fullmatch(incoming.text) is not None
    if only_emoji and (beside or state.pending_question is None):
        log.info("reaction_left_alone")
        return OK
    if not beside:
        return None
    if all(message.ts != incoming.ts for message in state.history):
        said = Message(role="user", text=incoming.text, user=incoming.user, ts=incoming.ts, addressed=False)
        await at.stores.save(job.claimed, incoming.thread, with_messages(state, said))
        await at.notify_person_once(incoming, "beside", f"beside:{incoming.thread.thread_ts}")
    log.info("bystander_noted", text_length=len(incoming.text))
    return OK
