"""Connects only to public addresses, except for hosts that an admin named.

A name is resolved once and the connection goes to an address that was checked, so DNS rebinding has no effect. A
proxy would resolve the name again, so none is used.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, Final

import httpcore2

Address = IPv4Address | IPv6Address
# Function that returns the addresses of a name and port. Raises `OSError`.
Resolve = Callable[[str, int], Iterable[str]]

_STEP_TIMEOUT_S: Final = 60.0
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")  # NAT64 (RFC 6052): the last 32 bits are an IPv4 address


class AddressRefusedError(Exception):
    """The name has no allowed address."""


def is_public(text: str) -> bool:
    """Return whether an address, and every IPv4 address embedded in it, is public."""
    return all(
        each.is_global
        and not (each.is_multicast or each.is_reserved or each.is_unspecified or getattr(each, "is_site_local", False))
        for each in _effective_addresses(ip_address(text))
    )


def is_public_or_private(text: str) -> bool:
    """Return whether an address is private, loopback or public, so that an intranet server can have it."""
    return not any(
        each.is_link_local or each.is_multicast or each.is_unspecified
        for each in _effective_addresses(ip_address(text))
    )


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
                return _Bounded(
                    self._inner.connect_tcp(address, port, left, local_address, socket_options), self.seconds_left
                )
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
