"""Langfuse's SDK, set up for one process. Its import takes a third of a second and 25 MB, so it is loaded late."""

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Final

import httpx
from langfuse import Langfuse, propagate_attributes
from langfuse.api.core import ApiError
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from observability.langfuse.connection import Connection
from observability.langfuse.transport import score_client, span_exporter

REQUEST_TIMEOUT_S: Final = 5
"""The SDK retries within it, in threads of its own."""
BATCH: Final = 50
"""Spans in a request: half a megabyte with long prompts, and a proxy's limit is often one."""
BATCH_INTERVAL_S: Final = 1.0
API_ERRORS: Final = (ApiError, httpx.HTTPError, ValueError, RuntimeError)
"""Errors of a call of its API: refused, unreachable, a reply in another form, a client closed meanwhile."""


class _TurnIds(RandomIdGenerator):
    """Span ids, random but for a turn's root.

    The root's ids follow from the turn: when another worker repeats a turn, its root replaces the first one.
    """

    def __init__(self) -> None:
        self._trace_id = ""

    @contextmanager
    def of_root(self, trace_id: str) -> Iterator[None]:
        """Use ``trace_id`` for the span that is started inside. Nothing inside may wait."""
        self._trace_id = trace_id
        try:
            yield
        finally:
            self._trace_id = ""

    def generate_trace_id(self) -> int:
        return int(self._trace_id, 16) if self._trace_id else super().generate_trace_id()

    def generate_span_id(self) -> int:
        return int(self._trace_id[:16], 16) or 1 if self._trace_id else super().generate_span_id()


class Client(Langfuse):
    """The SDK's client with a tracer provider of its own: the global one may belong to another library."""

    def __init__(self, connection: Connection, redact: Callable[[Any], Any]) -> None:
        """``redact`` is applied to each input, output and metadata before it leaves."""
        self._ids = _TurnIds()
        self._provider = TracerProvider(
            sampler=TraceIdRatioBased(connection.sample_rate),
            resource=Resource.create({"service.name": "orion"}),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self._http = score_client(connection.host, REQUEST_TIMEOUT_S)
        super().__init__(
            public_key=connection.public_key,
            secret_key=connection.secret_key,
            base_url=connection.host,
            timeout=REQUEST_TIMEOUT_S,
            flush_at=BATCH,
            flush_interval=BATCH_INTERVAL_S,
            tracer_provider=self._provider,
            environment=connection.environment or None,
            release=version("orion"),
            mask=lambda *, data, **_: redact(data),
            span_exporter=span_exporter(connection, REQUEST_TIMEOUT_S),
            httpx_client=self._http,
        )
        if self._resources is not None:
            atexit.unregister(self._resources.shutdown)  # it blocks for half a minute if the host hangs
            # The SDK would hand this client, closed or not, to each later one with the same key.
            self._resources._instances.pop(connection.public_key, None)  # noqa: SLF001 (no public way)

    @contextmanager
    def root_of(self, trace_id: str, **attributes: Any) -> Iterator[None]:
        """Propagate ``attributes`` to the observations of a trace; the first one started inside is its root."""
        with propagate_attributes(**attributes), self._ids.of_root(trace_id):
            yield

    def close(self) -> None:
        """Send what is left. Blocks for as long as the SDK retries: up to half a minute."""
        self.shutdown()
        self._provider.shutdown()
        self._http.close()
