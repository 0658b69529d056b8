"""Langfuse's SDK, set up for one process. Its import takes a third of a second and 25 MB, so it is loaded late.

Requests use the host's certificates and proxies, and one log line says when the server stops accepting data.
"""

import atexit
import logging
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import httpx
import requests
import structlog
from langfuse import Langfuse, propagate_attributes
from langfuse.api.core import ApiError
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from observability.langfuse.connection import Connection
from observability.loopback import client_options, is_loopback

log = structlog.get_logger()

API_ERRORS: Final = (ApiError, httpx.HTTPError, ValueError, RuntimeError)
"""Errors that a call of its API can raise: refused, unreachable, a malformed reply, a closed client."""
_SPANS: Final = "/api/public/otel/v1/traces"
_SCORES: Final = "/api/public/scores"
_REJECTED: Final = re.compile(r'"rejected"\s*:\s*([1-9]\d*)')
_REMEDY: Final = "Answers are not affected; `orion doctor` checks the address, the keys and the server's version."


@dataclass(slots=True)
class _WatchedSend:
    """The ``send`` of an HTTP client. Logs once that requests to ``path`` fail, and once that they succeed again."""

    send: Callable[..., Any]
    host: str
    data: str
    path: str
    _is_failing: bool = False

    def __call__(self, request: Any, **options: Any) -> Any:
        is_watched = str(request.url).endswith(self.path)
        try:
            reply = self.send(request, **options)
        except (requests.RequestException, httpx.HTTPError) as error:
            if is_watched:
                self._record(type(error).__name__)
            raise
        if is_watched:
            self._record(_fault_of(reply))
        return reply

    def _record(self, fault: str) -> None:
        if fault and not self._is_failing:
            log.warning("langfuse_failing", data=self.data, reason=fault, host=self.host, remedy=_REMEDY)
        if self._is_failing and not fault:
            log.info("langfuse_recovered", data=self.data, host=self.host)
        self._is_failing = bool(fault)


def _fault_of(reply: httpx.Response | requests.Response) -> str:
    """Return why the data did not arrive; empty if it did."""
    if reply.status_code >= 300:  # noqa: PLR2004 (what HTTP does not call a success)
        return f"http_{reply.status_code}"
    if "html" in reply.headers.get("Content-Type", ""):  # a sign-in page, or a page of another server
        return "html"
    counts = _REJECTED.search(reply.text) if reply.status_code == HTTPStatus.MULTI_STATUS else None
    return f"rejected_{counts[1]}" if counts else ""


def span_exporter(connection: Connection) -> OTLPSpanExporter:
    """Return the exporter that sends spans to Langfuse as OTLP in protobuf."""
    session = requests.Session()
    session.send = _WatchedSend(session.send, connection.host, "traces", _SPANS)  # type: ignore[method-assign]  # no hook
    session.trust_env = not is_loopback(connection.host)  # a proxy would take "localhost" for its own machine
    # The library has its own bundle. Without the host's, traces to a server with a private authority were lost.
    trusted = ssl.get_default_verify_paths()
    # A header would lose to an entry in ~/.netrc, and a key of other letters than Latin-1 must not be a crash.
    session.auth = requests.auth.HTTPBasicAuth(connection.public_key, connection.secret_key.encode())
    return OTLPSpanExporter(
        endpoint=f"{connection.host}{_SPANS}",
        headers={
            "x-langfuse-public-key": connection.public_key,
            "x-langfuse-ingestion-version": "4",
        },
        timeout=connection.timeout_s,
        compression=Compression.Gzip,
        session=session,
        certificate_file=trusted.cafile or trusted.capath,
    )


class _TurnIds(RandomIdGenerator):
    """Random ids, except for a turn's root: when another worker repeats a turn, its root replaces the first one."""

    root_of = ""  # the id of the trace whose root starts next

    def generate_trace_id(self) -> int:
        return int(self.root_of, 16) if self.root_of else super().generate_trace_id()

    def generate_span_id(self) -> int:
        return int(self.root_of[:16], 16) or 1 if self.root_of else super().generate_span_id()


class Client(Langfuse):
    """The SDK's client with its own tracer provider: the global one may belong to another library."""

    def __init__(self, connection: Connection, redact: Callable[[Any], Any]) -> None:
        """``redact`` is applied to each input, output and metadata before it is sent."""
        self.redact = redact
        self._ids = _TurnIds()
        self._sampler = TraceIdRatioBased(connection.sample_rate)
        self._provider = TracerProvider(
            sampler=self._sampler,
            resource=Resource.create({"service.name": "orion"}),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self._http = httpx.Client(timeout=connection.timeout_s, **client_options(connection.host))
        # Check the result for scores too: a 207 may reject all of them.
        self._http.send = _WatchedSend(self._http.send, connection.host, "scores", _SCORES)  # type: ignore[method-assign]
        super().__init__(
            public_key=connection.public_key,
            secret_key=connection.secret_key,
            base_url=connection.host,
            timeout=connection.timeout_s,
            debug=connection.debug,
            flush_at=connection.flush_at,
            flush_interval=connection.flush_interval_s,
            tracer_provider=self._provider,
            environment=connection.environment or None,
            release=connection.release or version("orion"),
            mask=lambda *, data, **_: redact(data),
            span_exporter=span_exporter(connection),
            httpx_client=self._http,
        )
        if not connection.debug:  # `langfuse_failing` says each failure once. The import shows them again.
            logging.getLogger("langfuse").setLevel(logging.CRITICAL)
        if self._resources is not None:
            atexit.unregister(self._resources.shutdown)  # it blocks for half a minute if the host hangs
            # The SDK would hand this client, closed or not, to each later one with the same key.
            self._resources._instances.pop(connection.public_key, None)  # noqa: SLF001 (no public way)

    @contextmanager
    def root_of(self, trace_id: str, **attributes: Any) -> Iterator[None]:
        """Propagate ``attributes`` to a trace. The first observation inside is its root. Do not await inside."""
        with propagate_attributes(**attributes):
            self._ids.root_of = trace_id
            try:
                yield
            finally:
                self._ids.root_of = ""

    def is_sampled(self, trace_id: str) -> bool:
        """Return True if the observations of this trace are sent."""
        decision = self._sampler.should_sample(None, int(trace_id, 16), "").decision
        return decision is Decision.RECORD_AND_SAMPLE

    def close(self) -> None:
        """Send the remaining data. Blocks while the SDK retries, for up to half a minute."""
        self.shutdown()
        self._provider.shutdown()
        self._http.close()
