"""The Langfuse server that takes the traces, and its keys."""

import hashlib
import re
import ssl
from dataclasses import dataclass, field
from typing import Any, Final

from observability.loopback import is_loopback

# W3C Trace Context: 16 bytes in lower-case hexadecimal digits, not all of them zero.
_TRACE_ID: Final = re.compile("(?!0{32})[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A Langfuse server and one project's keys. ``sample_rate`` is the share of turns that are traced.

    ``environment`` keeps evaluations and terminals apart from people's questions in Slack. ``annotation_queue`` is the
    name or id of the queue for disliked answers; empty: none. At most ``flush_at`` spans or scores go in a request: 50
    with long prompts are half a megabyte, and a proxy's limit is often one.
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

    @property
    def is_configured(self) -> bool:
        """True if traces are to be sent."""
        return bool(self.enabled and self.public_key and self.secret_key)


def trace_id_of(turn_id: str) -> str:
    """Return the id of a turn's trace. It is derived from the turn, so that a click days later finds the trace.

    A turn id that can be a trace id is used as it is: log, record and trace then share one id.
    """
    return (
        turn_id if _TRACE_ID.fullmatch(turn_id) else hashlib.sha256(turn_id.encode("utf-8", "replace")).hexdigest()[:32]
    )


def http_options(host: str, timeout_s: float) -> dict[str, Any]:
    """Return the options of an ``httpx.Client`` for Langfuse's API: the host's certificates, no proxy to loopback."""
    return {"timeout": timeout_s, "verify": ssl.create_default_context(), "trust_env": not is_loopback(host)}
