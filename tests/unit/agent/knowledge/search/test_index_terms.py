"""What the indexes hold of a passage: stems and pairs, each with what it says there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.search.full_text import MAX_IMPACT, impacts, words_of


def test_words_become_stems_without_case_and_accents() -> None:
    assert list(impacts("", "", "Cafés open, re-opening v2.3_s")) == [
        *("cafe", "open", "re", "v2", "3", "s"),
        *("re open", "v2 3", "3 s"),
    ]


def test_word_says_more_in_a_heading_and_in_a_short_text() -> None:
    text = "Lunch is served at noon." + 50 * " There is a canteen on every floor of the house."
    said = impacts("Handbook", "Handbook › Lunch", text)
    assert said["lunch"] > said["noon"]
    assert impacts("", "", "Lunch is served at noon.")["noon"] > said["noon"]
    assert impacts("", "", f"{text} noon noon")["noon"] > said["noon"]


def test_chinese_japanese_and_thai_are_pairs() -> None:
    assert set(impacts("", "", "有給休暇 วันลา")) >= {"有給", "給休", "休暇", "วั", "ลา"}
    assert words_of("休暇") == ["休暇"]


def test_identifiers_are_looked_for_whole_and_in_parts() -> None:
    assert words_of("FH-2002") == ["fh 2002", "fh", "2002"]
    assert words_of("state-of-the-art") == ["state of", "of the", "the art", "state", "art"]
    assert set(impacts("", "", "see (FH-2002), not FH/2003.")) == {
        "see", "fh", "2002", "fh 2002", "not", "2003", "fh 2003"
    }  # fmt: skip


def test_what_ends_an_identifier_parts_it() -> None:
    assert not [word for word in impacts("", "", 'one, two; "three" (four) five|six. Seven') if " " in word]


@given(st.text(max_size=200), st.text(max_size=80))
def test_any_text_has_words_and_each_says_something(text: str, title: str) -> None:
    said = impacts(title, title, text)
    assert all(1 <= impact <= MAX_IMPACT for impact in said.values())
    assert all(part and not part.isspace() for word in said for part in word.split(" "))


@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_what_is_written_is_found_as_it_is_asked(text: str) -> None:
    assert set(words_of(text)) <= set(impacts("", "", text))


def test_link_targets_are_not_words() -> None:
    text = (
        'See [the travel policy](../hr/expenses_(old).md "Title here") and ![map](img/plan.png), https://wiki.acme.com'
    )
    words = impacts("Title", "", text)
    assert {"travel", "polici", "map", "wiki"} <= words.keys()
    assert not {"expens", "old", "md", "img", "plan", "png"} & words.keys()
