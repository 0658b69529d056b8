"""An earlier answer as a model reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.thread.conversation import as_markdown
from verification.check import check
from verification.types import Draft, Source

SOURCES = (
    Source(id=1, title="Plans", url="https://docs.example/plans", text="Solo costs 19 EUR & 3 devices > 2."),
    Source(id=2, title="Team", text="Team costs 39 EUR."),
)
WRITTEN = """**Solo** is the cheaper plan, R&D says [1].

| Plan | Price | Devices |
|---|---|---|
| Solo | 19 EUR [1] | > 2 [1] |
| Team | 39 EUR [2] | |

1. Take `a < b` first [2].
- Then rest [1][2]."""
READ = """**Solo** is the cheaper plan, R&D says.

| Plan | Price | Devices |
|---|---|---|
| Solo | 19 EUR | > 2 |
| Team | 39 EUR |  |

1. Take `a < b` first.
- Then rest."""


def test_an_answer_comes_back_as_the_markdown_it_was_written_in() -> None:
    sent = check(Draft(text=WRITTEN, sources=SOURCES)).text
    assert "```" in sent
    assert "&amp;" in sent
    assert as_markdown(sent) == READ


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("It is 120 [3], as `limits[3]` says [1, 2]. Ask <http://x.y/4|Ann>.",
         "It is 120, as `limits[3]` says. Ask [Ann](http://x.y/4)."),
        ("On Tuesdays [1] (https://docs.example/plans#a). Or [2] not.", "On Tuesdays. Or not."),
        ("```\n5 < 6 &amp; *a*\n```\n*b* and 2 * 3 * 4", "```\n5 < 6 &amp; *a*\n```\n**b** and 2 * 3 * 4"),
        ("&amp;lt; stays what it is", "&lt; stays what it is"),
        ("<@U1> and <https://x.y>", "<@U1> and <https://x.y>"),
    ],
    ids=["citations and links", "as slack has it", "code and bold", "an entity told", "tokens"],
)  # fmt: skip
def test_no_number_of_an_earlier_turn_and_no_markup_of_slack_stays(said: str, read: str) -> None:
    assert as_markdown(said) == read


@given(st.text(alphabet="ab1 [](),`*_~<>|&;\n-+•lt", max_size=80))
def test_any_text_is_read(said: str) -> None:
    assert len(as_markdown(said)) <= 4 * len(said) + 20
