"""Turns an earlier answer into text for a model: plain Markdown without entities and citations."""

import re
from typing import Final

from verification.markup.scanner import fences, segments
from verification.markup.tables import drawn_rows, is_drawn
from verification.rules.citations import citations

_LINKED: Final = re.compile(r" ?\[\d{1,9}\] \(https?://[^\s()]+\)")  # as Slack's own text of an answer has a citation
_IN_CELL: Final = re.compile(r" ?\[\d{1,9}\]")
_BOLD: Final = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])")
_BULLET: Final = re.compile(r"^([ \t\u2003]*)• ", re.MULTILINE)
_ENTITIES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def as_markdown(text: str) -> str:
    """Return the mrkdwn of an answer as Markdown, without citations: numbers mean different sources in each turn."""
    text = _LINKED.sub("", text)
    for citation in reversed(citations(text)):
        text = text[: citation.start].rstrip(" ") + text[citation.end :]
    for fence in reversed(fences(text)):
        if is_drawn(text[fence.body : fence.body_end]):
            rows = drawn_rows(_IN_CELL.sub("", text[fence.body : fence.body_end]).strip("\n"))
            head, *body = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
            table = "\n".join([head, "|---" * len(rows[0]) + "|", *body])
            text = text[: fence.start] + table + text[fence.end :]
    return "".join(_to_markdown(text[segment.start : segment.end], segment.kind) for segment in segments(text))


def _to_markdown(part: str, kind: str) -> str:
    """Convert a segment: text, code or a token. Code stays as it is."""
    if kind not in {"text", "token"}:
        return part
    if kind == "token":
        target, _, label = part[1:-1].partition("|")
        part = f"[{label}]({target})" if label else part
    else:
        part = _BULLET.sub(r"\1- ", _BOLD.sub(r"**\1**", part)).replace("\u200b", "")
    for entity, character in _ENTITIES:
        part = part.replace(entity, character)
    return part
