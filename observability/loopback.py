"""Whether an address is on this machine, judged from the text alone: such a server is never reached through a proxy."""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Whether a URL's host is ``localhost``, a name under it, or a loopback address."""
    try:
        host = urlsplit(url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        return ip_address(host).is_loopback
    except ValueError:  # half a bracket, or a name
        return False


def trusted_at(url: str) -> ssl.SSLContext | bool:
    """What a client of ``url`` verifies certificates by: the host's, by itself.

    A client that must not see the environment's proxies does not see its ``SSL_CERT_FILE`` either; this one does.
    """
    return ssl.create_default_context() if url.startswith("https:") and is_loopback(url) else True
