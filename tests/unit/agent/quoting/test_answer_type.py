"""Kinds of answers: what is asked for, and whether a text has it."""

from __future__ import annotations

import pytest

from agent.quoting.answer_type import counted, counts, has_column, has_measure, wants_number


@pytest.mark.parametrize(
    "question",
    [
        "How many are there?",
        "When is lunch?",
        "And since when?",
        "What is the limit?",
        "Wie lange dauert es?",
        "Combien de jours ?",
        "¿Cuánto cuesta?",
        "Berapa hari?",
        "ホテルはいくらですか",
        "会议几点开始",
    ],
)
def test_f9_a_question_for_a_number_is_known(question: str) -> None:
    assert wants_number(question)


@pytest.mark.parametrize(
    "question", ["Who decides?", "What happens if the limit is reached?", "Where do I go when I leave?", "Wer zahlt?"]
)
def test_b_a_limit_that_is_only_mentioned_is_not_asked_for(question: str) -> None:
    assert not wants_number(question)


@pytest.mark.parametrize(
    ("question", "has", "lacks"),
    [
        ("How long is it valid?", "It is valid for 90 days.", "It is closed by 18:00."),
        ("How long must it be?", "It has 16 characters.", "It is for two."),
        ("How often is it run?", "It runs every night.", "It runs at 02:00."),
        ("How much does it cost?", "It costs 5 euros.", "It takes 5 days."),
        ("What does it cost?", "It is free.", "It is 5 metres high."),
        ("When are drills?", "In April and October.", "On the roof."),
        ("When was it built?", "It was built in 1987.", "It is built after 5 minutes."),
        ("What time does it open?", "It opens at 9 am.", "It opens after 2 days."),
        ("Who approves it?", "The release captain approves.", "It needs a signature."),
        ("Who is the security lead?", "Our lead is Dora Lind.", "The security lead decides."),
        ("What is the name of the lead?", "She is Dora Lind.", "The lead has a name."),
        ("What is the name of the guest network?", "It is called “north”.", "The guest network is slow."),
        ("What's the name of the alert?", "The alert `QueueStalled` fires.", "The alert fires at night."),
        ("Which channel is for travel?", "Topic: Travel; Channel: #ask-travel", "Any channel is fine."),
        ("Which command rebuilds it?", "Run `rebuild all`.", "It is rebuilt in 3 hours."),
        ("What are the names of the three people?", "They are Dora Lind and Max Born.", "Two of them are needed."),
        ("What's their name?", "Our lead is Dora Lind.", "The lead has a desk."),
        ("When is the summer concert?", "The summer concert is in June.", "There is a ticket for the summer concert."),
        ("Within what time is it rebuilt?", "It is rebuilt within 24 hours.", "It is rebuilt at 02:00."),
        ("Who is on call today?", "On Monday the lead is.", "The lead is."),
        ("What is the phone number of the desk?", "Call 0551 4432.", "Call the desk."),
        ("What is the e-mail address?", "Write to a@b.example.", "Write a mail."),
        ("Which colour is the badge?", "It is green.", "It is round."),
        ("How many failed yesterday?", "On 2026-01-02 5 failed.", "At most 5 may fail."),
        ("Wie lange gilt es?", "Es gilt 90 Tage.", "Es gilt bei 5 Personen."),
        ("酒店多少钱？", "每晚140欧元。", "有18个房间。"),
    ],
)
def test_f9_a_text_has_the_kind_that_is_asked_for_or_has_it_not(question: str, has: str, lacks: str) -> None:
    assert has_measure(question, has)
    assert not has_measure(question, lacks)


def test_b_a_heading_may_say_of_which_day_and_a_label_who() -> None:
    assert has_measure("When was it released?", "It was released.", "2026-01-02")
    assert has_measure("Who is the owner?", "Owner: the edge lead")
    assert not has_measure("Who is the security lead?", "Owner: the security lead")


def test_b_what_is_counted_follows_how_many() -> None:
    assert counted("How many parking spaces are there?") == ("parking", "spaces")
    assert counted("How many on the partner plan?") == ()
    assert counted("How many SEV1 incidents?") == ("incidents",)
    assert counted("How much is it?") == ()


@pytest.mark.parametrize(
    "text", ["There are 18 parking spaces.", "It has a single space.", "Spaces: 18", "two free spaces"]
)
def test_b_a_number_counts_what_follows_it_or_what_labels_it(text: str) -> None:
    assert counts(text, frozenset({"space"}))


@pytest.mark.parametrize(
    "question", ["How do I get a space for tomorrow?", "What is the deadline today?", "What is it today?"]
)
def test_b_a_day_that_is_only_a_circumstance_asks_for_no_date(question: str) -> None:
    assert has_measure(question, "Book one at the desk within 30 days.")


@pytest.mark.parametrize("text", ["Spaces are free for 2 hours.", "No number of anything", "Room: 5; Other: spaces"])
def test_b_a_number_of_something_else_does_not_count(text: str) -> None:
    assert not counts(text, frozenset({"space"}))


def test_b_a_question_inside_another_is_not_the_one_asked() -> None:
    assert not wants_number("Which header says how long to wait?")
    assert wants_number("How long must I wait?")
    assert has_measure("Which header says how long to wait?", "The header `Retry-After` says it.")


def test_b_a_case_that_is_put_is_no_question_for_a_time() -> None:
    assert not wants_number("And when I fly?")
    assert has_measure("And when I fly?", "Flights are economy class.")
    assert wants_number("And when can I fly?")
    assert wants_number("And when does it end?")


def test_b_a_yes_or_no_asks_for_no_number_whatever_it_mentions() -> None:
    assert not wants_number("Is a dinner counted towards the limit?")
    assert wants_number("At what age may I help?")


@pytest.mark.parametrize(
    ("question", "has", "lacks"),
    [
        ("When is the concert?", "It is on Mondays after lunch.", "Every member gets a ticket."),
        ("How fast is the lift?", "It takes 9 seconds.", "It changes every floor."),
        ("How often is it cleaned?", "It is cleaned every second Monday.", "Every room is cleaned at once."),
        ("Where is the vault backup?", "It lies in the safe.", "Backups; Kept for: 35 days."),
        ("Who pays for it?", "Those who use it.", "The projector."),
    ],
)
def test_b_a_time_a_size_a_frequency_and_a_person_are_told_apart(question: str, has: str, lacks: str) -> None:
    assert has_measure(question, has)
    assert not has_measure(question, lacks)


def test_b_a_number_of_one_thing_in_a_list_counts_no_other() -> None:
    films = frozenset({"film"})
    assert counts("You get 3 films at once.", films)
    assert not counts("Books are lent for 28 days, films for 7 days.", films)
    assert not counts("A film is shown twice.", films)


def test_b_a_label_counts_however_long_and_a_number_counts_what_has_a_hyphen() -> None:
    assert counts("Parking spaces in the garage: 12", frozenset({"space"}))
    assert counts("There are five on-call engineers.", frozenset({"engin"}))
    assert not counts("Promote the replica: `run --wait 120`", frozenset({"replica"}))


def test_b_a_row_has_a_column_of_the_question_word() -> None:
    row = "What: Vault; How often: Every day; Where: In the safe"
    assert has_column("Where is the vault?", row)
    assert has_column("How often is it opened?", row)
    assert not has_column("Who opens it?", row)
    assert not has_column("Is it where I think?", row)
