"""Give a question back while the model or the documents are away, under a status that says so.

A model that times out is handled like this: ``agent.model.protocol.RETRYABLE`` names the temporary failures, and the
turn ends with one as ``Failed``. ``bot.timeouts`` sets the wait between tries and in all. The waiting time begins when
the service first failed this question. After it the person gets the text of ``agent.turn.replies``.
"""

import time
from typing import Final

import structlog

from agent.model.protocol import RETRYABLE
from agent.outcome import Failed, TurnOutcome
from bot.queue.lease import Ending, retry_uncounted
from bot.queue.queue import Mailbox
from bot.timeouts import TurnTimeouts
from bot.turn.job import Job
from bot.turn.status import WorkingStatus

log = structlog.get_logger()

MODEL_AWAY: Final = "is waiting for the language model and keeps trying…"
DOCUMENTS_AWAY: Final = "can't reach the documents and keeps trying…"
CONVERSATION_TTL_S: Final = 3_600


def retry_delay_s(job: Job, outcome: TurnOutcome, timeouts: TurnTimeouts) -> float | None:
    """Return the seconds until the next try; None for a permanent failure or after the longest wait."""
    if not isinstance(outcome, Failed) or outcome.reason not in RETRYABLE:
        return None
    since = waiting_since(job)
    waited_s = max(0.0, time.time() - since) if since else 0.0
    wait_s = max(timeouts.pause_s(waited_s), outcome.retry_after_s or 0.0)
    return wait_s if waited_s + wait_s <= timeouts.model_s else None


async def give_back(mailbox: Mailbox, job: Job, status: WorkingStatus, outcome: TurnOutcome, wait_s: float) -> Ending:
    """Give the question back for ``wait_s`` seconds, under a status that says so."""
    documents = isinstance(outcome, Failed) and outcome.reason == "KnowledgeAwayError"
    log.info("turn_waits_for_documents" if documents else "turn_waits_for_model", wait_s=round(wait_s, 1))
    await mailbox.mark(job.claimed, job.mark("waits"), f"{time.time():.3f}")
    if job.read:
        await mailbox.mark(job.claimed, job.mark("thread"), job.read, ttl_s=CONVERSATION_TTL_S)
    await status.leave_text(DOCUMENTS_AWAY if documents else MODEL_AWAY)
    return retry_uncounted(wait_s)


def waiting_since(job: Job) -> float:
    """Return when a service first failed this question, in seconds since 1970; 0.0 if none has."""
    # An admin's pause in between restarts the wait: ``enqueued_at`` includes it.
    return max(float(job.facts.waits), job.claimed.enqueued_at) if job.facts.waits else 0.0
