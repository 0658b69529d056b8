"""What stands right before or after a number and bounds it: at least, at most, more than, less than, about."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from verification.text.lexicon import values
from verification.text.words import is_spaced

Bound = Literal["", ">=", "<=", ">", "<", "~"]


@cache
def _phrases() -> dict[str, Bound]:
    """What stands before a number and bounds it; the longer of two first: "不超过" is not "超过"."""
    found = {
        phrase: sign
        for bounds in values("bounds").values()
        for sign, listed in bounds.items()
        for phrase in listed.replace("’", "'").split("|")
    }
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


_MARKS = "*_~(,.;:"
_AFTER: tuple[tuple[Bound, str], ...] = (
    (">=", r"or (?:more|longer|above|over)|and (?:more|above)|oder mehr|ou plus|o más|atau lebih|以上|\+"),
    ("<=", r"or (?:less|fewer|below|under)|oder weniger|ou moins|o menos|atau kurang|以下|以内|以內|まで"),
    (">", r"を超え"),
    ("<", r"未満"),
)
_AFTER_PATTERN = re.compile(
    r"\s?(?:[^\W\d_]{1,12}\s?)?(?:" + "|".join(rf"(?P<a{i}>{words})" for i, (_, words) in enumerate(_AFTER)) + r")",
    re.IGNORECASE,
)
_ARTICLES = frozenset({"the", "a", "an", "der", "die", "das", "den", "les", "los", "las", "des", "total"})
_LONGEST_PHRASE = 4
_REACH = 24


def bound(text: str, start: int, end: int) -> Bound:
    """The bound that the words beside ``text[start:end]`` (a number with its unit) put on it."""
    return _before(text[max(0, start - _REACH) : start]) or _after(text, end)


def _before(lead: str) -> Bound:
    words = lead.rstrip("$€£¥ (").casefold().replace("’", "'").split()
    if words and words[-1] in _ARTICLES:
        words.pop()
    for length in range(min(_LONGEST_PHRASE, len(words)), 0, -1):
        sign = _phrases().get(" ".join(words[-length:]).strip(_MARKS))
        if sign:
            return sign
    if words and not is_spaced(words[-1]):
        return next((sign for phrase, sign in _phrases().items() if words[-1].endswith(phrase)), "")
    return ""


def _after(text: str, end: int) -> Bound:
    match = _AFTER_PATTERN.match(text, end)
    return _AFTER[int(match.lastgroup[1:])][0] if match and match.lastgroup else ""
