"""An agent app's own views: statuses, sessions, suggested prompts, modals and App Home.

A status disappears after two minutes, with the app's next message in its thread, or when the session stops processing.
As in Slack, a status makes the session ``processing``, and an empty one ``active``.
"""

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from bot.local.model.errors import ApiError
from bot.local.model.feed import UpdateFeed
from bot.local.model.limits import check_view
from bot.local.model.messages import identifier, with_block_ids
from bot.local.model.roster import APP_ID, BOT_ID, TEAM_ID, Json

SESSION_STATES: Final = ("active", "processing", "suspended", "closed")

ThreadId = tuple[str, str]  # channel id and ``thread_ts``


@dataclass(slots=True, kw_only=True)
class AgentSession:
    """The state of an agent session, one of ``SESSION_STATES``."""

    status: str
    title: str = ""


@dataclass(slots=True)
class AgentThreads:
    """Statuses, sessions, titles and prompts by conversation."""

    feed: UpdateFeed
    status_seconds: float
    statuses: dict[ThreadId, tuple[Json, asyncio.TimerHandle]] = field(default_factory=dict)  # with what ends each
    sessions: dict[ThreadId, AgentSession] = field(default_factory=dict)
    prompts: dict[str, Json] = field(default_factory=dict)  # suggested prompts and their title, by channel

    def set_status(self, thread: ThreadId, text: str, loading_messages: list[str]) -> None:
        """Show a status, or remove it if ``text`` is empty."""
        self.set_session(thread, "processing" if text else "active", "")
        if not text:
            return
        if before := self.statuses.get(thread):
            before[1].cancel()
        timer = asyncio.get_running_loop().call_later(self.status_seconds, self.end_status, thread)
        payload = {"channel": thread[0], "thread_ts": thread[1], "status": text, "loading_messages": loading_messages}
        self.statuses[thread] = payload, timer
        self.feed.publish("status", **payload)

    def set_session(self, thread: ThreadId, status: str, title: str) -> None:
        """Set a session's state. Create the session if needed; ``title`` is used only then."""
        session = self.sessions.setdefault(thread, AgentSession(status=status, title=title))
        session.status = status
        if status != "processing":
            self.end_status(thread)
        self.feed.publish("session", channel=thread[0], thread_ts=thread[1], status=status, title=session.title)

    def close(self) -> None:
        """Stop the timers."""
        for _, timer in self.statuses.values():
            timer.cancel()

    def status_payloads(self) -> list[Json]:
        """All visible statuses."""
        return [payload for payload, _ in self.statuses.values()]

    def forget(self, thread: ThreadId) -> None:
        """Remove the status and the session of a deleted thread."""
        self.end_status(thread)
        self.sessions.pop(thread, None)

    def end_status(self, thread: ThreadId) -> None:
        """Remove a thread's status."""
        if status := self.statuses.pop(thread, None):
            payload, timer = status
            timer.cancel()
            self.feed.publish("status", **(payload | {"status": "", "loading_messages": []}))


@dataclass(slots=True, kw_only=True)
class OpenView:
    """A modal on one person's screen."""

    view: Json
    user: str


@dataclass(slots=True)
class Views:
    """Open modals and published homes, with Slack's rules for triggers (valid once, for three seconds)."""

    feed: UpdateFeed
    trigger_seconds: float
    open: dict[str, OpenView] = field(default_factory=dict)
    homes: dict[str, Json] = field(default_factory=dict)
    _triggers: dict[str, tuple[float, str] | None] = field(default_factory=dict)  # None: used

    def new_trigger(self, user: str) -> str:
        """Return a trigger id for this person's latest action."""
        trigger = secrets.token_hex(16)
        self._triggers[trigger] = (time.monotonic() + self.trigger_seconds, user)
        return trigger

    def exchange(self, trigger: str) -> str:
        """Return a trigger's person, and use up the trigger."""
        if trigger not in self._triggers:
            raise ApiError(error="invalid_trigger_id")
        found, self._triggers[trigger] = self._triggers[trigger], None
        if found is None:
            raise ApiError(error="exchanged_trigger_id")
        if time.monotonic() > found[0]:  # distinguished from an unknown trigger, as in Slack
            raise ApiError(error="expired_trigger_id")
        return found[1]

    def show(self, user: str, given: Json) -> Json:
        """Open a modal for a person and return its view object."""
        view = _new_view(given, "modal")
        self.open[view["id"]] = OpenView(view=view, user=user)
        self.feed.publish("view", view_id=view["id"], user=user)
        return view

    def close(self, view_id: str) -> None:
        """Close a modal, if it is open."""
        if found := self.open.pop(view_id, None):
            self.feed.publish("view_closed", view_id=view_id, user=found.user)

    def publish(self, user: str, given: Json) -> Json:
        """Set a person's App Home, which keeps its id."""
        before, view = self.homes.get(user), _new_view(given, "home")
        view["id"] = before["id"] if before else view["id"]
        self.homes[user] = view
        self.feed.publish("home", user=user)
        return view


def _new_view(given: Json, kind: str) -> Json:
    check_view(given, kind)
    optional = {"callback_id": "", "private_metadata": "", "submit": None, "close": None, "title": None}
    return {
        "id": identifier("V"),
        "team_id": TEAM_ID,
        "type": kind,
        "blocks": with_block_ids(given["blocks"]),
        **{key: given.get(key, value) for key, value in optional.items()},
        "state": {"values": {}},
        "app_id": APP_ID,
        "bot_id": BOT_ID,
    }
