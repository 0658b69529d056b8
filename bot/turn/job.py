"""A claimed message with its lease and facts, as every gate and every step of its turn gets it."""

import hashlib
import time
from dataclasses import dataclass, field, replace
from typing import Final

from agent.thread.conversation import Question, ThreadKey, ThreadMessage
from agent.thread.state import ThreadState
from bot.delivery.answer_key import AnswerKey, Mark
from bot.queue.lease import Claimed, Lease
from bot.slack.history import sort_key
from bot.slack.message import ADDRESSES_ORION, Incoming
from bot.stores.stores import Facts, MarkName, mark_of
from verification.text.language import detect_language

MAX_NEW_AGE_S: Final = 3_600  # an older question may be repeated: from a dead letter, or after a lost Redis
MIN_GATE_WAIT_S: Final = 2.0
MAX_GATE_WAIT_S: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One claimed message. ``facts`` are as old as the claim. ``spoken`` is the language that its channel is set to.

    ``context`` is the latest exchange of the same direct chat before this message opened a new thread. ``read`` is the
    conversation read from Slack, stored if the message has to be given back.
    """

    claimed: Claimed
    lease: Lease
    incoming: Incoming
    turn_id: str
    facts: Facts = field(default_factory=Facts)
    spoken: str = ""
    context: tuple[ThreadMessage, ...] = ()
    read: str = ""

    def without_context(self, state: ThreadState) -> ThreadState:
        """Return the state to save: messages of another thread of the chat belong to that thread."""
        return replace(state, history=tuple(one for one in state.history if one not in self.context))

    @property
    def addressed(self) -> bool:
        """True for a message that is meant for Orion: a mention, a direct message, or an answer to its question."""
        pending = self.facts.state.pending_question
        answers = pending is not None and pending.user == self.incoming.user
        return self.incoming.addressed in ADDRESSES_ORION or answers

    def question(self) -> Question:
        """Return the message as the agent's question."""
        return replace(self.incoming.question(), addressed=self.addressed)

    @property
    def place(self) -> ThreadKey:
        """Thread of the answer."""
        return self.incoming.thread

    def mark(self, name: MarkName) -> str:
        """Return the full name of one of the turn's marks. ``Facts`` has their values."""
        return mark_of(self.turn_id, name)

    @property
    def language(self) -> str | None:
        """Language of the channel's settings, else of the message; None for English or unsure."""
        return self.spoken or detect_language(self.incoming.text)

    @property
    def may_be_answered(self) -> bool:
        """True if Slack may have a message for this question: tried before, edited, or asked long ago."""
        return self.claimed.tries > 1 or self._answered_before

    @property
    def may_have_posted(self) -> bool:
        """True if an earlier delivery try may have posted: answers and streams are recorded before they show."""
        asks_nothing = self.incoming.kind not in {"question", "edit"}
        return bool(asks_nothing or self.facts.outbox or self.facts.streams)

    @property
    def _answered_before(self) -> bool:
        written = sort_key(self.incoming.ts)[0]  # by Slack's clock
        return bool(self.incoming.edited_ts) or time.time() - written > MAX_NEW_AGE_S

    def answer_key(self, *marks: Mark, may_exist: bool = True) -> AnswerKey:
        """Return the identity that makes the answer unique in Slack."""
        posted = self.facts.state.posted.get(self.incoming.ts, ())
        return AnswerKey(
            question_ts=self.incoming.ts,
            turn_id=self.turn_id,
            may_exist=may_exist,
            lease_check=self.lease.require,
            marks=marks,
            language=self.language,
            share_to=self.incoming.origin,
            posted=posted,
            # The records name the previous answer's messages, not those of this turn's earlier delivery try.
            posted_is_complete=not self.may_have_posted and (bool(posted) or not self._answered_before),
        )


def turn_id_of(incoming: Incoming) -> str:
    """Return the turn's id: 32 hex digits, equal on every try of the same version of a message. Also the trace's id."""
    return turn_id_for(incoming.thread, incoming.ts, incoming.edited_ts)


def turn_id_for(thread: ThreadKey, ts: str, edited_ts: str) -> str:
    """Return the turn's id of the message with this ts, as it was edited last."""
    return hashlib.sha256(f"{thread}:{ts}:{edited_ts}".encode()).hexdigest()[:32]


def gate_wait_s(claimed: Claimed) -> float:
    """Return the seconds until a waiting message is checked again, growing with its wait."""
    return min(MAX_GATE_WAIT_S, max(MIN_GATE_WAIT_S, claimed.waited_s / 4))


def costs_tokens(incoming: Incoming) -> bool:
    """Return whether answering may use tokens. A bare mention may have a file, which the event does not show."""
    return incoming.kind in {"question", "edit"} or (incoming.kind == "help" and incoming.files != "none")
