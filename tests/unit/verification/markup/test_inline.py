"""A stretch that is told at a glance to need nothing gets the same findings as under a close look: none."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from verification.markup.edits import Page
from verification.markup.inline import Inline, repair_inline

PIECES = (
    *("*", "**", "_", "__", "~", "~~", "`", "``", "```", "[1]", "[12]", "[1234]", "[", "]", "(", ")", "(u)", "[^1]"),
    *("<https://a.example|[1]>", "<https://a.example/b_c>", "<http://a.example|*b*>", "<b>", "</b>", "<", ">", "&"),
    *(
        "&amp;", "&lt;", "&nbsp;", ":", "://", "https://a.example/x_y*z", "\\", "\n", " ", "word", "Wort", "5", "「",
        "é",
    ),
)  # fmt: skip


def findings(text: str, *, close: bool, bold: bool) -> tuple[list[object], list[object]]:
    page = Page(text, "mrkdwn")
    page.references["1"] = "https://a.example/"
    if close:
        Inline(page, 0, len(text), bold=bold).repair()
    else:
        repair_inline(page, 0, len(text), bold=bold)
    return list(page.edits), list(page.faults)


@settings(max_examples=600)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.booleans())
@example("*a* _b_ `c*d` [1][2] <https://a.example|[3]> &amp; x: y", False)
@example("a *b c", True)
def test_glance_finds_what_a_close_look_finds(text: str, bold: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    assert findings(text, close=False, bold=bold) == findings(text, close=True, bold=bold)


def test_glance_at_noise_stays_short() -> None:
    for unit in ["`a", "[1", "<https://a", "&amp", "*a", "_", "a:", "[1]("]:
        repair_inline(Page(unit * 50_000, "mrkdwn"), 0, len(unit) * 50_000)
