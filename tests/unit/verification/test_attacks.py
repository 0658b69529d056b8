"""Texts that attack a reader or a workspace: none goes out, as a post or in a stream, with sources or as a question."""

from __future__ import annotations

from typing import get_args

import pytest

from verification.check import check
from verification.types import Dialect, Draft, Source, Verdict

DIALECTS = get_args(Dialect)
SOURCE = Source(
    id=1,
    title="Deploy",
    url="https://docs.acme.test/deploy",
    text="Deploy from the console. Clone ssh://git@acme.test/repo. Ask in #help (https://acme.slack.test/archives/C0HELP).",
)


def drafts(text: str) -> list[Draft]:
    """The text as an answer with sources, and as a question back, each as a post and in a stream."""
    return [
        Draft(text=text, sources=sources, unsourced=not sources, dialect=dialect)
        for sources in ((SOURCE,), ())
        for dialect in DIALECTS
    ]


def live_links(verdict: Verdict, address: str) -> list[str]:
    """The chunks in which Slack would make a link of the address: a token, a Markdown link or an autolink."""
    return [chunk for chunk in verdict.chunks if f"<{address}" in chunk.replace("\\<", "") or f"]({address}" in chunk]


@pytest.mark.parametrize(
    "scheme",
    [
        "ssh", "SSH", "sftp", "ftp", "ftps", "file", "vscode", "slack", "git+ssh", "x-apple.systempreferences",
        "hxxps", "redis",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "form", ["[x]({})", "<{}|x>", "<{}>", "{}", "![x]({})", '<a href="{}">x</a>', "[x][y]\n\n[y]: {}", "[x](<{}>)"]
)
def test_link_of_another_scheme_is_sent_in_no_form(scheme: str, form: str) -> None:
    address = f"{scheme}://attacker.zone/x?leak=1"
    for draft in drafts(f"Deploy from the console [1]. See {form.format(address)} now [1]."):
        assert "citation_resolves" in [error.rule for error in check(draft).errors]


@pytest.mark.parametrize(
    "address", ["sms:+123", "message:abc", "javascript:alert(1)", "data:text/html,x", "myapp:run?x=1"]
)
@pytest.mark.parametrize("form", ["[x]({})", "<{}|x>", "<{}>", "[x][y]\n\n[y]: {}"])
def test_address_without_a_host_does_not_become_a_link(address: str, form: str) -> None:
    for draft in drafts(f"Deploy from the console [1]. See {form.format(address)} now [1]."):
        verdict = check(draft)
        assert not verdict.passed or live_links(verdict, address) == []


def test_source_address_of_another_scheme_is_shown_as_code() -> None:
    for dialect in DIALECTS:
        verdict = check(Draft(text="Clone ssh://git@acme.test/repo [1].", sources=(SOURCE,), dialect=dialect))
        assert (verdict.passed, verdict.text) == (True, "Clone `ssh://git@acme.test/repo` [1].")


@pytest.mark.parametrize(
    "text",
    [
        "<#C0EVIL> knows [1].",
        "<#C0EVIL|help> knows [1].",
        "<!date^1700000000^{date}^https://evil.test/x|today> [1].",
        "[x](//evil.test/leak) and [y](https://docs.acme.test@evil.test/) [1].",
        "ht\u200btps://evil.test/x [1].",
        "https:\u200b//evil.test/x [1].",
        "_https://evil.test/x_ and -https://evil.test/y [1].",
        "_www.evil.test/x_ [1].",
        "https://evil.test\u2060/x [1].",
        "<mailto:a@acme.test?bcc=evil@evil.test|mail> [1].",
    ],
)
def test_channel_or_link_from_nowhere_is_an_error(text: str) -> None:
    assert "citation_resolves" in [error.rule for draft in drafts(text)[1:] for error in check(draft).errors]


def test_channel_that_a_source_names_may_be_named() -> None:
    assert check(Draft(text="Ask in <#C0HELP|help> [1].", sources=(SOURCE,))).passed


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("pay \u202e001\u202c euros", "pay 001 euros"),
        ("\u2066\u2067abc\u2069\u2069", "abc"),
        ("a\U000e0041\U000e0042b", "ab"),
        ("a\u200b\u200b\u200bb", "ab"),
        ("a\u2063\u2064\u180eb", "ab"),
        ("x \u200b\u200c\u200d y", "x  y"),
        ("☑\ufe0f\ufe01\ufe02 done", "☑ done"),
        ("☑\U000e0101\U000e0102 done", "☑ done"),
        ("pass\u00adword", "password"),
        ("\u3164\uffa0ok", "ok"),
        ("👨\u200d👩\u200d👧 ☑\ufe0f 1\ufe0f\u20e3", "👨\u200d👩\u200d👧 ☑\ufe0f 1\ufe0f\u20e3"),
        (
            "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
            "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        ),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("日本\u200b*重要*\u200bです", "日本\u200b*重要*\u200bです"),
    ],
)
def test_characters_that_hide_or_turn_text_do_not_go_out(written: str, seen: str) -> None:
    for dialect in DIALECTS:
        assert check(Draft(text=written, unsourced=True, dialect=dialect)).text == seen


