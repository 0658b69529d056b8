"""Sends observations and scores to Langfuse in batches, beside the turns.

Observations go as OTLP in JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding), with the attributes
of Langfuse's SDK; scores as its API takes them.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import secrets
import ssl
import time
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import aiohttp
import orjson
import structlog

from observability.loopback import proxy_for

log = structlog.get_logger()

GATHERS_S: Final = 1.0
"""How long the first of a batch waits for others."""
ANSWERS_WITHIN_S: Final = 5.0
TRIES: Final = 3
PAUSE_S: Final = 1.0
"""Before the second try; twice as long before the third."""
MOST_OBSERVATIONS: Final = 2_000
MOST_SCORES: Final = 10_000
"""What waits for a host that is away; the oldest go first."""
_BATCH: Final = 100  # half a megabyte with long prompts; a proxy's limit is often one
_OTLP: Final = "/api/public/otel/v1/traces"
_SCORES: Final = "/api/public/scores"  # takes at most 1 MiB, and a score has some 300 bytes
# What takes scores does not decompress.
_ENCODING: Final = {_OTLP: {"Content-Encoding": "gzip"}, _SCORES: {}}
# Any other scope's attributes Langfuse shows a second time, as metadata.
_SCOPE: Final = {"name": "langfuse-sdk"}
_RESOURCE: Final = {"attributes": [{"key": "service.name", "value": {"stringValue": "orion"}}]}


@dataclass(slots=True, kw_only=True)
class Observation:
    """A span as Langfuse knows it. ``facts`` are attributes of the observation, ``common`` those of the whole trace."""

    name: str
    trace_id: str
    common: Mapping[str, Any]
    facts: dict[str, Any]
    parent_id: str = ""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    began_ns: int = field(default_factory=time.time_ns)
    ended_ns: int = 0


class Sender:
    """Two queues and the task that empties them. ``put`` and ``score`` return at once; both need a running loop."""

    def __init__(self, *, public_key: str, secret_key: str, host: str) -> None:
        self._host = host
        self._headers = {
            "Authorization": f"Basic {b64encode(f'{public_key}:{secret_key}'.encode()).decode()}",
            "Content-Type": "application/json",
            "x-langfuse-ingestion-version": "4",
        }
        self._observations: deque[Observation] = deque(maxlen=MOST_OBSERVATIONS)
        self._scores: deque[Mapping[str, Any]] = deque(maxlen=MOST_SCORES)
        self._something = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lost = 0
        self._away = False

    def put(self, observation: Observation) -> None:
        """Send an observation that has ended."""
        self._lost += len(self._observations) == MOST_OBSERVATIONS
        self._observations.append(observation)
        self._wake()

    def score(self, score: Mapping[str, Any]) -> None:
        """Send a score, as the API takes it."""
        self._lost += len(self._scores) == MOST_SCORES
        self._scores.append(score)
        self._wake()

    async def aclose(self, *, deadline_s: float) -> None:
        """Send what is left, within ``deadline_s`` seconds; what a dead host did not take by then is dropped."""
        self._closing.set()
        self._something.set()
        if self._task is None:
            return
        _, late = await asyncio.wait([self._task], timeout=deadline_s)
        if late:
            self._task.cancel()
            await asyncio.wait([self._task])
            log.warning("trace_shutdown_cut_short", deadline_s=deadline_s)

    def _wake(self) -> None:
        self._something.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())  # noqa: TID251 (a group would end the turns with it)

    async def _run(self) -> None:
        async with self._session() as http:
            last = False
            while not last:
                await self._something.wait()
                await self._pause(GATHERS_S)
                self._something.clear()
                last = self._closing.is_set()
                while self._observations or self._scores:
                    await self._send(http)

    async def _send(self, http: aiohttp.ClientSession) -> None:
        """One batch of each."""
        if observations := _taken(self._observations):
            body = await asyncio.to_thread(otlp, observations)
            await self._post(http, _OTLP, body, len(observations))
        if scores := _taken(self._scores):
            await self._post(http, _SCORES, _json(scores), len(scores))

    def _session(self) -> aiohttp.ClientSession:
        # A context of its own: aiohttp's default one is made at import, before SSL_CERT_FILE may be set.
        trusted = ssl.create_default_context() if self._host.startswith("https:") else True
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusted),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=ANSWERS_WITHIN_S),
            proxy=proxy_for(self._host),
        )

    async def _post(self, http: aiohttp.ClientSession, path: str, body: bytes, count: int) -> None:
        """Send one body; what may pass is tried again, but not once the process ends."""
        for tried in range(TRIES):
            trouble, passing = await self._tried(http, path, body)
            if not trouble:
                self._arrived()
                return
            if not passing or self._closing.is_set() or tried == TRIES - 1:
                break
            await self._pause(PAUSE_S * 2**tried)
        self._gave_up(trouble, count)

    async def _tried(self, http: aiohttp.ClientSession, path: str, body: bytes) -> tuple[str, bool]:
        """What went wrong, and whether it may pass."""
        try:
            url, encoding = f"{self._host}{path}", _ENCODING[path]
            # A redirected POST becomes a GET, and what it carries is lost.
            async with http.post(url, data=body, headers=encoding, allow_redirects=False) as reply:
                if reply.status < HTTPStatus.MULTIPLE_CHOICES:
                    return "", False
                passing = (
                    reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status == HTTPStatus.TOO_MANY_REQUESTS
                )
                return f"http_{reply.status}", passing
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return type(error).__name__, True

    def _gave_up(self, trouble: str, count: int) -> None:
        if not self._away:
            log.warning("traces_lost", reason=trouble, host=self._host)
        self._away = True
        self._lost += count

    def _arrived(self) -> None:
        if self._lost:
            log.info("traces_arrive_again", lost=self._lost)
        self._lost, self._away = 0, False

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()


def _taken(queue: deque[Any]) -> list[Any]:
    return [queue.popleft() for _ in range(min(len(queue), _BATCH))]


def otlp(observations: Iterable[Observation]) -> bytes:
    """A request of the OpenTelemetry protocol as JSON, compressed."""
    scope = {"scope": _SCOPE, "spans": [_span(each) for each in observations]}
    # Level 4 leaves half of what level 1 does; more than 4 gains little.
    return gzip.compress(_json({"resourceSpans": [{"resource": _RESOURCE, "scopeSpans": [scope]}]}), 4)


def _span(seen: Observation) -> dict[str, Any]:
    # Texts as they are, anything else as JSON.
    own = {
        f"langfuse.observation.{name}": value if isinstance(value, str) else _json(value).decode()
        for name, value in seen.facts.items()
    }
    return {
        "traceId": seen.trace_id,
        "spanId": seen.id,
        **({"parentSpanId": seen.parent_id} if seen.parent_id else {}),
        "name": seen.name,
        "kind": 1,  # internal
        "startTimeUnixNano": str(seen.began_ns),
        "endTimeUnixNano": str(seen.ended_ns),
        "attributes": list(_attributes({**seen.common, **own})),
    }


def _attributes(facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in facts.items():
        text = {"stringValue": value} if isinstance(value, str) else None
        yield {"key": name, "value": text or {"arrayValue": {"values": [{"stringValue": each} for each in value]}}}


def _json(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # half an emoji, a number beyond 64 bits
        text = json.dumps(value, default=lambda other: type(other).__name__, ensure_ascii=False)
        return text.encode("utf-8", "replace")
