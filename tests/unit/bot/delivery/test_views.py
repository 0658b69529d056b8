"""The trust modal and App Home: A9, A10."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.texts.catalogue import LANGUAGES, help_text, say
from bot.delivery.views import Collection, HomeFigures, home_view, trust_modal
from bot.local.model.block_limits import block_faults

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
    seen = (b["text"] if "text" in b else b["elements"][0] for b in view["blocks"] if b["type"] != "divider")
    return [text if isinstance(text := each["text"], str) else text["text"] for each in seen]


def test_a9_the_modal_shows_rules_attempts_repairs_and_sources() -> None:
    view = trust_modal(RECORD, TODAY)
    headline, rules, signs, attempts, sources, origin = texts(view)
    assert (view["type"], view["title"]["text"]) == ("modal", "Why trust this?")
    assert headline.startswith("*✓ Verified.*")
    assert rules.count("✓") == 12
    assert "△ It is long enough for the question" in rules
    assert signs == "✓ passed · △ a doubt that alone stops nothing · ✗ failed"
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
    assert texts(trust_modal(None, TODAY)) == [say("trust_unknown", None)]


def maybe_posted(words: str, answer: str) -> str:
    violation = {"rule": "coherent", "severity": "warning", "words": words}
    return texts(trust_modal({"answer": answer, "attempts": [{"passed": True, "violations": [violation]}]}, TODAY))[1]


def test_a9_a_doubt_is_shown_with_its_words_where_they_were_posted() -> None:
    assert "△ It is coherent and in the right language: “45 &lt;euros&gt;”" in maybe_posted(
        "45\n<euros>", "So 45\n<euros>."
    )
    assert "“" not in maybe_posted("45 euros", "Sixty.")
    assert "“" not in maybe_posted("", "Sixty.")
    assert "x…”" in maybe_posted("x" * 200, "x" * 300)


def test_a9_an_error_outweighs_a_doubt_and_an_all_clear_needs_no_legend() -> None:
    both = [{"rule": "coherent", "severity": severity} for severity in ("warning", "error", "warning")]
    view = trust_modal({"attempts": [{"passed": False, "violations": both}]}, TODAY)
    assert "✗ It is coherent" in texts(view)[1]
    assert not any("△" in text for text in texts(trust_modal({"attempts": [{"passed": True}]}, TODAY)))


@pytest.mark.parametrize(("ids", "explained"), [((1, 2), False), ((2,), True)])
def test_a9_a_source_number_that_seems_odd_is_explained(ids: tuple[int, ...], *, explained: bool) -> None:
    view = trust_modal({"sources": [{"id": number, "title": "T"} for number in ids]}, TODAY)
    assert (say("trust_numbers", None) in texts(view)) is explained


@pytest.mark.parametrize("language", LANGUAGES)
def test_f9_modal_and_home_are_in_the_language_and_within_slacks_limits(language: str) -> None:
    figures = HomeFigures(collections=(Collection(name="", documents=1, size=0),), newest="2026-11-20", pass_rate=0.5)
    modal = trust_modal({**RECORD, "outcome": "partial"}, TODAY, language)
    home = home_view(replace(figures, paused=True), TODAY, language)
    assert len(modal["title"]["text"]) <= 24
    assert list(block_faults(modal["blocks"], limit=100)) == list(block_faults(home["blocks"], limit=100)) == []
    english = {text for view in (trust_modal(RECORD, TODAY), home_view(figures, TODAY)) for text in texts(view)}
    if language != "en":
        assert {text for text in [*texts(modal), *texts(home)] if text != "Orion"}.isdisjoint(english)


def test_a10_home_shows_what_orion_knows_and_how_it_does() -> None:
    figures = HomeFigures(
        collections=(
            Collection(name="handbook & co", documents=1500, size=3 * 1024 * 1024),
            Collection(name="runbooks", documents=3, size=2048),
            Collection(name="wiki", documents=4, size=0),
        ),
        newest="2026-11-21T08:00:00+00:00",
        synced=1_763_712_000.9,
        pass_rate=0.9731,
        answered=40,
        partial=1,
        failed=1,
        refused=2,
        days=7,
    )
    view = home_view(figures, TODAY)
    seen = "\n".join(block["text"]["text"] for block in view["blocks"] if "text" in block)
    assert view["type"] == "home"
    assert "• handbook &amp; co: 1,500 documents, 3.0 MB\n• runbooks: 3 documents, 2 KB\n• wiki: 4 documents\n" in seen
    assert "The newest changed today." in seen
    moment = "<!date^1763712000^{date_short_pretty} {time}|2025-11-21 08:00 UTC>"
    assert f"Last brought up to date: {moment}." in seen
    assert "97.3% of my answers passed every rule in 7 days." in seen
    assert "40 answered, 1 partial, 1 failed, 2 refused" in seen
    assert view["blocks"][-1]["elements"][0]["action_id"] == "orion_try"


def test_a10_an_empty_home_is_honest() -> None:
    seen = "\n".join(b["text"]["text"] for b in home_view(HomeFigures(collections=()), TODAY)["blocks"] if "text" in b)
    assert "nothing yet" in seen
    assert "No answers yet." in seen


def test_a1_the_greeting_is_short_enough_to_be_a_section() -> None:
    assert len(help_text(None)) < 2_900


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
