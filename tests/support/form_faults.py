"""Faults of form: what a model writes when it forgets that Slack is no Markdown viewer.

Each gives the draft with the fault and repair off, so that the rules must name what repair would have mended.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.support.right_answers import RightAnswer
from verification.types import Draft

Fault = Callable[[RightAnswer, Draft, Random], Draft | None]

_BOLD = ("**Note:** {}", "__Note__ {}", "{} **Please note.**", "**Note:**{}", "***Note*** {}")
_OTHER = (
    "# Summary\n{}",
    "### Summary\n\n{}",
    "Summary\n=======\n{}",
    "{}\n\n---\n\nDone.",
    "{} ~~Not this~~",
    "- [ ] {}",
    "{} [the page](https://docs.fernhill.example/on-call)",
    "![plan](https://docs.fernhill.example/plan.png) {}",
    "{}\n```python\nprint(1)\n```",
    "{}\n```\nnever closed",
    "<b>Note</b> {}",
    "{}<br>",
    "{} &nbsp;",
    "{} R&D too.",
    "{} Note[^1]\n\n[^1]: a footnote",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n{}",
)


def bold(answer: RightAnswer, right: Draft, rng: Random) -> Draft | None:
    """Doubled marks."""
    return _unmended(answer, right, rng.choice(_BOLD))


def quote(answer: RightAnswer, right: Draft, rng: Random) -> Draft | None:
    """Lines that start with ``>``."""
    return _unmended(answer, right, rng.choice(("> {}", ">{}", "{}\n> as said above", ">> {}")))


def other(answer: RightAnswer, right: Draft, rng: Random) -> Draft | None:
    """Headings, links, tables, fences with a language, tasks, HTML, entities."""
    return _unmended(answer, right, rng.choice(_OTHER))


def _unmended(answer: RightAnswer, right: Draft, form: str) -> Draft | None:
    """The answer in this form, to be judged as it stands; a table is a fault of form already."""
    if answer.shape not in {"sentence", "paragraph"} or re.search("[<>]", right.text):
        return None
    return replace(right, text=form.format(right.text), repair=False)


FAULTS: dict[str, Fault] = {"Markdown bold": bold, "block quote": quote, "other Markdown": other}
