"""The trust modal and App Home: A9, A10."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.local.block_limits import block_faults
from bot.views import Collection, HomeFigures, home_view, trust_modal
from bot.wording import HELP, TRUST_UNKNOWN

TODAY = date(2026, 11, 21)
RECORD: dict[str, Any] = {
    "turn_id": "turn-7",
    "outcome": "answered",
    "verified": True,
    "model": "gpt & co",
    "attempts": [
        {
            "attempt": 1,
            "passed": False,
            "repairs": [],
            "violations": [
                {"rule": "claim_supported", "severity": "error"},
                {"rule": "coherent", "severity": "warning"},
            ],
        },
        {
            "attempt": 2,
            "passed": True,
            "repairs": [{"kind": "bold", "count": 2}, {"kind": "table"}],
            "violations": [{"rule": "minimum_length", "severity": "warning"}],
        },
    ],
    "sources": [{"id": 1, "title": "Release process", "url": "https://x.example/r", "updated_at": "2026-11-20"}],
}


def texts(view: dict[str, Any]) -> list[str]:
    return [b["text"]["text"] if "text" in b else b["elements"][0].get("text", "") for b in view["blocks"]]


def test_a9_the_modal_shows_rules_attempts_repairs_and_sources() -> None:
    view = trust_modal(RECORD, TODAY)
    headline, rules, attempts, sources, origin = texts(view)
    assert (view["type"], view["title"]["text"]) == ("modal", "Why trust this?")
    assert headline.startswith("*✓ Verified.*")
    assert rules.count("✓") == 12
    assert "△ It is long enough for the question" in rules
    assert attempts.splitlines()[1:] == [
        "1. did not pass; against: claim_supported",
        "2. passed; form repaired: bold ×2, table ×1",
    ]
    assert sources == "*Sources*\n<https://x.example/r|[1] Release process> · 1 day ago"
    assert origin == "Model: gpt &amp; co · Turn: turn-7"


@pytest.mark.parametrize(
    ("record", "start"),
    [
        ({"outcome": "partial", "verified": True}, "*◐ Partial.*"),
        ({"outcome": "refused", "verified": False}, "*Not verified.*"),
    ],
)
def test_a9_the_headline_tells_the_outcome(record: dict[str, Any], start: str) -> None:
    assert texts(trust_modal(record, TODAY))[0].startswith(start)


def test_a9_an_attempt_that_failed_last_shows_its_faults() -> None:
    record = {"attempts": [{"passed": False, "violations": [{"rule": "no_secrets", "severity": "error"}]}]}
    assert "✗ No secrets" in texts(trust_modal(record, TODAY))[1]


def test_a9_a_record_that_is_gone_is_said() -> None:
    assert texts(trust_modal(None, TODAY)) == [TRUST_UNKNOWN]


def test_a10_home_shows_what_orion_knows_and_how_it_does() -> None:
    figures = HomeFigures(
        collections=(
            Collection(name="handbook & co", documents=1500, size=3 * 1024 * 1024),
            Collection(name="runbooks", documents=3, size=2048),
            Collection(name="wiki", documents=4, size=0),
        ),
        newest="2026-11-21T08:00:00+00:00",
        pass_rate=0.9731,
        answered=40,
        partial=1,
        failed=1,
        refused=2,
        days=7,
    )
    view = home_view(figures, TODAY)
    shown = "\n".join(block["text"]["text"] for block in view["blocks"] if "text" in block)
    assert view["type"] == "home"
    assert "• handbook &amp; co: 1,500 documents, 3.0 MB\n• runbooks: 3 documents, 2 KB\n• wiki: 4 documents\n" in shown
    assert "The newest changed today." in shown
    assert "97.3% of my answers passed every rule in 7 days: 40 answered, 1 partial, 1 failed, 2 refused." in shown
    assert view["blocks"][-1]["elements"][0]["action_id"] == "orion_try"


def test_a10_an_empty_home_is_honest() -> None:
    shown = "\n".join(b["text"]["text"] for b in home_view(HomeFigures(collections=()), TODAY)["blocks"] if "text" in b)
    assert "nothing yet" in shown
    assert "No answers yet." in shown


def test_a1_the_greeting_is_short_enough_to_be_a_section() -> None:
    assert len(HELP) < 2_900


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
WILD = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(["turn_id", "outcome", "verified", "attempts", "sources"], JSON)
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine says nothing about the views
@given(WILD)
def test_a9_any_record_makes_a_view_that_slack_takes(record: dict[str, Any]) -> None:
    assert list(block_faults(trust_modal(record, TODAY)["blocks"], limit=100)) == []


def test_a9_hundreds_of_sources_and_attempts_still_fit() -> None:
    many = {"attempts": RECORD["attempts"] * 200, "sources": RECORD["sources"] * 200}
    assert list(block_faults(trust_modal(many, TODAY)["blocks"], limit=100)) == []
