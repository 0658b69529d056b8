"""The one way of a claimed message in its workspace: read once, past the gates in their order, to its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

import structlog

from bot.gates.access import admitted, known_refusal
from bot.gates.allowance import allowed
from bot.gates.bystander import not_beside
from bot.gates.handoff import handed_off, tell_failed
from bot.gates.newer_schema import left_for_newer, newer_schema
from bot.gates.recall import proven
from bot.gates.services import Gate, GateServices
from bot.gates.stop import stop_obeyed
from bot.queue.ending import Ending, dead
from bot.queue.lease import Lease
from bot.queue.queue import Claimed
from bot.slack.message import Incoming
from bot.stores.facts import read_facts
from bot.turn.duplicates import PendingCheck, pending_check_in, settle
from bot.turn.job import Job, asks, turn_id_of

GATES: Final[Sequence[Gate]] = (newer_schema, proven, admitted, stop_obeyed, not_beside, allowed, handed_off)


class Answers(Protocol):
    """Who stands behind the gates."""

    async def answer(self, job: Job) -> Ending:
        """Do what the message asks."""

    async def tell_dead(self, job: Job, reason: str) -> None:
        """Tell the person that it was given up. Raises ``DeliveryFailed``."""


class Flow:
    """Handles the messages of one workspace for the worker."""

    def __init__(self, services: GateServices, answering: Answers, *, gates: Sequence[Gate] = GATES) -> None:
        self._services = services
        self._answering = answering
        self._gates = gates

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Do what the message asks. Returns how it ends in its mailbox. Raises ``LeaseLost`` and ``RedisError``."""
        lease.require()  # a worker that stood still since it claimed would start a turn that runs elsewhere by now
        schema, message = read_body(claimed.body)
        if message is None:
            return left_for_newer(claimed, message_schema=schema) or dead("unreadable message")
        if isinstance(message, PendingCheck):
            return await settle(message, claimed, lease, self._services.stores, self._services.delivery)
        job = await self._job(claimed, lease, message, schema)
        with structlog.contextvars.bound_contextvars(thread=claimed.thread, turn_id=job.turn_id):
            for gate in self._gates:
                if (ending := await gate(job, self._services)) is not None:
                    return ending
            return await self._answering.answer(job)

    async def tell_dead(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """Tell the person that their message was given up, if Orion was spoken to and may talk to them.

        Raises ``DeliveryFailed`` where Slack is away.
        """
        schema, message = read_body(claimed.body)
        if not isinstance(message, Incoming) or message.kind == "stop":  # what a stop was to end has long ended
            return
        job, services = await self._job(claimed, lease, message, schema), self._services
        if message.unproven and not job.facts.engaged:
            return
        if message.refused or known_refusal(job, services.access):
            return
        if message.kind == "hand_off":
            await tell_failed(job, services)
        else:
            await self._answering.tell_dead(job, reason)

    async def _job(self, claimed: Claimed, lease: Lease, incoming: Incoming, schema: int) -> Job:
        turn_id = turn_id_of(incoming)
        facts = await read_facts(self._services.stores, incoming, turn_id)
        if asks(incoming):  # what was waited for on an admin's order is not to be taken for a far end's being away
            claimed = replace(claimed, enqueued_at=max(claimed.enqueued_at, facts.resumed))
        incoming = replace(incoming, action_token=facts.token)
        return Job(claimed=claimed, lease=lease, incoming=incoming, turn_id=turn_id, facts=facts, schema=schema)


def read_body(body: str) -> tuple[int, Incoming | PendingCheck | None]:
    """A stored body: the schema it says it has (1, the first, where it says none) and what it is, if it can be read."""
    try:
        fields = json.loads(body)
    except ValueError:
        return 1, None
    schema = fields.get("schema") if isinstance(fields, dict) else None
    number = schema if isinstance(schema, int) else 1
    try:
        return number, pending_check_in(fields) or Incoming.from_fields(fields)
    except ValueError:
        return number, None
