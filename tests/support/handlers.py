"""A handler for tests in which no message is handled."""

from bot.queue.lease import Claimed, Ending, Lease


class UnusedHandler:
    async def handle(self, _claimed: Claimed, _lease: Lease) -> Ending:
        raise AssertionError

    async def notify_given_up(self, claimed: Claimed, _lease: Lease, reason: str) -> None:
        raise AssertionError(claimed.id, reason)
