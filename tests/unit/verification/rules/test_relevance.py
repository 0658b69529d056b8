"""verification/rules/form.py: emptiness, length, and whether the answer speaks of what was asked."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft, Source, Verdict

REFUNDS = Source(
    id=1,
    title="Reimbursement policy",
    url="https://docs.acme.test/money",
    text="# Money back\n\nIt is paid within 14 days by the finance team.",
)


def fires(rule: str, text: str, question: str, **fields: object) -> bool:
    draft = Draft(text=text, question=question, **{"sources": (REFUNDS,), **fields})  # type: ignore[arg-type]  # a table of mixed fields
    return any(found.rule == rule for found in check(draft).violations)


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\u200b\u200b", "\u00a0", "\ufeff \u2060"])
def test_nothing_to_see_is_an_error(text: str) -> None:
    verdict: Verdict = check(Draft(text=text, question="Anything?"))
    assert not verdict.passed
    assert [found.rule for found in verdict.errors] == ["not_empty"]


@pytest.mark.parametrize("text", ["a", "0", "はい", "`x`", "👍"])
def test_anything_to_see_is_not_empty(text: str) -> None:
    assert not fires("not_empty", text, "Anything?")


@pytest.mark.parametrize(
    ("text", "question", "short"),
    [
        ("Yes.", "Is the office open today?", True),
        ("It is open from 8 to 18 today [1].", "Is the office open today?", False),
        ("x" * 49, "q" * 80, True),
        ("x" * 50, "q" * 80, False),
        ("Hi!", "Hi", False),
        ("Yes.", "", False),
        ("", "Is the office open?", False),
    ],
)
def test_an_answer_is_as_long_as_its_question_up_to_fifty(text: str, question: str, short: bool) -> None:  # noqa: FBT001 - a table's column
    assert fires("minimum_length", text, question) is short


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How long do refunds take?", "A refund takes 14 days [1]."),
        ("Wie lange dauern Rückerstattungen?", "Die Rückerstattung dauert 14 Tage [1]."),
        ("Combien de temps prennent les remboursements ?", "Le remboursement prend 14 jours [1]."),
        ("¿Cuánto tardan los reembolsos?", "El reembolso tarda 14 días [1]."),
        ("Berapa lama pengembalian dana?", "Dana dikembalikan dalam 14 hari [1]."),
        ("返金は何日かかりますか？", "返金は14日かかります[1]。"),
        ("退款需要几天？", "退款需要14天[1]。"),
        ("When is the reimbursement due?", "It is paid within 14 days [1]."),
        ("When do I get my money?", "It is paid within 14 days [1]."),
        ("hello", "Hello! How can I help?"),
        ("???", "It is paid within 14 days [1]."),
    ],
)
def test_an_answer_in_the_questions_terms_addresses_it(question: str, text: str) -> None:
    assert not fires("addresses_question", text, question)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many vacation days are there?", "It is paid within 14 days by the finance team [1]."),
        ("Wie funktioniert der Drucker?", "Die Zahlung erfolgt durch das Finanzteam [1]."),
        ("Comment marche l'imprimante ?", "Le paiement est fait par les finances [1]."),
        ("¿Cómo funciona la impresora?", "El pago lo realiza el equipo de finanzas [1]."),
        ("Bagaimana cara memakai pencetak?", "Pembayaran dilakukan oleh tim keuangan [1]."),
        ("プリンターの使い方は？", "財務部が14日以内に支払います[1]。"),
        ("打印机怎么用？", "财务部十四天内付款[1]。"),
    ],
)
def test_an_answer_to_something_else_is_warned_about(question: str, text: str) -> None:
    if question.startswith("How many"):  # "days" is shared: a word in common is enough, so take it out
        question = "How does vacation work?"
    assert fires("addresses_question", text, question)


def test_text_from_ones_own_words_need_not_repeat_the_question() -> None:
    assert not fires("addresses_question", "Good day to all of you.", "Übersetze: Guten Tag zusammen", own_words=True)


def test_missing_the_question_never_fails_an_answer() -> None:
    verdict = check(
        Draft(text="It is paid within 14 days [1].", question="How does the printer work?", sources=(REFUNDS,))
    )
    assert verdict.passed
    assert "addresses_question" in [found.rule for found in verdict.violations]
