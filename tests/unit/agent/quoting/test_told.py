"""What a message only tells, and questions that ask whether it holds."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.quoting.told import claimed, is_check, told_and_asked


@pytest.mark.parametrize(
    ("text", "told", "asks"),
    [
        ("I lost my badge. Whom do I tell?", "I lost my badge.", "Whom do I tell?"),
        ("It broke. I cried… What now?!", "It broke. I cried…", "What now?!"),
        ("Whom do I tell?", "", "Whom do I tell?"),
        ("Is it v1.2 or v1.3?", "", "Is it v1.2 or v1.3?"),
        ("What is toil? I forgot.", "I forgot.", "What is toil?"),
        ("", "", ""),
        ("my screen flickers, which channel is for that", "my screen flickers", "which channel is for that"),
        ("the build is red - and who fixes it?", "the build is red", "who fixes it?"),
        ("nobody came, after how many minutes is it free?", "nobody came", "after how many minutes is it free?"),
        ("Mein Konto ist gesperrt, wer hilft mir?", "Mein Konto ist gesperrt", "wer hilft mir?"),
        ("If I lose my badge, whom do I tell?", "", "If I lose my badge, whom do I tell?"),
        ("For a laptop, who approves it?", "", "For a laptop, who approves it?"),
        ("Between which hours is it open, and who opens it?", "", "Between which hours is it open, and who opens it?"),
        ("When is it open, and who opens it?", "", "When is it open, and who opens it?"),
        ("they said 'blast radius' in a call, who decides that?", "blast radius", "who decides that?"),
        ("they said 'blast radius' in a call, what is that?", "", "What is blast radius?"),
        ("Who fixes it? The screen is black.", "The screen is black.", "Who fixes it?"),
        ("Who fixes it? Who pays?", "", "Who fixes it? Who pays?"),
        ("It lags. Can I promote it? Nobody answers.", "It lags Nobody answers.", "Can I promote it?"),
        ("at lunch somebody said 'canary', what is that?", "", "What is canary?"),
        ("my receipt is 45 days old, am I still in time?", "my receipt is 45 days old", "am I still in time?"),
        ("we are planning a party: how many fit in?", "we are planning a party", "how many fit in?"),
        ("What do people here mean by “fencing”?", "", "What is fencing?"),
        ("I read the runbook. What is meant by the term toil here?", "I read the runbook.", "What is toil?"),
        ("Was versteht man bei uns unter einem Canary?", "", "Was ist Canary?"),
        ("Qu’entend-on par canary ?", "", "Qu'est-ce que canary ?"),
        ("¿Qué se entiende aquí por toil?", "", "¿Qué es toil?"),
        ("Apa yang dimaksud dengan toil?", "", "Apa itu toil?"),
        ("What is meant by ''?", "", "What is meant by ''?"),
        ("What is meant by P1, and who decides?", "", "What is meant by P1, and who decides?"),
        ("It was stolen at 09:00, whom do I tell?", "It was stolen at 09:00", "whom do I tell?"),
        ("Interns: how long is the probation period?", "", "Interns: how long is the probation period?"),
        ("Hotel in Oslo: what is the limit?", "", "Hotel in Oslo: what is the limit?"),
    ],
)
def test_b_what_is_told_before_a_question_is_no_part_of_it(text: str, told: str, asks: str) -> None:
    assert told_and_asked(text) == (told, asks)


_TOLD = ("My screen is black.", "we are three people.", "It broke again…")
_ASKED = ("Who fixes it?", "How long does it take?", "Is it paid?")


@given(st.lists(st.sampled_from(_TOLD), max_size=2), st.lists(st.sampled_from(_ASKED), min_size=1, max_size=3))
def test_b_no_question_of_a_message_is_taken_for_what_is_told(told: list[str], asked: list[str]) -> None:
    for message in (" ".join([*told, *asked]), " ".join([*asked, *told]), " ".join([*told[:1], *asked, *told[1:]])):
        found, asks = told_and_asked(message)
        assert asks.count("?") == len(asked)
        assert "?" not in found
        if len(asked) == 1:
            assert asks == asked[0]


@pytest.mark.parametrize(
    "text",
    [
        "What is the hotel limit? I also need the meal limit.",
        "How do I get a badge? Please tell me who books flights.",
        "Describe the deploy process, and how long does a deploy take?",
        "报销期限是多少天？ 酒店上限是多少。",
        "Is the meal limit the same in the U.S. office?",
        "Who books flights to the U.S. office?",
    ],
)
def test_b_what_asks_without_a_mark_is_not_taken_for_what_is_told(text: str) -> None:
    assert told_and_asked(text) == ("", text)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("he said “sev1” and “sev2”, what do they mean?", "What is sev1 and sev2?"),
        ("my boss said 'no way', what is the deadline?", "what is the deadline?"),
        ("it said 'disk full', what does that mean and how do I fix it?", "what does that mean and how do I fix it?"),
    ],
)
def test_b_a_quotation_is_asked_about_only_where_its_meaning_is_all_that_is_asked(text: str, asks: str) -> None:
    assert told_and_asked(text)[1] == asks


def test_b_what_is_told_is_found_in_linear_time() -> None:
    def seconds(text: str) -> float:
        began = time.process_time()
        told_and_asked(text)
        return time.process_time() - began

    for form in ("a. ", "a, who ", "who? ", "?", "a - ", "'a ", "a? a "):
        assert seconds(form * 20_000) < 2


@pytest.mark.parametrize(
    ("question", "claim"),
    [
        ("Is it still true that we have 60 days?", "we have 60 days"),
        ("is the 250 euro limit for meals still valid", "the 250 euro limit for meals"),
        ("Is the door still open?", ""),
        ("Is the meal limit still 45 euros?", "the meal limit still 45 euros"),
        ("Do we still pay 45 euros for meals?", "we still pay 45 euros for meals"),
        ("Is it true?", ""),
        ("Do we have 30 or 60 days to hand it in?", "we have 30 or 60 days to hand it in"),
        ("Is the limit €45 or €60?", "the limit €45 or €60"),
        ("Do we have tea or coffee?", ""),
        ("Do I have 60 days to hand it in, or less?", "I have 60 days to hand it in"),
        ("Do I need approval for 500 euros or more?", ""),
        (f"Is it true that {'we have a limit ' * 40}?", ""),
    ],
)
def test_b_a_question_may_name_what_it_asks_the_truth_of(question: str, claim: str) -> None:
    assert claimed(question) == claim


@pytest.mark.parametrize(
    ("question", "checks"),
    [
        ("Is that still right?", True),
        ("Which one counts?", True),
        ("so which of them applies now?", True),
        ("Does this still hold", True),
        ("Which one is cheaper?", False),
        ("Is that allowed?", False),
        ("What do the two say", True),
        ("What are the two amounts?", True),
        ("What are the two of them paid?", False),
    ],
)
def test_b_a_question_may_only_ask_whether_what_was_told_holds(question: str, *, checks: bool) -> None:
    assert is_check(question) is checks
