"""Sentences that state nothing in seven languages, and facts that pose as greetings, offers or admissions."""

import pytest

from verification.claims.claims import claims
from verification.claims.small_talk import (
    digits,
    is_bare_answer,
    is_interjection,
    is_sentence,
    label_end,
    opens_with_sentence,
    own_digits,
    states_nothing,
)

STATES = [
    "Yes, keys are shared between teams.", "No, approval is required.", "Sure, share the key.",
    "Hello, Refunds Are Free.", "Absolutely, deploy on Fridays.", "Thanks, keys never expire.",
    "No problem, deploy it directly.", "Ja, Passwörter dürfen weitergegeben werden.",
    "Oui, partagez les mots de passe.", "Sí, se pueden compartir las contraseñas.", "Ya, kata sandi boleh dibagikan.",
    "はい、共有できます。", "是的，密码可以共享。", "I hope this helps: keys may be shared with everybody.",
    "Let me know if sharing keys with contractors, which is allowed, causes trouble.",
    "Here are the facts: keys never expire.",
    "I could not find the exact page yet keys may be shared with contractors.",
    "The sources do not forbid it, so keys may be shared with contractors.",
    "The handbook does not require approval for purchases.", "The policy does not cover the minibar.",
    "The policy does not say no to the minibar.", "We do not pay for taxis.", "We don't need approval for purchases.",
    "We have no travel budget.", "We cannot refund customers.", "I hope that helps; the limit is 900.",
    "Did you know the limit is 900?", "Isn't it great that the limit is high?",
    "Wussten Sie, dass die Probezeit 3 Monate dauert?", "Saviez-vous que la période d'essai dure 3 mois ?",
    "¿Sabías que el período dura 3 meses?", "Tahukah Anda bahwa masa percobaan 3 bulan?",
    "試用期間が３か月だとご存じですか？",
    "您知道试用期是3个月吗？", "I can tell you that the limit is 900 requests per minute.",
    "Die Dokumente dürfen nicht weitergegeben werden.", "Les documents ne doivent pas être partagés.",
    "Dokumen rahasia tidak boleh dibagikan.", "Hier ist das Rauchen verboten.", "Aquí está prohibido fumar.",
    "No documents leave the office.", "Los documentos no se deben compartir.",
    "Aucun document ne doit quitter le bureau.", "I found no problem, deploys are safe.", "We have no keys.",
    "We found no errors.", "Yes, allowed.", "We do not share keys.", "I do not need approval.", "当然可以。",
    "No refunds are given to customers.", "Of course you may share the key.", "The documents do not need approval.",
]  # fmt: skip
STATES_NOTHING = [
    "Hi there!", "Hello Anna!", "Good morning everyone!", "Thanks for asking!", "Great question!", "You're welcome!",
    "Sure!", "Sure thing!", "Of course!", "Yes.", "No problem!", "Welcome to the team!", "Sorry about that.",
    "Sorry for the confusion.", "Is that what you meant?", "Let me know if you need more!", "Here is what I found.",
    "I could not find anything about that in the sources.", "I could not find it, but please ask the security team.",
    "I don't know.", "I do not have enough information to answer.", "I have no information about that.",
    "I found nothing about that.", "I found no mention of taxis.",
    "There is no information about taxis in the handbook.", "The sources do not say who rotates the keys.",
    "The handbook does not mention taxis.", "The runbook does not say how long switching back takes.",
    "The notes don't explain why the position stays open.", "The documents contain no rule for that.",
    "No information was found.", "I'm not sure.", "I was not able to find that.",
    "We couldn't find this in the documents.", "Gern geschehen!", "Danke für die Frage!", "Guten Morgen zusammen!",
    "Falls du mehr brauchst, sag einfach Bescheid.", "Ich konnte dazu nichts finden.", "Ich weiß es nicht.",
    "In den Quellen steht dazu nichts.", "Die Quellen nennen keine Frist.", "Je n'ai rien trouvé à ce sujet.",
    "Les sources ne précisent pas la date.", "¿Quieres saber más?", "No encontré información sobre eso.",
    "Las fuentes no mencionan eso.", "Silakan tanya lagi.", "Sumber tidak menyebutkan hal itu.",
    "Saya tidak menemukan informasi.", "お気軽にお尋ねください。", "情報が見つかりませんでした。", "はい。",
    "承知しました。", "ありがとうございます！", "もちろんです。",
    "希望这对您有帮助。", "您好！", "好的。", "没有找到相关信息。", "Hope this helps!",
    "I can also look up the details.",
    "If you need more, let me know.", "Sure! Let me know if you need more.",
    "Unfortunately, I can't find that in the sources.", "I haven't found anything yet.", "I have not yet found it.",
    "The sources don't cover this, so please ask HR.", "Thank you!", "Bonjour à tous !",
    "Hallo! Wie kann ich helfen?", "Terima kasih banyak!", "Of course, I can help.",
]  # fmt: skip


def test_a_fact_after_a_courtesy_is_a_claim() -> None:
    for sentence in STATES:
        assert not states_nothing(sentence)
        assert not is_interjection(sentence)
        assert [claim.cited for claim in claims(sentence)] == [()]


def test_courtesies_are_not_claims() -> None:
    for sentence in STATES_NOTHING:
        assert states_nothing(sentence) or is_interjection(sentence)


def test_a_bare_yes_or_no_is_distinguished_from_a_longer_answer() -> None:
    for answer in ["Yes.", "*No*", "Ja, natürlich!", "Sí", "はい。", "不是", "Correct."]:
        assert is_bare_answer(answer)
        assert not is_bare_answer(f"{answer} Keys are shared.")


def test_a_greeting_with_two_names_is_not_a_claim() -> None:
    assert states_nothing("Hello Anna Weber!")
    assert not states_nothing("Hello Anna Weber Leads Everything!")


@pytest.mark.parametrize(
    "heading",
    ["*Keys never expire*", "## Refunds are free", "*Step 2: Keys must be rotated*", "Schlüssel dürfen geteilt werden",
     "Les clés sont gratuites", "Las claves son gratis", "Kunci boleh dibagikan", "鍵は共有できます", "密码可以共享"],
)  # fmt: skip
def test_a_heading_with_a_finite_verb_is_a_sentence(heading: str) -> None:
    assert is_sentence(heading)


@pytest.mark.parametrize(
    "heading",
    ["*Limits*", "How keys are rotated", "What you need to know", "If you are on call", "Services that must go",
     "Wann ausgeliefert wird", "Is the office open?", "Step 2"],
)  # fmt: skip
def test_a_title_is_not_a_claim(heading: str) -> None:
    assert not is_sentence(heading)


def test_an_introduction_may_begin_with_a_statement() -> None:
    assert opens_with_sentence("Refunds are free, and these are the rules:")
    assert not opens_with_sentence("If you are on call, do this:")
    assert not opens_with_sentence("These are the rules:")


def test_labels_and_counts_are_not_facts() -> None:
    assert own_digits("Step 2: Wait for 3 documents [1]") == frozenset()
    assert own_digits("The limit is 900 a minute [1]") == {"900"}
    assert digits("Call 0800-123 <https://a.test/4|x> [7]") == {"0800", "123"}
    assert label_end("2. Wait") == 3
    assert label_end("Wait") == 0
