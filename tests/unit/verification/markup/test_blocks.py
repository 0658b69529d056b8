"""The block pass and the inline pass together: neighbourhoods that single cases do not show."""

from __future__ import annotations

from verification.markup.edits import Edit, apply_edits
from verification.markup.mrkdwn import repair


def test_neighbourhoods() -> None:
    for draft, expected in [
        # Lists
        ("- a\n  text\n- b", "• a\n  text\n• b"),
        ("- a\n      - deep\n  - less", "• a\n    • deep\n    • less"),
        ("- a\n\ntext\n\n  - b", "• a\n\ntext\n\n• b"),
        ("1. a\n   1. b\n   2. c", "1. a\n   1. b\n   2. c"),
        ("- # Title\n- ## Other **x**", "• *Title*\n• *Other x*"),
        ("* **a**:\n  * b", "• *a*:\n    • b"),
        ("• a\n  - b", "• a\n    • b"),
        ("1. [ ] # T", "1. ☐ *T*"),
        # Quotes
        ("> a\nlazy", "• a\nlazy"),
        ("> - [ ] task\n>   - sub", "☐ task\n    • sub"),
        (">\n> a", "\n• a".strip("\n")),
        ("> Title\n> ---", "• Title"),
        ("> ```\n> a", "```\na\n```"),
        ("> [^1]: note", "[1] note"),
        (">>> a = 1", "        • a = 1"),
        ("a\n  >5 users", "a\n• &gt;5 users"),
        # Headings
        ("# A *b* `c` [d](https://x.y)", "*A _b_ `c` <https://x.y|d>*"),
        ("para\n# T\npara", "para\n*T*\npara"),
        ("# ***", ""),
        ("# *T*", "*T*"),
        ("a\n===\n===\nb", "*a*\nb"),
        ("a\n===\n==\nb", "*a*\n==\nb"),
        ("  spaced  \n====", "  *spaced*  "),
        ("*T*\n===", "*T*"),
        # Tables
        ("| x | y |\n|---|--:|\n| a | 10 |", "```\nx |  y\n--+---\na | 10\n```"),
        ("a\n| x | y |\n|:-:|--:|\n| [l](https://u.v) | `c` |\nb", None),
        ("| [r][k] |\n|---|\n| x |\n\n[k]: https://x.y", "```\nr (https://x.y)\n---------------\nx\n```"),
        # Fences
        ("text ~~~\nx", "text ~~~\nx"),
        ("1. ```\n   a\n     b\n   ```\n2. c", "1. \n```\na\n  b\n```\n2. c"),
        ("```not a language\nx\n```", "```\nnot a language\nx\n```"),
        ("```weird info here```", "```weird info here```"),
        ("```py {1,3}\nx\n```", "```\nx\n```"),
        ("```py", "```\npy\n```"),
        ("```some words", "```\nsome words\n```"),
        ("a: ```py\nx\n```\nb", "a: \n```\nx\n```\nb"),
        # Definitions
        ("[a]: https://x.y\n[b]: https://z.w\n[a] and [b]", "<https://x.y|a> and <https://z.w|b>"),
        ("a **b\n[x]: https://x.y\nc** d [x]", "a *b*\n*c* d <https://x.y|x>"),
        ("a *b\n[^1]: note **x**\nc* d", "a *b\n[1] note *x*\nc* d"),
        ("x\n[a]: https://x.y\nsee [a]", "x\nsee <https://x.y|a>"),
        ("]:\n[a]: https://x.y\n[a]", "]:\n<https://x.y|a>"),
        ("[a]: https://x.y\n[a]: https://z.w\n[a]", "[a] https://z.w\n<https://x.y|a>"),
    ]:
        text, _ = repair(draft)
        if expected is not None:
            assert text == expected
        assert repair(text) == (text, ())


