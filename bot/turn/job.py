"""One message in a worker's hands: what every gate and every step of its turn is told."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, replace
from typing import Final

from agent.thread.conversation import Message, ThreadKey
from agent.thread.state import ThreadState
from bot.delivery.answer_key import AnswerKey, Mark
from bot.queue.lease import Lease
from bot.queue.queue import Claimed
from bot.slack.history import sort_key
from bot.slack.message import Incoming
from bot.stores.facts import Facts, MarkName, mark_of
from verification.text.language import detect

FRESH_S: Final = 3_600  # a question older than this may come again from elsewhere: a dead letter, a Redis that was lost
GATE_LEAST_S: Final = 2.0
GATE_MOST_S: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One message in our hands. ``facts`` are what Redis knew when it was claimed.

    ``context`` is what was said last in the same direct chat before this message opened a thread of its own. ``read``
    is what was read of the thread, to be kept if the message has to be given back.
    """

    claimed: Claimed
    lease: Lease
    incoming: Incoming
    turn_id: str
    facts: Facts = field(default_factory=Facts)
    context: tuple[Message, ...] = ()
    read: str = ""

    def kept(self, state: ThreadState) -> ThreadState:
        """What is saved of the thread: what was said elsewhere in the chat is kept where it was said."""
        return replace(state, history=tuple(one for one in state.history if one not in self.context))

    @property
    def place(self) -> ThreadKey:
        """Where the answer goes."""
        return self.incoming.thread

    def mark(self, name: MarkName) -> str:
        """The full name of one of the turn's marks, which ``Facts`` holds as an earlier try left them."""
        return mark_of(self.turn_id, name)

    @property
    def language(self) -> str | None:
        """What the person wrote in; None for English or unsure."""
        return detect(self.incoming.text)

    @property
    def may_be_answered(self) -> bool:
        """Whether Slack may show something of ours for this question: tried before, edited, or asked long ago."""
        return self.claimed.tries > 1 or self._answered_before

    @property
    def begun(self) -> bool:
        """Whether an earlier try may have said something: an answer is decided, and a stream noted, before it shows."""
        asks_nothing = self.incoming.kind not in {"question", "edit"}
        return bool(asks_nothing or self.facts.outbox or self.facts.streams)

    @property
    def _answered_before(self) -> bool:
        written = sort_key(self.incoming.ts)[0]  # by Slack's clock
        return bool(self.incoming.edited_ts) or time.time() - written > FRESH_S

    def answer_key(self, *marks: Mark, may_exist: bool = True) -> AnswerKey:
        """The identity that makes the answer unique in Slack."""
        posted = self.facts.state.posted.get(self.incoming.ts, ())
        return AnswerKey(
            question_ts=self.incoming.ts,
            turn_id=self.turn_id,
            may_exist=may_exist,
            lease_check=self.lease.require,
            marks=marks,
            language=self.language,
            posted=posted,
            # What is noted is where the answer before stands, not what this turn's earlier try posted beside it.
            posted_is_complete=not self.begun and (bool(posted) or not self._answered_before),
        )


def turn_id_of(incoming: Incoming) -> str:
    """32 hex digits, the same on every try of the same version of the same message: also the trace's id."""
    return turn_id_for(incoming.thread, incoming.ts, incoming.edited_ts)


def turn_id_for(thread: ThreadKey, ts: str, edited_ts: str) -> str:
    """The same, of the message with this ts as it was edited last."""
    return hashlib.sha256(f"{thread}:{ts}:{edited_ts}".encode()).hexdigest()[:32]


def gate_wait_s(claimed: Claimed) -> float:
    """Seconds until what waits before the door is looked at again: longer the longer it has been waiting."""
    return min(GATE_MOST_S, max(GATE_LEAST_S, claimed.waited_s / 4))


def asks(incoming: Incoming) -> bool:
    """Whether answering may cost anything. A bare mention may bring a file to be read: no event tells."""
    return incoming.kind in {"question", "edit"} or (incoming.kind == "help" and incoming.files != "none")
