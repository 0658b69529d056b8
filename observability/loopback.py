"""Whether an address stays on this machine: such a server is never behind a proxy, whatever the environment says.

Promises: decides from the text alone; an address that cannot be read is elsewhere. Must never look a name up.
"""

from __future__ import annotations

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
