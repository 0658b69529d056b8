"""The language of a text, the words that carry its subject, and the word lists of the languages."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from verification.text.language import (
    LANGUAGES,
    compile_pattern,
    content_stems,
    detect_language,
    folded_words,
    language_data,
    stems_of,
    terms,
    words_by_language,
)

SENTENCES = [
    ("en", "How long do refunds take to be processed?"),
    ("en", "The release is cut every Tuesday and goes out to all customers."),
    ("de", "Wie lange dauert eine Rückerstattung?"),
    ("de", "Die Freigabe wird jeden Dienstag erstellt und geht an alle Kunden."),
    ("fr", "Combien de temps prend un remboursement ?"),
    ("fr", "La version est publiée chaque mardi pour tous les clients."),
    ("es", "¿Cuánto tarda un reembolso en llegar?"),
    ("es", "La versión se publica cada martes para todos los clientes."),
    ("id", "Berapa lama proses pengembalian dana?"),
    ("id", "Versi baru dirilis setiap hari Selasa untuk semua pelanggan."),
    ("ja", "返金はどのくらいかかりますか"),
    ("ja", "リリースは毎週火曜日に行われます。"),
    ("zh", "退款需要多长时间？"),
    ("zh", "新版本每周二发布给所有客户。"),
]


def test_each_of_the_seven_languages_is_detected() -> None:
    for language, text in SENTENCES:
        assert detect_language(text) == language


def test_other_languages_and_short_texts_are_not_detected() -> None:
    for text in [
        "", "   ", "ok merci", "Refund duration", "12345 67890", "Hoe lang duurt een terugbetaling bij ons?",
        "O reembolso demora até 14 dias para ser processado.",
        "Il rimborso richiede 14 giorni per essere elaborato e poi viene pagato",
        "Hur lång tid tar det att få en återbetalning och när kommer den?",
        "Jak długo trwa zwrot pieniędzy i kiedy go dostanę?", "Сколько времени занимает возврат средств?",
        "환불은 얼마나 걸리나요? 알려 주세요", "kubectl rollout restart deployment api",
        "`der die das und nicht ein eine`",
    ]:  # fmt: skip
        assert detect_language(text) is None


def test_short_text_needs_function_words() -> None:
    for language, text in [
        ("en", "who is on call"),
        ("en", "Where is the VPN config?"),
        ("en", "what is it"),
        (None, "log of the VPN box"),
        (None, "who is it"),
        ("de", "wer hat Bereitschaft?"),
        ("fr", "qui est d'astreinte ?"),
        ("id", "siapa yang on-call"),
        (None, "quién está de guardia"),
        (None, "deploy freeze"),
        (None, "on call"),
        (None, "die in here"),
    ]:
        assert detect_language(text) == language


def test_the_script_decides_even_a_short_text() -> None:
    assert detect_language("返金") == "zh"
    assert detect_language("返金は") == "ja"
    assert detect_language("这是优の良品牌的官方网站退款需要十四天时间才能到账的说明文字") == "zh"


def test_code_links_and_mentions_do_not_determine_the_language() -> None:
    text = "```\nthe and of to with for this that\n```\nDie Antwort steht in der Anleitung und nicht hier. <@U123> https://the.of/and"
    assert detect_language(text) == "de"
    mail = "the.and.of.to.with.for.this.that@have.been.from.they.will.example"
    assert detect_language(f"Die Antwort steht in der Anleitung. {mail}") == "de"


def test_the_beginning_of_a_long_text_decides_only_with_a_clear_lead() -> None:
    beginning = "The page is for all of us. Das ist die Seite. " * 11
    rest = "Wir haben das in der Anleitung und auf der Seite für alle beschrieben, damit es nicht verloren geht. " * 30
    assert detect_language(beginning) == "en"
    assert detect_language(beginning + rest) == "de"


def test_inflected_words_share_a_stem() -> None:
    for asked, said in [
        ("How do I request refunds?", "A refund is requested in the portal."),
        ("Welche Fristen gelten für Rückerstattungen?", "Für die Rückerstattung gilt eine Frist."),
        ("Quels remboursements sont possibles ?", "Le remboursement est possible."),
        ("¿Qué reembolsos son posibles?", "El reembolso es posible."),
        ("Bagaimana cara mengembalikan barang?", "Pengembalian barang dilakukan di portal."),
        ("返金の期間は？", "返金期間は14日です。"),
        ("退款需要多长时间？", "退款时间为14天。"),
    ]:
        assert content_stems(asked) & content_stems(said)


def test_function_words_carry_no_subject() -> None:
    for language, text in [
        ("en", "how is this with the and where would you"),
        ("de", "wie ist das mit der und wo würde man"),
        ("fr", "comment est-ce avec la et où"),
        ("es", "cómo es esto con la y dónde"),
        ("id", "bagaimana ini dengan yang dan di mana"),
        ("zh", "这是什么"),
        ("ja", "これはなに"),
    ]:
        assert content_stems(text, language) == frozenset()


def test_an_unknown_language_counts_every_stem() -> None:
    assert content_stems("Refund duration") & content_stems("The refund is paid after a duration of days.", "en")


def test_a_single_han_character_is_its_own_stem() -> None:
    assert content_stems("税") == frozenset({"税"})


@given(st.text())
def test_any_text_gives_a_known_answer(text: str) -> None:
    assert detect_language(text) in {None, "en", "de", "fr", "es", "id", "ja", "zh"}
    assert all(content_stems(text))


TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(["Backups", "don't", "it’s", "the", "2024", "a_b", "ÉTÉ", "-", ".", "東京タワー", "研修"]))
    .map(" ".join)
    .filter(bool),
)
STEM_LANGUAGES = st.sampled_from([None, "en", "de", "fr", "es", "id", "ja"])


@given(TEXTS, STEM_LANGUAGES)
def test_stems_in_a_row_are_those_of_the_terms(text: str, language: str | None) -> None:
    assert stems_of(folded_words(text), language) == {term.stem for term in terms(text, language) if term.stem}


@given(TEXTS)
def test_the_words_equal_those_of_the_terms(text: str) -> None:
    assert [*folded_words(text)] == [term.word for term in terms(text, None)]


CODE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "verification").rglob("*.py"))


def test_every_entry_of_a_language_is_read_and_english_has_it_too() -> None:
    english = set(language_data("en"))
    for language in LANGUAGES:
        keys = set(language_data(language))
        inside = "".join(value for value in language_data(language).values() if isinstance(value, str))
        assert {key for key in keys if f'"{key}"' not in CODE and f"{{{key}}}" not in CODE + inside} == set()
        assert keys <= english | {key for key in keys if key.endswith("_unparted")} | {"letters", "function_letters"}


def test_a_pattern_matches_both_apostrophes_and_other_entries() -> None:
    for written in ("I can’t find it", "I can't find it", "ich weiß das nicht"):
        assert compile_pattern("(?:{admissions})").match(written)
    for key in (key for key, value in language_data("en").items() if isinstance(value, str)):
        assert isinstance(compile_pattern(f"{{{key}}}"), re.Pattern)
    assert "maximal" not in words_by_language("function_words")["de"]
