"""A rule fails only what it is sure of: right answers in any spelling pass, another value in a value's place fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from verification.check import check
from verification.types import Draft, Source

TRAVEL = (
    "A private car is reimbursed with 0.32 euros a kilometre. Hotels cost up to 140 euros a night. "
    "Book flights at least 14 days ahead. The year end freeze runs from 2026-12-18 to 2027-01-04."
)
PLANS = """| Plan | Price | Requests |
|---|---|---|
| Starter | 9 euros | 60 |
| Team | 19 euros | 600 |
| Enterprise | 99 euros | 6,000 |"""
KEYS = (
    "API keys do not expire, but version 2 keys will be removed on 2027-02-28. Logs are kept for 30 days. "
    "The review is on Monday, 3 May 2027 at 14:30. Connect with `client.connect(timeout=30)`."
)


def draft(source: str, text: str, question: str = "") -> Draft:
    page = Source(id=1, title="Page", text=source, updated_at="2026-10-01T09:00:00Z")
    return Draft(text=text, question=question, sources=(page,))


def test_what_is_right_passes_in_any_spelling() -> None:
    for source, text, question in [
        # calculations, however they are written
        (TRAVEL, "300 km × 0.32 €/km = 96 € [1].", "How much for 300 km?"),
        (TRAVEL, "You get 96 euros for 300 km (300 * 0.32) [1].", "How much for 300 km?"),
        (TRAVEL, "You get 96 euros [1].", "How much do I get for 300 km?"),
        (TRAVEL, "Für 300 km bekommst du 96 Euro (300 km × 0,32 €/km) [1].", "Wie viel für 300 km?"),
        (TRAVEL, "Por 300 km recibes 96 € (300 × 0,32 €) [1].", "¿Cuánto por 300 km?"),
        (TRAVEL, "Three nights may cost up to 420 euros: 3 × 140 € = 420 € [1].", ""),
        (PLANS, "Team costs 228 euros a year (12 × 19 = 228) [1].", ""),
        (PLANS, "Together they cost 127 euros (9 + 19 + 99) [1].", ""),
        (PLANS, "Team costs 10 euros more than Starter [1].", ""),
        (PLANS, "Team allows ten times as many requests as Starter [1].", ""),
        (TRAVEL, "The freeze lasts 18 days, from 18 December 2026 to 4 January 2027 [1].", ""),
        # bounds and negations from their other side
        (TRAVEL, "A hotel may not cost more than 140 euros a night [1].", ""),
        (TRAVEL, "At most 140 euros a night are paid for a hotel [1].", ""),
        (TRAVEL, "Ein Hotel darf höchstens 140 Euro pro Nacht kosten [1].", ""),
        (TRAVEL, "Flights must be booked no later than 14 days before departure [1].", ""),
        (KEYS, "API keys do not expire, but version 2 keys are removed on 28 February 2027 [1].", ""),
        (KEYS, "Version 2 keys will be removed on 28 February 2027 [1].", ""),
        # tables turned round, with the citation below or in their rows
        (PLANS, "| | Starter | Team |\n|---|---|---|\n| Price | 9 € | 19 € |\n| Requests | 60 | 600 |\n\n[1]", ""),
        (PLANS, "| | Starter | Team |\n|---|---|---|\n| Price [1] | 9 € | 19 € |", ""),
        # dates in the language of the answer, and the date of the page
        (KEYS, "Die Überprüfung ist am Montag, dem 3. Mai 2027, um 14:30 Uhr [1].", "Wann?"),
        (KEYS, "La revue a lieu le lundi 3 mai 2027 à 14h30 [1].", "Quand ?"),
        (KEYS, "La revisión es el lunes 3 de mayo de 2027 a las 14:30 [1].", "¿Cuándo?"),
        (KEYS, "Tinjauan dilakukan Senin, 3 Mei 2027 pukul 14.30 [1].", "Kapan?"),
        (KEYS, "レビューは2027年5月3日（月）14時30分です[1]。", "いつ？"),
        (KEYS, "评审时间为2027年5月3日星期一14:30[1]。", "何时？"),
        (KEYS, "As of 1 October 2026, logs are kept for 30 days [1].", ""),
        (KEYS, "Die Seite wurde zuletzt am 1. Oktober 2026 aktualisiert [1].", ""),
    ]:
        asked = draft(source, text, question)
        assert check(asked).errors == ()
        assert check(replace(asked, has_judge=True)).errors == ()


@pytest.mark.parametrize(
    ("source", "text", "words"),
    [
        (TRAVEL, "A private car is reimbursed with 0.48 euros a kilometre [1].", "0.48 euros"),
        (TRAVEL, "300 km × 0.32 €/km = 86 € [1].", "86 €"),
        (KEYS, "The review is on Monday, 10 May 2027 at 14:30 [1].", "10 May 2027"),
    ],
)
def test_another_value_in_place_of_the_source_value_fails_with_any_judge(source: str, text: str, words: str) -> None:
    asked = replace(draft(source, text), question="300 km")
    for verdict in (check(asked), check(replace(asked, has_judge=True))):
        assert words in {error.words for error in verdict.errors}


def test_value_of_no_source_is_left_to_the_judge() -> None:
    for source, text in [
        (TRAVEL, "Lunch on the train is paid up to 77 euros [1]."),
        (KEYS, "The next audit takes place on 9 June 2029 [1]."),
        (KEYS, "Set `retry_limit` first [1]."),
        (KEYS, "Connect like this [1]:\n```\nclient.connect(timeout=900)\n```"),
        (KEYS, "Logs are not kept for 30 days [1]."),
    ]:
        asked = draft(source, text)
        assert [error.rule for error in check(asked).errors] == ["claim_supported"]
        verdict = check(replace(asked, has_judge=True))
        assert verdict.passed
        assert "open" in {claim.supported for claim in verdict.claims}


def test_what_a_strong_model_reckoned_right_fails_no_rule_where_a_judge_is_asked() -> None:
    """Recorded first drafts that rules rejected although they were right."""
    retries = "Retries come 1 min, 5 min, 30 min, 2 h, 6 h, 12 h and 24 h after the one before."
    minor = "Amounts are integers in the smallest unit of the currency. KWD has three decimals."
    duty = "Rufbereitschaft: Montag bis Freitag 30 € je Tag, Samstag und Sonntag 55 € je Tag."
    licences = "| Truck | Valid for |\n|---|---|\n| Reach truck | 3 years |\n| VNA | 2 years |"
    for source, text, question in [
        (retries, "1 min + 5 min + 30 min + 2 h + 6 h + 12 h + 24 h = 44 h 36 min [1].", ""),
        (minor, "2.500 KWD is charged: 2500 ÷ 1000 = 2.500 [1].", "What is charged for 2500?"),
        (
            duty,
            "Pauschal gibt es 260 € [1]: 5 × 30 € = 150 €, 2 × 55 € = 110 €, zusammen 150 € + 110 € = 260 € [1].",
            "",
        ),
        (licences, "A VNA licence is valid for 2 years, a reach truck licence for 3 years [1].", ""),
    ]:
        assert check(replace(draft(source, text, question), has_judge=True)).errors == ()


def test_citation_is_not_moved_by_shared_words_where_a_judge_is_asked() -> None:
    """With a judge no rule moves a citation: it would move right ones to pages with the same numbers."""
    sources = (
        Source(id=1, title="Colonoscopy", text="Second sachet 5 hours before. Drink nothing from three hours before."),
        Source(id=2, title="Ultrasound", text="Drink nothing for 3 hours before an ultrasound at 9:00 or 12:00."),
    )
    text = "Three hours before, 12:00 − 3 hours = 9:00, drink nothing [1]."
    assert "[1]" in check(Draft(text=text, sources=sources, has_judge=True)).text


def test_the_order_of_quoted_steps_is_left_to_the_judge_where_there_is_one() -> None:
    """Two steps exchanged, each word for word: rules and quotations alone let it pass in a recorded try."""
    page = "1. Unplug the battery from the truck.\n2. Switch on the fan and wait for the green lamp."
    swapped = (
        "1. Switch on the extractor fan and wait for the green lamp. [1]\n2. Unplug the battery from the truck. [1]"
    )
    assert check(draft(page, swapped)).passed
    claims = check(replace(draft(page, swapped), has_judge=True)).claims
    assert {(claim.supported, claim.settled_by) for claim in claims} == {("open", "nobody")}
