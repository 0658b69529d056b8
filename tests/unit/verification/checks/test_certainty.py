"""Right answers that a rule must not reject: each pair is a source and a claim that it supports."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft, Source


def errors(claim: str, *sources: str, has_judge: bool = False, context: str = "") -> list[str]:
    found = tuple(Source(id=number, title="", text=text) for number, text in enumerate(sources, 1))
    verdict = check(Draft(text=f"{claim} [1].", sources=found, has_judge=has_judge, context=context))
    return [error.detail for error in verdict.errors]


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Growth without prices: 21.2 − 1.2 = 20.0 %", "Growth was 21.2 %, and 1.2 % came from prices."),
        ("Growth without prices: 21.2 % − 1.2 = 20.0 %", "Growth was 21.2 %, and 1.2 % came from prices."),
        ("Together 0.25 + 0.1 = 35 %", "A quarter (0.25) and a tenth (0.1)."),
        ("That is 12 / 60 = 20 %", "12 of 60 passed."),
        ("Pay is full for 6 weeks", "Pay is full for the first six weeks."),
        ("Pay is full for the first 6 weeks", "Pay is full for the first six weeks."),
        ("Sie bekommen 6 Wochen Lohn", "Sie bekommen Lohn in den ersten sechs Wochen."),
        ("Keys do not expire whether they are used", "Keys do not expire whether or not they are used."),
        ("Badges work on weekdays and on Sundays", "Badges work not only on weekdays but also on Sundays."),
        ('It says "the R&D team pays for it"', "Normally the R&D team pays for it."),
        ('It says "the R&amp;D team pays for it"', "Normally the R&amp;D team pays for it."),
        ('Stop "if a < b and c > d here"', "Stop if a < b and c > d here, please."),
        (
            'Click "Delete user from Sourcegraph.com"',
            "Click [Delete user](https://a.test/x) from [Sourcegraph.com](https://b.test).",
        ),
        (
            'Click "the gear icon twice quickly"',
            "Click the ![gear](gear.png) icon<sup>2</sup> twice[^3] <b>quickly</b>.",
        ),
        ("Use version v1.4", "Use version 1.4.0."),
        ("Two weeks before that, so by 1 June", "The form is due two weeks before 15 June."),
        ('It says "press save and wait"', "> Press *save* and\\\n> wait."),
    ],
)
@pytest.mark.parametrize("has_judge", [False, True])
def test_supported_claim_is_not_rejected(claim: str, source: str, has_judge: bool) -> None:  # noqa: FBT001 - a parameter
    assert errors(claim, source, has_judge=has_judge) == []


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Growth without prices: 21.2 − 1.2 = 30.0 %", "Growth was 21.2 %, and 1.2 % came from prices."),
        ("Pay is full for 8 weeks", "Pay is full for the first six weeks."),
        ("The service does restart by itself", "The service doesn't restart by itself."),
        ('It says "the L&D team pays for it"', "Normally the R&D team pays for it."),
        (
            'Click "Delete group from Sourcegraph.com"',
            "Click [Delete user](https://a.test/x) from [Sourcegraph.com](https://b.test).",
        ),
        ("The release is 4.0.0 for the server", "The release is 4.1.0 for the server."),
    ],
)
def test_wrong_claim_still_fails(claim: str, source: str) -> None:
    assert errors(claim, source) != []


@pytest.mark.parametrize(
    ("claim", "cited", "other"),
    [
        (
            "The release is 4.0.0 for the server",
            "The release is 4.1.0 for the server.",
            "Version 4.0.0 is the release.",
        ),
        (
            "The limit is 90 requests a minute",
            "The limit is 60 requests a minute.",
            "Since May it is 90 requests a minute.",
        ),
        ("The desk closes on 3 May 2027", "The desk closes on 4 May 2027.", "It closes on 3 May 2027."),
        ('It says "the blue team pays for it"', "Normally the red team pays for it.", "Now the blue team pays for it."),
    ],
)
def test_value_of_another_source_is_for_the_judge_to_decide(claim: str, cited: str, other: str) -> None:
    assert errors(claim, cited, other, has_judge=True) == []
    assert errors(claim, cited, has_judge=True) != []


TODAY = "Today is Monday 2026-11-23."


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The desk closes on 24 November 2026", "The desk closes tomorrow."),
        ("The desk closes tomorrow, on 24 November 2026", "The desk closes on 24 November."),
        ("The desk closes on 14 December 2026", "The desk closes in three weeks."),
        ("Der Schalter schließt am 24. November 2026", "Der Schalter schließt morgen."),
        ("El mostrador cierra el 24 de noviembre de 2026", "El mostrador cierra mañana."),
        ("The desk closes on Tuesday, 24 November 2026", "The desk closes on 24 November 2026."),
    ],
)
def test_date_that_words_count_from_today_is_explained(claim: str, source: str) -> None:
    assert errors(claim, source, context=TODAY) == []


@pytest.mark.parametrize("when", ["3 May 2027", "3 May", "24 November 2026", "12 March 2026", "May 2027"])
def test_date_near_today_needs_a_source(when: str) -> None:
    assert errors(f"The desk closes on {when}", "The desk closes in spring.", context=TODAY) != []


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
