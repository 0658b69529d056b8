"""Small talk is answered without a search; what says more is not small talk."""

import pytest

from agent.quoting.small_talk import asks_for_documents, is_question, phrase, search_query, small_talk_reply
from agent.thread.conversation import ThreadMessage


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        ("Hi there!", phrase("hello", "en")),
        ("Good morning, and how is it with you all?", phrase("hello", "en")),
        ("Guten Morgen zusammen", phrase("hello", "de")),
        ("¡Muchas gracias!", phrase("welcome", "es")),
        ("ありがとうございます", phrase("welcome", "ja")),
        ("thanks, that helps a lot :tada:", phrase("welcome", "en")),
        (":+1::skin-tone-2:", phrase("welcome", None)),
        ("🎉", phrase("welcome", None)),
        ("🙏🏽 ❤️", phrase("welcome", None)),
        ("🤷‍♂️", phrase("hello", None)),
        (":shrug: 👍", phrase("hello", None)),
        ("that's wrong", phrase("unclear", "en")),
        ("yes please", phrase("unclear", "en")),
        ("What can you do?", phrase("hello", "en")),
    ],
)
def test_small_talk_gets_a_reply_that_claims_nothing(message: str, reply: str) -> None:
    assert small_talk_reply(message) == reply
    assert search_query(message, (ThreadMessage(role="user", text="Where is the fire exit?"),)) == ""


@pytest.mark.parametrize(
    "message",
    ["Thanks, and where is it?", "Hello, where is the fire exit?", "Is it good?", "the answer", "not that", "?", ""],
)
def test_a_greeting_with_more_words_is_not_small_talk(message: str) -> None:
    assert small_talk_reply(message) == ""


@pytest.mark.parametrize(
    "message",
    [
        "Which documents are there?",
        "list the docs",
        "Which pages were changed last?",
        "Welche Dokumente gibt es?",
        "有哪些文档",
    ],
)
def test_the_list_of_documents_is_asked_for_in_words_of_lists(message: str) -> None:
    assert asks_for_documents(message)
    assert not asks_for_documents(message + " travel")


def test_a_short_message_is_searched_with_the_words_of_the_previous_question() -> None:
    history = (
        ThreadMessage(role="user", text="When does the office open on Saturdays?"),
        ThreadMessage(role="assistant", text="Bananas are yellow."),
        ThreadMessage(role="user", text="Has anybody seen my umbrella today, the green one?", addressed=False),
        ThreadMessage(role="user", text="thanks"),
        ThreadMessage(role="user", text="And on Sundays?"),
    )
    assert search_query("And on Sundays?", history) == "And on Sundays? (office, open, Saturdays)"
    assert search_query("?", history[:1]) == "? (office, open, Saturdays)"
    alone = "How far from the building is the meeting point?"
    assert search_query(alone, history) == alone


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("And for Berlin?", True),
        ("Wie viele Tage sind es? Danke!", True),
        ("كم عدد أيام الإجازة؟", True),
        ("一年有几天假？", True),
        ("休暇は何日ですか", True),
        ("where I put it I don't know", False),
        ("nice, see you at lunch Jonas", False),
        ("I asked Priya, she says it's 30 now", False),
        ("FYI I moved the meeting, see https://cal.example/?id=3", False),
        ("I ran `grep -E 'a?'` here", False),
        ("> is it 30 days?\nyes it is", False),
    ],
)
def test_a_question_is_not_a_statement(message: str, asks: bool) -> None:  # noqa: FBT001 - a table's column
    assert is_question(message) is asks
