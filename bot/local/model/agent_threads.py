"""An agent app's status lines, sessions, titles and suggested prompts.

A status disappears after two minutes, with the app's next message in its thread, when it is set to an empty text, or
when the session is no longer processing. As in Slack, setting a status makes the session processing, an empty status
makes it active.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from bot.local.model.feed import Feed
from bot.local.model.roster import Json

SESSION_STATES: Final = ("active", "processing", "suspended", "closed")

ThreadId = tuple[str, str]  # channel id and ``thread_ts``


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A status line such as "is searching …", the messages that rotate while it shows, and the timer that ends it."""

    text: str
    loading_messages: list[str]
    timer: asyncio.TimerHandle


@dataclass(slots=True, kw_only=True)
class Session:
    """The state of an agent session, one of ``SESSION_STATES``."""

    status: str
    title: str = ""


@dataclass(slots=True)
class AgentThreads:
    """Statuses, sessions, titles and prompts by conversation."""

    feed: Feed
    status_seconds: float
    statuses: dict[ThreadId, Status] = field(default_factory=dict)
    sessions: dict[ThreadId, Session] = field(default_factory=dict)
    prompts: dict[str, Json] = field(default_factory=dict)  # suggested ones and their title, by direct chat

    def set_status(self, thread: ThreadId, text: str, loading_messages: list[str]) -> None:
        """Show a status, or remove it if ``text`` is empty."""
        self.set_session(thread, "processing" if text else "active", "")
        if not text:
            return
        if before := self.statuses.get(thread):
            before.timer.cancel()
        timer = asyncio.get_running_loop().call_later(self.status_seconds, self.end_status, thread)
        self.statuses[thread] = Status(text=text, loading_messages=loading_messages, timer=timer)
        self.feed.publish("status", **self._status_payload(thread))

    def set_session(self, thread: ThreadId, status: str, title: str) -> None:
        """Set a session's state. A new session is created if needed; ``title`` counts only then."""
        session = self.sessions.setdefault(thread, Session(status=status, title=title))
        session.status = status
        if status != "processing":
            self.end_status(thread)
        self.feed.publish("session", channel=thread[0], thread_ts=thread[1], status=status, title=session.title)

    def suggest(self, channel: str, title: str, prompts: list[Json]) -> None:
        """Offer prompts in a direct chat."""
        self.prompts[channel] = {"title": title, "prompts": prompts}
        self.feed.publish("prompts", channel=channel, **self.prompts[channel])

    def close(self) -> None:
        """Stop the timers."""
        for status in self.statuses.values():
            status.timer.cancel()

    def status_payloads(self) -> list[Json]:
        """All visible statuses."""
        return [self._status_payload(thread) for thread in self.statuses]

    def forget(self, thread: ThreadId) -> None:
        """Remove the status and the session of a deleted thread."""
        self.end_status(thread)
        self.sessions.pop(thread, None)

    def end_status(self, thread: ThreadId) -> None:
        """Remove a thread's status."""
        if status := self.statuses.pop(thread, None):
            status.timer.cancel()
            self.feed.publish("status", **self._status_payload(thread))

    def _status_payload(self, thread: ThreadId) -> Json:
        status = self.statuses.get(thread)
        text, messages = (status.text, status.loading_messages) if status else ("", [])
        return {"channel": thread[0], "thread_ts": thread[1], "status": text, "loading_messages": messages}
