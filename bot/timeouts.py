"""How long the model, Slack and pauses are waited for, in one place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agent.circuit_breaker import CircuitBreaker
from agent.model.chat_server import Timeouts
from agent.model.openai import JUDGE_TIMEOUTS
from bot.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTimeouts:
    """Seconds, all of them but ``failures``.

    ``model_s``: how long a model (or the documents' database) that is away is waited for, from its first failure on,
    before the person is told; ``slack_s``: how long a decided answer waits for a Slack that is away; both in tries
    ``pause_least_s`` to ``pause_most_s`` apart. A model that has said nothing for ``late_s`` is shown to be waited for.
    ``call_s`` bounds the tries of one Slack call, ``attempt_s`` each of them, ``first_pause_s`` lies before the second.
    A far end that failed ``failures`` times in a row is left alone for ``rest_s``, then for twice as long. Where Slack
    drops a new socket at once, the next one is asked for ``socket_pause_s`` later, then twice as much.
    """

    model: Timeouts = field(default_factory=Timeouts)
    judge: Timeouts = JUDGE_TIMEOUTS
    model_s: float = 180.0
    late_s: float = 5.0
    slack_s: float = 6 * 3600.0
    pause_least_s: float = 2.0
    pause_most_s: float = 60.0
    call_s: float = 60.0
    attempt_s: float = 15.0
    first_pause_s: float = 0.5
    failures: int = 5
    rest_s: float = 5.0
    socket_pause_s: float = 1.0

    @classmethod
    def of(cls, settings: Settings) -> TurnTimeouts:
        """As an admin set them. A judge has a third of a model's time: what it leaves open is not answered wrongly."""
        reply = settings.model_timeout_s
        model = Timeouts(reply=reply, idle=reply)
        return cls(model=model, judge=replace(JUDGE_TIMEOUTS, reply=reply / 3))

    def breaker(self, name: str) -> CircuitBreaker:
        """A closed one."""
        return CircuitBreaker(name, failures=self.failures, first_pause_s=self.rest_s)

    def pause_s(self, waited_s: float) -> float:
        """Longer the longer it has been waiting, so that a far end that comes back is not hammered."""
        return min(self.pause_most_s, max(self.pause_least_s, waited_s / 3))
