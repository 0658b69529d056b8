"""Whether a claim is, word for word, a whole sentence of a source: nothing can then speak against it.

Promises: says yes only for the same letters between the same bounds, from where a sentence or a line begins to where
it ends; a sentence that asks is never one. In doubt it says no, and the claim is looked at closely.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from verification.passages import is_broken

_CITED: Final = re.compile(r"\s*\[\d{1,12}(?:\s*[,;–-]\s*\d{1,12})*\]")
_BEFORE: Final = re.compile(r"(?:\A|\n|[.!?][\"”’)]?\s+|[。！？]\s*)(?:[ \t]*(?:[-*•+–]|\d{1,3}[.)])[ \t]+)?\Z")
_BEHIND: Final = re.compile(r"\s*(?:\Z|\n(?![ \t]*[a-zà-ÿ])|[。！]|[.!](?=\s+[^\sa-zà-ÿ]|\s*\Z))")
_MARKS: Final = " \t*_~"
_LEAST: Final = 8
_LOOK_BACK: Final = 24
_TRIES: Final = 4


def is_recited(claim: str, texts: Iterable[str]) -> bool:
    """Whether the claim, its citations and outer marks aside, is a sentence of one of the texts."""
    words = _CITED.sub("", claim) if "[" in claim else claim
    words = words.lstrip(_MARKS).rstrip(f"{_MARKS}.。")
    return (
        len(words) >= _LEAST and "?" not in words and "？" not in words and any(_holds(text, words) for text in texts)
    )


def _holds(text: str, words: str) -> bool:
    at = text.find(words)
    for _ in range(_TRIES):
        if at < 0:
            return False
        if _begins(text, at) and _ends(text, at + len(words)):
            return True
        at = text.find(words, at + 1)
    return False


def _begins(text: str, at: int) -> bool:
    lead = text[max(0, at - _LOOK_BACK) : at]
    if at > _LOOK_BACK:
        lead = f" {lead[1:]}"
    match = _BEFORE.search(lead)
    if match is None or (match.start() == 0 and at > _LOOK_BACK):
        return False
    # A line may go on from the one before, and a date or an abbreviation ends no sentence.
    return not (text[at].islower() and match[0].startswith("\n")) and not is_broken(text, 0, at)


def _ends(text: str, end: int) -> bool:
    match = _BEHIND.match(text, end)
    return match is not None and not (match[0].endswith(".") and is_broken(text, 0, match.end()))
