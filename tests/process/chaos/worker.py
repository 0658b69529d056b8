"""A worker process for the chaos tests: the product's own mailbox and turns; its handler writes down what it does.

Usage: worker.py HOME LEASE_S MAX_TRIES DRAIN_S. A body is ``NUMBER[ WHAT]``; ``die`` kills the process, ``freeze``
stops it on the first try, ``slow`` takes longer than any drain.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import structlog
from redis.asyncio import Redis

from bot.queue.claim import OK, Claimed, Ending, Lease
from bot.queue.queue import Mailbox
from bot.queue.worker import Worker
from bot.redis.server import connect


class Scribe:
    """Handles by waiting a moment; each attempt leaves a ``start`` and, if it got so far, an ``end`` in ``log``."""

    def __init__(self, redis: Redis, mailbox: Mailbox) -> None:
        self.redis = redis
        self.mailbox = mailbox

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        number, _, what = claimed.body.partition(" ")
        attempt = f"{claimed.thread} {number} {claimed.fence.token}"
        await self.redis.rpush("log", f"start {attempt}")
        if what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "freeze" and claimed.tries == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        await asyncio.sleep(3600 if what == "slow" and claimed.tries == 1 and sys.argv[4] != "0" else 0.05)
        lease.require()
        # The one effect that may happen only once: the first worker to mark it caused it.
        if await self.mailbox.mark(claimed, claimed.id, claimed.fence.token) == claimed.fence.token:
            # With the attempt's token: a command whose reply a dead server owes is sent again, and may stand twice.
            await self.redis.rpush("effects", f"{claimed.thread} {number} {claimed.fence.token}")
        await self.redis.rpush("log", f"end {attempt}")
        return OK

    async def notify_given_up(self, claimed: Claimed, _lease: Lease, reason: str) -> None:
        await self.redis.rpush("told", f"{claimed.body}: {reason}")


async def main() -> None:
    home, lease_s, max_tries, drain_s = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    async with connect(home) as redis:
        mailbox = Mailbox(redis, lease_s=lease_s, max_tries=max_tries)
        scribe = Scribe(redis, mailbox)
        worker = Worker(mailbox, scribe, concurrency=8, drain_s=drain_s)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await redis.rpush("workers", os.getpid())
        await worker.run()
        await mailbox.aclose()


if __name__ == "__main__":
    asyncio.run(main())
