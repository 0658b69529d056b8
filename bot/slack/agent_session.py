"""Agent sessions: Slack shows "processing" and a Stop button until the app ends the session.

Setting a status also begins a session. An answer does not end it, and Slack would show the button for another hour. So
the call that ends it is retried like a post.
"""

from contextlib import suppress
from typing import Final

import structlog

from agent.thread.conversation import ThreadKey
from bot.slack.web_api import DeliveryFailed, LeaseCheck, SlackCalls, no_lease
from verification.rules.secrets import mask_secrets

SESSION_METHOD: Final = "agents.sessions.setStatus"
RENAME_METHOD: Final = "agents.sessions.rename"
STATUS_METHOD: Final = "assistant.threads.setStatus"  # Slack plans to retire it in February 2027 (decision 18)
MAX_TITLE_CHARS: Final = 200  # Slack's limit
log = structlog.get_logger()


async def begin_session(calls: SlackCalls, place: ThreadKey, lease_check: LeaseCheck = no_lease) -> None:
    """Offer the Stop button unless a status already did. Raises the errors of ``lease_check``."""
    if calls.is_supported(SESSION_METHOD):
        lease_check()
        try:
            await calls.call_once(SESSION_METHOD, _body(place, status="processing"))
        except DeliveryFailed as failure:
            log.info("session_not_set", reason=failure.reason)


async def end_session(calls: SlackCalls, place: ThreadKey, lease_check: LeaseCheck = no_lease, title: str = "") -> None:
    """End the session, under this title if there is one.

    Raises ``DeliveryFailed`` if Slack does not allow it now, and the errors of ``lease_check``.
    """
    if title and calls.is_supported(SESSION_METHOD):
        # A title sent with a status counts only when a session begins, and this one has begun.
        with suppress(DeliveryFailed):
            await calls.call_once(RENAME_METHOD, _body(place, title=mask_secrets(title)[:MAX_TITLE_CHARS]))
    lease_check()
    active = _body(place, status="active")
    try:
        if calls.is_supported(SESSION_METHOD):
            await calls.call_once(SESSION_METHOD, active)
            return
    except DeliveryFailed as failure:
        log.info("session_not_set", reason=failure.reason)
    try:
        # An empty status has the same effect, and may be sent more than fifty times a minute.
        await calls.write(STATUS_METHOD, _body(place, status=""), lease_check=lease_check)
    except DeliveryFailed as failure:
        log.info("status_not_cleared", reason=failure.reason)
        if not (failure.permanent and calls.is_supported(SESSION_METHOD)):
            raise
        await calls.write(SESSION_METHOD, active, lease_check=lease_check)


def _body(place: ThreadKey, **values: str) -> dict[str, str]:
    return {"channel_id": place.channel, "thread_ts": place.thread_ts, **values}
