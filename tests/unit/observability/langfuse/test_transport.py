"""TLS on the way to Langfuse: all requests trust the certificates of the host, and no other."""

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from observability.langfuse.client import span_exporter
from observability.langfuse.connection import Connection
from observability.langfuse.dashboards import DashboardsError, make_dashboard
from observability.langfuse.tracing import Tracer
from tests.support.http_server import behind_tls, own_certificate
from tests.support.waiting import wait_until


async def test_the_hosts_certificates_are_trusted_for_traces_and_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, asked = own_certificate(tmp_path), list[str]()
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with behind_tls(file, asked) as host:
        tracer = Tracer(Connection(public_key="pk-tls", secret_key="sk", host=host))
        trace = await tracer.turn("t", thread="T:C:1", user="U1", question="q")
        trace.end(outcome="partial")
        await wait_until(lambda: "/api/public/scores" in asked, "scores arrive")
        await tracer.aclose(timeout_s=10)
    assert {"/api/public/otel/v1/traces", "/api/public/scores"} <= set(asked)


@pytest.mark.parametrize("trusted", [True, False])
def test_dashboards_trust_only_the_same_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, trusted: bool
) -> None:
    file, asked = own_certificate(tmp_path), list[str]()
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with behind_tls(file, asked) as host, pytest.raises(DashboardsError) as failed:
        make_dashboard(public_key="pk", secret_key="sk", host=host)
    assert bool(asked) is trusted
    assert ("cannot be reached" in str(failed.value)) is not trusted


@pytest.mark.parametrize("trusted", [True, False])
def test_experiments_trust_only_the_same_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, trusted: bool
) -> None:
    file, asked = own_certificate(tmp_path), list[str]()
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with behind_tls(file, asked) as host:
        exporter = span_exporter(Connection(public_key="pk", secret_key="sk", host=host, timeout_s=2))
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        provider.get_tracer("test").start_span("item").end()
        provider.shutdown()
    assert asked == ["/api/public/otel/v1/traces"] * trusted
