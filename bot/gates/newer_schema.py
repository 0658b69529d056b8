"""Two versions of Orion side by side: what a newer one wrote is left to a newer one (H3).

Promises: a message or a thread's state of a newer schema than ours goes back to its place, uncounted, until a newer
worker takes it. Where none does for a quarter of an hour (a deploy that was taken back), it is read as far as it can
be, so that no question waits for ever. Must never write over a newer state before that.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Final

import structlog

from agent.thread.state import SCHEMA
from agent.thread.store import ThreadStore
from bot.queue.lease import Lease
from bot.queue.queue import Claimed
from bot.queue.worker import Ending, Handle, later
from bot.slack.message import MESSAGE_SCHEMA

log = structlog.get_logger()

AGAIN_S: Final = 5.0
PATIENCE_S: Final = 15 * 60.0


class NewerVersions:
    """Stands before whoever answers (``handle``). ``clock`` gives seconds since 1970."""

    def __init__(self, handle: Handle, threads: ThreadStore, *, clock: Callable[[], float] = time.time) -> None:
        self._handle = handle
        self._threads = threads
        self._clock = clock

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Answer the message, unless it or its thread was written by a newer version. Raises ``RedisError``."""
        incoming, state = message_schema(claimed.body), await self._threads.schema(claimed.thread)
        if incoming <= MESSAGE_SCHEMA and state <= SCHEMA:
            return await self._handle(claimed, lease)
        about = {"thread": claimed.thread, "message_id": claimed.id, "letter_schema": incoming, "state_schema": state}
        if self._clock() - claimed.enqueued_at > PATIENCE_S:
            log.warning("newer_schema_read_as_far_as_known", **about)
            return await self._handle(claimed, lease)
        log.warning("left_for_newer_version", **about, again_in_s=AGAIN_S)
        return later(AGAIN_S)


def message_schema(body: str) -> int:
    """Which schema a message says it has; 1, the first, where it says nothing that can be read."""
    try:
        fields = json.loads(body)
    except ValueError:
        return 1
    schema = fields.get("schema") if isinstance(fields, dict) else None
    return schema if isinstance(schema, int) else 1
