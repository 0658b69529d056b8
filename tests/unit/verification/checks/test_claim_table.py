"""Right texts and wrong ones: the rule of each row, `claim_supported` if it names none, finds the wrong ones only."""

import json
from typing import Any

import pytest

from tests.support.paths import ROOT
from verification.check import check
from verification.types import Draft, Source, Violation

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "tests/data/claims.jsonl").read_text(encoding="utf-8").splitlines()
]


WARN = {"minimum_length", "addresses_question"}


@pytest.mark.parametrize("kind", sorted({row["kind"] for row in ROWS}))
def test_the_rules_fail_only_the_wrong_claims(kind: str) -> None:
    wrongly_judged = []
    for row in (row for row in ROWS if row["kind"] == kind):
        facts = {name: value for name, value in row.items() if name not in {"kind", "passes", "rule", "sources"}}
        verdict = check(Draft(**facts, sources=tuple(Source(**source) for source in row["sources"])))
        rule = row.get("rule", "claim_supported")
        found = [
            each for each in verdict.violations if each.rule == rule and (each.severity == "error" or rule in WARN)
        ]
        if bool(found) is row["passes"]:
            wrongly_judged.append((row["text"], [each.detail for each in verdict.violations]))
    assert wrongly_judged == []


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


@pytest.mark.parametrize(
    "heading",
    ["**Saran Tindak Lanjut:**", "## Next steps", "**Nächste Schritte**", "*Prochaines étapes :*", "### Próximos pasos",
     "**次のステップ：**", "**后续步骤：**", "You can also ask:", "💡 Suggestions"],
)  # fmt: skip
def test_offers_under_their_heading_need_no_citation(heading: str) -> None:
    text = f"Sales rose by 12 % in 2025 [1].\n\n{heading}\n\n- Analysis by region\n- The trend over time\n"
    sources = (Source(id=1, title="Sales", text="Sales rose by 12 % in 2025."),)
    assert check(Draft(text=text, sources=sources)).passed
    judged = check(Draft(text=text, sources=sources, has_judge=True))
    assert (judged.passed, [claim.cited for claim in judged.claims][-2:]) == (True, [(1,), (1,)])
    invented = text.replace("Analysis by region", "The north grew by 40 %")
    assert not check(Draft(text=invented, sources=sources)).passed
