"""HTTP for Langfuse's SDK and dashboards with the host's certificates and proxies."""

from __future__ import annotations

import ssl
from base64 import b64encode
from typing import Any

import httpx
import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from observability.loopback import is_loopback


def http_client(host: str, *, timeout_s: float, **options: Any) -> httpx.Client:
    """A client for Langfuse's API at ``host``; ``options`` are further ones of httpx. Close it."""
    trusted = ssl.create_default_context()
    return httpx.Client(timeout=timeout_s, verify=trusted, trust_env=not is_loopback(host), **options)


def span_exporter(public_key: str, secret_key: str, host: str, *, timeout_s: float) -> OTLPSpanExporter:
    """What sends an experiment's traces to ``host``."""
    session = requests.Session()
    session.trust_env = not is_loopback(host)  # a proxy would look for "localhost" on its own machine
    # The library brings a bundle of its own; without the host's, traces to a private authority's server were lost.
    trusted = ssl.get_default_verify_paths()
    basic = b64encode(f"{public_key}:{secret_key}".encode()).decode()
    return OTLPSpanExporter(
        endpoint=f"{host}/api/public/otel/v1/traces",
        headers={
            "Authorization": f"Basic {basic}",
            "x-langfuse-public-key": public_key,
            "x-langfuse-ingestion-version": "4",
        },
        timeout=timeout_s,
        compression=Compression.Gzip,
        session=session,
        certificate_file=trusted.cafile or trusted.capath,
    )
