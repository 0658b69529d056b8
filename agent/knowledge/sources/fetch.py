"""HTTP client that honours robots.txt, and connects only to public addresses and to hosts that an admin named.

A name is resolved once and the connection goes to an address that was checked, so DNS rebinding has no effect. A proxy
would resolve the name again, so none is used. Each redirect is checked like the first address.
"""

import re
import socket
import ssl
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from importlib.metadata import version
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, Final, Self

import httpcore2
import httpx2
from protego import Protego

from agent.knowledge.types import ReadError

USER_AGENT: Final = f"Orion/{version('orion')} (reads documents for a team's assistant)"
_ROBOT: Final = "Orion"
_MAX_ROBOTS_BYTES: Final = 512_000  # RFC 9309: at least 500 KiB of it are read
_MAX_HOPS: Final = 6  # the page and five redirects, as RFC 9309 allows for robots.txt
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_FOR_GOOD: Final = frozenset({301, 308})
_COME_BACK: Final = frozenset({408, 425, 429})
_BUSY: Final = frozenset({429, 503})
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_CHARSET: Final = re.compile(r"charset=[\"']?(?P<name>[A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)

LimitOf = Callable[[str], int]
"""Return the size limit in bytes for a content type. Raises ``ReadError`` for a type that is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPolicy:
    """Limits of a crawl, times in seconds.

    ``delay_s`` is the minimum time between two requests to a server; robots.txt may ask for more, up to
    ``max_delay_s``. ``page_timeout_s`` limits a page, ``step_timeout_s`` each step of it, ``run_timeout_s`` all pages
    of a source. After ``failures`` failures in a row a server is skipped until the next run.
    """

    delay_s: float = 0.2
    max_delay_s: float = 60.0  # a site that asks for a longer delay is reported and skipped
    page_timeout_s: float = 60.0
    step_timeout_s: float = 15.0
    run_timeout_s: float = 3_600.0  # the next run begins with the pages that have gone unread longest
    failures: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WebReply:
    """Response of a server. Header names are in lower case; ``body`` is empty unless the status is 200."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def kind(self) -> str:
        """The content type in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The encoding that the server names, or an empty string."""
        found = _CHARSET.search(self.headers.get("content-type", ""))
        return found["name"] if found else ""


@dataclass(slots=True, kw_only=True)
class _Server:
    robots: Protego | ReadError | None = None
    last_request_at: float = float("-inf")
    failures_in_row: int = 0


Address = IPv4Address | IPv6Address
# Function that returns the addresses of a name and port. Raises `OSError`.
Resolve = Callable[[str, int], Iterable[str]]

_STEP_TIMEOUT_S: Final = 60.0
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")  # NAT64 (RFC 6052): the last 32 bits are an IPv4 address


class AddressRefusedError(Exception):
    """The name has no allowed address."""


def is_public(text: str) -> bool:
    """Return whether an address, and every IPv4 address embedded in it, is public."""
    odd = ("is_multicast", "is_reserved", "is_unspecified", "is_site_local")
    addresses = _effective_addresses(ip_address(text))
    return all(each.is_global and not any(getattr(each, name, False) for name in odd) for each in addresses)


def is_public_or_private(text: str) -> bool:
    """Return whether an address is private, loopback or public, so that an intranet server can have it."""
    addresses = _effective_addresses(ip_address(text))
    return not any(each.is_link_local or each.is_multicast or each.is_unspecified for each in addresses)


def _effective_addresses(address: Address) -> Iterator[Address]:
    """Yield the address itself, or the IPv4 addresses that a connection to it may reach."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        yield address.ipv4_mapped
    elif isinstance(address, IPv6Address) and address in _TRANSLATED:
        yield IPv4Address(int(address) & 0xFFFF_FFFF)
    else:
        yield address
        if isinstance(address, IPv6Address):
            yield from filter(None, (address.sixtofour, *(address.teredo or ())))


def resolve_host(host: str, port: int) -> list[str]:
    """Return the distinct addresses of a name. An address resolves to itself."""
    with suppress(ValueError):
        return [str(ip_address(host))]
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]).partition("%")[0] for *_, place in found))


class CheckedNetwork(httpcore2.NetworkBackend):
    """Network backend of one thread. ``private_hosts`` are names or addresses that may be private."""

    def __init__(self, private_hosts: Iterable[str] = (), resolve: Resolve = resolve_host) -> None:
        self.deadline = float("inf")  # for all connections, in seconds of `time.monotonic`
        self._private_hosts = frozenset(host.lower() for host in private_hosts)
        self._resolve = resolve
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to an allowed address of ``host``. Raises ``AddressRefusedError`` if it has none."""
        try:
            addresses = list(self._resolve(host, port))
        except OSError as error:
            raise httpcore2.ConnectError(type(error).__name__) from error
        judge = is_public_or_private if host.lower() in self._private_hosts else is_public
        allowed = [address for address in addresses if judge(address)]
        if not allowed:
            raise AddressRefusedError
        failure: Exception = httpcore2.ConnectError()
        for address in allowed:
            left = self.seconds_left(timeout)
            try:
                stream = self._inner.connect_tcp(address, port, left, local_address, socket_options)
                return _Bounded(stream, self.seconds_left)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    def seconds_left(self, timeout: float | None) -> float:
        """Return the seconds left for a step. Raises ``httpcore2.ReadTimeout`` after the deadline."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout
        return min(left, _STEP_TIMEOUT_S if timeout is None else timeout)


class _Bounded(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, left: Callable[[float | None], float]) -> None:
        self._stream = stream
        self._left = left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Bounded(self._stream.start_tls(ssl_context, server_hostname, self._left(timeout)), self._left)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class Fetcher:
    """Fetches pages of the ``hosts``, one at a time. Use as a context manager, in one thread."""

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        private_hosts: Iterable[str] = (),
        policy: CrawlPolicy | None = None,
        resolve: Resolve = resolve_host,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._policy = policy or CrawlPolicy()
        self._network = CheckedNetwork(private_hosts, resolve)
        self._pool = httpcore2.ConnectionPool(tls, network_backend=self._network, max_connections=2)
        self._servers: defaultdict[str, _Server] = defaultdict(_Server)
        self._ends = time.monotonic() + self._policy.run_timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def is_allowed(self, url: str) -> bool:
        """Return whether the host of an address may be contacted."""
        with suppress(ReadError):
            return bool(self._check_url(url))
        return False

    def get(self, url: str, *, limit_of: LimitOf, etag: str = "", modified: str = "") -> WebReply:
        """Return a page, or a 304 reply if its etag or date has not changed. Raises ``ReadError``."""
        asked = {"If-None-Match": etag, "If-Modified-Since": modified}
        asked = {name: value for name, value in asked.items() if value}
        reply = self._follow(url, limit_of, asked, self._wait_for_permission)
        if reply.status in {HTTPStatus.OK, HTTPStatus.NOT_MODIFIED}:
            return reply
        raise _status_error(reply.status, temporary=_is_temporary(reply.status))

    def _follow(
        self, url: str, limit_of: LimitOf, headers: Mapping[str, str], before_request: Callable[[httpx2.URL], object]
    ) -> WebReply:
        place = self._check_url(url)
        for _ in range(_MAX_HOPS):
            before_request(place)
            reply = self._exchange(place, limit_of, headers)
            target = reply.headers.get("location", "")
            if reply.status not in _MOVED or not target:
                return reply
            place = self._check_url(target, base=place, temporary=reply.status not in _FOR_GOOD)
        raise ReadError(reason=f"redirects in a circle, or more than {_MAX_HOPS - 1} times", temporary=True)

    def _check_url(self, url: str, *, base: httpx2.URL | None = None, temporary: bool = False) -> httpx2.URL:
        """Parse an address that may be fetched. ``base`` is the page that redirected to it. Raises ``ReadError``."""
        try:
            place = base.join(url) if base else httpx2.URL(url)
        except (httpx2.InvalidURL, TypeError, ValueError) as error:
            msg = "is not a web address that may be fetched" if base else "is not a web address"
            raise ReadError(msg, temporary=temporary) from error
        fault = ""
        if place.scheme not in {"http", "https"} or not place.host or place.userinfo:
            fault = "is not a web address that may be fetched"
        elif place.host.lower() not in self._hosts:
            fault = f"leads to another site ({place.host})"
        elif base is not None and base.scheme == "https" != place.scheme:
            fault = "leads from a protected connection to an open one"
        if fault:
            raise ReadError(fault, temporary=temporary)
        return place

    def _wait_for_permission(self, place: httpx2.URL) -> None:
        """Wait for the crawl delay. Raises ``ReadError`` if robots.txt forbids the page."""
        origin = _origin(place)
        robots = self._robots_of(origin)
        if not robots.can_fetch(str(place), _ROBOT):
            raise ReadError(reason="may not be read by programs (robots.txt)")
        pause = max(robots.crawl_delay(_ROBOT) or 0.0, self._policy.delay_s)
        if pause > self._policy.max_delay_s:
            msg = f"asks for {pause:.0f} s between two pages; Orion waits at most {self._policy.max_delay_s:.0f} s"
            raise ReadError(msg, temporary=True)
        server = self._servers[origin]
        time.sleep(max(0.0, server.last_request_at + pause - time.monotonic()))
        server.last_request_at = time.monotonic()

    def _robots_of(self, origin: str) -> Protego:
        server = self._servers[origin]
        if server.robots is None:
            try:
                reply = self._follow(f"{origin}/robots.txt", lambda _: _MAX_ROBOTS_BYTES, {}, lambda _: None)
                status = reply.status
                if status != HTTPStatus.OK and (status < HTTPStatus.BAD_REQUEST or _is_temporary(status)):
                    # RFC 9309: an error (5xx) may mean that everything is forbidden
                    raise _status_error(status, temporary=True)
                server.robots = Protego.parse(reply.body.decode("utf-8", "replace"))
            except ReadError as error:
                server.robots = ReadError(f"was not asked for: its robots.txt {error.reason}", temporary=True)
        if isinstance(server.robots, ReadError):
            raise ReadError(server.robots.reason, temporary=True)
        return server.robots

    def _exchange(self, place: httpx2.URL, limit_of: LimitOf, headers: Mapping[str, str]) -> WebReply:
        server, now = self._servers[_origin(place)], time.monotonic()
        if server.failures_in_row >= self._policy.failures:
            msg = f"was not asked for: its server failed {self._policy.failures} times in a row"
            raise ReadError(msg, temporary=True)
        if now > self._ends:
            msg = "was not reached in the time of one run; the next run continues there"
            raise ReadError(msg, temporary=True)
        self._network.deadline = now + self._policy.page_timeout_s
        try:
            reply = self._send(place, limit_of, headers)
        except AddressRefusedError as error:
            raise ReadError(reason="leads into a private network (ORION_WEB_DOCS_HOSTS can allow its host)") from error
        except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            server.failures_in_row += 1
            late = isinstance(error, httpcore2.TimeoutException)
            msg = "did not come in time" if late else f"cannot be reached ({type(error).__name__})"
            raise ReadError(msg, temporary=True) from error
        server.failures_in_row = server.failures_in_row + 1 if reply.status in _BUSY else 0
        return reply

    def _send(self, place: httpx2.URL, limit_of: LimitOf, headers: Mapping[str, str]) -> WebReply:
        sent = {"Host": place.netloc.decode("ascii"), "User-Agent": USER_AGENT, "Accept-Encoding": "gzip", **headers}
        lines = [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in sent.items()]
        path = place.raw_path or b"/"
        target = httpcore2.URL(scheme=place.raw_scheme, host=place.raw_host, port=place.port, target=path)
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), self._policy.step_timeout_s)
        with self._pool.stream("GET", target, headers=lines, extensions={"timeout": timeout}) as stream:
            found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in stream.headers}
            reply = WebReply(status=stream.status, headers=found)
            if reply.status != HTTPStatus.OK:
                return reply
            body = decompress(stream.iter_stream(), found.get("content-encoding", ""), limit_of(reply.kind))
            return replace(reply, body=body)


def decompress(parts: Iterable[bytes], encoding: str, limit: int) -> bytes:
    """Return the decompressed body. Raises ``ReadError`` if it is longer than ``limit`` bytes."""
    encoding = encoding.strip().lower()
    if encoding not in _PACKED | {"", "identity"}:
        raise ReadError(reason="has a compression that was not asked for")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in _PACKED else None
    body = bytearray()
    try:
        for part in parts:
            body += unpack.decompress(part, limit + 1 - len(body)) if unpack else part
            if len(body) > limit:
                raise ReadError(reason=f"is too big (the limit is {limit / 1e6:g} MB)")
    except zlib.error as error:
        raise ReadError(reason="has broken compression", temporary=True) from error
    if unpack and not unpack.eof:
        raise ReadError(reason="ended early", temporary=True)
    return bytes(body)


def _origin(place: httpx2.URL) -> str:
    return f"{place.scheme}://{place.netloc.decode('ascii')}"


def _is_temporary(status: int) -> bool:
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _COME_BACK


def _status_error(status: int, *, temporary: bool) -> ReadError:
    what = "is gone" if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE} else "cannot be fetched"
    return ReadError(f"{what} (its server answers {status})", temporary=temporary)
