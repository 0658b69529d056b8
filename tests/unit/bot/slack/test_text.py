"""What another app's message says: A2."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.text import app_text

ALERT = {"title": "[#7] Disk full", "text": "db-7 is at 98 %", "fields": [{"title": "Severity", "value": "high"}]}
BLOCKS = [
    {"type": "header", "text": {"type": "plain_text", "text": "Build 12"}},
    {"type": "section", "fields": [{"type": "mrkdwn", "text": "*failed*"}]},
    {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Retry"}}]},
    {"type": "context", "elements": [{"type": "mrkdwn", "text": "in 3 minutes"}]},
]
anything = st.recursive(
    st.none() | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "fields", "blocks"]), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"text": "Deployed."}, "Deployed."),
        ({"text": "", "attachments": [ALERT]}, "[#7] Disk full\ndb-7 is at 98 %\nSeverity: high"),
        ({"text": "Alert", "attachments": [ALERT]}, "Alert\n[#7] Disk full\ndb-7 is at 98 %\nSeverity: high"),
        ({"text": "Disk full", "attachments": [{"fallback": "Disk full", "color": "red"}]}, "Disk full"),
        ({"text": "", "attachments": [{"fallback": "[no preview]", "blocks": BLOCKS[:1]}]}, "Build 12"),
        ({"text": "", "blocks": BLOCKS}, "Build 12\n*failed*\nin 3 minutes"),
        ({"text": "Build 12 failed", "blocks": BLOCKS}, "Build 12 failed"),
        ({"blocks": "x", "attachments": [None, 3]}, ""),
    ],
)
def test_an_apps_message_is_read_as_people_see_it(message: dict[str, Any], text: str) -> None:
    assert app_text(message) == text


@given(st.fixed_dictionaries({"text": anything, "attachments": anything, "blocks": anything}))
def test_any_message_gives_a_text(message: dict[str, Any]) -> None:
    assert isinstance(app_text(message), str)
