"""What is searched for: questions as they are, follow-ups with the subject they left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.quoting.query import query_abroad, search_query, spoken_in, wider_query
from agent.thread.conversation import Message


def asked(*texts: str) -> tuple[Message, ...]:
    said: list[Message] = []
    for text in texts:
        said += [Message(role="user", text=text), Message(role="assistant", text="Bananas are yellow [1].")]
    return tuple(said)


@pytest.mark.parametrize(
    ("before", "question", "query"),
    [
        ("When is the office open on Saturdays?", "And on Sundays?", "And on Sundays? office open"),
        ("Do deploys need an approval?", "What about staging?", "What about staging? deploys approval"),
        ("How soon must a SEV2 be updated?", "and SEV1?", "and SEV1? updated"),
        ("Who approves a flight?", "Who pays for it?", "Who pays for it? approves flight"),
        ("How much is a hotel in Berlin?", "In capitals?", "In capitals? hotel Berlin"),
        ("How long is the freeze?", "Why?", "Why? freeze"),
        ("fail over the db", "how long does that take?", "how long does that take? fail over db"),
        ("How do we make a release?", "how long does that take?", "how long does that take? release"),
        ("How do I restore a backup?", "who do I ask first?", "who do I ask first? restore backup"),
        ("Wann ist das Büro am Samstag geöffnet?", "Und am Sonntag?", "Und am Sonntag? Büro geöffnet"),
        ("How are releases planned in October?", "And in June?", "And in June? releases planned"),
        ("有給休暇は何日ですか", "病気休暇は？", "病気休暇は？ 有給休暇は何日ですか"),
    ],
)
def test_a2_a_follow_up_gets_the_subject_it_left_out(before: str, question: str, query: str) -> None:
    assert search_query(question, asked(before)) == query


@pytest.mark.parametrize(
    "question",
    [
        "What is the daily limit for meals?",
        "What is fencing?",
        "And how many requests per minute may an API key of the partner plan make?",
        "How long does it take to restore the orders database?",
        "Explain toil",
        "年次有給休暇は一年に何日もらえますか",
        "",
    ],
)
def test_a2_a_question_that_stands_alone_stays_as_it_is(question: str) -> None:
    assert search_query(question, asked("Who owns the glossary?") if question else ()) == question


def test_a2_follow_ups_are_traced_back_to_the_question_they_follow() -> None:
    history = asked("Old subject of penguins?", "When is the office open on Saturdays?", "And on Sundays?")
    assert search_query("And on Fridays?", history) == "And on Fridays? office open"


def test_a2_only_what_was_asked_of_orion_counts() -> None:
    aside = Message(role="user", text="The parrot escaped!", addressed=False)
    assert search_query("And on Sundays?", (*asked("Is the office open?"), aside)) == "And on Sundays? office open"


def test_a2_the_question_itself_may_end_the_history() -> None:
    history = (*asked("Is the office open?"), Message(role="user", text="And on Sundays?"))
    assert search_query("And on Sundays?", history) == "And on Sundays? office open"


def test_a2_without_history_there_is_nothing_to_add() -> None:
    assert search_query("And on Sundays?", ()) == "And on Sundays?"


def test_b_a_pasted_line_of_figures_is_no_number() -> None:
    assert len(wider_query(f"What is {','.join(['123'] * 1_450)}?", ())) < 2 * 4 * 1_450
    assert "3000" in wider_query("What is 3,000?", ())


@pytest.mark.parametrize("question", ["Who picks a new one?", "Is there another one for me?"])
def test_b_one_stands_for_what_was_said_before(question: str) -> None:
    assert search_query(question, asked("Is my buddy on leave?")).startswith(f"{question} buddy")
    for own in ("Is one week enough for the probation?", "How do I get the one-time code?"):
        assert search_query(own, asked("Is my buddy on leave?")) == own


@given(st.text(max_size=60), st.lists(st.text(max_size=40), max_size=4))
def test_a2_the_own_words_always_come_first(question: str, before: list[str]) -> None:
    query = search_query(question, asked(*before))
    assert query == question or query.startswith(question.strip())


@pytest.mark.parametrize(
    ("question", "others"),
    [
        ("max price", {"limit", "maximum", "cost"}),
        ("3000 requests", {"3,000"}),
        ("3,000 requests", {"3000"}),
        ("FH2002", {"FH-2002"}),
        ("FH-2002", {"FH2002"}),
        ("sev 1", {"sev1"}),
    ],
)
def test_d2_the_wider_query_has_other_words_and_forms(question: str, others: set[str]) -> None:
    query = wider_query(question, ())
    assert query.startswith(question)
    assert others <= set(query.split())


def test_d2_there_is_no_wider_query_without_other_words() -> None:
    assert wider_query("Where does the zebra live?", ()) == ""
    assert "release" in wider_query("and who approves it?", asked("How do we deploy?")).split()


def test_f9_a_follow_up_too_short_to_tell_is_in_the_language_of_the_thread() -> None:
    history = (Message(role="user", text="Wie lange werden Support-Tickets aufbewahrt?"),)
    assert spoken_in("Und Bestellungen?", history) == "de"
    assert spoken_in("Und Bestellungen?", ()) is None
    assert spoken_in("And how long are orders kept for?", history) == "en"
    assert "order" in wider_query("Und Bestellungen?", history).split()


def test_f9_a_question_in_the_words_of_other_languages() -> None:
    assert {"hôtel", "unterkunft", "酒店"} <= set(query_abroad("Where is the hotel?", ()).split())
    assert query_abroad("Where is the zebra?", ()) == ""


def test_a6_what_is_counted_was_said_before() -> None:
    history = (Message(role="user", text="How many approvals does staging need?"),)
    assert "approvals" in search_query("How many does production need?", history)
    assert search_query("How many approvals does production need?", history).endswith("need?")
