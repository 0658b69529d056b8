"""The form rules: ``no_markdown_bold``, ``no_blockquotes`` and the ``mrkdwn`` family.

What ``mrkdwn.repair`` would mend is reported here with its place; so is what is never mended: tags and JSON of the
machinery that leaked into an answer, and a text longer than Slack takes.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from verification.markup.blocks import Layout
from verification.markup.edits import Edit, Fault, applied
from verification.markup.html_tags import LEAKED
from verification.markup.mrkdwn import cleaning
from verification.markup.scanner import segments
from verification.types import Dialect, RuleName, Violation

_RULES: dict[str, RuleName] = {"bold": "no_markdown_bold", "quote": "no_blockquotes"}
# Repair makes these better, but Slack shows them well enough as they are: they are no violations.
_POLISH = frozenset({"list", "backslash", "code", "line end"})
_MAY_LEAK = re.compile(r"<(?!https?://)|\{")
_JSON = re.compile(r"\{\s*\"[\w .-]{1,60}\"\s*:")
# In a code block JSON may be what was asked for; only what the machinery itself writes is a leak there.
_MACHINE_JSON = re.compile(
    r"\{\s*\"action\"\s*:\s*\"(?:respond|complete|finish_step|ask_user|use_tool|call_tool)\""
    r"|\{\s*\"(?:tool|name)\"\s*:\s*\"[^\"\n]{1,60}\"\s*,\s*\"(?:input|arguments|parameters)\"\s*:\s*\{"
    r"|\{\s*\"(?:thought|thinking|reasoning)\"\s*:"
)
_WORDS_SHOWN = 200


@cache
def _faults() -> dict[str, tuple[str, str]]:
    """What is wrong and how to mend it, by the kind of fault."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def violations(text: str, dialect: Dialect = "mrkdwn", *, limit: int = 3000) -> tuple[Violation, ...]:
    """What is wrong in form, in order of place. ``limit`` is for one chunk, in characters; 0 means no limit."""
    edits, faults = cleaning(text)
    cleaned = applied(text, edits) if edits else text
    origin = _origin(edits)
    found = [fault for fault in faults if fault.kind not in _POLISH]
    found += [
        Fault(fault.kind, origin(fault.start), origin(fault.end))
        for fault in (*Layout(cleaned, dialect).survey().faults, *_leaks(cleaned))
        if fault.kind not in _POLISH
    ]
    if limit and len(text) > limit:
        found.append(Fault("length", limit, len(text)))
    found.sort(key=lambda fault: (fault.start, fault.end))
    return tuple(_violation(text, fault) for fault in found)


def _violation(text: str, fault: Fault) -> Violation:
    what, remedy = _faults()[fault.kind]
    return Violation(
        rule=_RULES.get(fault.kind, "mrkdwn"),
        severity="error",
        start=fault.start,
        end=fault.end,
        words=text[fault.start : min(fault.end, fault.start + _WORDS_SHOWN)],
        detail=f"{fault.kind}: {what}",
        remedy=remedy,
    )


def leaked_tags(text: str) -> tuple[Violation, ...]:
    """The tags of the machinery outside code in a text as the model wrote it: repair may hide them in a table."""
    if "<" not in text or "|" not in text:
        return ()
    return tuple(
        _violation(text, Fault("tag", *match.span()))
        for segment in segments(text)
        if segment.kind == "text"
        for match in LEAKED.finditer(text, segment.start, segment.end)
    )


def _leaks(text: str) -> Iterator[Fault]:
    """Tags and JSON of the machinery outside code, and inside it what only the machinery writes."""
    if not _MAY_LEAK.search(text):
        return
    for segment in segments(text):
        if segment.kind != "text":
            for match in _MACHINE_JSON.finditer(text, segment.start, segment.end):
                yield Fault("json", *match.span())
            continue
        for match in LEAKED.finditer(text, segment.start, segment.end):
            yield Fault("tag", *match.span())
        for match in _JSON.finditer(text, segment.start, segment.end):
            yield Fault("json", *match.span())


def _origin(edits: list[Edit]) -> Callable[[int], int]:
    """From a place in the cleaned text to the same place in the text as it came."""
    starts: list[int] = []
    shifts: list[int] = []
    shift = 0
    for edit in edits:
        shift += (edit.end - edit.start) - len(edit.text)
        starts.append(edit.end - shift)
        shifts.append(shift)

    def place(position: int) -> int:
        index = bisect_right(starts, position)
        return position + (shifts[index - 1] if index else 0)

    return place
