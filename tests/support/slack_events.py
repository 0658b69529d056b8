"""Events as Slack sends them."""

from typing import Any


def envelope(event: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "type": "event_callback",
        "team_id": "T1",
        "event_id": "Ev1",
        "event_time": 1_700_000_000,
        "authorizations": [{"team_id": "T1", "user_id": "UORION", "is_bot": True}],
        "is_ext_shared_channel": False,
        "event": event,
        **fields,
    }


def mention(**fields: Any) -> dict[str, Any]:
    return {
        "type": "app_mention",
        "user": "UANN",
        "text": "<@UORION> how do we release?",
        "ts": "1700000000.000100",
        "channel": "C1",
        "event_ts": "1700000000.000100",
        **fields,
    }


def message(**fields: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "user": "UANN",
        "text": "and who signs it off?",
        "ts": "1700000009.000200",
        "channel": "C1",
        "channel_type": "channel",
        "event_ts": "1700000009.000200",
        **fields,
    }
