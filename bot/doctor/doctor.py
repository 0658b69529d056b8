"""`orion doctor`: checks the set-up and says what to do about each fault (H4).

All checks run at once, each within ``within_s`` seconds; one that fails stops no other. Nothing is changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from bot.doctor import checks
from bot.doctor.checks import Check, CheckLine
from bot.doctor.tools import tool_lines
from bot.settings import Settings, unknown_names, unread_lines

ANSWERS_WITHIN_S = 12.0
"""Enough for a model that has to be loaded first, short enough to be waited for."""
_SLACK: Final = frozenset({"SLACK_API_URL"})
_MODEL: Final = frozenset({"OPENAI_BASE_URL"})


async def examine(
    settings: Settings, *, faults: Mapping[str, str] | None = None, within_s: float = ANSWERS_WITHIN_S
) -> list[Check]:
    """Every check, in the order in which a message meets the parts. ``within_s`` bounds each wait for somebody else.

    ``faults`` say what is wrong with variables that cannot be used: what depends on one of them is not looked at.
    """
    wrong = faults or {}
    lines = (
        CheckLine("Slack", checks.bot_token, _SLACK),
        CheckLine("Slack events", checks.events, _SLACK),
        CheckLine("Redis", checks.redis_keeps),
        CheckLine("Paused", checks.paused),
        CheckLine("Knowledge", checks.knowledge),
        CheckLine("Search by meaning", checks.vectors, frozenset({"ORION_SEMANTIC"})),
        *tool_lines(settings),
        CheckLine("Model", checks.model, _MODEL, then=CheckLine("Model context", checks.context)),
        CheckLine("Write model", checks.write_model, _MODEL),
        CheckLine("Judge", checks.judge, _MODEL),
        CheckLine("Langfuse", checks.langfuse, frozenset({"LANGFUSE_HOST"})),
        CheckLine("Hand-off", checks.handoff, _SLACK),
    )
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(line.checks(settings, within_s), name=line.name)
            for line in lines
            if not line.needs & wrong.keys()
        ]
    return [*_settings(wrong), *(check for task in tasks for check in task.result())]


def _settings(wrong: Mapping[str, str]) -> list[Check]:
    """A line for each setting that cannot be used, is none, or is not understood; Orion starts in spite of the last."""
    mend = "Mend it in the environment or in .env; Orion does not start with it."
    found = [(f"{name} {what}", mend) for name, what in wrong.items()]
    remark = "Write NAME=value, or # in front of a remark."
    found += [(f".env, line {number} is not understood", remark) for number in unread_lines()]
    for name, nearest in unknown_names().items():
        remedy = "See the README for the names." if nearest == "none" else f"Is {nearest} meant?"
        found.append((f"{name} is no setting of Orion", remedy))
    return [Check(name="Settings", ok=False, detail=detail, remedy=remedy) for detail, remedy in found]
