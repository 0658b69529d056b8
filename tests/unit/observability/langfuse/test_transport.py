"""H2 on the way to Langfuse: the certificates that the host trusts are trusted by all that is sent, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from observability.langfuse.connection import Tracer
from observability.langfuse.dashboards import DashboardsError, make_dashboard
from observability.langfuse.transport import TrustingAdapter
from tests.support.tls_server import behind_tls, certificate
from tests.support.waiting import wait_until


async def test_h2_what_the_host_trusts_is_trusted_for_traces_and_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, asked = certificate(tmp_path), list[str]()
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with behind_tls(file, asked) as host:
        tracer = Tracer(public_key="pk-tls", secret_key="sk", host=host)
        trace = tracer.turn("t", thread="T:C:1", user="U1", question="q")
        trace.end(outcome="partial")
        await wait_until(lambda: "/api/public/scores" in asked, "scores arrive", 20)
        await tracer.aclose(deadline_s=10)
    assert {"/api/public/otel/v1/traces", "/api/public/scores"} <= set(asked)


@pytest.mark.parametrize("trusted", [True, False])
def test_h2_dashboards_trust_the_same_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, trusted: bool
) -> None:
    file, asked = certificate(tmp_path), list[str]()
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with behind_tls(file, asked) as host, pytest.raises(DashboardsError) as failed:
        make_dashboard(public_key="pk", secret_key="sk", host=host)
    assert bool(asked) is trusted
    assert ("cannot be reached" in str(failed.value)) is not trusted


def test_h2_behind_a_proxy_the_same_certificates_are_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path)))
    manager = TrustingAdapter().proxy_manager_for("http://proxy.example:3128")
    (own,) = manager.connection_pool_kw["ssl_context"].get_ca_certs()
    assert own["subject"] == ((("commonName", "team.example"),),)
