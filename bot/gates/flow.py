"""Leads a claimed message of one workspace through the gates, in order, to its answer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import structlog

from agent.packing import parse_json
from agent.thread.state import SCHEMA
from bot.delivery.pending_checks import PendingCheck, read_pending_check
from bot.gates.access import cached_refusal, check_access, check_allowance, visit_of
from bot.gates.follow_up import check_pending, check_replay, check_thread_member, handle_overheard
from bot.gates.handoff import handle_hand_off, notify_failure
from bot.gates.stop import handle_stop
from bot.queue.lease import GIVEBACK, Claimed, Ending, Lease, give_up, retry_uncounted
from bot.slack.message import MESSAGE_SCHEMA, Incoming, Kind
from bot.stores.stores import read_facts
from bot.turn.answer import Answering
from bot.turn.duplicates import run_check
from bot.turn.job import Job, costs_tokens, turn_id_of
from bot.turn.services import TeamServices
from bot.turn.unasked import UnaskedAnswers

Gate = Callable[[Job, TeamServices], Awaitable[Ending | None]]
"""Returns how the message ends; None lets it pass to the next gate. Raises ``RedisError`` and ``LeaseLost``."""

_MAY_ANSWER: Final = (check_access, check_allowance)
GATES: Final[Mapping[Kind | Literal["overheard"], Sequence[Gate]]] = {
    "question": (check_thread_member, check_access, check_pending, check_replay, check_allowance),
    "edit": _MAY_ANSWER,
    "help": _MAY_ANSWER,  # a bare mention may bring a file
    "stop": (check_access, handle_stop),
    "hand_off": (check_access, handle_hand_off),
    "mute": (check_access,),
    "unmute": (check_access,),
    "delete": (),
    "overheard": (handle_overheard,),
}
"""The gates of each kind of message, in order. An overheard message has its own."""

NEWER_RETRY_S: Final = 5.0
# After a rollback no newer worker comes: this version then reads as much of the message as it can.
MAX_NEWER_WAIT_S: Final = 15 * 60.0
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Flow:
    """Handles the messages of one workspace for the worker."""

    answering: Answering
    unasked: UnaskedAnswers
    gates: Mapping[Kind | Literal["overheard"], Sequence[Gate]] = field(default_factory=lambda: GATES)

    @property
    def at(self) -> TeamServices:
        """The parts that serve this workspace."""
        return self.answering.at

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Carry out the message. Returns its ending in the mailbox. Raises ``LeaseLost`` and ``RedisError``."""
        lease.require()  # after a pause of this process, another worker may run the turn already
        schema, message = read_body(claimed.body)
        if message is None:
            return defer_to_newer_version(claimed, schema) or give_up("unreadable message")
        if isinstance(message, PendingCheck):
            return await run_check(message, claimed, lease, self.at.stores, self.at.delivery)
        try:
            job = await self._job(claimed, lease, message)
            with structlog.contextvars.bound_contextvars(thread=claimed.thread, turn_id=job.turn_id):
                if left := defer_to_newer_version(job.claimed, schema, job.facts.state_schema):
                    return left
                overheard = job.incoming.addressed == "overheard"
                # A newer version's message may be of another kind: it passes, and nothing is done.
                for gate in self.gates.get("overheard" if overheard else job.incoming.kind, ()):
                    if (ending := await gate(job, self.at)) is not None:
                        return ending
                return await (self.unasked if overheard else self.answering).answer(job)
        except asyncio.CancelledError:
            if not lease.stopped:
                raise
            return GIVEBACK  # cancelled before its turn began: the next try says so

    async def notify_given_up(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """Tell the person that the message was given up, if Orion may talk to them and they talked to Orion.

        Raises ``DeliveryFailed``.
        """
        _, message = read_body(claimed.body)
        if not isinstance(message, Incoming) or message.kind == "stop":  # its turn ended long ago
            return
        job, access = await self._job(claimed, lease, message), self.at.access
        await self.at.stores.budgets.release(job.turn_id, message)
        visit = visit_of(message, job.facts.person, shared=job.facts.shared)
        if message.refused or cached_refusal(visit, access) or not job.addressed:
            return
        if message.kind == "hand_off":
            await notify_failure(job, self.at)
        else:
            await self.answering.notify_given_up(job, reason)

    async def _job(self, claimed: Claimed, lease: Lease, incoming: Incoming) -> Job:
        turn_id = turn_id_of(incoming)
        facts = await read_facts(self.at.stores, incoming, turn_id)
        if costs_tokens(incoming):  # the time of an admin's pause does not count as an outage
            claimed = replace(claimed, enqueued_at=max(claimed.enqueued_at, facts.resumed))
        incoming = replace(incoming, action_token=facts.token)
        spoken = self.at.channels.of(incoming.thread.team, incoming.thread.channel).language
        return Job(claimed=claimed, lease=lease, incoming=incoming, turn_id=turn_id, facts=facts, spoken=spoken)


def read_body(body: str) -> tuple[int, Incoming | PendingCheck | None]:
    """Return the schema of a stored body (1 if it names none) and the message, None if it cannot be read."""
    try:
        fields = parse_json(body)
    except ValueError:
        return 1, None
    schema = fields.get("schema") if isinstance(fields, dict) else None
    number = schema if isinstance(schema, int) else 1
    try:
        return number, read_pending_check(fields) or Incoming.from_fields(fields)
    except ValueError:
        return number, None


def defer_to_newer_version(claimed: Claimed, message_schema: int, state_schema: int = 0) -> Ending | None:
    """Give the message back, uncounted, if it or its thread's state has a newer schema: a deploy is under way."""
    if message_schema <= MESSAGE_SCHEMA and state_schema <= SCHEMA:
        return None
    about = {"message_id": claimed.id, "message_schema": message_schema, "state_schema": state_schema}
    if claimed.waited_s > MAX_NEWER_WAIT_S:
        log.warning("newer_schema_read_as_far_as_known", thread=claimed.thread, **about)
        return None
    log.warning("left_for_newer_version", thread=claimed.thread, **about, again_in_s=NEWER_RETRY_S)
    return retry_uncounted(NEWER_RETRY_S)
