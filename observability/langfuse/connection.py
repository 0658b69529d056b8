"""The connection to Langfuse: its server, the keys of a project, and the options of its HTTP clients."""

import ssl
from dataclasses import dataclass, field
from typing import Any

from observability.loopback import is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A Langfuse server and one project's keys. ``sample_rate`` is the share of turns that are traced.

    ``environment`` keeps evaluations and terminals apart from people's questions in Slack. ``annotation_queue`` is the
    name or id of the queue for disliked answers; empty: none. A request has at most ``flush_at`` spans or scores: 50
    with long prompts are half a megabyte, and proxies often allow one.
    """

    public_key: str = ""
    secret_key: str = field(default="", repr=False)
    host: str = "https://cloud.langfuse.com"
    environment: str = ""
    release: str = ""
    sample_rate: float = 1.0
    enabled: bool = True
    debug: bool = False
    timeout_s: int = 5
    flush_at: int = 50
    flush_interval_s: float = 1.0
    annotation_queue: str = ""


def http_options(host: str, timeout_s: float) -> dict[str, Any]:
    """Return the options of an ``httpx.Client``: the host's certificates, and no proxy for loopback."""
    return {"timeout": timeout_s, "verify": ssl.create_default_context(), "trust_env": not is_loopback(host)}
