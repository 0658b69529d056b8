"""Keeps what a turn had found when it asked back, until the person answers (B6).

What documents said is used again only while fresh. What Slack's search found is never kept (D3).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agent.model.prompts import DECIDE_RESULT
from agent.thread.state import Finding, Found
from agent.tools.builtin.llm_generate import NAME as LLM_GENERATE
from agent.tools.builtin.slack_search import ORIGIN, SLACK_SEARCH
from agent.tools.tool import ToolResult
from agent.turn.progress import Progress
from verification.types import Source

# A state is read and written with every turn of its thread: what is kept is enough to go on with, and no more.
SOURCES_KEPT: Final = 16
CHARS_KEPT: Final = 48_000
RESULTS_KEPT: Final = 5
FRESH_S: Final = 3_600  # seconds for which a document found before the question counts as what it says


def found_by(progress: Progress) -> Found:
    """What is to be kept of this turn, which asks back."""
    from_slack = any(result.tool == SLACK_SEARCH for result in progress.results)
    barred = {SLACK_SEARCH, LLM_GENERATE} if from_slack else {SLACK_SEARCH}
    told = [result for result in progress.results if result.ok and result.content and result.tool not in barred]
    results = tuple(Finding(tool=each.tool, content=each.content[:DECIDE_RESULT]) for each in told[-RESULTS_KEPT:])
    earlier = progress.state.found
    # Asked back twice: what was taken up does not become fresh again.
    ts = earlier.ts if earlier and _is_fresh(earlier, progress) else progress.question.ts
    return Found(ts=ts, results=results, sources=_latest(progress.sources))


def take_up(progress: Progress) -> None:
    """Go on with what was found before the question that this turn answers, if it answers one."""
    found = progress.state.found
    if found is None:
        return
    fresh = _is_fresh(found, progress)
    for number, each in enumerate(found.results if fresh else (), start=1):
        progress.add_result(ToolResult(call_id=f"before-{number}", tool=each.tool, ok=True, content=each.content))
    for source in found.sources:
        if fresh or source.origin != "document":
            progress.add_source(source)


def _latest(sources: list[Source]) -> tuple[Source, ...]:
    kept: list[Source] = []
    room = CHARS_KEPT
    for source in reversed(sources):  # what was looked for on purpose comes after the first search
        if source.origin in {ORIGIN, "thread"}:
            continue
        room -= len(source.text)
        if room < 0 or len(kept) == SOURCES_KEPT:
            break
        kept.insert(0, replace(source, id=0))
    return tuple(kept)


def _is_fresh(found: Found, progress: Progress) -> bool:
    return abs(_seconds(progress.question.ts) - _seconds(found.ts)) <= FRESH_S


def _seconds(ts: str) -> int:
    whole = ts.partition(".")[0]
    return int(whole) if whole.isdecimal() else 0
