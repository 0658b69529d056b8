"""HTTP servers on a free loopback port, in the test's loop or in threads, and a certificate of our own."""

import asyncio
import ipaddress
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class LoopServer:
    """``async with`` serves ``routes()`` at ``url``; ``closing`` is set at the end, for replies that never come."""

    path = ""  # of ``url``

    def __init__(self) -> None:
        self.url = ""
        self.closing = asyncio.Event()

    def routes(self) -> list[web.RouteDef]:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.add_routes(self.routes())
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}{self.path}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closing.set()
        await self._runner.cleanup()


Answer = Callable[[str, Message, bytes], tuple[int, bytes]]
"""Makes status and JSON of the reply from the request's path, headers and body."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is not an error."""


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that writes no log."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Yield the port of a server."""
    with _Server(("127.0.0.1", 0), handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join(10)


@contextmanager
def answering(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Yield the port of a server whose replies ``answer`` makes."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            status, body = answer(
                self.path, self.headers, self.rfile.read(int(self.headers.get("Content-Length") or 0))
            )
            self.send_response(status)
            for name, value in (("Content-Type", "application/json"), ("Retry-After", "0")):
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the library's name

    with serving(Handler, tls) as port:
        yield port


def own_certificate(folder: Path) -> Path:
    """One for 127.0.0.1 and ``docs.example``, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "team.example")])
    now = datetime.now(UTC)
    here = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("docs.example")]
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(here), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file, plain = folder / "own.pem", (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    private = key.private_bytes(serialization.Encoding.PEM, *plain)
    file.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
    return file


def tls_of(file: Path) -> ssl.SSLContext:
    """The server's side of TLS with this certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context


@contextmanager
def behind_tls(file: Path, asked: list[str]) -> Iterator[str]:
    """The address of a server with this certificate. It answers with an empty object, and ``asked`` gets the paths."""

    def answer(path: str, headers: Message, body: bytes) -> tuple[int, bytes]:
        asked.append(path)
        return 200, b"{}"

    with answering(answer, tls_of(file)) as port:
        yield f"https://127.0.0.1:{port}"
