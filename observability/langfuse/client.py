"""Langfuse's SDK, opened over our own transport. Nothing imports this module before there are keys."""

from __future__ import annotations

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


def open_client(public_key: str, secret_key: str, host: str, environment: str | None) -> Langfuse:
    """A client with a provider of its own: the global one may belong to somebody else."""
    provider = TracerProvider(resource=Resource.create({"service.name": "orion"}), shutdown_on_exit=False)
    return Langfuse(
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
