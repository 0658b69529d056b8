"""verification/check.py: the table of rules, the order of the steps, the wall."""

import doctest
from dataclasses import replace
from typing import cast, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import verification
from verification.check import RULES, check, is_better
from verification.markup.mrkdwn import remove_unsendable
from verification.salvage import salvage
from verification.types import Claim, Dialect, Draft, RuleName, Source, Verdict, Violation

REFUNDS = Source(
    id=1, title="Refunds", url="https://docs.acme.test/refunds", text="Refunds take 14 days. Ask the finance team."
)
LEAVE = Source(id=2, title="Leave", url="https://docs.acme.test/leave", text="Annual leave is 30 days.")
SOURCES = (REFUNDS, LEAVE)
QUESTION = "How long do refunds take?"


def rules_of(verdict: Verdict) -> list[str]:
    return [found.rule for found in verdict.errors]


@pytest.mark.parametrize("repair", [True, False])
def test_a_right_answer_passes(*, repair: bool) -> None:
    verdict = check(Draft(text="Refunds take 14 days [1].", question=QUESTION, sources=SOURCES, repair=repair))
    assert verdict.passed
    assert verdict.violations == ()
    assert verdict.text == "Refunds take 14 days [1]."
    assert [claim.supported for claim in verdict.claims] == ["yes"]
    assert len(verdict.chunks) == 1


def test_a_right_answer_passes_in_each_language() -> None:
    for question, text, source in [
        (
            "Wie lange dauert eine Rückerstattung?",
            "Die Rückerstattung dauert 14 Tage [1].",
            "Eine Rückerstattung dauert 14 Tage.",
        ),
        (
            "Combien de temps prend un remboursement ?",
            "Le remboursement prend en tout 14 jours [1].",
            "Un remboursement prend 14 jours.",
        ),
        ("¿Cuánto tarda un reembolso?", "El reembolso tarda 14 días [1].", "Un reembolso tarda 14 días."),
        (
            "Berapa lama pengembalian dana?",
            "Pengembalian dana memakan waktu 14 hari [1].",
            "Pengembalian dana memakan waktu 14 hari.",
        ),
        ("返金は何日かかりますか？", "返金は14日かかります[1]。", "返金は14日かかります。"),
        ("退款需要几天？", "退款需要14天[1]。", "退款需要14天。"),
    ]:
        verdict = check(Draft(text=text, question=question, sources=(Source(id=1, title="t", text=source),)))
        assert verdict.violations == ()


def test_every_error_rule_can_judge_a_block() -> None:
    for text, rule in [
        ("", "not_empty"),
        ("Refunds take 14 days.", "cites_sources"),
        ("Refunds take 14 days [5].", "citation_resolves"),
        ("Refunds take 30 days [1].", "claim_supported"),
        ("Refunds take 14 days [1]. @channel", "no_broadcast"),
        ("Refunds take 14 days [1]. password=" + "hunter2x9", "no_secrets"),
    ]:
        assert rule in rules_of(check(Draft(text=text, question=QUESTION, sources=SOURCES)))


def test_every_rule_name_is_in_the_table_or_belongs_to_a_family() -> None:
    assert set(get_args(RuleName)) - set(RULES) == {"claim_supported", "no_markdown_bold", "no_blockquotes"}


def test_a_form_is_repaired_or_a_violation_without_repair_and_bold_is_right_in_markdown() -> None:
    draft = Draft(text="**Refunds** take 14 days [1].", question=QUESTION, sources=SOURCES)
    repaired = check(draft)
    assert (repaired.passed, repaired.text) == (True, "*Refunds* take 14 days [1].")
    assert [repair.kind for repair in repaired.repairs] == ["bold"]
    left = check(replace(draft, repair=False))
    assert (left.text, left.repairs) == (draft.text, ())
    assert "no_markdown_bold" in rules_of(left)
    markdown = check(replace(draft, dialect="markdown"))
    assert (markdown.passed, markdown.text) == (True, draft.text)


def test_citations_and_links_are_recorded_repairs() -> None:
    question = f"{QUESTION} It is on https://other.test/page."
    text = "Refunds take 14 days [1, 1], see https://other.test/page [1]."
    draft = Draft(text=text, question=question, sources=SOURCES)
    verdict = check(draft)
    assert verdict.text == "Refunds take 14 days [1], see `https://other.test/page` [1]."
    assert [repair.kind for repair in verdict.repairs] == ["link_as_code", "citation"]


