"""Fetches pages over HTTP as a guest, within robots.txt and its delay.

Each redirect is held to the same as the first address. ``ReadError`` says whether trying later may help.
"""

from __future__ import annotations

import re
import ssl
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from importlib.metadata import version
from typing import Final, Self

import httpcore2
import httpx2
from protego import Protego

from agent.knowledge.sources.public_address import AddressRefusedError, CheckedNetwork, Resolve, resolved
from agent.knowledge.types import ReadError

USER_AGENT: Final = f"Orion/{version('orion')} (reads documents for a team's assistant)"
_ROBOT: Final = "Orion"
_ROBOTS_BYTES: Final = 512_000  # RFC 9309: at least 500 KiB of it are read
_HOPS: Final = 6  # the page and five redirects, as many as robots.txt allows for itself (RFC 9309)
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_FOR_GOOD: Final = frozenset({301, 308})
_COME_BACK: Final = frozenset({408, 425, 429})
_BUSY: Final = frozenset({429, 503})
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_CHARSET: Final = re.compile(r"charset=[\"']?(?P<name>[A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)

LimitOf = Callable[[str], int]
"""How many bytes are read of a page of this content type. Raises ``ReadError`` where it is none to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How a guest behaves; times in seconds.

    ``pause_s`` lies between two requests to a server, unless robots.txt asks for more; what asks for more than
    ``longest_pause_s`` is left alone. A page may take ``page_s``, its parts ``step_s``, all pages of a source
    ``whole_s``. A server that ``failures`` times in a row did not answer is left alone until the next run.
    """

    pause_s: float = 0.2
    longest_pause_s: float = 60.0  # a site that asks for more is left alone, and named
    page_s: float = 60.0
    step_s: float = 15.0
    whole_s: float = 3_600.0  # the next run begins with what was not seen for longest
    failures: int = 3  # then its server is left alone until the next run


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a server answered. Names of headers are in lower case; ``body`` is empty unless the status is 200."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def kind(self) -> str:
        """The content type in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The encoding that the server names, or nothing."""
        found = _CHARSET.search(self.headers.get("content-type", ""))
        return found["name"] if found else ""


@dataclass(slots=True, kw_only=True)
class _Server:
    """What is known of one server in this run; ``silent`` counts failures in a row."""

    robots: Protego | ReadError | None = None
    asked_at: float = float("-inf")
    silent: int = 0


class Fetcher:
    """Pages of the ``hosts``, one after the other. Use as a context manager, in one thread."""

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        private_hosts: Iterable[str] = (),
        manners: Manners | None = None,
        resolve: Resolve = resolved,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._manners = manners or Manners()
        self._network = CheckedNetwork(private_hosts, resolve)
        self._pool = httpcore2.ConnectionPool(tls, network_backend=self._network, max_connections=2)
        self._servers: defaultdict[str, _Server] = defaultdict(_Server)
        self._ends = time.monotonic() + self._manners.whole_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def serves(self, url: str) -> bool:
        """Whether an address is one of a host that may be asked."""
        try:
            self._placed(url)
        except ReadError:
            return False
        return True

    def get(self, url: str, *, limit_of: LimitOf, etag: str = "", modified: str = "") -> Reply:
        """A page, or only that it is as it was (304) when it came with these two. Raises ``ReadError``."""
        asked = {"If-None-Match": etag, "If-Modified-Since": modified}
        reply = self._follow(url, limit_of, {name: value for name, value in asked.items() if value}, self._admitted)
        if reply.status in {HTTPStatus.OK, HTTPStatus.NOT_MODIFIED}:
            return reply
        raise _answered(reply.status, passing=_may_pass(reply.status))

    def _follow(
        self, url: str, limit_of: LimitOf, headers: Mapping[str, str], admitted: Callable[[httpx2.URL], None]
    ) -> Reply:
        place = self._placed(url)
        for _ in range(_HOPS):
            admitted(place)
            reply = self._exchange(place, limit_of, headers)
            target = reply.headers.get("location", "")
            if reply.status not in _MOVED or not target:
                return reply
            place = self._placed(target, base=place, passing=reply.status not in _FOR_GOOD)
        raise ReadError(reason=f"redirects in a circle, or more than {_HOPS - 1} times", passing=True)

    def _placed(self, url: str, *, base: httpx2.URL | None = None, passing: bool = False) -> httpx2.URL:
        """The address, taken apart, if it is one to go to; ``base`` redirected to it."""
        try:
            place = base.join(url) if base else httpx2.URL(url)
        except (httpx2.InvalidURL, TypeError, ValueError) as error:
            msg = "is no web address that may be asked for" if base else "is no web address"
            raise ReadError(msg, passing=passing) from error
        usable = place.scheme in {"http", "https"} and place.host and not place.userinfo
        opens_up = base is not None and base.scheme == "https" != place.scheme  # never down to what others can read
        for msg, applies in (
            ("is no web address that may be asked for", not usable),
            (f"leads to another site ({place.host})", place.host.lower() not in self._hosts),
            ("leads from a protected connection to an open one", opens_up),
        ):
            if applies:
                raise ReadError(msg, passing=passing)
        return place

    def _admitted(self, place: httpx2.URL) -> None:
        """Wait as long as the server asks. Raises ``ReadError`` where robots.txt does not let us in."""
        origin = _origin(place)
        robots = self._robots(origin)
        if not robots.can_fetch(str(place), _ROBOT):
            raise ReadError(reason="is not to be read by programs (robots.txt)")
        pause = max(robots.crawl_delay(_ROBOT) or 0.0, self._manners.pause_s)
        if pause > self._manners.longest_pause_s:
            msg = f"asks for {pause:.0f} s between two pages; at most {self._manners.longest_pause_s:.0f} s are waited"
            raise ReadError(msg, passing=True)
        server = self._servers[origin]
        time.sleep(max(0.0, server.asked_at + pause - time.monotonic()))
        server.asked_at = time.monotonic()

    def _robots(self, origin: str) -> Protego:
        server = self._servers[origin]
        if server.robots is None:
            try:
                server.robots = self._rules(origin)
            except ReadError as error:
                server.robots = ReadError(f"was not asked for: its robots.txt {error.reason}", passing=True)
        if isinstance(server.robots, ReadError):
            raise ReadError(server.robots.reason, passing=True)
        return server.robots

    def _rules(self, origin: str) -> Protego:
        reply = self._follow(f"{origin}/robots.txt", lambda _: _ROBOTS_BYTES, {}, lambda _: None)
        if reply.status != HTTPStatus.OK and (reply.status < HTTPStatus.BAD_REQUEST or _may_pass(reply.status)):
            raise _answered(reply.status, passing=True)  # RFC 9309: in trouble (5xx) it may forbid all
        return Protego.parse(reply.body.decode("utf-8", "replace"))

    def _exchange(self, place: httpx2.URL, limit_of: LimitOf, headers: Mapping[str, str]) -> Reply:
        server, now = self._servers[_origin(place)], time.monotonic()
        if server.silent >= self._manners.failures:
            msg = f"was not asked for: its server failed {self._manners.failures} times in a row"
            raise ReadError(msg, passing=True)
        if now > self._ends:
            raise ReadError(reason="was not reached in the time of one run; the next goes on there", passing=True)
        self._network.deadline = now + self._manners.page_s
        try:
            reply = self._asked(place, limit_of, headers)
        except AddressRefusedError as error:
            raise ReadError(reason="leads into a private network (ORION_WEB_DOCS_HOSTS can allow its host)") from error
        except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            server.silent += 1
            late = isinstance(error, httpcore2.TimeoutException)
            msg = "did not come in time" if late else f"cannot be reached ({type(error).__name__})"
            raise ReadError(msg, passing=True) from error
        server.silent = server.silent + 1 if reply.status in _BUSY else 0
        return reply

    def _asked(self, place: httpx2.URL, limit_of: LimitOf, headers: Mapping[str, str]) -> Reply:
        sent = {"Host": place.netloc.decode("ascii"), "User-Agent": USER_AGENT, "Accept-Encoding": "gzip", **headers}
        lines = [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in sent.items()]
        target = httpcore2.URL(
            scheme=place.raw_scheme, host=place.raw_host, port=place.port, target=place.raw_path or b"/"
        )
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), self._manners.step_s)
        with self._pool.stream("GET", target, headers=lines, extensions={"timeout": timeout}) as stream:
            found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in stream.headers}
            reply = Reply(status=stream.status, headers=found)
            if reply.status != HTTPStatus.OK:
                return reply
            body = unpacked(stream.iter_stream(), found.get("content-encoding", ""), limit_of(reply.kind))
            return replace(reply, body=body)


def unpacked(parts: Iterable[bytes], encoding: str, limit: int) -> bytes:
    """The whole body, at most ``limit`` bytes of it after unpacking. Raises ``ReadError``."""
    encoding = encoding.strip().lower()
    if encoding not in _PACKED | {"", "identity"}:
        raise ReadError(reason="is packed in a way that was not asked for")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in _PACKED else None
    body = bytearray()
    try:
        for part in parts:
            body += unpack.decompress(part, limit + 1 - len(body)) if unpack else part
            if len(body) > limit:
                raise ReadError(reason=f"is too big (the limit is {limit / 1e6:g} MB)")
    except zlib.error as error:
        raise ReadError(reason="is packed in a broken way", passing=True) from error
    if unpack and not unpack.eof:
        raise ReadError(reason="broke off", passing=True)
    return bytes(body)


def _origin(place: httpx2.URL) -> str:
    return f"{place.scheme}://{place.netloc.decode('ascii')}"


def _may_pass(status: int) -> bool:
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _COME_BACK


def _answered(status: int, *, passing: bool) -> ReadError:
    what = "is gone" if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE} else "cannot be had"
    return ReadError(f"{what} (its server answers {status})", passing=passing)
