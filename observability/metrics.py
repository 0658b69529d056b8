"""Every Prometheus metric, declared once. Labels take small fixed vocabularies, never an id or a text."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

# From an instant page to the longest turn that is allowed: each step about doubles.
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)
_WAITS = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120)


class Metrics:
    """One set of metrics; the process makes one and hands it round."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._declare_turns()
        self._declare_slack_and_knowledge()

    def _declare_turns(self) -> None:
        self.turns = self._count("turns", "Turns that ended, by outcome.", "outcome")
        self.turn_seconds = self._spread("turn_seconds", "Time of a turn from claim to end.", "outcome")
        self.turns_running = self._gauge("turns_running", "Turns at work now.")
        self.attempts = self._spread("attempts", "Drafts that an answer took.", buckets=(1, 2, 3))
        self.violations = self._count("violations", "Broken rules, by rule and severity.", "rule", "severity")
        self.repairs = self._count("repairs", "Form faults mended without a model.", "kind")

        self.model_calls = self._count(
            "model_calls", "Model calls, by phase and error kind (empty: none).", "phase", "error"
        )
        self.model_seconds = self._spread("model_seconds", "Time of a model call.", "phase")
        self.model_tokens = self._count("model_tokens", "Tokens, by phase and direction.", "phase", "direction")
        self.tool_calls = self._count("tool_calls", "Tool calls, by tool and result.", "tool", "ok")
        self.tool_seconds = self._spread("tool_seconds", "Time of a tool call.", "tool")

    def _declare_slack_and_knowledge(self) -> None:
        self.events = self._count("slack_events", "Events from Slack, by what became of them.", "fate")
        self.queue_messages = self._gauge("queue_messages", "Stored messages, waiting or in work.")
        self.dead_letters = self._gauge("dead_letters", "Messages that were given up.")
        self.queue_wait_seconds = self._spread("queue_wait_seconds", "Time from storing a question to its claim.")
        self.circuit_open = self._gauge("circuit_open", "1 while a far end that kept failing is left alone.", "far_end")
        self.deliveries = self._count("deliveries", "Answers delivered, by how.", "how")
        self.slack_waits = self._spread(
            "slack_wait_seconds",
            "How long a Slack call had to wait for its turn under Slack's limits, by method.",
            "method",
            buckets=_WAITS,
        )
        self.slack_errors = self._count(
            "slack_errors", "Tries of a Slack call that failed, by method and error name.", "method", "error"
        )

        self.documents = self._gauge("knowledge_documents", "Documents in the index.")
        self.passages = self._gauge("knowledge_passages", "Passages that they fall into.")
        self.unread = self._gauge(
            "knowledge_unread", "Documents that could not be read when their source was last gone over."
        )
        self.sync_age_seconds = self._gauge(
            "knowledge_sync_age_seconds", "Time since the source that waits longest was gone over."
        )
        self.syncs = self._count("knowledge_syncs", "Runs of the background sync, by how they ended.", "how")

    def knowledge(self, *, documents: float, passages: float, unread: float, sync_age: float) -> None:
        """What the index holds, as it stands right now; not a number (``nan``) where nobody can tell."""
        self.documents.set(documents)
        self.passages.set(passages)
        self.unread.set(unread)
        self.sync_age_seconds.set(sync_age)

    def synced(self, how: str) -> None:
        """A run of the background sync ended."""
        self.syncs.labels(how).inc()

    def circuit(self, far_end: str, *, is_open: bool) -> None:
        """Whether this far end is being left alone right now."""
        self.circuit_open.labels(far_end).set(is_open)

    def queue(self, *, messages: float, dead: float) -> None:
        """How much there is to do, as it stands right now; not a number (``nan``) where nobody can tell."""
        self.queue_messages.set(messages)
        self.dead_letters.set(dead)

    def render(self) -> tuple[bytes, str]:
        """The page for Prometheus and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def _count(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(f"orion_{name}", says, labels, registry=self.registry)

    def _gauge(self, name: str, says: str, *labels: str) -> Gauge:
        return Gauge(f"orion_{name}", says, labels, registry=self.registry)

    def _spread(self, name: str, says: str, *labels: str, buckets: Sequence[float] = _SECONDS) -> Histogram:
        return Histogram(f"orion_{name}", says, labels, registry=self.registry, buckets=buckets)