LIMIT = "Each key may send 120 requests a minute"
LIMITS = Source(id=1, title="Limits", text=f"{LIMIT}.")


@pytest.mark.parametrize(
    "written",
    [
        '["{}"]', '{{"answer": "{}"}}', "{{'answer': '{}'}}", '{{answer: "{}",}}', '"{}"', "'{}'", '("{}",)',
        '"{{\\"answer\\": \\"{}\\"}}"', '{{"a": {{"b": ["{}"]}}, "confidence": 0.9, "done": true}}',
        '{{"thinking": "I look it up.", "answer": "{}"}}', 'answer = "{}"', 'complete("{}")', 'summary: "{}"',
        "<response>{}</response>", "&lt;answer&gt;{}&lt;/answer&gt;", '<?xml version="1.0"?><string>{}</string>',
        '```json\n{{"answer": "{}"}}\n```',
    ],
)  # fmt: skip
def test_serialised_answer_is_unwrapped(written: str) -> None:
    for dialect in DIALECTS:
        verdict = check(Draft(text=written.format(f"{LIMIT} [1]."), sources=(LIMITS,), dialect=dialect))
        assert (verdict.passed, verdict.text) == (True, f"{LIMIT} [1].")
        assert [repair.kind for repair in verdict.repairs] == ["serialised"]


@pytest.mark.parametrize(
    "written",
    ["null", "None", "undefined", "{}", '""', "[]", '{"a": "One text.", "b": "Two texts."}', '["One.", "Two."]',
     '{"thinking": "The key is in the drawer."}', "&lt;answer&gt;It is open.",
     '{"action": "respond", "summary": "It is open [1]."}', "true"],
)  # fmt: skip
def test_serialised_value_without_one_text_is_an_error(written: str) -> None:
    for draft in drafts(written):
        assert "mrkdwn" in [error.rule for error in check(draft).errors]


def test_literal_line_ends_become_real_ones_outside_code_and_paths() -> None:
    for written, seen in [
        (r"One fact [1].\n\nTwo facts [1].", "One fact [1].\n\nTwo facts [1]."),
        (r"These:\n- one [1]\n- two [1]", "These:\n• one [1]\n• two [1]"),
        (r"One [1].\r\n\r\nTwo [1].", "One [1].\n\nTwo [1]."),
        (r"Save it in C:\new\notes [1].", r"Save it in C:\new\notes [1]."),
        (r"Write `a.\nb` there [1].", r"Write `a.\nb` there [1]."),
    ]:
        assert check(Draft(text=written, unsourced=True, sources=(LIMITS,))).text == seen


@pytest.mark.parametrize(
    "text", ["[1]", "[1, 2]", "`null`", '```json\n{"retries": 3, "mode": "fast"}\n```', "See {braces} (here)."]
)
def test_text_that_only_looks_serialised_stays(text: str) -> None:
    assert "serialised" not in [repair.kind for repair in check(Draft(text=text, unsourced=True)).repairs]
