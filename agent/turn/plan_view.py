"""Shows a plan to people: each step as one short line of plain text.

A step that the rules object to, or that has a link, is shown without its words.
"""

import asyncio
import re
from dataclasses import replace
from typing import Final

from agent.texts.truncate import truncate
from agent.turn.events import PlanMoved, StepSeen
from agent.turn.progress import Progress
from agent.turn.rules import check_draft
from verification.markup.link_targets import links
from verification.markup.mrkdwn import strip_mrkdwn
from verification.types import Draft

MAX_TITLE_CHARS: Final = 100  # Slack's own limit is 256, but a status has to fit on a line
_READ: Final = 400  # characters of a step that are checked; the rest is not shown
_TURNING: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Slack does not document whether it decodes entities in a task or a status: these characters need none.
_HARMLESS: Final = str.maketrans("<>", "‹›")


async def emit_plan(progress: Progress) -> None:
    """Emit the plan if it has more than one step and has changed since."""
    plan = progress.state.plan
    if plan is None or len(plan.steps) == 1:
        return
    unread = [step.description for step in plan.steps if step.description not in progress.titles]
    if unread:  # off the event loop, like every check
        draft = replace(progress.draft(""), unsourced=True, own_words=False)
        progress.titles |= await asyncio.to_thread(lambda: {each: step_title(draft, each) for each in unread})
    seen = tuple(StepSeen(title=progress.titles[step.description], status=step.status) for step in plan.steps)
    if seen != progress.revealed:
        progress.revealed = seen
        progress.emit(PlanMoved(steps=seen))


def step_title(draft: Draft, description: str) -> str:
    """Return the step as it may be shown, empty if it may not. ``draft`` has everything that the rules depend on."""
    line = " ".join(_TURNING.sub("", description[:_READ]).split())
    verdict = check_draft(replace(draft, text=line))
    if not verdict.passed or links(verdict.text):
        return ""
    title = " ".join(strip_mrkdwn(verdict.text).split()).translate(_HARMLESS)
    return truncate(title, MAX_TITLE_CHARS)
