"""Titles that state nothing, and titles that are sentences."""

from __future__ import annotations

import pytest

from verification.claims.small_talk import (
    digits,
    is_sentence,
    label_end,
    opens_with_sentence,
    own_digits,
)


@pytest.mark.parametrize(
    "heading",
    ["*Keys never expire*", "## Refunds are free", "*Step 2: Keys must be rotated*", "Schlüssel dürfen geteilt werden",
     "Les clés sont gratuites", "Las claves son gratis", "Kunci boleh dibagikan", "鍵は共有できます", "密码可以共享"],
)  # fmt: skip
def test_heading_with_a_finite_verb_is_a_sentence(heading: str) -> None:
    assert is_sentence(heading)


@pytest.mark.parametrize(
    "heading",
    ["*Limits*", "How keys are rotated", "What you need to know", "If you are on call", "Services that must go",
     "Wann ausgeliefert wird", "Is the office open?", "Step 2"],
)  # fmt: skip
def test_title_is_not_a_claim(heading: str) -> None:
    assert not is_sentence(heading)


def test_an_introduction_may_say_something_first() -> None:
    assert opens_with_sentence("Refunds are free, and these are the rules:")
    assert not opens_with_sentence("If you are on call, do this:")
    assert not opens_with_sentence("These are the rules:")


def test_labels_and_counts_are_not_facts() -> None:
    assert own_digits("Step 2: Wait for 3 documents [1]") == frozenset()
    assert own_digits("The limit is 900 a minute [1]") == {"900"}
    assert digits("Call 0800-123 <https://a.test/4|x> [7]") == {"0800", "123"}
    assert label_end("2. Wait") == 3
    assert label_end("Wait") == 0
