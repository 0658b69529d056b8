"""A slice of the fuzz run against intake, and the oracle itself tried out. The whole run is a command."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from bot.events.parse import parse_event
from bot.slack.message import Access, BotIdentity, Ignored, Incoming, ThreadMode
from tests.support.intake_fuzz import OPEN, OWN, STANDINGS, answer_due, payloads, run
from tests.support.paths import ROOT
from tests.support.slack_events import envelope, mention, message


@pytest.mark.parametrize("seed", [1, 2])
def test_no_payload_crashes_intake_or_gets_an_answer_that_is_not_due(seed: int) -> None:
    findings = run(1_000, seed)
    assert findings.count == 1_000
    assert findings.wrong == []
    assert {"question", "edit", "help", "stop", "delete", "self", "bot", "malformed"} <= set(findings.kinds)


def test_the_same_seed_makes_the_same_payloads() -> None:
    assert str(list(payloads(50, 7))) == str(list(payloads(50, 7)))
    assert str(list(payloads(50, 7))) != str(list(payloads(50, 8)))


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


def careless(envelope: object, own: BotIdentity, access: Access) -> Incoming | Ignored:
    """An intake that takes bots for people and reads what is not there."""
    assert own == OWN
    if isinstance(envelope, dict) and isinstance(envelope.get("event"), dict):
        envelope = {**envelope, "event": {**envelope["event"], "bot_id": ""}}
        envelope["event"]["channel"].strip()
    return parse_event(envelope, own, access)


def test_careless_intake_is_found_out() -> None:
    found = {what.split(" (")[0] for _, what, _ in run(2_000, 1, careless).wrong}
    assert "an answer that nobody asked for" in found
    assert found & {"crashed: KeyError", "crashed: AttributeError"}


def test_the_command_tells_what_it_did() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.intake_fuzz", "--count", "200", "--seed", "3"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "200 payloads, 0 faults")
    assert len(STANDINGS) == 4
