"""What every rule gets to see of a draft, computed once. Code is blanked out of ``prose``, so that offsets stay."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from verification.types import Claim, Draft, Repair, RuleName, Violation

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# What cannot be seen inside a word or a number makes 15 of what reads as 1 and 5.
_PARTING: Final = re.compile("(?<=[A-Za-z0-9])[\u00ad\u200b\u2060\ufeff]+(?=[A-Za-z0-9])")
_LAYOUT: Final = str.maketrans("\n\t\r", "   ")
_MAX_WORDS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A draft, its text after repair, the chunks Slack would get, the prose (code as spaces) and the claims."""

    draft: Draft
    text: str
    chunks: tuple[str, ...]
    prose: str
    claims: tuple[Claim, ...]

    def violation(self, rule: RuleName, span: tuple[int, int], detail: str, remedy: str) -> Violation:
        """An error of ``rule`` at ``span`` of the text; the words are cut to 200 characters."""
        start, end = span
        words = self.text[start : min(end, start + _MAX_WORDS)]
        return Violation(rule=rule, severity="error", start=start, end=end, words=words, detail=detail, remedy=remedy)

    def warning(self, rule: RuleName, span: tuple[int, int], detail: str, remedy: str) -> Violation:
        """Like ``violation``, as a warning."""
        return replace(self.violation(rule, span, detail, remedy), severity="warning")


def sendable(text: str) -> tuple[str, tuple[Repair, ...]]:
    """The text without what no message can carry: lone surrogates become U+FFFD, control and hidden letters go."""
    if text.translate(_LAYOUT).isprintable():  # most texts: this is fast to tell
        return text, ()
    whole, replaced = _SURROGATE.subn("\ufffd", text)
    # One after the other: a control character may stand between a letter and what is hidden.
    bare, removed = _CONTROL.subn("", whole)
    clean, parting = _PARTING.subn("", bare)
    count = replaced + removed + parting
    return clean, (Repair(kind="control", count=count),) if count else ()
