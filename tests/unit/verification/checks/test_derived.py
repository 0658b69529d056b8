"""Numbers that follow from those of the sources: counts, sums, shares, spans; and numbers that do not."""

from verification.check import check
from verification.types import Draft, Source, Violation


def errors(source: str, text: str) -> list[Violation]:
    pages = (Source(id=1, title="", text=source),)
    return [each for each in check(Draft(text=f"{text} [1].", sources=pages)).errors if each.rule == "claim_supported"]


def test_a_sum_of_different_things_is_left_to_a_judge() -> None:
    source = Source(id=1, title="", text="The shelter has 5 cats and 3 dogs.")
    verdict = check(Draft(text="The shelter has 8 animals in total [1].", sources=(source,)))
    assert [(each.severity, each.words) for each in verdict.violations] == [("warning", "8")]


def test_every_sentence_may_use_the_result_of_a_right_calculation() -> None:
    source = "Own car: 0.38 euros a km for the first 300 km, then 0.20 euros."
    steps = "- 300 km × 0.38 euros = 114 euros [1]\n- 114 euros + 24 euros = {} euros"
    assert not [
        each for each in errors(source, f"You get 138 euros [1].\n\n{steps.format(138)}") if "138" in each.words
    ]
    assert [each for each in errors(source, f"You get 148 euros [1].\n\n{steps.format(138)}") if "148" in each.words]
    assert [each for each in errors(source, f"You get 148 euros [1].\n\n{steps.format(148)}") if "148" in each.words]
