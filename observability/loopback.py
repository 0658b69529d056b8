"""Proxies and certificates by address. An address on this machine, recognised by its text, never gets a proxy."""

import ssl
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def is_loopback(url: str) -> bool:
    """Return True if a URL's host is ``localhost``, a name under it, or a loopback address."""
    try:
        host = urlsplit(url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):  # RFC 6761: this machine, even if DNS says otherwise
            return True
        return ip_address(host).is_loopback
    except ValueError:  # an unclosed bracket, or a name
        return False


def proxy_for(url: str) -> str | None:
    """Return the host's proxy for a URL, even of a WebSocket. ``NO_PROXY`` is honoured; loopback has none."""
    # aiohttp's own trust_env knows neither loopback nor ALL_PROXY, and reads the environment in a thread each time.
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    general = proxies.get("all", "")
    # A WebSocket begins as HTTP (RFC 6455). aiohttp does not support SOCKS proxies.
    return proxies.get(parts.scheme.replace("ws", "http"), general if general.startswith("http") else None)


def client_options(url: str) -> dict[str, Any]:
    """Return the options of an httpx client of ``url``: the host's certificates, and no proxy for loopback."""
    # A client that ignores the environment's proxies also ignores its SSL_CERT_FILE; this context does not.
    return {"verify": ssl.create_default_context(), "trust_env": not is_loopback(url)}