def test_spans_refer_to_the_text_after_repair() -> None:
    draft = Draft(text="**Refunds** take 14 days [1, 7]. **Leave** is @here.", question=QUESTION, sources=SOURCES)
    verdict = check(draft)
    for found in verdict.violations:
        assert verdict.text[found.start : found.end].startswith(found.words)


def test_long_answers_are_judged_in_chunks() -> None:
    text = "\n\n".join(f"Refunds take 14 days, and that is line {n} of it" for n in range(200))
    verdict = check(Draft(text=text))
    assert len(verdict.chunks) > 1
    assert all(len(chunk) <= 3000 for chunk in verdict.chunks)
    assert not [found for found in verdict.violations if found.rule == "mrkdwn"]


OWN = Draft(text="", question="Write a limerick on 77 violets", own_words=True)
GENERAL = Draft(text="", question="Write something on 77 violets", unsourced=True)


@pytest.mark.parametrize("exempt", [OWN, GENERAL])
def test_exempt_texts_need_no_sources_but_must_pass_all_other_rules(exempt: Draft) -> None:
    assert check(replace(exempt, text="Roses are red and 77 violets are blue.", sources=SOURCES)).passed
    verdict = check(replace(exempt, text="Look @here: https://evil.test/x"))
    assert set(rules_of(verdict)) == {"no_broadcast", "citation_resolves"}


def test_a_crashing_rule_counts_as_failed() -> None:
    """A private text that is not a text breaks the search for it."""
    private = cast("tuple[str, ...]", (None,))
    heard: list[tuple[RuleName, str]] = []
    draft = Draft(text="Refunds take 14 days [1].", question=QUESTION, sources=SOURCES, private_texts=private)
    verdict = check(draft, lambda rule, error: heard.append((rule, type(error).__name__)))
    assert heard == [("no_secrets", "TypeError")]
    assert check(draft) == verdict
    assert not verdict.passed
    assert [(found.rule, found.severity) for found in verdict.violations] == [("no_secrets", "error")]
    assert verdict.violations[0].detail == "The check itself failed on this text."
    assert salvage(draft, verdict) is None


HOSTILE = [
    "", " ", "\n", "\x00", "\x00\x07\x1b[31mred\x7f", "\ud800", "a\udfffb [1].", "[0]", "[999999999999]",
    "[1-999999999999]", "[" + "9" * 5000 + "]", "`[1]`", "```\n[99]", "<" * 50, "[" * 50, "](" * 50, "https://[::1",
    "<https://[|x>", "mailto:", "١٢٣ [١]", "İ" * 30, "\u202eabc\u2066",
]  # fmt: skip


@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize("text", HOSTILE)
def test_malformed_input_gets_a_verdict(text: str, repair: bool) -> None:  # noqa: FBT001 - a table's column
    sources = (REFUNDS, replace(LEAVE, id=1), Source(id=3, title=text, url=text, text=text), Source(id=0, title=""))
    for dialect in get_args(Dialect):
        verdict = check(
            Draft(text=text, question=text, sources=sources, dialect=dialect, repair=repair, known_text=text)
        )
        assert not [found for found in verdict.violations if "check itself failed" in found.detail]
        assert all(found.end <= max(len(verdict.text), found.start) for found in verdict.violations)
        verdict.text.encode()


def test_control_characters_are_removed_or_are_a_violation_without_repair() -> None:
    draft = Draft(text="Refunds\x00 take \ud80014 days [1].", question=QUESTION, sources=SOURCES)
    verdict, left = check(draft), check(replace(draft, repair=False))
    assert verdict.text == "Refunds take \ufffd14 days [1]."
    assert [(repair.kind, repair.count) for repair in verdict.repairs] == [("control", 2)]
    assert "mrkdwn" in rules_of(left)
    assert left.repairs == ()


def test_line_endings_and_tabs_are_kept() -> None:
    assert remove_unsendable("a\n\tb\r\n") == ("a\n\tb\r\n", 0)


@pytest.mark.parametrize("hidden", ["\x01\u200b", "\u200b\x01", "\x01\u200b\x01\ufeff"])
def test_a_control_character_does_not_protect_a_hidden_letter(hidden: str) -> None:
    assert remove_unsendable(f"1{hidden}5")[0] == "15"


