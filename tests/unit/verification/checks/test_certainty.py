"""Right answers that a rule must not reject: each pair is a source and a claim that it supports."""

import pytest

from verification.check import check
from verification.types import Draft, Source


def errors(claim: str, *sources: str, has_judge: bool = False, context: str = "") -> list[str]:
    found = tuple(Source(id=number, title="", text=text) for number, text in enumerate(sources, 1))
    verdict = check(Draft(text=f"{claim} [1].", sources=found, has_judge=has_judge, context=context))
    return [error.detail for error in verdict.errors]


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
