"""An answer as Slack messages: A7 (whole, in order, inside the limits), A8, A9, I2."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.delivery.blocks import MOST_CHARACTERS, Frame, Post, clipped, context, render, without_buttons
from bot.delivery.links import age, link, source_line
from bot.local.model.block_limits import block_faults, text_length
from verification.markup.chunks import messages
from verification.types import Answer, Source

TODAY = date(2026, 11, 21)
SOURCE = Source(id=1, title="Release process", url="https://docs.example/release.md", updated_at="2026-11-01")


def answer(**fields: Any) -> Answer:
    known = {"text": "On Tuesdays [1].", "chunks": ("On Tuesdays <https://docs.example/release.md|[1]>.",)}
    return Answer(**{**known, "sources": (SOURCE,), "verified": True, "attempts": 1, **fields})


def rendered(shown: Answer, **frame: Any) -> tuple[Post, ...]:
    return render(shown, Frame(today=TODAY, **{"turn_id": "turn-7", **frame}))


def test_a9_a_verified_answer_shows_sources_marks_and_buttons() -> None:
    (post,) = rendered(answer(attempts=2))
    assert post.text == "On Tuesdays <https://docs.example/release.md|[1]>."
    chunk, sources, marks, feedback, actions = post.blocks
    assert chunk["text"] == {"type": "mrkdwn", "text": post.text, "verbatim": True}
    line = "<https://docs.example/release.md|[1] Release process> · 2 weeks ago"
    assert sources == {"type": "context", "elements": [{"type": "mrkdwn", "text": line, "verbatim": True}]}
    assert marks["elements"][0]["text"] == "✓ Verified · 2 attempts"
    (element,) = feedback["elements"]
    assert feedback["type"] == "context_actions"
    assert (element["type"], element["action_id"]) == ("feedback_buttons", "orion_feedback")
    assert (element["positive_button"]["value"], element["negative_button"]["value"]) == ("good:turn-7", "bad:turn-7")
    (button,) = actions["elements"]
    assert (button["action_id"], button["value"], button["text"]["text"]) == (
        "orion_trust",
        "turn-7",
        "Why trust this?",
    )


def test_a9_only_verified_answers_ask_to_be_trusted() -> None:
    (post,) = rendered(answer(verified=False))
    # A refusal names its nearest documents in its own text: listing them again below would look like evidence.
    assert [block["type"] for block in post.blocks] == ["section", "context_actions"]


def test_f4_partial_and_quoted_answers_say_so() -> None:
    (post,) = rendered(answer(), marks=("partial", "quotes"))
    assert post.blocks[2]["elements"][0]["text"] == (
        "◐ Partial: what could not be verified was left out · ❝ Quoted from the documents"
    )


def test_f9_what_stands_around_an_answer_is_in_the_language_of_the_question() -> None:
    (post,) = rendered(answer(attempts=2), language="de", marks=("quotes",))
    _, sources, marks, feedback, actions = post.blocks
    assert sources["elements"][0]["text"].endswith("· vor 2 Wochen")
    assert marks["elements"][0]["text"] == "✓ Geprüft · ❝ Aus den Dokumenten zitiert · 2 Versuche"
    good = feedback["elements"][0]["positive_button"]
    assert (good["text"]["text"], good["value"]) == ("Hilfreich", "good:turn-7")
    assert actions["elements"][0]["text"]["text"] == "Warum kann man dem trauen?"
    (partial,) = rendered(answer(), language="ja", marks=("partial",))
    assert partial.blocks[2]["elements"][0]["text"].startswith("◐ 一部のみ")


def test_f1_a_label_stands_above_the_answer() -> None:
    (post,) = rendered(answer(label="Not from your documents, not verified", verified=False, sources=()))
    assert post.blocks[0] == context(["Not from your documents, not verified"])
    assert post.text.startswith("Not from your documents, not verified\nOn Tuesdays")


def test_a1_orions_own_messages_have_no_buttons() -> None:
    (post,) = rendered(Answer(text="Hello", chunks=("Hello",)), turn_id="")
    assert [block["type"] for block in post.blocks] == ["section"]
    (bare,) = rendered(Answer(text="Hello", chunks=()), turn_id="")
    assert bare.text == "Hello"


def test_a7_a_long_answer_keeps_every_chunk_and_puts_the_tail_last() -> None:
    chunks = tuple(f"{number} " + "x" * 2_800 for number in range(20))
    posts = rendered(answer(chunks=chunks))
    assert [b["text"]["text"] for post in posts for b in post.blocks if b["type"] == "section"] == list(chunks)
    assert [any(b["type"] == "context_actions" for b in post.blocks) for post in posts] == [False] * (
        len(posts) - 1
    ) + [True]


def test_a7_a_tail_that_does_not_fit_gets_a_message_of_its_own() -> None:
    full = tuple("x" * 2_900 for _ in range(3))
    posts = rendered(answer(chunks=full, sources=tuple(Source(id=n, title="t" * 110) for n in range(1, 40))))
    assert len(posts) == 2
    assert posts[1].blocks[0]["type"] == "context"
    assert posts[1].text.startswith("[1] ttt")


def test_a8_a_server_without_buttons_still_gets_all_text() -> None:
    (post,) = rendered(answer())
    assert [block["type"] for block in without_buttons(post.blocks)] == ["section", "context", "context"]


def test_a9_more_sources_than_fit_are_counted() -> None:
    lines = [f"{number} " + "y" * 300 for number in range(60)]
    block = context(lines)
    assert len(block["elements"]) <= 10
    assert block["elements"][-1]["text"].endswith("… and 34 more")
    assert clipped(["short"], 100) == "short"


@pytest.mark.parametrize(
    ("updated_at", "words"),
    [
        ("2026-11-21", "today"),
        ("2026-11-20T23:59:00Z", "1 day ago"),
        ("2026-11-07", "2 weeks ago"),
        ("2026-08-01", "3 months ago"),
        ("2024-01-01T00:00:00+00:00", "2 years ago"),
        ("2026-12-24", "2026-12-24"),
        ("last spring", ""),
        ("", ""),
    ],
)
def test_a9_age_is_told_in_words(updated_at: str, words: str) -> None:
    assert age(updated_at, TODAY) == words


@pytest.mark.parametrize(
    ("url", "title", "line"),
    [
        ("javascript:alert(1)", "Plain", "[1] Plain"),
        ("", "A & <b>", "[1] A &amp; &lt;b&gt;"),
        ("https://x.example/a|b c>d?e=1&f=2", "x", "<https://x.example/a%7Cb%20c%3Ed?e=1&amp;f=2|[1] x>"),
        ("https://x.example", "a|b\n<!here>", "<https://x.example|[1] a¦b &lt;!here&gt;>"),
    ],
)
def test_i2_a_title_or_address_cannot_break_out(url: str, title: str, line: str) -> None:
    assert source_line(Source(id=1, title=title, url=url), TODAY) == line


@given(st.text(), st.text())
def test_i2_a_link_is_one_link(url: str, label: str) -> None:
    made = link(f"https://{url}", label)
    assert (made.count("<"), made.count(">"), made.count("|")) == (1, 1, 1)
    assert "\n" not in made


CHUNK = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=2_900).filter(str.strip)
SOURCES = st.lists(
    st.builds(
        Source,
        id=st.integers(1, 99),
        title=st.text(max_size=300),
        url=st.sampled_from(["", "https://x.example/a"]),
        updated_at=st.dates(max_value=TODAY).map(str) | st.text(max_size=5),
    ),
    max_size=12,
)


@given(chunks=st.lists(CHUNK, min_size=1, max_size=8), sources=SOURCES, label=st.sampled_from(["", "Not verified"]))
def test_a7_slack_would_take_every_message(chunks: list[str], sources: list[Source], label: str) -> None:
    shown = answer(chunks=tuple(chunks), sources=tuple(sources), label=label)
    posts = rendered(shown)
    sent = [block["text"]["text"] for post in posts for block in post.blocks if block["type"] == "section"]
    assert sent == [chunk for group in messages(shown.chunks) for chunk in group]
    for post in posts:
        blocks = list(post.blocks)
        assert list(block_faults(blocks, limit=50)) == []
        assert sum(map(text_length, blocks)) <= MOST_CHARACTERS + 200  # the label rides on the first message
        assert post.text.strip()


def test_a9_yesterday_is_a_day_ago() -> None:
    assert age(str(TODAY - timedelta(days=1)), TODAY) == "1 day ago"
