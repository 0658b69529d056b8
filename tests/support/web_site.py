"""A web site on a free loopback port, with the ways in which sites go wrong: it breaks off, drips, hangs, redirects.

``with LocalSite() as site``: ``site.pages["/path"]`` is what a request gets; ``site.asked`` lists the paths that were
asked for, in order, ``site.headers`` the last request's headers of each path.
"""

import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Self

from tests.support.http_server import QuietHandler, serving


@dataclass(kw_only=True)
class Reply:
    """``etag`` and ``modified`` answer conditional requests with 304. ``drips``: bytes without end, slowly."""

    body: bytes = b""
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    etag: str = ""
    modified: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None
    hangs: bool = False
    endless: bytes = b""
    drips: bool = False


def html(text: str, title: str = "Page", *, etag: str = "", modified: str = "") -> Reply:
    """A page."""
    page = f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>"
    return Reply(body=page.encode(), etag=etag, modified=modified)


class LocalSite:
    """The site."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.pages: dict[str, Reply] = {}
        self.asked: list[str] = []
        self.headers: dict[str, dict[str, str]] = {}
        self._closing = threading.Event()

    def __enter__(self) -> Self:
        site = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:  # noqa: N802 - the library's name
                site.asked.append(self.path)
                site.headers[self.path] = {name.lower(): value for name, value in self.headers.items()}
                site._answer(self, site.pages.get(self.path, Reply(status=404, body=b"no such page")))

        self._serving = serving(Handler, self._tls)
        self.port = self._serving.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._serving.__exit__(None, None, None)

    @property
    def url(self) -> str:
        """Its address by the name that the tests list as their own network."""
        return f"http://localhost:{self.port}"

    def sitemap(self, *paths: str, path: str = "/sitemap.xml") -> str:
        """Serve a sitemap of these paths (or whole addresses), and tell its address."""
        urls = "".join(f"<url><loc>{p if '://' in p else self.url + p}</loc></url>" for p in paths)
        head = '<?xml version="1.0"?>'
        body = f'{head}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
        self.pages[path] = Reply(body=body.encode(), kind="application/xml")
        return f"{self.url}{path}"

    def _answer(self, request: BaseHTTPRequestHandler, reply: Reply) -> None:
        if reply.hangs:
            self._closing.wait()
            return
        asked = {name.lower(): value for name, value in request.headers.items()}
        same = (reply.etag and asked.get("if-none-match") == reply.etag) or (
            reply.modified and not reply.etag and asked.get("if-modified-since") == reply.modified
        )
        request.send_response(304 if same else reply.status)
        told = {"ETag": reply.etag, "Last-Modified": reply.modified, "Content-Type": reply.kind, **reply.headers}
        for name, value in told.items():
            if value:
                request.send_header(name, value)
        if not (reply.endless or reply.drips):
            request.send_header("Content-Length", str(0 if same else reply.length or len(reply.body)))
        else:
            request.close_connection = True
        request.end_headers()
        if not same:
            self._send(request, reply)
        if reply.length is not None:
            request.close_connection = True

    def _send(self, request: BaseHTTPRequestHandler, reply: Reply) -> None:
        try:
            request.wfile.write(reply.body)
            while (reply.endless or reply.drips) and not self._closing.wait(0.02 if reply.drips else 0):
                request.wfile.write(reply.endless or b".")
        except OSError:
            return
