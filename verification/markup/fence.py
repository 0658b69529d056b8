"""One fenced block in the form that Slack shows: three ticks, no language, closed, on lines of its own.

The bytes of the code stay, but for quote marks and the indentation of the fence. Three ticks inside the code would end
the block in Slack, so a zero-width space parts them.
"""

from __future__ import annotations

import re

from verification.markup.edits import ZERO_WIDTH
from verification.markup.scanner import QUOTE, Fence
from verification.types import Dialect

_LANGUAGE = re.compile(r"([A-Za-z][\w+#.-]{0,30})(?:[ \t]*(?:\{.*\}|[\w-]+=.*))?$")
_NAMES = (
    "bash sh shell zsh console python py json yaml yml toml ini sql html css js javascript ts typescript go rust java"
    " c cpp csharp cs php ruby rb xml diff text txt plaintext markdown md dockerfile makefile graphql kotlin swift"
)
_KNOWN = frozenset(_NAMES.split())


def mended(text: str, fence: Fence, dialect: Dialect) -> str:
    """The fence as it should stand, with the line ends it needs round it."""
    if fence.inline and dialect == "mrkdwn" and fence.info.lower() not in _KNOWN:
        return text[fence.start : fence.end]
    body = _code(text, fence)
    ticks, info = fence.ticks, fence.info
    if dialect == "mrkdwn":
        if info and not ((body or fence.closed) and _is_language(fence)):
            body = info + ("\n" + body if body else "")
        ticks, info = "```", ""
        body = body.replace("```", f"``{ZERO_WIDTH}`")
    form = f"{ticks}{info}\n{body}\n{ticks}" if body else f"{ticks}{info}\n{ticks}"
    before = text[fence.start - 1] if fence.start else "\n"
    after = text[fence.end] if fence.end < len(text) else "\n"
    return ("" if before == "\n" else "\n") + form + ("" if after == "\n" else "\n")


def _is_language(fence: Fence) -> bool:
    """Whether the words behind the ticks name a language; where the code may begin there, only a known one does."""
    return fence.info.lower() in _KNOWN if fence.inline else bool(_LANGUAGE.fullmatch(fence.info))


def _code(text: str, fence: Fence) -> str:
    """The code without quote marks and without the fence's own indentation."""
    body = text[fence.body : fence.body_end]
    if not fence.closed:
        body = body.rstrip("\n")
    if fence.quoted:
        return "\n".join(QUOTE.sub("", line, count=1) for line in body.split("\n"))
    if not fence.indent:
        return body
    return "\n".join(line[min(fence.indent, len(line) - len(line.lstrip(" \t"))) :] for line in body.split("\n"))
