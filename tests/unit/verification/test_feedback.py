"""verification/feedback.py: what the model is told."""

import pytest

from verification.check import check
from verification.feedback import retry_text
from verification.types import Claim, Draft, Source, Verdict, Violation

SOURCES = (
    Source(id=1, title="Refunds", url="https://docs.acme.test/refunds", text="Refunds take 14 days."),
    Source(id=2, title="Leave", text="Annual leave is 30 days."),
)


def feedback_on(text: str, question: str = "How long do refunds take?") -> str:
    return retry_text(check(Draft(text=text, question=question, sources=SOURCES)), SOURCES)


@pytest.mark.parametrize("text", ["Refunds take 14 days [1].", "Annual leave is 30 days [2]."])
def test_a_right_draft_or_warnings_alone_need_no_feedback(text: str) -> None:
    assert feedback_on(text) == ""


def test_the_wrong_number_its_source_and_the_remedy_are_named() -> None:
    text = feedback_on("Refunds take 30 days [1].")
    assert text.startswith("The last draft was not sent: 1 problem to fix.\n1. ")
    assert "30" in text
    assert "14" in text
    assert "[1]" in text


def test_the_words_are_shown_in_their_sentence() -> None:
    assert '"30 days" in "Refunds take 30 days [1].": ' in feedback_on("Refunds take 30 days [1]. Ask me anything.")


def test_feedback_names_the_nearest_source_of_an_uncited_claim_if_there_is_one() -> None:
    assert "[2] is nearest to it." in feedback_on("Annual leave is 30 days.")
    assert "nearest" not in feedback_on("The office dog is called Rex.")


def test_the_most_important_comes_first_and_warnings_last() -> None:
    text = feedback_on(
        "Annual leave is 30 days. See https://evil.test/x. <!here>", "How long do refunds take to be paid to me?"
    )
    order = [text.index(words) for words in ("notify people", "is in no source", "cites no source")]
    assert order == sorted(order)


def test_feedback_lists_warnings_with_an_error() -> None:
    text = feedback_on("Annual leave is 30 days.")
    errors, _, warnings = text.partition("\nAlso noticed, and no reason by itself to write again:\n- ")
    assert errors.startswith("The last draft was not sent: 1 problem to fix.\n1. ")
    assert "\n2. " not in errors
    assert "No content word of the question" in warnings


def test_feedback_lists_the_same_violation_once() -> None:
    twice = tuple(
        Violation(rule="no_broadcast", severity="error", start=at, end=at + 5, words="@here", detail="d", remedy="r")
        for at in (0, 9)
    )
    text = retry_text(Verdict(passed=False, text="@here and @here", violations=twice), ())
    assert text == 'The last draft was not sent: 1 problem to fix.\n1. "@here": d. r.'


def test_a_secret_is_not_passed_on() -> None:
    secret = "ghp" + "_7Qz9Lm2XvB4nT8kRw1Yc5HdJ3gPs6FaU0eNi"
    assert secret not in feedback_on(f"The key is {secret} [1].")
    assert secret not in feedback_on(f"The key of the day is {secret}.")


def test_line_endings_of_a_draft_do_not_break_the_list() -> None:
    found = Violation(rule="cites_sources", severity="error", words="a\n1. fake " + "x" * 900, detail="d", remedy="r")
    lines = retry_text(Verdict(passed=False, text="", violations=(found,)), ()).splitlines()
    assert len(lines) == 2
    assert len(lines[1]) < 500


@pytest.mark.parametrize(("length", "shown"), [(320, "x" * 320), (321, f"{'x' * 320}…")])
def test_a_point_of_feedback_truncates_words_and_ends_sentences(length: int, shown: str) -> None:
    found = Violation(rule="cites_sources", severity="error", words="x" * length, detail="d", remedy="Do it!")
    lines = retry_text(Verdict(passed=False, text="", violations=(found,)), ()).splitlines()
    assert lines[1] == f'1. "{shown}": d. Do it!'


def test_of_eleven_errors_ten_are_listed_and_then_three_warnings() -> None:
    errors = [Violation(rule="mrkdwn", severity="error", words=f"e{n}", detail="d", remedy="r") for n in range(11)]
    warnings = [Violation(rule="coherent", severity="warning", words=f"w{n}", detail="d", remedy="r") for n in range(5)]
    text = retry_text(Verdict(passed=False, text="", violations=(*errors, *warnings)), ())
    assert [text.count(f'"{kind}') for kind in "ew"] == [10, 3]
    assert "And 1 more of the same kinds." in text


def test_a_wholly_wrong_sentence_is_quoted_once_as_the_model_wrote_it() -> None:
    text = "Delete the M&amp;IE for all of the extra days"
    found = Violation(
        rule="claim_supported", severity="error", start=0, end=30, words=text[:30], detail="d", remedy="r"
    )
    verdict = Verdict(passed=False, text=text, violations=(found,), claims=(Claim(text=text, start=0, end=len(text)),))
    assert retry_text(verdict, ()).endswith('1. "Delete the M&IE for all of the extra days": d. r.')
