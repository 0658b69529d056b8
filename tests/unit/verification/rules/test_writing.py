"""Rules of writing: faults of form, emptiness, length, the question's subject, coherence."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verification.check import check
from verification.markup.mrkdwn import repair
from verification.rules.writing import violations
from verification.types import Dialect, Draft, RuleName, Source, Verdict

FAULTS: tuple[tuple[str, RuleName, str, str], ...] = (
    ("a **bold** word", "no_markdown_bold", "bold", "**bold**"),
    ("a __bold__ word", "no_markdown_bold", "bold", "__bold__"),
    ("a\n> quoted\nb", "no_blockquotes", "quote", "> quoted"),
    ("a\n> a **bold** word", "no_markdown_bold", "bold", "**bold**"),
    ("> | a | b |\n> |---|---|\n> | 1 | 2 |", "no_blockquotes", "quote", "> | a | b |\n> |---|---|\n> | 1 | 2 |"),
    ("a\n## Title\nb", "mrkdwn", "heading", "## Title"),
    ("Title\n===\nb", "mrkdwn", "heading", "Title\n==="),
    ("see [this](https://x.y) now", "mrkdwn", "link", "[this](https://x.y)"),
    ("see [a [^1] b](https://x.y)", "mrkdwn", "link", "[a [^1] b](https://x.y)"),
    ("see ![this](https://x.y) now", "mrkdwn", "image", "![this](https://x.y)"),
    ("a\n| a | b |\n|---|---|\n| 1 | 2 |\nb", "mrkdwn", "table", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ("a\n\n***\nb", "mrkdwn", "rule", "***"),
    ("- [ ] open", "mrkdwn", "task", "- [ ] "),
    ("~~gone~~", "mrkdwn", "strike", "~~gone~~"),
    ("a<br>b", "mrkdwn", "html", "<br>"),
    ("a <b>b</b>", "mrkdwn", "html", "<b>b</b>"),
    ("a&nbsp;b", "mrkdwn", "entity", "&nbsp;"),
    ("a & b", "mrkdwn", "bare", "&"),
    ("a < b", "mrkdwn", "bare", "<"),
    ("a > b", "mrkdwn", "bare", ">"),
    ("x\n```python\ny\n```", "mrkdwn", "fence", "```python\ny\n```"),
    ("x\n```\ny", "mrkdwn", "fence", "```\ny"),
    ("note[^1]", "mrkdwn", "footnote", "^"),
    ("[1]: https://x.y", "mrkdwn", "reference", "[1]: https://x.y"),
    ("a\x00b", "mrkdwn", "control", "\x00"),
    ("hm <thinking> so", "mrkdwn", "tag", "<thinking>"),
    ('x {"action": "respond"}', "mrkdwn", "json", '{"action":'),
)


def test_each_fault_has_a_name_a_place_and_a_remedy() -> None:
    for text, rule, name, words in FAULTS:
        found = [violation for violation in violations(text) if violation.detail.startswith(f"{name}: ")]
        assert len(found) == 1
        assert (found[0].rule, found[0].severity, found[0].words) == (rule, "error", words)
        assert text[found[0].start : found[0].end] == words
        assert found[0].remedy.endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        "`**x**` and ```# not\n> code``` text",
        '```\n> quote\n# heading\n| a | b |\n<thinking>\n{"a": 1}\n```',
        '`<thinking>` and `{"a": 1}` and `[t](u)`',
        "2**10 and 3**4, __init__, *.py and src/**/*.md",
    ],
)
def test_code_and_lookalikes_are_not_judged(text: str) -> None:
    assert violations(text) == ()


def test_places_are_exact_after_windows_line_ends_and_control_characters() -> None:
    text = "one\r\ntwo\r\n\x00**three**\r\n> four"
    found = {violation.detail.partition(":")[0]: violation for violation in violations(text)}
    assert set(found) == {"control", "bold", "quote"}
    assert found["bold"].words == "**three**"
    assert found["quote"].words == "> four"


def test_a_text_too_long_for_a_block_is_reported_once() -> None:
    (found,) = violations("word " * 700)
    assert (found.start, found.end, found.detail.partition(":")[0]) == (3000, 3500, "length")
    assert violations("word " * 700, limit=0) == ()


def test_bold_is_right_in_markdown_and_the_other_rules_apply() -> None:
    assert violations("**x**\n\n# T\n\n- [ ] a\n\n| a | b |\n|---|---|\n| 1 | 2 |", "markdown") == ()
    rules = [violation.rule for violation in violations("> q\n\n![a](https://x.y)\n\n```\nx", "markdown")]
    assert rules == ["no_blockquotes", "mrkdwn", "mrkdwn"]


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet='*_`~[]()<>&#-|\n \r\x00\\ab1:!={"', max_size=60))
def test_words_are_the_text_at_the_span(text: str) -> None:
    dialects: tuple[Dialect, ...] = ("mrkdwn", "markdown")
    for dialect in dialects:
        for violation in violations(text, dialect):
            assert 0 <= violation.start <= violation.end <= len(text)
            assert text[violation.start : violation.end][:200] == violation.words


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet="*_`~[]()<>&#-|\n \\ab1:!=", max_size=60))
def test_a_draft_without_violations_gets_only_cosmetic_repairs(text: str) -> None:
    if not violations(text):
        kinds = {found.kind for found in repair(text)[1]}
        assert kinds <= {"list", "backslash", "code", "line end"}


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\u200b\u200b", "\u00a0", "\ufeff \u2060"])
def test_a_text_without_visible_content_is_an_error(text: str) -> None:
    verdict: Verdict = check(Draft(text=text, question="Anything?"))
    assert not verdict.passed
    assert [found.rule for found in verdict.errors] == ["not_empty"]


def details(text: str, question: str = "", *, own_words: bool = False) -> list[str]:
    verdict = check(Draft(text=text, question=question, own_words=own_words))
    found = [each for each in verdict.violations if each.rule == "coherent"]
    assert all(each.severity == "warning" for each in found)
    return [each.detail for each in found]


def test_a_repeated_sentence_gets_a_warning() -> None:
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


def test_text_that_breaks_off_gets_a_warning() -> None:
    for text in [
        "Refunds are paid by the", "Refunds are paid by the finance team and", "Refunds are paid by finance,",
        "Refunds are paid by finance (", "Die Erstattung erfolgt durch die", "Le remboursement est payé par le",
        "El reembolso lo paga el equipo de", "Pengembalian dibayar oleh tim yang", "返金は財務部が", "税は",
        "退款由财务部和",
    ]:  # fmt: skip
        assert details(text) == ["The answer breaks off here."]
        (found,) = check(Draft(text=f"Refunds are free.\n\n{text}")).violations
        assert found.words == text


def test_finished_text_gets_no_warning() -> None:
    for text in [
        "Refunds are paid by finance.", "Refunds are paid by finance [1]", "• finance\n• sales",
        "Run this:\n```\nfoo and\n```", "Set the flag `--and`", "Really?", "Bye :)", "払います。", "*Refunds*",
        "Vitamin A", "Team: R & D",
    ]:  # fmt: skip
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
def test_two_figures_for_one_thing_get_a_warning(text: str) -> None:
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


def test_an_answer_in_another_language_than_the_question_gets_a_warning() -> None:
    for question, text in [
        (QUESTION, "Die Rückerstattung wird innerhalb von vierzehn Tagen auf das Konto gezahlt."),
        (QUESTION, "返金は十四日以内に支払われます。"),
        ("Wie lange dauert die Rückerstattung auf das Konto?", "The refund is paid to the account within two weeks."),
        ("返金はいつですか？", "The refund is paid to the account within two weeks."),
        ("退款要多久？", "返金は十四日以内に支払われます。"),
    ]:
        assert [detail for detail in details(text, question) if detail.startswith("The question is in ")]


def test_the_same_or_a_requested_language_gets_no_warning() -> None:
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


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<reasoning>", "</reasoning>"),
        ("[THINK]", "[/THINK]"),
        ("[thinking]", "[/thinking]"),
        ("◁think▷", "◁/think▷"),
        ("<seed:think>", "</seed:think>"),
        ("<|channel|>analysis<|message|>", "<|end|>"),
        ("<|channel>thought", "<channel|>"),
        ("<REASONING_SCRATCHPAD>", "</REASONING_SCRATCHPAD>"),
        ("<search_quality_reflection>", "</search_quality_reflection>"),
        ("<cot>", "</cot>"),
        ("<plan>", "</plan>"),
        ("<思考>", "</思考>"),
        ("<inner monologue>", "</inner monologue>"),
        ("< notes>", "</ notes>"),
        ("&lt;cot&gt;", "&lt;/cot&gt;"),
    ],
)
def test_thoughts_in_any_tags_fail_an_answer(opening: str, closing: str) -> None:
    thought, answer = "They may want the limit", "The limit is 600."
    for text in (f"{opening}{thought}{closing}\n\n{answer}", f"{thought}{closing}\n\n{answer}", f"{opening}{thought}"):
        for dialect in get_args(Dialect):
            assert "mrkdwn" in {each.rule for each in check(Draft(text=text, dialect=dialect)).errors}, text


@pytest.mark.parametrize("around", ["[cot]{}[/cot]", "{{cot}}{}{{/cot}}", "◁cot▷{}◁/cot▷", '<cot level="1">{}</cot>'])
def test_thoughts_between_tags_in_any_brackets_fail_an_answer(around: str) -> None:
    text = f"{around.format('They may want to know the limit')}\n\nThe limit is 600."
    for dialect in get_args(Dialect):
        assert "mrkdwn" in {each.rule for each in check(Draft(text=text, dialect=dialect)).errors}


def test_placeholders_markup_and_the_tags_of_a_source_are_no_thoughts() -> None:
    page = 'Write <limit unit="s">600</limit> into the file. The note is in &lt;note&gt;. Do [plan] and [/plan].'
    for text in (
        "Replace it with <your-key> and <plan>.", "<name> is the name of your team.", "<Enter> sends, <Esc>+<C> ends.",
        "Write <limit>600 requests of each key</limit> into the file [1].", "<LIMIT> is the number of requests [1].",
        "The note is in <note>the text of your note</note> [1].", "Between [plan] your plan for the day [/plan] [1].",
        "`<a>x</a>`", "Set <server><host>a</host><port>80</port></server>.", "<title> and <script> go in the head.",
        "Box<T> is a type. `</T>` closes it.", "The [thinking] phase is the first.", "See [/help] and {/if}.",
        "<my-button>Save</my-button> is a button.", "The keys are ◁back▷ and ◁next▷.", "List<String> names",
    ):  # fmt: skip
        verdict = check(Draft(text=text, sources=(Source(id=1, title="", text=page),)))
        assert "mrkdwn" not in {each.rule for each in verdict.errors}, text
