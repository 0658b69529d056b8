"""Slack's own Stop button: it shows while the agent session of a conversation is "processing" (A6).

Promises: what was set to "processing" is set back, for Slack does not do so when an answer is posted, only an hour
later; a workspace without sessions is asked once an hour and misses nothing else. Must never fail a turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Literal

import structlog

from agent.thread.conversation import ThreadKey
from bot.slack.history import is_direct
from bot.slack.web_api import DeliveryFailed, LeaseCheck, SlackCalls, no_lease

_METHOD: Final = "agents.sessions.setStatus"
_MISSING_S: Final = 3_600.0
# What Slack says where the app is no agent, or a compatible server knows no sessions; anything else is of one thread.
_MISSING: Final = frozenset(
    {"unknown_method", "not_authorized", "missing_scope", "not_allowed_token_type", "feature_not_enabled"}
)
_LIMITED: Final = frozenset({"ratelimited", "rate_limited"})
_MINUTE_S: Final = 60.0
_MOST_A_MINUTE: Final = 20
"""Slack takes about fifty of these calls a minute of a workspace, and each button costs two."""
_log = structlog.get_logger()


def session_ts(place: ThreadKey, question_ts: str) -> str:
    """The thread that Slack hangs a status and a session on: in a direct chat the question itself."""
    return question_ts if is_direct(place) else place.thread_ts


class AgentSessions:
    """The sessions of one workspace, as far as this process knows whether it has any."""

    def __init__(self, calls: SlackCalls) -> None:
        self._calls = calls
        self._not_before = 0.0
        self._begun: deque[float] = deque(maxlen=_MOST_A_MINUTE)

    async def begin(self, place: ThreadKey, question_ts: str, lease_check: LeaseCheck = no_lease) -> bool:
        """Offers the Stop button, if Slack takes it at once. Whether it may be there, and has to be taken away.

        Raises what ``lease_check`` raises.
        """
        if self._missing() or not self._has_room():
            return False
        lease_check()
        try:
            await self._calls.once(_METHOD, _body(place, question_ts, "processing"))
        except DeliveryFailed as failure:
            self._failed(failure)
            return not (failure.permanent or failure.reason in _LIMITED)
        return True

    async def end(self, place: ThreadKey, question_ts: str, lease_check: LeaseCheck = no_lease) -> None:
        """Takes the button away; a Slack that is busy is waited for. Raises what ``lease_check`` raises."""
        if not self._missing():
            try:
                await self._calls.write(_METHOD, _body(place, question_ts, "active"), lease_check=lease_check)
            except DeliveryFailed as failure:
                self._failed(failure)

    def _has_room(self) -> bool:
        """Whether another button leaves enough calls to take them all away again."""
        now = asyncio.get_running_loop().time()
        if len(self._begun) == _MOST_A_MINUTE and now - self._begun[0] < _MINUTE_S:
            return False
        self._begun.append(now)
        return True

    def _missing(self) -> bool:
        return asyncio.get_running_loop().time() < self._not_before

    def _failed(self, failure: DeliveryFailed) -> None:
        _log.info("session_not_set", reason=failure.reason)
        if failure.reason in _MISSING:
            self._not_before = asyncio.get_running_loop().time() + _MISSING_S


def _body(place: ThreadKey, question_ts: str, status: Literal["processing", "active"]) -> dict[str, str]:
    return {"channel_id": place.channel, "thread_ts": session_ts(place, question_ts), "status": status}
