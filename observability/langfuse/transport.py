"""HTTP clients for Langfuse with the host's certificates and proxies, the same for traces, scores and dashboards."""

from __future__ import annotations

import ssl
from base64 import b64encode
from typing import Any, Final

import httpx
import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from requests.adapters import HTTPAdapter

from observability.loopback import is_loopback

_TRACES: Final = "/api/public/otel/v1/traces"


# Each library had a bundle of certificates of its own, and traces were lost.
class TrustingAdapter(HTTPAdapter):
    """Requests' own adapter with the host's certificates beside its bundle, through a proxy too."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """The connections to a host."""
        super().init_poolmanager(*args, ssl_context=ssl.create_default_context(), **kwargs)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """The connections through a proxy."""
        return super().proxy_manager_for(proxy, ssl_context=ssl.create_default_context(), **kwargs)


def http_client(host: str, *, timeout_s: float, **options: Any) -> httpx.Client:
    """A client for Langfuse's API at ``host``; ``options`` are further ones of httpx. Close it."""
    trusted = ssl.create_default_context()
    return httpx.Client(timeout=timeout_s, verify=trusted, trust_env=not is_loopback(host), **options)


def span_exporter(public_key: str, secret_key: str, host: str, *, timeout_s: float) -> OTLPSpanExporter:
    """What sends traces to ``host``, as the SDK's own exporter does."""
    session = requests.Session()
    session.trust_env = not is_loopback(host)  # a proxy would look for "localhost" on its own machine
    session.mount("https://", TrustingAdapter())
    basic = b64encode(f"{public_key}:{secret_key}".encode()).decode()
    return OTLPSpanExporter(
        endpoint=f"{host}{_TRACES}",
        headers={
            "Authorization": f"Basic {basic}",
            "x-langfuse-public-key": public_key,
            "x-langfuse-ingestion-version": "4",
        },
        timeout=timeout_s,
        compression=Compression.Gzip,
        session=session,
    )
