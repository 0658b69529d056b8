"""H2 on the way to Langfuse: the certificates that the host trusts are trusted by all that is sent, and no other."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from observability.dashboards import DashboardsError, make_dashboard
from observability.tracing import Tracer
from tests.waiting import wait_until


def certificate(folder: Path) -> Path:
    """One for 127.0.0.1 that only its own file vouches for, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "team.example")])
    now = datetime.now(UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "own.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
    return file


class Taking(BaseHTTPRequestHandler):
    """Takes whatever comes and answers with an empty object."""

    def do_POST(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]  # the server's own list, set below
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST  # noqa: N815 - the library's name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nothing to tell."""


@contextmanager
def behind_tls(file: Path, asked: list[str]) -> Iterator[str]:
    """A server with this certificate; its address. It runs in a thread: one that is refused leaves no half-open end."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    with HTTPServer(("127.0.0.1", 0), Taking) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.asked = asked  # type: ignore[attr-defined]  # as above
        serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()


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
