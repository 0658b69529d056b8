"""Which proxy and which certificates an address needs; one on this machine, told by its text alone, has no proxy."""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def is_loopback(url: str) -> bool:
    """Whether a URL's host is ``localhost``, a name under it, or a loopback address."""
    try:
        host = urlsplit(url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):  # RFC 6761: this machine, whatever DNS says
            return True
        return ip_address(host).is_loopback
    except ValueError:  # half a bracket, or a name
        return False


def proxy_for(url: str) -> str | None:
    """The host's proxy for a URL, also of a WebSocket, its exceptions (``NO_PROXY``) honoured; never for loopback."""
    # aiohttp's own trust_env knows neither loopback nor ALL_PROXY, and reads the environment in a thread each time.
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    general = proxies.get("all", "")
    # A WebSocket begins as HTTP (RFC 6455). aiohttp speaks to no SOCKS proxy.
    return proxies.get(parts.scheme.replace("ws", "http"), general if general.startswith("http") else None)


def trusted_at(url: str) -> ssl.SSLContext | bool:
    """What a client of ``url`` verifies certificates by: the host's, by itself."""
    # A client that must not see the environment's proxies does not see its SSL_CERT_FILE either; this one does.
    return ssl.create_default_context() if url.startswith("https:") and is_loopback(url) else True
