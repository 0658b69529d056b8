"""The laws of repair, over generated drafts that mix every marker there is.

``pytest THIS_FILE --hypothesis-profile=explore`` tries each law on 10,000 new drafts.
"""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verification.markup.mrkdwn import repair, strip_mrkdwn
from verification.markup.scanner import segments
from verification.rules.writing import violations
from verification.types import Dialect

# A law is tried on 150 drafts at least; "--hypothesis-profile=explore" asks for more.
LAW = settings(max_examples=max(150, settings().max_examples))

MARK_LIST = (
    "** * *** _ __ ~~ ~ ` `` [ ] ( ) ]( ![ < > & &amp; &lt; &nbsp; &#42; <br> <b> </b> <i> </i> <p> <li> </a>"
    " | \\ \\* \\_ \\[ # - + • ☐ : . , ! \" ' = { } 2**10 __init__ *.py snake_case 漢字 「 」 。 é ا 3.5 [1] [1,2] [^1]"
    " [t][d] https://a.b/c?d=1&e=2 [x](https://a.b/c) <https://l.m/n|lab> <@U123ABC> <!here> <foo>"
)
MARKS = MARK_LIST.split(" ")
LINES = (
    "\n", "\n\n", "\n# ", "\n- ", "\n  - ", "\n1. ", "\n> ", "\n>> ", "\n---\n", "\n===\n", "\n```\n", "\n```py\n",
    "\n~~~\n", "```", "\n| a | b |\n|---|---|\n| 1 | 2 |\n", "\n| ", "\n- [ ] ", "\n[^1]: ", "\n[d]: https://x.y/z\n",
    '<a href="https://q.r/s">', "\r\n", "\x00", "\x0b", "\u200b", "\u2028", "\ud800", "\t", " ", "  ",
)  # fmt: skip
WORDS = st.integers(0, 99).map(lambda number: f"w{number}q")
DRAFTS = st.lists(st.sampled_from(MARKS) | st.sampled_from(LINES) | WORDS | st.just(" "), max_size=30).map("".join)
RAW = st.text(alphabet="*_`~[]()<>&#-|\n \\ab1:!=.", max_size=60)
DIALECTS: st.SearchStrategy[Dialect] = st.sampled_from(("mrkdwn", "markdown"))
WORD = re.compile(r"w\d+q")
HIDDEN = re.compile(r"(?:```|~~~)[^\n]*|<[a-z]+ [^>]*>")


@LAW
@given(draft=DRAFTS | RAW, dialect=DIALECTS)
def test_repair_is_idempotent(draft: str, dialect: Dialect) -> None:
    once, _ = repair(draft, dialect)
    assert repair(once, dialect) == (once, ())


@LAW
@given(draft=DRAFTS | RAW, dialect=DIALECTS)
def test_repaired_text_satisfies_the_form_rules(draft: str, dialect: Dialect) -> None:
    text, _ = repair(draft, dialect)
    assert [found for found in violations(text, dialect, limit=0) if "json" not in found.detail] == []


