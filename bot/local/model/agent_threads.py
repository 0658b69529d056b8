"""What an agent app shows round its conversations: status lines, sessions, titles, suggested prompts.

A status is gone after two minutes, with the app's next message in its thread, when it is set to nothing, or when the
session is not processing any more. As in Slack, a status that is set makes the session processing, an empty one active.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bot.local.model.feed import Feed
from bot.local.model.messages import Message
from bot.local.model.roster import Json

ThreadId = tuple[str, str]
"""Channel id and ``thread_ts``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A status line such as "is searching …" with the messages that take turns while it shows."""

    text: str
    loading_messages: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Session:
    """The state of an agent session: active, processing, suspended or closed."""

    status: str
    title: str = ""


@dataclass(slots=True)
class AgentThreads:
    """Statuses, sessions, titles and prompts by conversation."""

    feed: Feed
    status_seconds: float
    statuses: dict[ThreadId, Status] = field(default_factory=dict)
    status_log: list[tuple[ThreadId, str]] = field(default_factory=list)
    """Every status ever set, in order, for tests that want to have seen one."""
    sessions: dict[ThreadId, Session] = field(default_factory=dict)
    prompts: dict[str, Json] = field(default_factory=dict)
    """Suggested prompts by direct chat: ``{title, prompts: [{title, message}]}``."""
    _timers: dict[ThreadId, asyncio.TimerHandle] = field(default_factory=dict)

    def set_status(self, thread: ThreadId, text: str, loading_messages: tuple[str, ...]) -> None:
        """Shows a status, or takes it away when ``text`` is empty."""
        self.status_log.append((thread, text))
        self.set_session(thread, "processing" if text else "active", "")
        self._stop_timer(thread)
        if not text:
            self._clear(thread)
            return
        self.statuses[thread] = Status(text=text, loading_messages=loading_messages)
        loop = asyncio.get_running_loop()
        self._timers[thread] = loop.call_later(self.status_seconds, self._clear, thread)
        self._publish_status(thread)

    def app_spoke(self, message: Message) -> None:
        """Takes away the status of the thread that this message of the app stands in."""
        self._end_status((message.channel, message.thread_ts or message.ts))

    def set_session(self, thread: ThreadId, status: str, title: str) -> None:
        """Sets a session's state, making the session when there is none; only then does ``title`` count."""
        session = self.sessions.setdefault(thread, Session(status=status, title=title))
        session.status = status
        if status != "processing":
            self._end_status(thread)
        self.feed.publish("session", channel=thread[0], thread_ts=thread[1], status=status, title=session.title)

    def rename(self, thread: ThreadId, title: str) -> None:
        """Gives a conversation a title."""
        if session := self.sessions.get(thread):
            session.title = title

    def suggest(self, channel: str, title: str, prompts: list[Json]) -> None:
        """Offers prompts in a direct chat."""
        self.prompts[channel] = {"title": title, "prompts": prompts}
        self.feed.publish("prompts", channel=channel, **self.prompts[channel])

    def close(self) -> None:
        """Stops the timers."""
        for thread in list(self._timers):
            self._stop_timer(thread)

    def shown(self) -> list[Json]:
        """All statuses on show."""
        return [self._status_payload(thread) for thread in self.statuses]

    def forget(self, thread: ThreadId) -> None:
        """The thread is gone, and with it its status and its session."""
        self._end_status(thread)
        self.sessions.pop(thread, None)

    def _end_status(self, thread: ThreadId) -> None:
        self._stop_timer(thread)
        self._clear(thread)

    def _clear(self, thread: ThreadId) -> None:
        self._timers.pop(thread, None)
        if self.statuses.pop(thread, None) is not None:
            self._publish_status(thread)

    def _stop_timer(self, thread: ThreadId) -> None:
        if timer := self._timers.pop(thread, None):
            timer.cancel()

    def _publish_status(self, thread: ThreadId) -> None:
        self.feed.publish("status", **self._status_payload(thread))

    def _status_payload(self, thread: ThreadId) -> Json:
        status = self.statuses.get(thread)
        return {
            "channel": thread[0],
            "thread_ts": thread[1],
            "status": status.text if status else "",
            "loading_messages": list(status.loading_messages) if status else [],
        }
