"""Delivers events to the app over Socket Mode or HTTP, with Slack's three retries; clicks are delivered once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.local.events.http import HttpEvents
from bot.local.events.socket_mode import NotAcknowledged, SocketMode
from bot.local.model.faults import Faults
from bot.local.model.limits import Strictness
from bot.local.model.roster import Json


@dataclass(slots=True, kw_only=True)
class Delivery:
    """The delivery of one event. ``reasons`` are those of the failed tries."""

    event_id: str
    event: Json
    attempts: int = 0
    reasons: list[str] = field(default_factory=list)
    acknowledged: bool = False
    given_up: bool = False


@dataclass(slots=True)
class Deliveries:
    """Sends payloads to the app over the configured transport; ``changed`` is called whenever one progresses."""

    sockets: SocketMode
    http: HttpEvents
    faults: Faults
    strictness: Strictness
    changed: Callable[[], None]
    may_go: asyncio.Event = field(default_factory=asyncio.Event)  # events are held back until it is set
    log: list[Delivery] = field(default_factory=list)
    group: asyncio.TaskGroup | None = None  # runs the deliveries; without one, events are recorded only
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def stop(self) -> None:
        """End the running deliveries."""
        self.group = None
        for task in self._tasks:
            task.cancel()

    def event(self, payload: Json) -> None:
        """Deliver an Events API payload in the background."""
        self._begin(payload)
        if self.faults.duplicate_events > 0:
            # Both copies carry one event id, as when Slack sends again what was acknowledged too late.
            self.faults.duplicate_events -= 1
            self._begin(payload)

    def _begin(self, payload: Json) -> None:
        record = Delivery(event_id=payload["event_id"], event=payload["event"])
        self.log.append(record)
        if self.group is not None:
            task = self.group.create_task(self._deliver(payload, record), name=f"deliver {record.event_id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def interaction(self, payload: Json) -> Json | None:
        """Deliver a click or a view once; the body of the ack, if it has one. Raises ``NotAcknowledged``."""
        return await self._send("interactive", payload, 0, "")

    async def _send(self, kind: str, payload: Json, attempt: int, reason: str) -> Json | None:
        way = self.http if self.http.url else self.sockets
        return await way.send(kind, payload, attempt, reason, self.strictness.ack_seconds)

    async def _deliver(self, payload: Json, record: Delivery) -> None:
        reason = ""
        await self.may_go.wait()  # the page opens seconds before Orion has connected
        for attempt, delay in enumerate((0.0, *self.strictness.retry_delays)):
            await asyncio.sleep(delay)
            record.attempts += 1
            try:
                if attempt == 0 and self.faults.drop_events > 0:
                    self.faults.drop_events -= 1
                    raise NotAcknowledged(reason="timeout")  # noqa: TRY301 - a lost event fails like an unanswered one
                await self._send("events_api", payload, attempt, reason)
                record.acknowledged = True
                break
            except NotAcknowledged as failure:
                reason = failure.reason
                record.reasons.append(reason)
                self.changed()
                if failure.final:
                    break
        record.given_up = not record.acknowledged
        self.changed()
