"""Counters of turns in Redis, one hash per UTC day, kept for 400 days. A process writes them once a second."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import Any, Final

import structlog
from pydantic import TypeAdapter, ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

log = structlog.get_logger()
WRITE_S: Final = 1.0  # a write for each turn would be a third of its commands
LAST_WRITE_TIMEOUT_S: Final = 2.0  # when the process stops
DAY_TTL = timedelta(days=400)
"""A year, plus a month for comparison with the previous year."""
# Upper bounds of the latency buckets in milliseconds; the last bucket is open.
LATENCY_MS = (250, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000)
_USED = ("model_calls", "tool_calls", "prompt_tokens", "completion_tokens")
TARGET = 0.95
VERIFIER_KEY = "orion:verifier"
"""One key per Redis, because the rules are the same for all Orions in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFigures:
    """The figures of one turn. ``outcome`` is the outcome's name, ``reason`` says why it failed.

    Without an outcome the turn was stopped, repeated or silent: only its tokens count.

    ``errors`` are the numbers of error-level violations per attempt, in order; ``failed_rules`` their rules, once per
    attempt. ``repaired`` is set if the text that counted had a fault. ``usage`` counts calls and tokens. ``tokens``
    are each model's: prompt, cached part of the prompt, completion.
    """

    outcome: str = ""  # ``unsourced`` for an answer without sources, such as a greeting
    reason: str = ""
    errors: tuple[int, ...] = ()
    failed_rules: tuple[str, ...] = ()
    repaired: bool = False
    latency_ms: float = 0.0
    usage: Mapping[str, int] = field(default_factory=dict)
    tokens: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierFigures:
    """The verifier's own errors on labelled texts. ``measured`` is a date, ``files`` are names of files."""

    should_pass: int
    should_fail: int
    false_accepts: int
    false_rejects: int
    measured: str = ""
    files: str = ""

    def __str__(self) -> str:
        accepts, rejects = _share(self.false_accepts, self.should_fail), _share(self.false_rejects, self.should_pass)
        return (
            f"Verifier on {self.files} ({self.measured}):"
            f" false accepts {self.false_accepts} of {self.should_fail} ({percent(accepts)}),"
            f" false rejects {self.false_rejects} of {self.should_pass} ({percent(rejects)})."
        )


