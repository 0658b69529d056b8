"""Questions that Slack delivers hours late, when the queue may no longer know that they were answered."""

from typing import Final

import structlog

from bot.queue.queue import OK, Ending, retry_uncounted
from bot.slack.history import sort_key
from bot.slack.web_api import DeliveryFailed
from bot.turn.job import Job, gate_wait_s
from bot.turn.services import TeamServices

log = structlog.get_logger()

LATE_S: Final = 6 * 3600.0  # well within the time for which the queue knows event ids


async def check_replay(job: Job, at: TeamServices) -> Ending | None:
    """End a late question that the thread or Slack shows as answered. A shortcut may use any old message."""
    incoming, state = job.incoming, job.facts.state
    late_s = job.claimed.enqueued_at - sort_key(incoming.ts)[0]
    if not incoming.event_ts or late_s < LATE_S or job.claimed.tries > 1:
        return None
    asked = any(message.ts == incoming.ts and message.addressed for message in state.history)
    try:
        known = asked or incoming.ts in state.posted
        known = known or bool(await at.delivery.reader.find_posts(incoming.thread, incoming.ts))
    except DeliveryFailed as failure:
        return None if failure.permanent else retry_uncounted(failure.again_s or gate_wait_s(job.claimed))
    if known:
        log.info("late_question_known", late_s=round(late_s))
    return OK if known else None
