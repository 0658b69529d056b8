"""All Prometheus metrics. Labels have small fixed vocabularies, never an id or a text."""

import re
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

# From an instant page to the longest allowed turn; each step is about double the last.
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)
_WAITS = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120)
MAX_SLACK_ERRORS = 100
"""Maximum number of Slack error names that become labels: a server must not fill the memory with new ones."""
_ERROR_NAME = re.compile(r"\w{1,60}", re.ASCII)


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._slack_error_names: set[str] = set()
        self._declare_turns()
        self._declare_slack_and_knowledge()

    def _declare_turns(self) -> None:
        self.turns = self._count("turns", "Turns that ended, by outcome.", "outcome")
        self.turn_seconds = self._spread("turn_seconds", "Time of a turn from claim to end.", "outcome")
        self.turns_running = self._gauge("turns_running", "Turns at work now.")
        self.attempts = self._spread("attempts", "Drafts that an answer took.", buckets=(1, 2, 3, 5, 8))
        self.violations = self._count("violations", "Broken rules, by rule and severity.", "rule", "severity")
        self.repairs = self._count("repairs", "Faults of form that were repaired without a model.", "kind")

        says = "Model calls, by phase and error kind (empty: none)."
        self.model_calls = self._count("model_calls", says, "phase", "error")
        self.model_seconds = self._spread("model_seconds", "Time of a model call.", "phase")
        self.model_tokens = self._count("model_tokens", "Tokens, by phase and direction.", "phase", "direction")
        self.tool_calls = self._count("tool_calls", "Tool calls, by tool and result.", "tool", "ok")
        self.tool_seconds = self._spread("tool_seconds", "Time of a tool call.", "tool")

    def _declare_slack_and_knowledge(self) -> None:
        self.events = self._count("slack_events", "Events from Slack, by what became of them.", "fate")
        self.queue_messages = self._gauge("queue_messages", "Stored messages, waiting or in work.")
        self.dead_letters = self._gauge("dead_letters", "Messages that Orion gave up.")
        says = "Time from storing a question to its claim, except after an outage of the model or the documents."
        self.queue_wait_seconds = self._spread("queue_wait_seconds", says)
        self.circuit_open = self._gauge("circuit_open", "1 while a service that kept failing is not called.", "service")
        says = "How long a Slack call had to wait for its turn under Slack's limits, by method."
        self.slack_waits = self._spread("slack_wait_seconds", says, "method", buckets=_WAITS)
        says = "Failed requests of a Slack call, by method and error name."
        self.slack_errors = self._count("slack_errors", says, "method", "error")

        self.documents = self._gauge("knowledge_documents", "Documents in the index.")
        self.passages = self._gauge("knowledge_passages", "Passages in the index.")
        self.unread = self._gauge("knowledge_unread", "Documents that the last sync of their source could not read.")
        says = "Time since the last sync of the source that waits longest."
        self.sync_age_seconds = self._gauge("knowledge_sync_age_seconds", says)
        says = "1 if the embedding server answers, 0 while search goes by words alone."
        self.search_by_meaning = self._gauge("search_by_meaning_up", says)
        self.syncs = self._count("knowledge_syncs", "Runs of the background sync, by how they ended.", "how")

    def slack_error(self, method: str, name: str) -> None:
        """Count a failed request of a Slack call. The name of an error can be any text."""
        known = self._slack_error_names
        if not _ERROR_NAME.fullmatch(name) or (name not in known and len(known) >= MAX_SLACK_ERRORS):
            name = "other"
        known.add(name)
        self.slack_errors.labels(method, name).inc()

    def render(self) -> tuple[bytes, str]:
        """Return the page for Prometheus and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def _count(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(f"orion_{name}", says, labels, registry=self.registry)

    def _gauge(self, name: str, says: str, *labels: str) -> Gauge:
        return Gauge(f"orion_{name}", says, labels, registry=self.registry)

    def _spread(self, name: str, says: str, *labels: str, buckets: Sequence[float] = _SECONDS) -> Histogram:
        return Histogram(f"orion_{name}", says, labels, registry=self.registry, buckets=buckets)
