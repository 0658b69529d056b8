"""Every Prometheus metric, declared once (G3). Labels take small fixed vocabularies, never an id or a text."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

# From an instant page to the longest turn that is allowed: each step about doubles.
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)


class Metrics:
    """One set of metrics; the process makes one and hands it round."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._declare_turns()
        self._declare_model_and_tools()
        self._declare_slack()
        self._declare_knowledge()

    def _declare_turns(self) -> None:
        to = self.registry
        self.turns = Counter("orion_turns", "Turns that ended, by outcome.", ["outcome"], registry=to)
        self.turn_seconds = Histogram(
            "orion_turn_seconds", "Time of a turn from claim to end.", ["outcome"], buckets=_SECONDS, registry=to
        )
        self.turns_running = Gauge("orion_turns_running", "Turns at work now.", registry=to)
        self.attempts = Histogram("orion_attempts", "Drafts that an answer took.", buckets=(1, 2, 3), registry=to)
        self.violations = Counter(
            "orion_violations", "Broken rules, by rule and severity.", ["rule", "severity"], registry=to
        )
        self.repairs = Counter("orion_repairs", "Form faults mended without a model.", ["kind"], registry=to)

    def _declare_model_and_tools(self) -> None:
        to = self.registry
        self.model_calls = Counter(
            "orion_model_calls", "Model calls, by phase and error kind (empty: none).", ["phase", "error"], registry=to
        )
        self.model_seconds = Histogram(
            "orion_model_seconds", "Time of a model call.", ["phase"], buckets=_SECONDS, registry=to
        )
        self.model_tokens = Counter(
            "orion_model_tokens", "Tokens, by phase and direction.", ["phase", "direction"], registry=to
        )
        self.tool_calls = Counter("orion_tool_calls", "Tool calls, by tool and result.", ["tool", "ok"], registry=to)
        self.tool_seconds = Histogram(
            "orion_tool_seconds", "Time of a tool call.", ["tool"], buckets=_SECONDS, registry=to
        )

    def _declare_slack(self) -> None:
        to = self.registry
        self.events = Counter("orion_slack_events", "Events from Slack, by what became of them.", ["fate"], registry=to)
        self.queue_messages = Gauge("orion_queue_messages", "Stored messages, waiting or in work.", registry=to)
        self.dead_letters = Gauge("orion_dead_letters", "Messages that were given up.", registry=to)
        self.queue_wait_seconds = Histogram(
            "orion_queue_wait_seconds", "Time from storing a question to its claim.", buckets=_SECONDS, registry=to
        )
        self.circuit_open = Gauge(
            "orion_circuit_open", "1 while a far end that kept failing is left alone.", ["far_end"], registry=to
        )
        self.deliveries = Counter("orion_deliveries", "Answers delivered, by how.", ["how"], registry=to)
        self.slack_waits = Histogram(
            "orion_slack_wait_seconds",
            "How long a Slack call had to wait for its turn under Slack's limits, by method.",
            ["method"],
            buckets=(0.1, 0.5, 1, 2, 5, 10, 30, 60, 120),
            registry=to,
        )
        self.slack_errors = Counter(
            "orion_slack_errors",
            "Tries of a Slack call that failed, by method and error name.",
            ["method", "error"],
            registry=to,
        )

    def _declare_knowledge(self) -> None:
        to = self.registry
        self.documents = Gauge("orion_knowledge_documents", "Documents in the index.", registry=to)
        self.passages = Gauge("orion_knowledge_passages", "Passages that they fall into.", registry=to)
        self.unread = Gauge(
            "orion_knowledge_unread",
            "Documents that could not be read when their source was last gone over.",
            registry=to,
        )
        self.sync_age_seconds = Gauge(
            "orion_knowledge_sync_age_seconds", "Time since the source that waits longest was gone over.", registry=to
        )
        self.syncs = Counter(
            "orion_knowledge_syncs", "Runs of the background sync, by how they ended.", ["how"], registry=to
        )

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
