"""The statements of an answer, the citations of each, and sentences that state nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verification.check import check
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
from verification.judgement import open_claims
from verification.types import Draft, Source


def cited_claims(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(claim.text, claim.cited) for claim in claims(text)]


def test_citations_before_and_after_the_full_stop_belong_to_the_sentence() -> None:
    assert cited_claims("The limit is 30. [1] It resets daily [2].") == [
        ("The limit is 30. [1]", (1,)),
        ("It resets daily [2].", (2,)),
    ]
    assert cited_claims("Das gilt.[2, 3]Ende der Liste") == [("Das gilt.[2, 3]", (2, 3)), ("Ende der Liste", (2, 3))]
    assert cited_claims("上限は30日です。[1]毎日リセットされます[2]。") == [
        ("上限は30日です。[1]", (1,)),
        ("毎日リセットされます[2]。", (2,)),
    ]


def test_a_sentence_shares_the_citations_of_its_paragraph_item_list_or_table() -> None:
    for text, expected in [
        # a paragraph shares its citation; a sentence with its own keeps that
        ("The office opens at 9. It closes at 17. [1]", [(1,), (1,)]),
        ("The office opens at 9. It closes at 17 [1].", [(1,), (1,)]),
        ("The office opens at 9 [1]. It closes at 17.\nLunch is at 12 [2].", [(1,), (1, 2), (2,)]),
        ("The office opens at 9.\n\nIt closes at 17 [1].", [(), (1,)]),
        # an item, with its lines set in and the items below it
        ("- Free has 60. It resets daily [1].\n- Team has 600.", [(1,), (1,), ()]),
        ("- Free [1]:\n  - 60 a minute\n  - 900 a day\n- Team has 600 [2].", [(1,), (1,), (1,), (2,)]),
        ("- Free has\n  - 60 a minute [1]\n  - 900 a day [2]", [(1,), (2,)]),
        # what introduces a list or closes it
        ("The limits are these [4].\n- Free has 60\n- Team has 600 [2]", [(4,), (4,), (2,)]),
        ("The plans differ in their limits.\n\n- Free has 60 [1]\n- Team has 600 [2]", [(1, 2), (1,), (2,)]),
        ("- Free has 60.\n- Team has 600.\n\nAll of this is per minute [3].", [(3,), (3,), (3,)]),
        ("- Free has 60.\n- Team has 600. [1]\n- All have 9.\n[2]", [(2,), (1,), (2,)]),
        ("Free has 60.\n\n- Team has 600.\n- All have 9.\n[2]", [(2,), (2,), (2,)]),
        # a table: its head, the line below it, one row not another's
        ("| Plan | Limit [1] |\n|---|---|\n| Free | 60 |\n| Team | 600 [2] |", [(1,), (2,)]),
        ("| Plan | Limit |\n|---|---|\n| Free | 60 |\n| Team | 600 |\n\nSource: [3]", [(3,), (3,)]),
        ("| Plan | Limit |\n|---|---|\n| Free | 60 |\n| Team | 600 [2] |", [(), (2,)]),
    ]:
        assert [ids for _, ids in cited_claims(text)] == expected


def test_the_judge_decides_whether_an_opening_or_a_closing_is_a_claim() -> None:
    for text, expected in [
        ("Good to know before you travel.\n\nThe limit is 30 [1].\n\nAsk your manager first.", [(1,), (1,), (1,)]),
        ("The limit is 30 [1].\n\nIt was 20 before.", [(1,), ()]),
        ("The limit is 30 [1].\n\nRun `orion index`.\n\nIt is daily [2].", [(1,), (), (2,)]),
        ("The limit is 30 [1].\n\nIt is generous.\n\nIt is daily [2].", [(1,), (), (2,)]),
        ("It is generous.", [()]),
    ]:
        assert [claim.cited for claim in claims(text, has_judge=True)] == expected


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Click *Log out* and *Forgot password?* [1]", ["Click *Log out* and *Forgot password?* [1]"]),
        ("Click *Forgot password?* Then wait [1].", ["Click *Forgot password?*", "Then wait [1]."]),
        ("Read “Who pays?” first [1].", ["Read “Who pays?” first [1]."]),
        ("Öffne <https://x.example/q|Wer zahlt?> [1]", ["Öffne <https://x.example/q|Wer zahlt?> [1]"]),
        ("「何ですか？」を押します[1]。", ["「何ですか？」を押します[1]。"]),
        ("The limit is 30 [1]. Does that help?", ["The limit is 30 [1]."]),
        ("Asks [1]:\n\n| Key | Text |\n|---|---|\n| Del | Sure? |", ["Asks [1]:", "| Del | Sure? |"]),
    ],
)
def test_a_question_mark_makes_a_question_only_where_the_sentence_asks(text: str, stated: list[str]) -> None:
    assert [claim.text for claim in claims(text, has_judge=True)] == stated


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Yes. Days off are lost [1].", ["Yes. Days off are lost [1]."]),
        ("Ja, genau. Tage verfallen [1].", ["Ja, genau. Tage verfallen [1]."]),
        ("Non. Ils sont perdus [1].", ["Non. Ils sont perdus [1]."]),
        ("はい。休暇は繰り越せません[1]。", ["はい。休暇は繰り越せません[1]。"]),
        ("可以。年假不能结转[1]。", ["可以。年假不能结转[1]。"]),
        ("- Yes. Days off are lost [1].\n- No one may [2].", ["Yes. Days off are lost [1].", "No one may [2]."]),
        ("*Yes*\n\nDays off are lost [1].", ["*Yes*\n\nDays off are lost [1]."]),
        ("Yes.\n\n- Days off are lost [1].", ["Yes.", "Days off are lost [1]."]),
        ("*Overview*\n\nDays off are lost [1].", ["Days off are lost [1]."]),
        ("Days off are lost [1]. Right! Sick days are not [2].",
         ["Days off are lost [1].", "Right!", "Sick days are not [2]."]),
    ],
)  # fmt: skip
def test_the_words_that_answer_the_question_belong_to_the_sentence_after_them(text: str, stated: list[str]) -> None:
    assert [claim.text for claim in claims(text, has_judge=True)] == stated


@pytest.mark.parametrize(
    "closing",
    [
        "Hope that helps, and remember that renewal is free!", "Free renewal.", "Renewal: free.",
        "\n\n:tada: Renewal is free :tada:", "Nie für Praktikanten!",
    ],
)  # fmt: skip
def test_the_judge_decides_whether_a_courtesy_after_a_quotation_states_something(closing: str) -> None:
    source = Source(id=1, title="Keys", text="Keys expire after 90 days. Tell the team.")
    verdict = check(Draft(text=f"Keys expire after 90 days [1]. {closing}", sources=(source,), has_judge=True))
    assert [claim.text for claim in open_claims(verdict)] == [closing.strip()]


@pytest.mark.parametrize(
    "closing", ["Let me know if you need more!", "Hope that helps, and let me know if not!", "Thanks!"]
)
def test_the_judge_is_not_asked_about_a_mere_courtesy(closing: str) -> None:
    for text in (f"Keys expire after 90 days [1]. {closing}", f"Keys expire after 90 days [1].\n\n{closing}"):
        assert [claim.text for claim in claims(text, has_judge=True)] == ["Keys expire after 90 days [1]."]


@pytest.mark.parametrize("has_judge", [True, False])
@pytest.mark.parametrize("opening", ["Yes. ", "No.\n\n", "Sure! ", ":white_check_mark: Yes. ", "Hi! ", "*Yes.* "])
def test_the_words_before_a_sentence_change_nothing_for_the_rules(opening: str, *, has_judge: bool) -> None:
    source = Source(id=1, title="Refunds", text="Refunds are not paid in cash. Refunds take 5 days.")
    for sentence, passes in [
        ("Refunds are not paid in cash [1].", True),
        ("Refunds are never paid in cash [1].", True),
        ("Refunds are paid in cash [1].", has_judge),
        ("Refunds take 6 days [1].", False),
    ]:
        verdict = check(Draft(text=opening + sentence, sources=(source,), has_judge=has_judge))
        assert verdict.passed == passes, (sentence, verdict.errors)
        if passes and has_judge:  # whether "yes" is right
            assert [claim.text for claim in open_claims(verdict)] == [opening + sentence]
    french = Source(id=1, title="Clé", text="La clé est valable 90 jours.")
    assert check(
        Draft(text="Oui. Votre clé reste valable 90 jours [1].", sources=(french,), has_judge=has_judge)
    ).passed


def test_the_judge_decides_on_a_lead_in_that_may_state_something() -> None:
    table = "| Flavor | Memory |\n|---|---|\n| large | 15 [1] |"
    for lead, is_judged in [
        ("Three flavors have 6 cores:", True),
        ("You can carry over:", True),
        ("Esto vale para los becarios:", True),
        ("Here are the steps:", False),
        ("Steps:", False),
    ]:
        told = claims(f"{lead}\n\n{table}", "Which flavors have 6 cores?", has_judge=True)
        assert [(claim.text, claim.cited) for claim in told[:-1]] == ([(lead, (1,))] if is_judged else [])
        assert len(claims(f"{lead}\n\n{table}", "Which flavors have 6 cores?")) == 1


def test_list_items_share_the_citation_of_their_introduction() -> None:
    text = "Steps [4]:\n- Run `orion index`\n- Wait for 5 minutes [2]\n"
    assert cited_claims(text) == [("Steps [4]:", (4,)), ("Run `orion index`", (4,)), ("Wait for 5 minutes [2]", (2,))]


def test_table_rows_are_claims_in_both_dialects() -> None:
    assert cited_claims("| A | B |\n|---|---|\n| x y | 3 [2] |") == [("| x y | 3 [2] |", (2,))]
    assert [c for _, c in cited_claims("```\nName | Days\n-----+-----\nFoo  | 3 [1]\n```")] == [(1,)]


def test_lower_case_begins_a_table_row_but_continues_a_line_of_text() -> None:
    table = "```\nname | days\n-----+-----\nfoo  | 3 [1]\nbar  | 4 [2]\n```"
    assert cited_claims(table) == [("foo  | 3 [1]", (1,)), ("bar  | 4 [2]", (2,))]
    assert cited_claims("```\n-----+-----\nFoo  | 3 [1]\n```") == [("Foo  | 3 [1]", (1,))]
    for text in ("The limit is 30\nrequests a minute [1].", "The limit holds for\niOS devices too [1]."):
        assert cited_claims(text) == [(text, (1,))]
    assert [c for _, c in cited_claims("The limit is 30.\n\nit resets daily. [1]")] == [(), (1,)]


def test_lines_indented_under_an_item_belong_to_the_list() -> None:
    text = "Steps [4]:\n- Run it now\n  Then wait here\n  And go home"
    assert {c for _, c in cited_claims(text)} == {(4,)}


def test_a_line_with_only_citations_belongs_to_the_lines_above() -> None:
    assert cited_claims("Final claim here.\nSource: [7]") == [("Final claim here.", (7,))]
    assert [c for _, c in cited_claims("Limits:\n- Free has 60.\n- Team has 600.\n\nSource: [7]")] == [(7,), (7,)]


def test_statements_in_unusual_forms_are_claims() -> None:
    for text, told in [
        ("*Keys never expire*\nThey are rotated monthly [1].", ("*Keys never expire*", (1,))),
        ("*The limit is 900*\n- Keys last 90 days [1]\n- Keys are free [2]", ("*The limit is 900*", (1, 2))),
        ("*900 euros*", ("*900 euros*", ())),
        ("*Free refunds*", ("*Free refunds*", ())),
        ("The limit is 900 a minute:\n- Keys last 90 days [1].", ("The limit is 900 a minute:", (1,))),
        (
            "Refunds are free, and these are the rules:\n- Keys last 90 days [1].",
            ("Refunds are free, and these are the rules:", (1,)),
        ),
        ("Would you like to use all 900 requests?", ("Would you like to use all 900 requests?", ())),
        (
            "Would you like to use all 900 requests?\n\nKeys last 90 days [1].",
            ("Would you like to use all 900 requests?", ()),
        ),
        ("*The limit is 900*\nKeys last 90 days [1].\nKeys are free [2].", ("*The limit is 900*", (1, 2))),
        ("Let me know if 900 are not enough!", ("Let me know if 900 are not enough!", ())),
        ("Did you know that keys never expire? [1]", ("Did you know that keys never expire? [1]", (1,))),
        ("| 900 a minute | Value |\n|---|---|\n| Keys | 90 days [1] |", ("| 900 a minute | Value |", (1,))),
        ("```\n900 a minute | Days\n-------------+-----\nFoo          | 3 [1]\n```", ("900 a minute | Days", (1,))),
        ("Yes.", ("Yes.", ())),
        ("*Step 2: Keys are rotated*\nDo it monthly [1].", ("Keys are rotated*", (1,))),
    ]:
        assert told in cited_claims(text)


def test_a_title_with_a_known_number_is_not_a_claim() -> None:
    for text in [
        "*Step 2*\nKeys are rotated monthly [1].",
        "*What you need to know*\nKeys are rotated monthly [1].",
        "*How keys are rotated*\nKeys are rotated monthly [1].",
        "*Things that are allowed*\nKeys are rotated monthly [1].",
        "*90 days*\nKeys are rotated after 90 days [1].",
        "There are 3 steps:\n- Keys are rotated monthly [1].",
        "These are the rules:\n- Keys are rotated monthly [1].",
        "To roll back, do this:\n- Keys are rotated monthly [1].",
        "Keys are rotated every 90 days [1]. Shall I explain what happens after the 90 days?",
        "Keys are rotated monthly [1]. Do you mean the limit of 900?",
        "Yes. Keys are rotated monthly [1].",
        "*Is the office open?*\nKeys are rotated monthly [1].",
    ]:
        told = claims(text, "Is the limit 900?")
        assert [claim.cited for claim in told] == [(1,)]


def test_rows_of_a_drawn_table_share_the_citation_of_their_introduction() -> None:
    text = "First updates [1]:\n\n```\nSeverity | Update\n---------+-------\nSEV1     | 15 min\n```"
    assert cited_claims(text) == [("First updates [1]:", (1,)), ("SEV1     | 15 min", (1,))]


def test_a_reference_after_the_sentence_is_its_citation() -> None:
    assert cited_claims("Keys last 90 days. See https://wiki.test/p1 [1].")[0] == ("Keys last 90 days.", (1,))
    assert cited_claims("See `https://evil.test/x` [1].") == [("See `https://evil.test/x` [1].", (1,))]


@given(st.text(alphabet="ab A.1[]-*`|\n:?。[1] ", max_size=200))
def test_spans_are_the_text_and_never_overlap(text: str) -> None:
    last = 0
    for claim in claims(text):
        assert text[claim.start : claim.end] == claim.text
        assert last <= claim.start < claim.end
        last = claim.end


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