@pytest.mark.parametrize(
    ("draft", "is_fault"),
    [
        ("# Kiln\n\n**Bold**, ~~not~~ *so*: [a](https://x.example/a) & `` b ``\n\n* x\n* [ ] y\n\n---", False),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\na\n```\n\n2 < 3\\* &nbsp; [a][b]\n\n[b]: https://x.example", False),
        ("<b>Bold</b>", True),
        ("**a**\n\n> b", True),
        ("![a](https://x.example/a.png)", True),
    ],
)
def test_standard_markdown_is_rendered_and_is_no_fault(draft: str, is_fault: bool) -> None:  # noqa: FBT001
    repairs = repair(draft)[1]
    assert repairs
    assert any(each.is_fault for each in repairs) is is_fault


@LAW
@given(draft=DRAFTS, dialect=DIALECTS)
def test_repair_keeps_words_and_numbers(draft: str, dialect: Dialect) -> None:
    before = Counter(WORD.findall(HIDDEN.sub(" ", draft)))
    after = Counter(WORD.findall(repair(draft, dialect)[0]))
    everything = Counter(WORD.findall(draft))
    assert before <= after <= everything


@LAW
@given(parts=st.lists(st.sampled_from(MARKS) | WORDS | st.just(" "), max_size=20))
def test_addresses_are_not_changed(parts: list[str]) -> None:
    urls = [f"https://h{number}.example/p?a=1&b=2" for number in range(len(parts))]
    draft = " ".join(f"{part} {url}" for part, url in zip(parts, urls, strict=True) if "`" not in part)
    text, _ = repair(draft)
    assert Counter(re.findall(r"https://h\d+\.example/p\?a=1&b=2", draft)) == Counter(
        re.findall(r"https://h\d+\.example/p\?a=1&b=2", text)
    )


CODE = st.text(st.characters(exclude_characters="`\r\n", exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1)


@LAW
@given(code=CODE, before=st.sampled_from(("", "**x** ", "> ", "# ", "- ", "| ")))
def test_inline_code_is_unchanged_to_the_byte(code: str, before: str) -> None:
    text, _ = repair(f"{before}`{code}`")
    assert f"`{code}`" in text


@LAW
@given(lines=st.lists(CODE | st.just(""), min_size=1, max_size=6), language=st.sampled_from(("", "python", "sh")))
def test_fenced_code_does_not_change(lines: list[str], language: str) -> None:
    body = "\n".join(lines)
    text, _ = repair(f"# T\n```{language}\n{body}\n```\n**x**")
    assert text == (f"*T*\n```\n{body}\n```\n*x*" if body else "*T*\n```\n```\n*x*")


VALID_LIST = (
    "word *bold* _it_ ~gone~ `c<d` <https://x.y/z|label> &amp; &lt; [1] [1][2] 2**10 <@U123ABC> <!here> __init__ *.py"
    " snake_case 3.5% 漢字 :smile: https://a.b/c?d=1&e=2 - 5"
)
VALID_WORDS = st.sampled_from(VALID_LIST.split(" "))
VALID_LINES = st.lists(VALID_WORDS, min_size=1, max_size=6).map(lambda words: "so " + " ".join(words))
VALID_BLOCKS = st.one_of(
    VALID_LINES,
    VALID_LINES.map(lambda line: f"• {line}\n    • {line}"),
    VALID_LINES.map(lambda line: f"1. {line}\n2. {line}"),
    st.just("```\ncode **x** <y>\n```"),
    st.just("*Title*"),
    st.just("☐ open\n☑ done"),
)


@LAW
@given(blocks=st.lists(VALID_BLOCKS, min_size=1, max_size=6), gap=st.sampled_from(("\n", "\n\n")))
def test_valid_mrkdwn_is_a_fixed_point(blocks: list[str], gap: str) -> None:
    text = gap.join(blocks)
    assert repair(text) == (text, ())


@LAW
@given(draft=DRAFTS | RAW)
def test_mentions_are_never_touched(draft: str) -> None:
    text, _ = repair(f"<!channel> <@U0AAAAAAA> {draft}")
    # A table is drawn as code and notifies no one: only the words stay.
    assert "<!channel> <@U0AAAAAAA>" in text or ("```" in text and "!channel @U0AAAAAAA" in text)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t"])
def test_an_empty_text_stays_empty(text: str) -> None:
    assert repair(text) == (text, ())


def test_plain_reads_well_in_a_notification() -> None:
    text = (
        "*Deploys* run at `14:00` <https://x.y/z|[1]> &amp; _never_ on "
        "<https://x.y|Friday> <!here> <mailto:a@b.c> <!date^1392734382^{date}|Feb 18> <@U123ABC>\n```\na_b\n```"
    )
    assert strip_mrkdwn(text) == "Deploys run at 14:00 [1] & never on Friday @here a@b.c Feb 18 @U123ABC\na_b"


def test_plain_keeps_marks_inside_code() -> None:
    assert strip_mrkdwn("*Use `_b_` and `*.py`* now") == "Use _b_ and *.py now"


@LAW
@given(draft=DRAFTS | RAW)
def test_plain_never_fails_and_has_no_tokens(draft: str) -> None:
    text = strip_mrkdwn(repair(draft)[0])
    if "`" not in draft and "~~~" not in draft:  # in code a link is text
        assert "<https://l.m/n|" not in text
    assert "".join(text[part.start : part.end] for part in segments(text)) == text
