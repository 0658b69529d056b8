"""The connection to Langfuse: its server, and the keys of a project."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A Langfuse server and one project's keys. ``sample_rate`` is the share of turns that are traced.

    ``environment`` keeps evaluations and terminals apart from people's questions in Slack. ``annotation_queue`` is the
    id of the queue for disliked answers; empty: none. A request has at most ``flush_at`` spans or scores: 50
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
