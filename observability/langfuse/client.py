"""Langfuse's SDK, for what it alone does: experiments. Its import takes half a second and 50 MB."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Final

import httpx
from langfuse import Langfuse
from langfuse.api.core import ApiError
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from observability.langfuse.transport import http_client, span_exporter

TIMEOUT: Final = 5
"""Seconds of one request to Langfuse; the SDK tries several times, in its own threads."""
API_ERRORS: Final = (ApiError, httpx.HTTPError, ValueError, RuntimeError)
"""What a call of its API may raise: refused, out of reach, an answer that is none of Langfuse's, closed meanwhile."""


@contextmanager
def open_client(public_key: str, secret_key: str, host: str, environment: str | None) -> Iterator[Langfuse]:
    """A client with a provider of its own: the global one may belong to somebody else. Leaving may block for long."""
    provider = TracerProvider(resource=Resource.create({"service.name": "orion"}), shutdown_on_exit=False)
    client = Langfuse(
        public_key=public_key,
        secret_key=secret_key,
        host=host,
        timeout=TIMEOUT,
        tracer_provider=provider,
        environment=environment,
        release=version("orion"),
        span_exporter=span_exporter(public_key, secret_key, host, timeout_s=TIMEOUT),
        httpx_client=http_client(host, timeout_s=TIMEOUT),
    )
    if client._resources is not None:  # noqa: SLF001 (there is no public way to keep the SDK from blocking the exit)
        atexit.unregister(client._resources.shutdown)  # noqa: SLF001 (as above)
    try:
        yield client
    finally:
        with suppress(Exception):
            client.shutdown()
