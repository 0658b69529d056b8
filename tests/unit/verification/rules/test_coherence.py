"""verification/rules/form.py: repetition, broken-off ends, contradicting figures, the wrong language."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft


def details(text: str, question: str = "", *, own_words: bool = False) -> list[str]:
    verdict = check(Draft(text=text, question=question, own_words=own_words))
    found = [each for each in verdict.violations if each.rule == "coherent"]
    assert all(each.severity == "warning" for each in found)
    return [each.detail for each in found]


def test_repeated_sentence_is_warned_about() -> None:
    for text in [
        "Refunds take fourteen days [1]. The form is online. Refunds take fourteen days [2].",
        "Rückerstattungen dauern vierzehn Tage. Das Formular ist online. Rückerstattungen dauern vierzehn Tage.",
        "Les remboursements prennent deux semaines. Merci. Les remboursements prennent deux semaines.",
        "• The office is closed on Sundays.\n• The office is closed on Sundays.",
        "Refunds take 14 days. Ask finance. Refunds take 14 days.",
    ]:
        assert details(text) == ["This sentence has been said before."]


@pytest.mark.parametrize(
    "text",
    [
        "Refunds take fourteen days. Returns take fourteen days.",
        "• Yes\n• Yes\n• No",
        "Refunds take 9 days. Ask finance. Refunds take 9 days.",
        "Open the page. Close it. Open the page.",
    ],
)
def test_short_or_similar_sentences_are_not_repetitions(text: str) -> None:
    assert details(text) == []


def test_text_that_breaks_off_is_warned_about() -> None:
    for text in [
        "Refunds are paid by the",
        "Refunds are paid by the finance team and",
        "Refunds are paid by finance,",
        "Refunds are paid by finance (",
        "Die Erstattung erfolgt durch die",
        "Le remboursement est payé par le",
        "El reembolso lo paga el equipo de",
        "Pengembalian dibayar oleh tim yang",
        "返金は財務部が",
        "税は",
        "退款由财务部和",
    ]:
        assert details(text) == ["The answer breaks off here."]
        (found,) = check(Draft(text=f"Refunds are free.\n\n{text}")).violations
        assert found.words == text


def test_finished_text_is_not() -> None:
    for text in [
        "Refunds are paid by finance.",
        "Refunds are paid by finance [1]",
        "• finance\n• sales",
        "Run this:\n```\nfoo and\n```",
        "Set the flag `--and`",
        "Really?",
        "Bye :)",
        "払います。",
        "*Refunds*",
        "Vitamin A",
        "Team: R & D",
    ]:
        assert "The answer breaks off here." not in details(text)


@pytest.mark.parametrize(
    "text",
    [
        "The upload limit is 5 GB [1]. The upload limit is 10 GB [2].",
        "Refunds take 14 days. As said, ask finance. Refunds take 30 days.",
        "The discount is 10% for members. The discount is 20% for members.",
        "Die Frist beträgt 14 Tage. Die Frist beträgt 30 Tage.",
    ],
)
def test_two_figures_for_one_thing_are_warned_about(text: str) -> None:
    (detail,) = details(text)
    assert detail.startswith("The same is said with ")


def test_figures_for_different_things_do_not_contradict_each_other() -> None:
    for text in [
        "Plan A costs 5 dollars. Plan B costs 10 dollars.",
        "• Step 1 takes 5 minutes.\n• Step 2 takes 5 minutes.",
        "The handbook says 14 days [1]. The wiki says 30 days [2].",
        "In 2023 the limit was 5 GB. In 2024 the limit was 10 GB.",
        "The backup runs often. It takes 5 minutes. The restore is slow. It takes 60 minutes.",
        "HTTP uses port 80. HTTPS uses port 443.",
        "Upload limit 5 GB for one file. Download limit 10 GB for one file.",
        "Take one pill for step 1. Take one pill for step 2.",
    ]:
        assert details(text) == []


QUESTION = "How long do refunds take until they are paid?"


def test_another_language_than_the_question_is_warned_about() -> None:
    for question, text in [
        (QUESTION, "Die Rückerstattung wird innerhalb von vierzehn Tagen auf das Konto gezahlt."),
        (QUESTION, "返金は十四日以内に支払われます。"),
        ("Wie lange dauert die Rückerstattung auf das Konto?", "The refund is paid to the account within two weeks."),
        ("返金はいつですか？", "The refund is paid to the account within two weeks."),
        ("退款要多久？", "返金は十四日以内に支払われます。"),
    ]:
        assert [detail for detail in details(text, question) if detail.startswith("The question is in ")]


def test_the_same_or_an_asked_for_language_is_not() -> None:
    for question, text in [
        (QUESTION, "The refund is paid to the account within two weeks."),
        (QUESTION, "14 days"),
        ("ok merci", "The refund is paid to the account within two weeks."),
        (
            "How do I say this in German: the refund is paid?",
            "Die Rückerstattung wird auf das Konto gezahlt, und zwar bald.",
        ),
        ("Wie lautet das auf Englisch und wie sagt man es?", "The refund is paid to the account within two weeks."),
        (QUESTION, "`Die Rückerstattung wird auf das Konto gezahlt, und zwar bald.`"),
    ]:
        assert not [detail for detail in details(text, question) if detail.startswith("The question is in ")]


def test_text_from_ones_own_words_may_be_in_any_language() -> None:
    text = "Die Rückerstattung wird auf das Konto gezahlt, und zwar bald."
    assert details(text, "Put the note about the refund into the language of my boss", own_words=True) == []
