"""App Home, A10, and the dialog that asks what was wrong, A8."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from agent.knowledge.types import Document
from agent.texts.catalogue import LANGUAGES, say
from bot.delivery.dialogs import REASONS, feedback_modal
from bot.delivery.home import HomeFigures, home_view
from bot.local.model.limits import check_view
from observability.stats import Summary, VerifierFigures

TODAY = date(2026, 11, 21)
RECORD = {
    "turn_id": "0123456789abcdef",
    "outcome": "failed",
    "at": 1_763_712_000.9,
    "question": "Private?",
    "model": "gpt",
}
FIGURES = HomeFigures(
    documents=(
        Document(id="r", title="Rules & rights", url="https://x.example/r", updated_at="2026-11-20"),
        Document(id="p", title="Plain"),
    ),
    total=1_502,
    size=3 * 1024 * 1024,
    synced=1_763_712_000.9,
    questions=("How many?", "x" * 100),
    stats=Summary(
        counts={"outcome:answered": 40, "outcome:partial": 1, "failed:verification": 1, "outcome:refused": 2},
        verifier=VerifierFigures(false_accepts=1, should_fail=55, false_rejects=4, should_pass=55),
    ),
)
ADMINS: dict[str, Any] = {
    "disliked": [{**RECORD, "complaints": [{"reasons": ["outdated", "wrong"], "said": "secret"}]}],
    "failures": [RECORD],
}


def home_text(figures: HomeFigures, language: str | None = None) -> str:
    return "\n".join(
        block["text"]["text"] for block in home_view(figures, TODAY, language)["blocks"] if "text" in block
    )


def test_app_home_shows_documents_questions_and_true_figures() -> None:
    text = home_text(FIGURES)
    moment = "<!date^1763712000^{date_short_pretty} {time}|2025-11-21 08:00 UTC>"
    assert (
        f"1,502 documents, 3.0 MB\nLast updated: {moment}.\n"
        "• <https://x.example/r|Rules &amp; rights> · 1 day ago\n• Plain\n… and 1,500 more"
    ) in text
    assert "95.2% of my answers were verified in full." in text
    assert "Last 14 days: 40 answered, 1 in part, 1 not verified, 2 not in the documents." in text
    assert "let 1 of 55 wrong answers pass and stopped 4 of 55 right ones" in text
    buttons = [one for b in home_view(FIGURES, TODAY)["blocks"] if b["type"] == "actions" for one in b["elements"]]
    assert [(one["action_id"], one["value"]) for one in buttons] == [
        ("orion_try_1", "How many?"),
        ("orion_try_2", "x" * 100),
    ]


def test_without_a_model_home_says_quoted_and_not_verified() -> None:
    text = home_text(replace(FIGURES, quotes=True))
    assert "❝ Quoted from your documents\nLast 14 days: 40 answered" in text
    assert "verified in full" not in text


def test_answers_quoted_without_a_model_do_not_raise_the_pass_rate() -> None:
    counts = {"outcome:answered": 1, "outcome:partial": 1, "outcome:quoted": 8}
    text = home_text(HomeFigures(stats=Summary(counts=counts)))
    assert "50.0% of my answers" in text
    assert "9 answered, 1 in part" in text


def test_an_empty_home_shows_no_figures() -> None:
    text = home_text(HomeFigures())
    assert say("home_nothing", None) in text
    assert say("home_no_answers", None) in text
    assert home_view(HomeFigures(), TODAY)["blocks"][2]["elements"][0]["value"] == "home"


def test_only_admins_see_dislikes_and_failures_and_never_a_question() -> None:
    assert say("home_failures", None) not in home_text(FIGURES)
    text = home_text(HomeFigures(**ADMINS))
    assert "Something in it is wrong, It is out of date · `0123456789ab`" in text
    assert "failed · `0123456789ab`" in text
    assert say("home_disliked_quotes", None) not in text
    assert "Private?" not in text
    assert "secret" not in text
    assert home_text(HomeFigures(disliked=[], failures=[])).count("None.") == 2
    quoted = home_text(HomeFigures(disliked=[{**RECORD, "model": "extractive"}], failures=[]))
    assert quoted.count("None.") == 2
    assert f"*{say('home_disliked_quotes', None)}*\n• " in quoted, "it was not verified"


@pytest.mark.parametrize("language", LANGUAGES)
def test_home_and_dialog_are_in_the_language_and_within_slacks_limits(language: str) -> None:
    home = home_view(HomeFigures(total=5, stats=FIGURES.stats, paused=True, **ADMINS), TODAY, language)
    dialog = feedback_modal("turn-7 C1 1.2", language)
    check_view(home, "home")
    check_view(dialog, "modal")
    assert all(len(dialog[part]["text"]) <= 24 for part in ("title", "submit", "close"))
    why = dialog["blocks"][0]["element"]
    assert (why["type"], [one["value"] for one in why["options"]]) == ("checkboxes", list(REASONS))
    if language != "en":
        assert dialog["blocks"][0]["label"]["text"] != say("wrong_which", None)