def test_windows_line_endings_are_not_a_fault_without_repair() -> None:
    text = "```\r\nrefund --days 14\r\n```\r\nRefunds take 14 days [1].\r\n"
    for written in (text, text.replace("\r\n", "\n")):
        verdict = check(Draft(text=written, question=QUESTION, sources=SOURCES, repair=False))
        assert not {"mrkdwn", "cites_sources"} & set(rules_of(verdict))


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(max_size=200) | st.text(alphabet="*_`<>[]()|@!:/.-#1 \n•ahttps", max_size=200),
    dialect=st.sampled_from(get_args(Dialect)),
    repair=st.booleans(),
)
@example(text="\ud800`<[1](", dialect="mrkdwn", repair=True)
def test_check_never_raises_and_never_reports_its_own_crash(text: str, dialect: Dialect, *, repair: bool) -> None:
    verdict = check(Draft(text=text, question=text[:40], sources=SOURCES, dialect=dialect, repair=repair))
    assert not [found for found in verdict.violations if "check itself failed" in found.detail]
    assert verdict.passed is not any(found.severity == "error" for found in verdict.violations)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "**b** ", "[1, 2]", "[x](https://a.test/b) ", "https://a.test/b ", "\n- i", "\n> q", "`c` ",
                "Text. ", "<https://docs.acme.test/refunds|1>", "\n\n",
            ]
        ),
        max_size=10,
    ).map("".join)
)  # fmt: skip
def test_checking_a_checked_text_changes_nothing(text: str) -> None:
    sources = (replace(REFUNDS, text=REFUNDS.text + " https://a.test/b"), LEAVE)
    once = check(Draft(text=text, sources=sources))
    again = check(Draft(text=once.text, sources=sources))
    assert again.text == once.text
    assert again.repairs == ()


def verdict(*severities: str, passed: bool = False, supported: int = 0, rule: RuleName = "cites_sources") -> Verdict:
    found = tuple(
        Violation(rule=rule, severity="error" if each == "e" else "warning", start=at)
        for at, each in enumerate(severities)
    )
    claims = tuple(Claim(text="c", start=0, end=1) for _ in range(supported))
    return Verdict(passed=passed, text="t", violations=found, claims=claims)


FAILED = Violation(rule="coherent", severity="error", detail="The check itself failed on this text.")


def test_the_better_attempt_is_the_one_that_verifies_better() -> None:
    for a, b in [
        (verdict(passed=True), verdict("e")),
        (verdict("e"), verdict("e", "e")),
        (verdict("e", supported=2), verdict("e", supported=1)),
        (verdict("e"), verdict("e", "w")),
        (verdict("e", "e"), verdict("e", rule="not_empty")),
        (verdict("e", "e"), Verdict(passed=False, text="t", violations=(FAILED,))),
        (verdict("w", passed=True), verdict("e", supported=9)),
    ]:
        assert is_better(a, b)
        assert not is_better(b, a)
        assert not is_better(a, a)


@pytest.mark.parametrize("form", ["<thinking>Hm.</thinking> {}", "<answer>{}</answer>", "{}<|im_end|>"])
def test_a_tag_hidden_by_a_table_is_still_found(form: str) -> None:
    table = "| Data | Kept for |\n|---|---|\n| Logs | 30 days [1] |"
    source = Source(id=1, title="Logs", text="Logs are kept for 30 days.")
    assert check(Draft(text=table, sources=(source,))).passed
    assert "mrkdwn" in rules_of(check(Draft(text=form.format(table), sources=(source,))))


def test_long_fault_is_reported_once_and_truncated() -> None:
    (found,) = check(Draft(text=f"**{'x' * 250}**", own_words=True, repair=False)).violations
    assert (found.rule, found.start, found.end, len(found.words)) == ("no_markdown_bold", 0, 254, 200)
    claim = f"Refunds are {'very ' * 60}slow."
    (uncited,) = [each for each in check(Draft(text=claim, sources=SOURCES)).errors if each.rule == "cites_sources"]
    assert (uncited.words, uncited.end) == (claim[:200], len(claim))


def test_the_librarys_example_works() -> None:
    result = doctest.testmod(verification)
    assert result.attempted > 0
    assert result.failed == 0


def test_every_public_name_is_there() -> None:
    assert verification.__all__ == sorted(verification.__all__)
    assert all(hasattr(verification, name) for name in verification.__all__)
