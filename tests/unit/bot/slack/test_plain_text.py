"""Slack's wire text as a person reads it."""

from __future__ import annotations

import pytest

from bot.slack.text import plain_text


@pytest.mark.parametrize(
    ("wire", "plain"),
    [
        ("<@UORION|orion> a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("see <https://x.example/a?b=1&amp;c=2>", "see https://x.example/a?b=1&c=2"),
        ("see <https://x.example/a|the page>", "see the page (https://x.example/a)"),
        ("<http://x.example|x.example>", "x.example"),
        ("what is in <http://README.md|README.md> and <http://a.b.id|a.b.id>?", "what is in README.md and a.b.id?"),
        ("<https://x.example/a|x.example>", "https://x.example/a"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("ask <@UBEN> in <#C9|ops> or <#C8>", "ask <@UBEN> in #ops or <#C8>"),
        ("<!here> at <!date^1700000000^{date}|Nov 14>", "@here at Nov 14"),
    ],
)
def test_text_reads_as_the_person_wrote_it(wire: str, plain: str) -> None:
    assert plain_text(wire, "UORION") == plain
