"""Texts that attack a reader or a workspace: none goes out, as a post or in a stream, with sources or as a question."""

from itertools import product
from typing import get_args

import pytest

from verification.check import check
from verification.types import Dialect, Draft, Source

DIALECTS = get_args(Dialect)
SOURCE = Source(
    id=1,
    title="Deploy",
    url="https://docs.acme.test/deploy",
    text="Deploy from the console. Clone ssh://git@acme.test/repo. Ask in #help (https://acme.slack.test/archives/C0HELP).",
)


def test_a_source_address_of_another_scheme_is_shown_as_code() -> None:
    for dialect in DIALECTS:
        verdict = check(Draft(text="Clone ssh://git@acme.test/repo [1].", sources=(SOURCE,), dialect=dialect))
        assert (verdict.passed, verdict.text) == (True, "Clone `ssh://git@acme.test/repo` [1].")


def test_a_channel_named_in_a_source_may_be_named() -> None:
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
def test_characters_that_hide_or_reverse_text_are_not_sent(written: str, seen: str) -> None:
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
        '```json\n{{"answer": "{}"}}\n```', "answer: |\n  {}", '---\nanswer: "{}"', "```yaml\nanswer: {}\n```",
        "answer: {}\nconfidence: high", "Thought: I know it.\nFinal Answer: {}", '[answer]\ntext = "{}"',
        "{{answer: `{}`}}", "f'{}'", 'const answer = "{}";', "['answer' => '{}']", '{{\\"answer\\": \\"{}\\"}}',
        "&quot;{}&quot;", 'data: {{"answer": "{}"}}\n\ndata: [DONE]', "Answer(text='{}', sources=['a'])",
        "text='{}' sources=[]", '[{{"type": "text", "text": "{}"}}]',
        '{{"answer": "{}", "language": "en", "sources": ["Limits"]}}',
        '(answer "{}")', '((answer . "{}"))', "'(list :answer \"{}\")", '{{:answer "{}"}}', '&Answer{{Text: "{}"}}',
        'Answer {{ text: "{}".to_string() }}', 'new {{ Answer = "{}" }};', '{{answer, <<"{}">>}}', "answer('{}').",
        'Map("answer" -> "{}")', '@{{@"answer": @"{}"}}', "<?php return ['answer' => '{}']; ?>", "$answer = '{}';",
        'echo "{}"', "[response]\nanswer={}", '{{{{ answer | default("{}") }}}}', 'Dim answer As String = "{}"',
        "```markdown\n{}\n```", "~~~~ md\n{}\n~~~~",
        "<answer><![CDATA[{}]]></answer>", "{{“answer”: “{}”}}", '{{"answer": "{}\\u202e"}}',
    ],
)  # fmt: skip
def test_a_serialised_answer_is_unwrapped(written: str) -> None:
    for dialect in DIALECTS:
        verdict = check(Draft(text=written.format(f"{LIMIT} [1]."), sources=(LIMITS,), dialect=dialect))
        assert (verdict.passed, verdict.text) == (True, f"{LIMIT} [1].")
        assert [repair.kind for repair in verdict.repairs] == ["serialised"]


@pytest.mark.parametrize(
    "written",
    ["null", "None", "undefined", "{}", '""', "[]", '{"a": "One text.", "b": "Two texts."}', '["One.", "Two."]',
     '{"thinking": "The key is in the drawer."}', "&lt;answer&gt;It is open.",
     '{"action": "respond", "summary": "It is open [1]."}', "true", "answer: It is open.\nwhy: It is day.",
     '{"answer": "It is open.", "why": "It is day."}', '["It is open [1].', 'answer = """It is open [1].'],
)  # fmt: skip
def test_a_serialised_value_without_one_text_is_an_error(written: str) -> None:
    for sources, dialect in product(((SOURCE,), ()), DIALECTS):
        draft = Draft(text=written, sources=sources, unsourced=not sources, dialect=dialect)
        assert "mrkdwn" in [error.rule for error in check(draft).errors]


def test_literal_line_ends_become_real_ones_outside_code_and_paths() -> None:
    for written, seen in [
        (r"One fact [1].\n\nTwo facts [1].", "One fact [1].\n\nTwo facts [1]."),
        (r"These:\n- one [1]\n- two [1]", "These:\n• one [1]\n• two [1]"),
        (r"One [1].\r\n\r\nTwo [1].", "One [1].\n\nTwo [1]."),
        (r"Save it in C:\new\notes [1].", r"Save it in C:\new\notes [1]."),
        (r"Write `a.\nb` there [1].", r"Write `a.\nb` there [1]."),
        (r"\u00dcber Caf\u00e9s [1].", "Über Cafés [1]."),
        (r"Pay\u202e00 [1].", "Pay00 [1]."),
        (r"Write \u00e9 or C:\users\u1234 [1].", r"Write \u00e9 or C:\users\u1234 [1]."),
    ]:
        assert check(Draft(text=written, unsourced=True, sources=(LIMITS,))).text == seen


@pytest.mark.parametrize(
    "text",
    ["[1]", "[1, 2]", "`null`", "```md\n# Title\n\nOne fact.\n```", "```\nx = [1]\n```",
     '```json\n{"retries": 3, "mode": "fast"}\n```', "See {braces} (here).", "{{ name }}",
     "Answer: 30", "Note: the office opens at 9 [1].", 'Limits: "Each key may send 120 requests."',
     '["Travel"](https://x.test) has it [1].', '"One, two."\n"Three, four."', 'print("hello")',
     *(f'{start}"It is open on every day of the week [1].")' for start in (
         "No (", "No (the old page says ", "Nein (laut Seite ", "> (", "New rule (see ", "Not yet. Answer (now ")),
     'No ["It is open on every day of the week [1]."]', 'The old rule = "It is open on every day of the week [1]."',
     *(f'{start} "It is open on every day of the week."' for start in ("New:", "List:", "Say", "New list (as set):")),
     "output=json prints the result as JSON, and is the default [1].",
     'wrote "It is open on every day of the week [1]."', 'the answer is "it is open on every day of the week [1]."',
     'The page says "it is open on every day of the week [1]."', '[1] says "it is open on every day of the week."',
     'Use this (it prints "open on every day of the week [1].")', '```python\nx = "open on every day of the week"\n```',
     "- note: it is open [1]\n- why: it is day [1]", "name: Ben\nrole: lead",
     "- text: the body of the message [1]\n- content: its parts, in order [1]"],
)  # fmt: skip
def test_text_that_only_looks_serialised_stays(text: str) -> None:
    verdict = check(Draft(text=text, unsourced=True))
    assert "serialised" not in [repair.kind for repair in verdict.repairs]
    assert [error.detail for error in verdict.errors if error.rule == "mrkdwn"] == []
