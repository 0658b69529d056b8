"""What `orion bench` verifies: answers that pass, other ones in every round."""

from __future__ import annotations

from bot.evals.bench import turn
from verification.check import check


def test_what_is_measured_are_answers_that_pass() -> None:
    """A text that fails early would flatter the figures."""
    for number in range(20):
        draft = turn(number)
        assert 1800 <= len(draft.text) <= 2000
        assert [len(source.text) for source in draft.sources] == [2000] * 8
        verdict = check(draft)
        assert verdict.passed
        assert len(verdict.claims) > 15


def test_answers_in_other_words_pass_too() -> None:
    """They say what their sources say, and no sentence of theirs stands there."""
    for number in range(10):
        draft = turn(number, reworded=True)
        assert draft.sources == turn(number).sources
        verdict = check(draft)
        assert verdict.passed
        lines = [line.removeprefix("- ").partition(" [")[0] for line in draft.text.split("\n") if "- " in line]
        assert not any(line in source.text for line in lines for source in draft.sources if len(line) > 40)


def test_every_round_has_its_own_texts() -> None:
    """What is remembered of one round must not serve the next."""
    texts = [text for number in range(50) for text in (turn(number).text, *(s.text for s in turn(number).sources))]
    assert len(set(texts)) == len(texts)
    assert turn(7) == turn(7)
