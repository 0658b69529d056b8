"""The Langfuse server that takes the traces, and its keys."""

import hashlib
import re
from dataclasses import dataclass, field
from typing import Final

# W3C Trace Context: 16 bytes in lower-case hexadecimal digits, not all of them zero.
_TRACE_ID: Final = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A Langfuse server and one project's keys. ``sample_rate`` is the share of turns that are traced.

    ``environment`` keeps evaluations and terminals apart from people's questions in Slack. ``annotation_queue`` is the
    name or id of the queue for disliked answers; empty: none.
    """

    public_key: str = ""
    secret_key: str = field(default="", repr=False)
    host: str = "https://cloud.langfuse.com"
    environment: str = ""
    sample_rate: float = 1.0
    enabled: bool = True
    annotation_queue: str = ""

    @property
    def is_configured(self) -> bool:
        """True if traces are to be sent."""
        return bool(self.enabled and self.public_key and self.secret_key)


def trace_id_of(turn_id: str) -> str:
    """Return the id of a turn's trace. It follows from the turn, so that a click days later finds the trace.

    A turn id that can be a trace id is used as it is: log, record and trace then share one id.
    """
    if _TRACE_ID.fullmatch(turn_id) and turn_id.strip("0"):
        return turn_id
    return hashlib.sha256(turn_id.encode("utf-8", "replace")).hexdigest()[:32]
