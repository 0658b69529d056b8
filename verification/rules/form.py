"""The form rules: ``no_markdown_bold``, ``no_blockquotes`` and the ``mrkdwn`` family.

They report the place of everything that ``mrkdwn.repair`` would repair, and also faults that are never repaired: tags
and JSON that leaked from the machinery, and a text longer than Slack accepts.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from verification.markup.blocks import survey
from verification.markup.chunks import CHUNK_LIMITS
from verification.markup.edits import FormFault, apply_edits
from verification.markup.inline import LEAKED_TAG, LEAKED_TAGS
from verification.markup.mrkdwn import find_control_characters, is_serialised
from verification.markup.scanner import segments
from verification.text.language import load_table
from verification.types import Dialect, RuleName, Violation

_RULES: dict[str, RuleName] = {"bold": "no_markdown_bold", "quote": "no_blockquotes"}
# Repair improves these, but Slack shows them well enough: they are not violations.
_POLISH = frozenset({"list", "backslash", "code", "line end"})
_MAY_LEAK = re.compile(r"<(?!https?://)|&lt;|\{")
_ESCAPED_TAG = re.compile(rf"&lt;/?(?:{'|'.join(LEAKED_TAGS)})(?:\s[^<>\n]{{0,200}}?)?&gt;", re.IGNORECASE)
_JSON = re.compile(r"\{\s*\"[\w .-]{1,60}\"\s*:")
# A user may ask for JSON in a code block. Only JSON of the machinery is a leak there.
_MACHINE_JSON = re.compile(
    r"\{\s*\"action\"\s*:\s*\"(?:respond|complete|finish_step|ask_user|use_tool|call_tool)\""
    r"|\{\s*\"(?:tool|name)\"\s*:\s*\"[^\"\n]{1,60}\"\s*,\s*\"(?:input|arguments|parameters)\"\s*:\s*\{"
    r"|\{\s*\"(?:thought|thinking|reasoning)\"\s*:"
)
_LEAKS_IN_TEXT = (("tag", LEAKED_TAG), ("tag", _ESCAPED_TAG), ("json", _JSON))
_LEAKS_IN_CODE = (("json", _MACHINE_JSON),)


def violations(text: str, dialect: Dialect = "mrkdwn", *, limit: int = CHUNK_LIMITS["mrkdwn"]) -> tuple[Violation, ...]:
    """Return the faults in form, in order of place. ``limit`` applies to one chunk, in characters. 0 means no limit."""
    edits, faults = find_control_characters(text)
    clean = apply_edits(text, edits)
    # Places in the clean text, moved to those in the original one.
    shifts = [0, *accumulate(edit.end - edit.start - len(edit.text) for edit in edits)]
    starts = [edit.end - shift for edit, shift in zip(edits, shifts[1:], strict=True)]
    for kind, *span in (*survey(clean, dialect).faults, *_leaks(clean)):
        faults.append(FormFault(kind, *(place + shifts[bisect_right(starts, place)] for place in span)))
    reported = [each for each in faults if each.kind not in _POLISH]
    if limit and len(text) > limit:
        reported.append(FormFault("length", limit, len(text)))
    reported.sort(key=lambda fault: (fault.start, fault.end))
    return tuple(_violation(text, fault) for fault in reported)


def _violation(text: str, fault: FormFault) -> Violation:
    what, remedy = load_table(__file__)[fault.kind]
    rule, span = _RULES.get(fault.kind, "mrkdwn"), (fault.start, fault.end)
    return Violation.found_in(text, span, rule, f"{fault.kind}: {what}", remedy)


def leaked_tags(text: str) -> tuple[Violation, ...]:
    """Return machinery tags outside code in the model's own text, because repair may hide them in a table."""
    leaks = _leaks(text) if "<" in text and "|" in text else ()
    return tuple(_violation(text, fault) for fault in leaks if fault.kind == "tag")


def _leaks(text: str) -> Iterator[FormFault]:
    """Yield the machinery's tags and JSON outside code, and inside code only JSON that no user would ask for."""
    if is_serialised(text):
        yield FormFault("json", 0, len(text))
    if not _MAY_LEAK.search(text):
        return
    for kind, start, end in segments(text):
        for leak, pattern in _LEAKS_IN_TEXT if kind == "text" else _LEAKS_IN_CODE:
            yield from (FormFault(leak, *match.span()) for match in pattern.finditer(text, start, end))
