"""The model or the documents are away: the question is given back for a while, and its person sees why.

The time a far end is waited for begins when it first failed this question, not when the question was asked.
"""

from __future__ import annotations

import time

import structlog

from agent.model.protocol import PASSING
from agent.outcome import Failed, TurnOutcome
from bot.queue.queue import Ending, Mailbox, retry_uncounted
from bot.timeouts import TurnTimeouts
from bot.turn.job import Job
from bot.turn.status import DOCUMENTS_AWAY, MODEL_AWAY, WorkingStatus

log = structlog.get_logger()

READ_KEPT_S = 3_600


def pause_s(job: Job, outcome: TurnOutcome, timeouts: TurnTimeouts) -> float | None:
    """Seconds until it may be back; None where it will not be, or the person has waited long enough."""
    if not isinstance(outcome, Failed) or outcome.reason not in PASSING:
        return None
    since = waiting_since(job)
    waited_s = max(0.0, time.time() - since) if since else 0.0
    wait_s = max(timeouts.pause_s(waited_s), outcome.retry_after_s or 0.0)
    return wait_s if waited_s + wait_s <= timeouts.model_s else None


async def rest(mailbox: Mailbox, job: Job, status: WorkingStatus, outcome: TurnOutcome, wait_s: float) -> Ending:
    """Give the question back for a while, under a status that says so."""
    documents = isinstance(outcome, Failed) and outcome.reason == "KnowledgeAwayError"
    log.info("turn_waits_for_documents" if documents else "turn_waits_for_model", wait_s=round(wait_s, 1))
    await mailbox.mark(job.claimed, job.mark("waits"), f"{time.time():.3f}")
    if job.read:
        await mailbox.mark(job.claimed, job.mark("thread"), job.read, ttl_s=READ_KEPT_S)
    await status.leave(DOCUMENTS_AWAY if documents else MODEL_AWAY)
    return retry_uncounted(wait_s)


def waiting_since(job: Job) -> float:
    """When a far end first failed this question, in seconds since 1970; 0.0 while none has."""
    # Since an admin's pause, if there was one meanwhile: ``enqueued_at`` knows of it.
    return max(float(job.facts.waits), job.claimed.enqueued_at) if job.facts.waits else 0.0
