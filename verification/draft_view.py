"""What every rule gets to see of a draft, computed once. Code is blanked out of ``prose``, so that offsets stay."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from verification.types import Claim, Draft, Repair, RuleName, Violation

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# What cannot be seen inside a word or a number makes 15 of what reads as 1 and 5.
_PARTING: Final = re.compile("(?<=[A-Za-z0-9])[\u00ad\u200b\u2060\ufeff]+(?=[A-Za-z0-9])")
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
        found = self.violation(rule, span, detail, remedy)
        return Violation(
            rule=rule,
            severity="warning",
            start=found.start,
            end=found.end,
            words=found.words,
            detail=detail,
            remedy=remedy,
        )


def sendable(text: str) -> tuple[str, tuple[Repair, ...]]:
    """The text without what no message can carry: lone surrogates become U+FFFD, control and hidden letters go."""
    if _is_plain(text):
        return text, ()
    whole, replaced = _SURROGATE.subn("\ufffd", text)
    clean, removed = _CONTROL.subn("", whole)
    clean, hidden = _PARTING.subn("", clean)
    removed += hidden
    return clean, (Repair(kind="control", count=replaced + removed),) if replaced + removed else ()


def _is_plain(text: str) -> bool:
    """A fast yes for most texts: all of it can be printed, line ends and tabs aside."""
    return text.replace("\n", " ").isprintable() or text.translate(_LAYOUT).isprintable()


_LAYOUT: Final = {ord("\n"): " ", ord("\t"): " ", ord("\r"): " "}

CHECK_FAILED: Final = "The check itself failed on this text."


def failed_check(rule: RuleName) -> Violation:
    """The violation that stands for a check that could not be made: a crash is a failure, never a pass."""
    return Violation(
        rule=rule,
        severity="error",
        detail=CHECK_FAILED,
        remedy="Write the answer more simply: short sentences, plain lists.",
    )
