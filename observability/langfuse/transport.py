"""HTTP to Langfuse with the host's certificates and proxies, and one log line when it stops taking data."""

import ssl
from base64 import b64encode
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import httpx
import requests
import structlog
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from observability.langfuse.connection import Connection
from observability.loopback import is_loopback

log = structlog.get_logger()

SCORES_PATH: Final = "/api/public/scores"


@dataclass(slots=True)
class DeliveryLog:
    """Log once that ``host`` stopped taking one kind of data, and once that it takes it again."""

    host: str
    data: str
    remedy: str
    _is_failing: bool = False

    def record(self, fault: str) -> None:
        """Note how one request ended. ``fault`` is empty if the data arrived."""
        if fault and not self._is_failing:
            log.warning("langfuse_failing", data=self.data, reason=fault, host=self.host, remedy=self.remedy)
        if self._is_failing and not fault:
            log.info("langfuse_recovered", data=self.data, host=self.host)
        self._is_failing = bool(fault)


class _SpanSession(requests.Session):
    """The exporter's HTTP session. ``requests`` offers no hook for a connection that fails."""

    deliveries: DeliveryLog

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        try:
            reply = super().send(request, **options)
        except requests.RequestException as error:
            self.deliveries.record(type(error).__name__)
            raise
        self.deliveries.record("" if reply.ok else f"http_{reply.status_code}")
        return reply


class ScoreClient(httpx.Client):
    """The API's HTTP client. It reads what became of scores: 207 is a success to the SDK, rejected scores or not."""

    deliveries: DeliveryLog

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request, and note how it ended if it carried scores."""
        if request.url.path != SCORES_PATH:
            return super().send(request, **options)
        try:
            reply = super().send(request, **options)
        except httpx.HTTPError as error:
            self.deliveries.record(type(error).__name__)
            raise
        rejected = reply.status_code == HTTPStatus.MULTI_STATUS and reply.json().get("rejected")
        self.deliveries.record(f"rejected_{rejected}" if rejected else "" if reply.is_success else _status(reply))
        return reply


def _status(reply: httpx.Response) -> str:
    return f"http_{reply.status_code}"


def http_options(host: str, timeout_s: float) -> dict[str, Any]:
    """Return the options of an ``httpx.Client`` for Langfuse's API at ``host``."""
    return {"timeout": timeout_s, "verify": ssl.create_default_context(), "trust_env": not is_loopback(host)}


def score_client(host: str, timeout_s: float) -> ScoreClient:
    """Return the HTTP client for the SDK's calls of the API. Close it."""
    client = ScoreClient(**http_options(host, timeout_s))
    client.deliveries = DeliveryLog(
        host, "scores", "Scores need Langfuse 4.59 or newer; `orion doctor` reads its version."
    )
    return client


def span_exporter(connection: Connection, timeout_s: float) -> OTLPSpanExporter:
    """Return what sends spans to Langfuse as OTLP in protobuf."""
    session = _SpanSession()
    session.deliveries = DeliveryLog(
        connection.host, "traces", "Answers are not affected; `orion doctor` checks the keys."
    )
    session.trust_env = not is_loopback(connection.host)  # a proxy would look for "localhost" on its own machine
    # The library brings a bundle of its own; without the host's, traces to a private authority's server were lost.
    trusted = ssl.get_default_verify_paths()
    basic = b64encode(f"{connection.public_key}:{connection.secret_key}".encode()).decode()
    return OTLPSpanExporter(
        endpoint=f"{connection.host}/api/public/otel/v1/traces",
        headers={
            "Authorization": f"Basic {basic}",
            "x-langfuse-public-key": connection.public_key,
            "x-langfuse-ingestion-version": "4",
        },
        timeout=timeout_s,
        compression=Compression.Gzip,
        session=session,
        certificate_file=trusted.cafile or trusted.capath,
    )