def test_inline_neighbourhoods() -> None:
    for draft, expected in [
        ("[`a<b>&c`](https://x.y)", "<https://x.y|`a&lt;b&gt;&amp;c`>"),
        ("[two\nlines](https://x.y)", "<https://x.y|two lines>"),
        ("[**a** ~~b~~](https://x.y)", "<https://x.y|*a* ~b~>"),
        ("**[a** b](https://x.y)", "**<https://x.y|a** b>"),
        ("[<@U123ABC>](https://x.y)", "<@U123ABC> <https://x.y>"),
        ("[a|b](docs/x)", "a|b (`docs/x`)"),
        ("[a](me@x.org)", "<mailto:me@x.org|a>"),
        ("[a](`b`)", "a (`b`)"),
        ("[a](https://x.y/\\(b\\))", "<https://x.y/(b)|a>"),
        ("[a](https://x.y/?a=1&amp;b=2)", "<https://x.y/?a=1&b=2|a>"),
        ("[a](<https://x.y/b|c>)", None),
        ("[" + "a" * 2100 + "](https://x.y)", "[" + "a" * 2100 + "](https://x.y)"),
        ("<a href=https://x.y>l</a> <a>m</a>", "<https://x.y|l> m"),
        ("<a href='https://x.y'>l\n\nx</a>", "<https://x.y>l\n\nx"),
        ("x</a> <a href='docs/x'>l</a>", "x l (`docs/x`)"),
        ("<img src='a.png' alt='A'> <img src='https://x.y/i'> <img>", "A (`a.png`) <https://x.y/i> "),
        ("<b>a\n\nb</b>", "a\n\nb"),
        ("<b> a </b> <b></b>", " a  "),
        ("<code>a`b</code>", "a`b"),
        ("<kbd>a &lt; b</kbd>", "`a < b`"),
        ("# a<br>b", "*a b*"),
        ("<!-- open", "&lt;!-- open"),
        ("&unknown; &#0; &#xD800; &#32;x", "&amp;unknown; \ufffd \ufffd  x"),
        ("&#35; x", "\u200b#\u200b x"),
        ("```` a", "```\na\n```"),
        ("x ```` a", "x ｀｀｀｀ a"),
        ("\\\\*a\\\\*", "\\\\*a\\\\*"),
        ("\\[a\\](https://x.y)", "[a]\u200b(https://x.y)"),
        ("\\", "\\"),
        ("\\**a", "\u200b*\u200b*a"),
        ("\\- a\n\\# b", "\u200b- a\n\u200b# b"),
        ("****a**** *****", "****a**** *****"),
        ("~~a **b~~ c**", "~a *b~ c*"),
        ("~~a\nb~~", "~~a\nb~~"),
        ("**~~a~~**", "*~a~*"),
        ("a*" * 20 + "**b**", None),
        ("__proto__ __x__() a.__y__ __z__/q __Note__.", "__proto__ __x__() a.__y__ __z__/q *Note*."),
        ("http://[x", "http://[x"),
        ("see://", "see://"),
        ("{**a, 'b': 1}", "{**a, 'b': 1}"),
        ("(a+b)**2 and (c)**3", "(a+b)**2 and (c)**3"),
        ("**/x and **/y", "**/x and **/y"),
        ("**/a and b/** too", "**/a and b/** too"),
        ("*a ~~b~~ c*", "*a ~b~ c*"),
        ("*x **b** **c** y*", "_x *b* *c* y_"),
        ("**use *.py or a.*py now**", "*use *.py or a.*py now*"),
        ("**\\*a* b**", "*\u200b*a* b*"),
        ("see C:\\~~a~~ b", "see C:\\~~a~~ b"),
        ("\\![a](https://x.y)", "\\!<https://x.y|a>"),
        ("\\\\![a](https://x.y)", "\\\\<https://x.y|a>"),
        ("x__y__ z", "x__y__ z"),
        ("z __x__y", "z __x__y"),
        ("<b>a <b>b</b> c</b>", "*a b c*"),
        ("x `` a", "x `` a"),
        ("``x``", "`x`"),
        ("C:\\*.log and D:\\*.log", "C:\\*.log and D:\\*.log"),
        ("\\[a](https://x.y)", "\\[a](https://x.y)"),
        ("a\\!**b** c", "a\\!*b* c"),
        ("\\~~~a~~", "\u200b~\u200b~a~"),
        ("<https://x.y|a & **b**>", "<https://x.y|a &amp; *b*>"),
    ]:
        text, _ = repair(draft)
        if expected is not None:
            assert text == expected
        assert repair(text) == (text, ())


def test_words_in_parentheses_stay_in_markdown() -> None:
    for draft in ("[a](b c)", "[a](https://x.y) [b][c]", "\\*x\\*", "<me@x.org>", "a > b"):
        assert repair(draft, "markdown") == (draft, ())
    assert repair("<https://x.y|l> a", "markdown")[0] == "[l](https://x.y) a"


def test_code_that_begins_after_its_ticks_keeps_its_indentation() -> None:
    assert repair("x ```a\n b``` c", "markdown")[0] == "x \n```\na\n b\n```\n c"


def test_an_overlapping_edit_is_skipped() -> None:
    assert apply_edits("abcd", [Edit(1, 3, "X"), Edit(2, 4, "Y")]) == "aXd"
    assert apply_edits("ab", [Edit(1, 1, "-"), Edit(1, 2, "B")]) == "a-B"
