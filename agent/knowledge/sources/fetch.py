"""Fetches pages over HTTP as a guest, within robots.txt and its delay (I4).

Each redirect is held to the same as the first address. ``FetchError`` says whether trying later may help.
"""

from __future__ import annotations

import re
import ssl
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from types import TracebackType
from typing import Final, Self

import httpcore2
import httpx2
from protego import Protego

from agent.knowledge.sources.public_address import AddressRefusedError, CheckedNetwork, Resolve, resolved

USER_AGENT: Final = f"Orion/{version('orion')} (reads documents for a team's assistant)"
_ROBOT: Final = "Orion"
_ROBOTS_BYTES: Final = 512_000
_HOPS: Final = 6
"""The page and five redirects, as many as robots.txt allows for itself (RFC 9309)."""
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_FOR_GOOD: Final = frozenset({301, 308})
_OK: Final = 200
_NOT_MODIFIED: Final = 304
_REFUSED: Final = 400
_BROKEN: Final = 500
_COME_BACK: Final = frozenset({408, 425, 429})
_BUSY: Final = frozenset({429, 503})
_PACKED: Final = {"gzip", "x-gzip", "deflate"}
_CHARSET: Final = re.compile(r"charset=[\"']?(?P<name>[A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_FORBIDDEN: Final = "is not to be read by programs (robots.txt)"
_PRIVATE: Final = "leads into a private network (ORION_WEB_DOCS_HOSTS can allow its host)"

LimitOf = Callable[[str], int]
"""How many bytes are read of a page of this content type. Raises ``FetchError`` where it is none to be read."""


class FetchError(Exception):
    """A page that was not had; ``reason`` is for people. ``passing``: what was read before stands for now."""

    def __init__(self, reason: str, *, passing: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.passing = passing


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How a guest behaves; times in seconds.

    ``pause_s`` lies between two requests to a server, unless robots.txt asks for more; what asks for more than
    ``longest_pause_s`` is left alone. A page may take ``page_s``, its parts ``step_s``, all pages of a source
    ``whole_s``. A server that ``failures`` times in a row did not answer is left alone until the next run.
    """

    pause_s: float = 0.2
    longest_pause_s: float = 60.0
    page_s: float = 60.0
    step_s: float = 15.0
    whole_s: float = 3_600.0
    failures: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a server answered. Names of headers are in lower case; ``body`` is empty unless the status is 200."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def unchanged(self) -> bool:
        """The page is as it was."""
        return self.status == _NOT_MODIFIED

    @property
    def kind(self) -> str:
        """The content type in lower case."""
        return _kind(self.headers)

    @property
    def charset(self) -> str:
        """The encoding that the server names, or nothing."""
        found = _CHARSET.search(self.headers.get("content-type", ""))
        return found["name"] if found else ""


@dataclass(slots=True, kw_only=True)
class _Server:
    """What is known of one server in this run."""

    robots: Protego | FetchError | None = None
    asked_at: float = field(default=float("-inf"))


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
        self._servers: dict[str, _Server] = {}
        self._silent: Counter[str] = Counter()
        self._ends = time.monotonic() + self._manners.whole_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    def serves(self, url: str) -> bool:
        """Whether an address is one of a host that may be asked."""
        try:
            self._placed(url, passing=False)
        except FetchError:
            return False
        return True

    def get(self, url: str, *, limit_of: LimitOf, etag: str = "", modified: str = "") -> Reply:
        """A page, or only that it is as it was when it came with these two. Raises ``FetchError``."""
        asked = {"If-None-Match": etag, "If-Modified-Since": modified}
        reply = self._follow(url, limit_of, {name: value for name, value in asked.items() if value}, self._admitted)
        if reply.status not in {_OK, _NOT_MODIFIED}:
            passing = reply.status >= _BROKEN or reply.status in _COME_BACK
            raise FetchError(_answered(reply.status), passing=passing)
        return reply

    def _follow(
        self, url: str, limit_of: LimitOf, headers: Mapping[str, str], admitted: Callable[[httpx2.URL], None]
    ) -> Reply:
        """The reply at the end of all redirects."""
        passing = False
        place = self._placed(url, passing=passing)
        for _ in range(_HOPS):
            admitted(place)
            reply = self._exchange(place, limit_of, headers)
            target = reply.headers.get("location", "")
            if reply.status not in _MOVED or not target:
                return reply
            passing = reply.status not in _FOR_GOOD
            place = self._placed(_joined(place, target), passing=passing, secure=place.scheme == "https")
        msg = f"redirects in a circle, or more than {_HOPS - 1} times"
        raise FetchError(msg, passing=True)

    def _placed(self, url: str | httpx2.URL, *, passing: bool, secure: bool = False) -> httpx2.URL:
        """The address, taken apart, if it is one to go to."""
        try:
            place = httpx2.URL(url)
        except (httpx2.InvalidURL, TypeError, ValueError) as error:
            msg = "is no web address"
            raise FetchError(msg, passing=False) from error
        if place.scheme not in {"http", "https"} or place.userinfo or not place.host:
            msg = "is no web address that may be asked for"
            raise FetchError(msg, passing=passing)
        if place.host.lower() not in self._hosts:
            msg = f"leads to another site ({place.host})"
            raise FetchError(msg, passing=passing)
        if secure and place.scheme != "https":
            msg = "leads from a protected connection to an open one"
            raise FetchError(msg, passing=passing)
        return place

    def _admitted(self, place: httpx2.URL) -> None:
        """Wait as long as the server asks. Raises ``FetchError`` where robots.txt does not let us in."""
        robots = self._robots(place)
        if not robots.can_fetch(str(place), _ROBOT):
            raise FetchError(_FORBIDDEN, passing=False)
        pause = max(robots.crawl_delay(_ROBOT) or 0.0, self._manners.pause_s)
        if pause > self._manners.longest_pause_s:
            msg = f"asks for {pause:.0f} s between two pages; at most {self._manners.longest_pause_s:.0f} s are waited"
            raise FetchError(msg, passing=True)
        server = self._servers[_origin(place)]
        time.sleep(max(0.0, server.asked_at + pause - time.monotonic()))
        server.asked_at = time.monotonic()

    def _robots(self, place: httpx2.URL) -> Protego:
        """The rules of this server, read once a run."""
        origin = _origin(place)
        server = self._servers.setdefault(origin, _Server())
        if server.robots is None:
            try:
                server.robots = self._rules(origin)
            except FetchError as error:
                server.robots = FetchError(f"was not asked for: its robots.txt {error.reason}", passing=True)
        if isinstance(server.robots, FetchError):
            raise FetchError(server.robots.reason, passing=True)
        return server.robots

    def _rules(self, origin: str) -> Protego:
        """None is permission; a server in trouble may have forbidden everything."""
        reply = self._follow(f"{origin}/robots.txt", lambda _: _ROBOTS_BYTES, {}, lambda _: None)
        if reply.status == _OK:
            return Protego.parse(reply.body.decode("utf-8", "replace"))
        if _REFUSED <= reply.status < _BROKEN and reply.status not in _COME_BACK:
            return Protego.parse("")
        raise FetchError(_answered(reply.status), passing=True)

    def _exchange(self, place: httpx2.URL, limit_of: LimitOf, headers: Mapping[str, str]) -> Reply:
        """One request. Raises ``FetchError``."""
        origin, now = _origin(place), time.monotonic()
        if self._silent[origin] >= self._manners.failures:
            msg = f"was not asked for: its server failed {self._manners.failures} times in a row"
            raise FetchError(msg, passing=True)
        if now > self._ends:
            msg = "was not reached in the time of one run; the next goes on there"
            raise FetchError(msg, passing=True)
        self._network.deadline = now + self._manners.page_s
        try:
            reply = self._asked(place, limit_of, headers)
        except AddressRefusedError as error:
            raise FetchError(_PRIVATE, passing=False) from error
        except httpcore2.TimeoutException as error:
            self._silent[origin] += 1
            msg = "did not come in time"
            raise FetchError(msg, passing=True) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            self._silent[origin] += 1
            msg = f"cannot be reached ({type(error).__name__})"
            raise FetchError(msg, passing=True) from error
        self._silent[origin] = self._silent[origin] + 1 if reply.status in _BUSY else 0
        return reply

    def _asked(self, place: httpx2.URL, limit_of: LimitOf, headers: Mapping[str, str]) -> Reply:
        sent = {"Host": place.netloc.decode("ascii"), "User-Agent": USER_AGENT, "Accept-Encoding": "gzip", **headers}
        target = httpcore2.URL(
            scheme=place.raw_scheme, host=place.raw_host, port=place.port, target=place.raw_path or b"/"
        )
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), self._manners.step_s)
        lines = [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in sent.items()]
        with self._pool.stream("GET", target, headers=lines, extensions={"timeout": timeout}) as reply:
            found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reply.headers}
            body = b""
            if reply.status == _OK:
                body = unpacked(reply.iter_stream(), found.get("content-encoding", ""), limit_of(_kind(found)))
            return Reply(status=reply.status, headers=found, body=body)


def unpacked(parts: Iterable[bytes], encoding: str, limit: int) -> bytes:
    """The whole body, at most ``limit`` bytes of it after unpacking. Raises ``FetchError``."""
    encoding = encoding.strip().lower()
    if encoding not in _PACKED | {"", "identity"}:
        msg = "is packed in a way that was not asked for"
        raise FetchError(msg, passing=False)
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in _PACKED else None
    body = bytearray()
    try:
        for part in parts:
            body += unpack.decompress(part, limit + 1 - len(body)) if unpack else part
            if len(body) > limit:
                msg = f"is too big (the limit is {limit / 1e6:g} MB)"
                raise FetchError(msg, passing=False)
    except zlib.error as error:
        msg = "is packed in a broken way"
        raise FetchError(msg, passing=True) from error
    if unpack and not unpack.eof:
        msg = "broke off"
        raise FetchError(msg, passing=True)
    return bytes(body)


def _kind(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _origin(place: httpx2.URL) -> str:
    return f"{place.scheme}://{place.netloc.decode('ascii')}"


def _joined(place: httpx2.URL, target: str) -> httpx2.URL | str:
    """Where a redirect leads; what is no address comes out as it is."""
    try:
        return place.join(target)
    except (httpx2.InvalidURL, ValueError):
        return ""


def _answered(status: int) -> str:
    gone = status in {404, 410}
    return f"is gone (its server answers {status})" if gone else f"cannot be had (its server answers {status})"
