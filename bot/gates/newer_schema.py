"""During a deploy, what a newer version of Orion wrote is left for it, uncounted (H3, E4).

Where none takes it for a quarter of an hour (a deploy that was taken back), it is read as far as it can be.
"""

from __future__ import annotations

from typing import Final

import structlog

from agent.thread.state import SCHEMA
from bot.gates.services import GateServices
from bot.queue.ending import Ending, later
from bot.queue.queue import Claimed
from bot.slack.message import MESSAGE_SCHEMA
from bot.turn.job import Job, stored_s_ago

log = structlog.get_logger()

AGAIN_S: Final = 5.0
PATIENCE_S: Final = 15 * 60.0


async def newer_schema(job: Job, _: GateServices) -> Ending | None:
    """Whether this version can read the message and its thread."""
    return left_for_newer(job.claimed, message_schema=job.schema, state_schema=job.facts.state_schema)


def left_for_newer(claimed: Claimed, *, message_schema: int, state_schema: int = 0) -> Ending | None:
    """Give the message back if it or its thread's state has a newer schema, for as long as that is waited for."""
    if message_schema <= MESSAGE_SCHEMA and state_schema <= SCHEMA:
        return None
    about = {"message_id": claimed.id, "message_schema": message_schema, "state_schema": state_schema}
    if stored_s_ago(claimed) > PATIENCE_S:
        log.warning("newer_schema_read_as_far_as_known", thread=claimed.thread, **about)
        return None
    log.warning("left_for_newer_version", thread=claimed.thread, **about, again_in_s=AGAIN_S)
    return later(AGAIN_S)
