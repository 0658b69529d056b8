"""What people see of a plan: each step as one short line of plain text.

A step that the rules object to, or that holds a link, keeps its place without its words.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Final

from agent.turn.events import PlanMoved, StepSeen
from agent.turn.progress import Progress
from agent.turn.rules import check_draft
from verification.markup.link_targets import links
from verification.markup.mrkdwn import strip_mrkdwn
from verification.types import Draft

MAX_TITLE_CHARS: Final = 100  # characters shown: Slack's own limit is 256, but a status has to fit on a line
_READ: Final = 400  # characters of a step that are looked at at all: what is cut off behind them is not shown either
_TURNING: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Nobody says whether Slack decodes entities in a task or a status: signs that need none read the same either way.
_HARMLESS: Final = str.maketrans("<>", "‹›")


async def emit_plan(progress: Progress) -> None:
    """Tell whoever listens where the plan stands, if it has more than one step and stands elsewhere than before."""
    plan = progress.state.plan
    if plan is None or len(plan.steps) == 1:
        return
    unread = [step.description for step in plan.steps if step.description not in progress.titles]
    if unread:  # off the event loop, as every judgement
        draft = replace(progress.draft(""), unsourced=True, own_words=False)
        progress.titles |= await asyncio.to_thread(lambda: {each: step_title(draft, each) for each in unread})
    seen = tuple(StepSeen(title=progress.titles[step.description], status=step.status) for step in plan.steps)
    if seen != progress.revealed:
        progress.revealed = seen
        progress.emit(PlanMoved(steps=seen))


def step_title(draft: Draft, description: str) -> str:
    """The step as it may be shown; empty where it may not. ``draft`` holds all that the rules go by."""
    line = " ".join(_TURNING.sub("", description[:_READ]).split())
    verdict = check_draft(replace(draft, text=line))
    if not verdict.passed or links(verdict.text):
        return ""
    title = " ".join(strip_mrkdwn(verdict.text).split()).translate(_HARMLESS)
    return truncate(title, MAX_TITLE_CHARS)


def truncate(text: str, most: int) -> str:
    """The text in at most so many characters, with an ellipsis where something was left out."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
