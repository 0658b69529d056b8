"""A slice of the fuzz run against intake, and the oracle itself tried out."""

from typing import Any

import pytest

from bot.slack.message import ThreadMode
from tests.support.intake_fuzz import OPEN, answer_due, run
from tests.support.slack_events import envelope, mention, message


@pytest.mark.parametrize("seed", [1, 2])
def test_no_payload_crashes_intake_or_gets_an_answer_that_is_not_due(seed: int) -> None:
    findings = run(1_000, seed)
    assert findings.count == 1_000
    assert findings.wrong == []
    assert {"question", "edit", "help", "stop", "delete", "self", "bot", "malformed"} <= set(findings.kinds)


@pytest.mark.parametrize(
    ("event", "thread_mode", "due"),
    [
        (mention(), "unknown", True),
        (mention(user="UORION"), "unknown", False),
        (mention(bot_id="BOTHER", user=""), "unknown", False),
        (mention(text="<@UORION> stop"), "engaged", False),
        (mention(ts="soon"), "unknown", False),
        (message(), "engaged", False),
        (message(thread_ts="1700000000.000100"), "engaged", True),
        (message(thread_ts="1700000000.000100"), "muted", False),
        (message(thread_ts="1700000000.000100"), "unknown", False),
        (message(thread_ts="1700000000.000100", text="<@UBEN> can you?"), "engaged", False),
        (message(text="<@UORION> hello?"), "engaged", True),
        (message(channel="D1", channel_type="im"), "unknown", True),
        (message(channel="D1", channel_type="im", subtype="channel_join"), "unknown", False),
        ({"type": "reaction_added"}, "engaged", False),
    ],
)
def test_the_oracle_knows_what_the_specification_says(
    event: dict[str, Any], thread_mode: ThreadMode, *, due: bool
) -> None:
    assert answer_due(envelope(event), thread_mode, OPEN) is due
