"""What is said in a thread without asking Orion anything: beside an open question (B6), or a mere emoji (A1)."""

from __future__ import annotations

import re
from typing import Final

import structlog

from agent.thread.conversation import Message
from agent.thread.state import remember, waits_for_another
from bot.gates.services import GateServices
from bot.queue.queue import OK, Ending
from bot.turn.job import Job

log = structlog.get_logger()

_EMOJI: Final = re.compile(r"(?::[^\s:]+:\s*)+")  # as Slack writes every one


async def not_beside(job: Job, at: GateServices) -> Ending | None:
    """Note what somebody else said beside an open question, and tell them once how to be answered.

    A message of emoji alone is a reaction, unless it answers a question. Whoever mentions Orion is answered.
    """
    incoming, state = job.incoming, job.facts.state
    if incoming.kind != "question" or incoming.addressed != "follow_up":
        return None
    beside = waits_for_another(state, incoming.user)
    only_emoji = incoming.files == "none" and _EMOJI.fullmatch(incoming.text) is not None
    if only_emoji and (beside or state.pending_question is None):
        log.info("reaction_left_alone")
        return OK
    if not beside:
        return None
    if all(message.ts != incoming.ts for message in state.history):
        said = Message(role="user", text=incoming.text, user=incoming.user, ts=incoming.ts, addressed=False)
        await at.stores.save(job.claimed, incoming.thread, remember(state, said))
        await at.whisper_once(incoming, "beside", f"beside:{incoming.thread.thread_ts}")
    log.info("bystander_noted", text_length=len(incoming.text))
    return OK