_COUNT: Final = re.compile("-?[0-9]{1,15}")  # anything else is damaged
_VERIFIER: Final = TypeAdapter(VerifierFigures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The counters of one day, or of several added up."""

    counts: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.counts.get(name, 0)

    @property
    def answered(self) -> int:
        """Number of answers that passed every rule."""
        return self["outcome:answered"]

    @property
    def quoted(self) -> int:
        """Number of answers that only quote passages, without a model. They do not count in the pass rate."""
        return self["outcome:quoted"]

    @property
    def partial(self) -> int:
        """Number of answers that could be verified only in part."""
        return self["outcome:partial"]

    @property
    def failed(self) -> int:
        """Number of turns that failed verification, without those with an unreachable model."""
        return self["failed:verification"]

    @property
    def refused(self) -> int:
        """Number of questions without an answer in the sources."""
        return self["outcome:refused"]

    @property
    def turns(self) -> int:
        """Number of turns."""
        return sum(self.group("outcome").values())

    @property
    def pass_rate(self) -> float | None:
        """Answered out of answered, partial and failed, from 0 to 1; None if nothing was verified."""
        return _share(self.answered, self.answered + self.partial + self.failed)

    @property
    def refused_share(self) -> float | None:
        """Refused out of answered, partial, failed and refused."""
        return _share(self.refused, self.answered + self.partial + self.failed + self.refused)

    def group(self, prefix: str) -> dict[str, int]:
        """Return the counters ``prefix:*`` by the name after the colon, most frequent first."""
        found = {k.removeprefix(f"{prefix}:"): n for k, n in self.counts.items() if k.startswith(f"{prefix}:")}
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def models(self) -> dict[str, tuple[int, int, int]]:
        """Return the tokens of each model: prompt, cached part of the prompt, completion."""
        prompts = self.group("tokens_in")
        return {name: (n, self[f"tokens_cached:{name}"], self[f"tokens_out:{name}"]) for name, n in prompts.items()}

    def latency_ms(self, quantile: float) -> int | None:
        """Return the upper bound of the quantile's bucket; None without turns or beyond the last bound."""
        buckets = self.group("latency")
        seen = accumulate(buckets.get(str(bound), 0) for bound in LATENCY_MS)
        wanted = max(1, quantile * sum(buckets.values()))
        return next((bound for bound, count in zip(LATENCY_MS, seen, strict=True) if count >= wanted), None)

    def to_json(self) -> dict[str, Any]:
        """Return the figures as ``orion stats --json`` prints them."""
        return {
            "turns": self.turns,
            "outcomes": self.group("outcome"),
            "pass_rate": self.pass_rate,
            "refused_share": self.refused_share,
            "passed": self.group("passed"),
            "attempts": self.group("attempts"),
            "failure_reasons": self.group("rule"),
            "failed": self.group("failed"),
            "improvement": {str(n): _share(self[f"improved:{n}"], self[f"retried:{n}"]) for n in (2, 3)},
            "latency_ms": {"p50": self.latency_ms(0.5), "p95": self.latency_ms(0.95)},
            "usage": self.group("usage"),
            "models": {
                name: dict(zip(("prompt", "cached", "completion"), tokens, strict=True))
                for name, tokens in self.models().items()
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Tally):
    """Several days, one by one and together, with the verifier's own errors if they were measured."""

    days: Mapping[str, Tally] = field(default_factory=dict)
    verifier: VerifierFigures | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the totals, and under ``days`` the same for each day with turns, oldest first."""
        days = {day: tally.to_json() for day, tally in self.days.items()}
        verifier = asdict(self.verifier) if self.verifier else None
        return {"target": TARGET, **Tally(counts=self.counts).to_json(), "verifier": verifier, "days": days}


class Stats:
    """The counters in one Redis. ``prefix`` keeps one Orion's figures apart from another's."""

    def __init__(self, redis: Redis, *, prefix: str = "orion") -> None:
        self._redis = redis
        self._prefix = prefix
        self._unwritten: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by key

    def count(self, amounts: Mapping[str, int], *, team: str = "", now: datetime | None = None) -> None:
        """Add amounts to the day's counters and, with ``team``, to those of this workspace."""
        day = _day(now or datetime.now(UTC))
        for prefix in (self._prefix, f"{self._prefix}:{team}")[: 2 if team else 1]:
            self._unwritten[f"{prefix}:stats:{day}"].update(amounts)

    async def write(self) -> None:
        """Store what was counted since the last call. The key that Redis cannot take is lost; the others wait."""
        try:
            while self._unwritten:
                key, amounts = self._unwritten.popitem()
                async with self._redis.pipeline(transaction=True) as pipe:  # so that a day always gets its expiry
                    for name, amount in amounts.items():
                        pipe.hincrby(key, name, amount)
                    pipe.expire(key, DAY_TTL)
                    await pipe.execute()
        except RedisError as error:
            log.warning("stats_not_recorded", error_type=type(error).__name__)

    async def keep_writing(self) -> None:
        """Write the counters at intervals, until cancelled."""
        try:
            while True:
                await asyncio.sleep(WRITE_S)
                await self.write()
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WRITE_TIMEOUT_S):
                    await self.write()

    async def read(self, days: int, *, now: datetime | None = None) -> Summary:
        """Return the last ``days`` days, today included. Raises ``redis.exceptions.RedisError``."""
        await self.write()
        today = now or datetime.now(UTC)
        dates = [today - timedelta(days=back) for back in reversed(range(days))]
        async with self._redis.pipeline(transaction=False) as pipe:  # reads only
            for date in dates:
                pipe.hgetall(f"{self._prefix}:stats:{_day(date)}")
            found = await pipe.execute()
        tallies = {
            _day(date): Tally(counts={name: int(n) for name, n in raw.items() if _COUNT.fullmatch(n)})
            for date, raw in zip(dates, found, strict=True)
            if raw
        }
        total: Counter[str] = Counter()
        for tally in tallies.values():
            total.update(tally.counts)
        stored, verifier = await self._redis.get(VERIFIER_KEY), None
        with suppress(ValidationError):  # another version stored it in a different form
            verifier = _VERIFIER.validate_json(stored, strict=True) if stored else None
        return Summary(counts=total, days=tallies, verifier=verifier)

    async def save_verifier(self, figures: VerifierFigures) -> None:
        """Store the verifier's errors, to be shown next to the pass rate. Raises ``redis.exceptions.RedisError``."""
        await self._redis.set(VERIFIER_KEY, json.dumps(asdict(figures), ensure_ascii=False), ex=DAY_TTL)


def increments(turn: TurnFigures) -> dict[str, int]:
    """Return the amount that a turn adds to each counter."""
    counts = Counter({f"usage:{name}": turn.usage.get(name, 0) for name in _USED})
    for model, tokens in turn.tokens.items():
        counts.update({f"tokens_{kind}:{model}": n for kind, n in zip(("in", "cached", "out"), tokens, strict=True)})
    if turn.outcome:
        counts.update(_outcome_counts(turn))
    return {name: amount for name, amount in counts.items() if amount}


def _outcome_counts(turn: TurnFigures) -> Counter[str]:
    bucket = next((bound for bound in LATENCY_MS if turn.latency_ms <= bound), "more")
    counts: Counter[str] = Counter([f"outcome:{turn.outcome}", f"latency:{bucket}"])
    counts.update(f"rule:{rule}" for rule in turn.failed_rules)
    if turn.outcome == "failed":
        counts[f"failed:{turn.reason or 'unknown'}"] += 1
    if turn.outcome == "answered":
        passed = "after_retry" if len(turn.errors) > 1 else "after_repair" if turn.repaired else "first"
        counts[f"passed:{passed}"] += 1
    if turn.errors:
        counts[f"attempts:{len(turn.errors)}"] += 1
    for attempt, (before, after) in enumerate(pairwise(turn.errors), 2):
        counts[f"retried:{attempt}"] += 1
        counts[f"improved:{attempt}"] += before - after
    return counts


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d")


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def percent(share: float | None) -> str:
    """Return a share as a person reads it."""
    return "–" if share is None else f"{share * 100:.1f} %"
