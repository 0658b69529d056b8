"""What `orion bench` verifies: answers that pass, other ones in every round."""

from rich.console import Console

from bot.evals.bench import BenchRow, bench_json, bench_table, turn
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


def test_costs_lost_in_noise_are_not_printed() -> None:
    rows = [
        BenchRow("a", -3.0, "µs", "aiohttp", 2.0),
        BenchRow("b", 3.0, "µs", "aiohttp", -1.5),
        BenchRow("c", 3.0, "µs", "x", 2.0),
    ]
    console = Console(width=150)
    with console.capture() as shown:
        console.print(bench_table(rows))
    assert not {"-3", "-1.5"} & set(shown.get().split())
    assert shown.get().count("too noisy") == 3  # two figures, and the caption
    assert [(row["value"], row["of_yardstick"], row["ratio"], row["noise"]) for row in bench_json(rows)] == [
        (None, 2.0, None, True), (3.0, None, None, True), (3.0, 2.0, 1.5, False),
    ]  # fmt: skip
