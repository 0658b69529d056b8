"""The model or the documents are away: the question is given back for a while, and its person sees why (H3).

The time a far end is waited for begins when it first failed this question, not when the question was asked.
"""

from __future__ import annotations

import time

import structlog

from agent.model.protocol import PASSING
from agent.outcome import Failed, TurnOutcome
from bot.queue.ending import Ending, later
from bot.queue.queue import Mailbox
from bot.timeouts import TurnTimeouts
from bot.turn.job import Job
from bot.turn.status import DOCUMENTS_AWAY, MODEL_AWAY, WorkingStatus

log = structlog.get_logger()

READ_KEPT_S = 3_600
_EARLIEST = 1e9
"""Below this a mark holds no time: an older version wrote that the question waits, not since when."""


class WaitingOut:
    """Decides whether to wait, and for how long."""

    def __init__(self, mailbox: Mailbox, timeouts: TurnTimeouts) -> None:
        self._mailbox = mailbox
        self._timeouts = timeouts

    def pause_s(self, job: Job, outcome: TurnOutcome) -> float | None:
        """Seconds until it may be back; None where it will not be, or the person has waited long enough."""
        if not isinstance(outcome, Failed) or outcome.reason not in PASSING:
            return None
        since = waiting_since(job)
        waited_s = max(0.0, time.time() - since) if since else 0.0
        wait_s = max(self._timeouts.pause_s(waited_s), outcome.retry_after_s or 0.0)
        return wait_s if waited_s + wait_s <= self._timeouts.model_s else None

    async def rest(self, job: Job, status: WorkingStatus, outcome: TurnOutcome, wait_s: float) -> Ending:
        """Give the question back for a while, under a status that says so."""
        documents = isinstance(outcome, Failed) and outcome.reason == "KnowledgeAwayError"
        log.info("turn_waits_for_documents" if documents else "turn_waits_for_model", wait_s=round(wait_s, 1))
        await self._mailbox.mark(job.claimed, job.waits, f"{time.time():.3f}")
        if job.read:
            await self._mailbox.mark(job.claimed, job.thread_read, job.read, ttl_s=READ_KEPT_S)
        await status.leave(DOCUMENTS_AWAY if documents else MODEL_AWAY)
        return later(wait_s)


def waiting_since(job: Job) -> float:
    """When a far end first failed this question, in seconds since 1970; 0.0 while none has."""
    if not job.facts.waits:
        return 0.0
    # Since an admin's pause, if there was one meanwhile: ``enqueued_at`` knows of it.
    return max(_seconds(job.facts.waits), job.claimed.enqueued_at)


def _seconds(written: str) -> float:
    try:
        found = float(written)
    except ValueError:
        return 0.0
    return found if found > _EARLIEST else 0.0
