"""Time-outs and pauses of a turn, for model, judge and Slack."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agent.circuit_breaker import CircuitBreaker
from agent.model.chat_server import Timeouts
from agent.model.openai import JUDGE_TIMEOUTS
from bot.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTimeouts:
    """All in seconds except ``failures``.

    ``model_s``: how long to wait for a model (or the documents' database) that is down, from its first failure until
    the person is told. ``slack_s``: how long a decided answer waits while Slack is down. Both retry every
    ``pause_least_s`` to ``pause_most_s``. ``call_s`` limits all requests of one Slack call, ``request_s`` each of them,
    and ``first_pause_s`` is the pause before the second. After ``failures`` failures in a row a service is not called
    for ``rest_s``, then for twice as long. If Slack drops a new socket at once, the next one is requested after
    ``socket_pause_s``, then twice as long.
    """

    model: Timeouts = field(default_factory=Timeouts)
    judge: Timeouts = JUDGE_TIMEOUTS
    model_s: float = 180.0
    slack_s: float = 6 * 3600.0
    pause_least_s: float = 2.0
    pause_most_s: float = 60.0
    call_s: float = 60.0
    request_s: float = 15.0
    first_pause_s: float = 0.5
    failures: int = 5
    rest_s: float = 5.0
    socket_pause_s: float = 1.0

    @classmethod
    def of(cls, settings: Settings) -> TurnTimeouts:
        """Take the admin's settings. A judge gets a third of a model's time: a claim without its verdict is cut out."""
        reply = settings.model_timeout_s
        model = Timeouts(reply=reply, idle=reply)
        return cls(model=model, judge=replace(JUDGE_TIMEOUTS, reply=reply / 3, idle=reply))

    def breaker(self, service: str) -> CircuitBreaker:
        """Closed circuit breaker of a service."""
        return CircuitBreaker(service, failures=self.failures, first_pause_s=self.rest_s)

    def pause_s(self, waited_s: float) -> float:
        """Pause before the next try. It grows with the wait, so that a recovering service is not hammered."""
        return min(self.pause_most_s, max(self.pause_least_s, waited_s / 3))
