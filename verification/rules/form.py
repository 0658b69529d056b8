"""The form rules: ``no_markdown_bold``, ``no_blockquotes`` and the ``mrkdwn`` family.

What ``mrkdwn.repair`` would mend is reported here with its place; so is what is never mended: tags and JSON of the
machinery that leaked into an answer, and a text longer than Slack takes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from verification.markup.blocks import survey
from verification.markup.edits import Edit, Fault, applied
from verification.markup.inline import LEAKED
from verification.markup.mrkdwn import cleaning
from verification.markup.scanner import segments
from verification.text.lexicon import beside
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


def violations(text: str, dialect: Dialect = "mrkdwn", *, limit: int = 3000) -> tuple[Violation, ...]:
    """What is wrong in form, in order of place. ``limit`` is for one chunk, in characters; 0 means no limit."""
    edits, faults = cleaning(text)
    clean, origin = applied(text, edits), _origin(edits)
    moved = (*survey(clean, dialect).faults, *_leaks(clean))
    faults += [Fault(each.kind, origin(each.start), origin(each.end)) for each in moved]
    found = [each for each in faults if each.kind not in _POLISH]
    if limit and len(text) > limit:
        found.append(Fault("length", limit, len(text)))
    found.sort(key=lambda fault: (fault.start, fault.end))
    return tuple(_violation(text, fault) for fault in found)


def _violation(text: str, fault: Fault) -> Violation:
    what, remedy = beside(__file__)[fault.kind]
    return Violation(
        rule=_RULES.get(fault.kind, "mrkdwn"),
        severity="error",
        start=fault.start,
        end=fault.end,
        words=text[fault.start : min(fault.end, fault.start + _WORDS_SHOWN)],
        detail=f"{fault.kind}: {what}",
        remedy=remedy,
    )


def _origin(edits: Sequence[Edit]) -> Callable[[int], int]:
    """From a place in the cleaned text to the same place in the text as it came."""
    shifts = [0, *accumulate(edit.end - edit.start - len(edit.text) for edit in edits)]
    starts = [edit.end - shift for edit, shift in zip(edits, shifts[1:], strict=True)]
    return lambda place: place + shifts[bisect_right(starts, place)]


def leaked_tags(text: str) -> tuple[Violation, ...]:
    """The tags of the machinery outside code in a text as the model wrote it: repair may hide them in a table."""
    leaks = _leaks(text) if "<" in text and "|" in text else ()
    return tuple(_violation(text, fault) for fault in leaks if fault.kind == "tag")


def _leaks(text: str) -> Iterator[Fault]:
    """Tags and JSON of the machinery outside code, and inside it what only the machinery writes."""
    if not _MAY_LEAK.search(text):
        return
    for kind, start, end in segments(text):
        patterns = {"tag": LEAKED, "json": _JSON} if kind == "text" else {"json": _MACHINE_JSON}
        for leak, pattern in patterns.items():
            yield from (Fault(leak, *match.span()) for match in pattern.finditer(text, start, end))
