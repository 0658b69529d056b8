"""What stands right before or after a number and bounds it: at least, at most, more than, less than, about."""

from __future__ import annotations

import re
from typing import Literal

Bound = Literal["", ">=", "<=", ">", "<", "~"]

_BEFORE: dict[Bound, str] = {
    ">=": "at least|no less than|no fewer than|not less than|minimum|minimum of|mindestens|wenigstens|au moins|"
    "minimum de|"
    "al menos|por lo menos|como mínimo|mínimo de|setidaknya|sekurang-kurangnya|paling sedikit",
    "<=": "at most|no more than|not more than|up to|maximum|maximum of|not exceed|not exceeding|höchstens|"
    "maximal|bis zu|"
    "nicht mehr als|au plus|au maximum|jusqu'à|jusqu’à|maximum|pas plus de|como máximo|máximo de|a lo sumo|hasta|"
    "no más de|maksimal|paling banyak|paling lama|hingga|"
    "tidak lebih dari|within|"
    "innerhalb von|innerhalb|binnen|sous|dentro de|"
    "en un plazo de|dalam waktu|dalam",
    ">": "more than|greater than|over|above|exceeds|exceeding|mehr als|über|plus de|más de|lebih dari",
    "<": "less than|fewer than|under|below|weniger als|unter|moins de|menos de|kurang dari",
    "~": "about|around|approximately|approx|circa|ca|roughly|nearly|almost|some|etwa|rund|ungefähr|fast|knapp|"
    "environ|"
    "près de|presque|aproximadamente|alrededor de|casi|unos|unas|sekitar|kira-kira|hampir",
}
_BEFORE_CJK: dict[Bound, tuple[str, ...]] = {
    ">=": ("少なくとも", "最低", "至少", "最少", "不少于"),
    "<=": ("最大", "最多", "至多", "最長", "不超过", "不超過"),
    ">": ("超过", "超過", "高于"),
    "<": ("少于", "低于"),
    "~": ("約", "およそ", "大约", "约", "大概", "近"),
}
_PHRASES: dict[str, Bound] = {phrase: sign for sign, phrases in _BEFORE.items() for phrase in phrases.split("|")}
_LAST_WORDS = frozenset(phrase.rpartition(" ")[2] for phrase in _PHRASES)
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
_AFTER_SIGNS = re.compile(r"\b(?:or|oder|ou|o|atau|and)\b|[以+未を]", re.IGNORECASE)
_ARTICLES = frozenset({"the", "a", "an", "der", "die", "das", "den", "les", "los", "las", "des", "total"})
_LONGEST_PHRASE = 4
_REACH = 24


def bound(text: str, start: int, end: int) -> Bound:
    """The bound that the words beside ``text[start:end]`` (a number with its unit) put on it."""
    return _before(text[max(0, start - _REACH) : start]) or _after(text, end)


def _before(lead: str) -> Bound:
    words = lead.rstrip("$€£¥ (").casefold().split()
    if words and words[-1] in _ARTICLES:
        words.pop()
    may_bound = bool(words) and words[-1].strip(_MARKS) in _LAST_WORDS
    for length in range(min(_LONGEST_PHRASE, len(words)), 0, -1) if may_bound else ():
        sign = _PHRASES.get(" ".join(words[-length:]).strip(_MARKS))
        if sign:
            return sign
    if words and not words[-1].isascii():
        return next((sign for sign, phrases in _BEFORE_CJK.items() if words[-1].endswith(phrases)), "")
    return ""


def _after(text: str, end: int) -> Bound:
    if not _AFTER_SIGNS.search(text, end, end + _REACH):
        return ""
    match = _AFTER_PATTERN.match(text, end)
    return _AFTER[int(match.lastgroup[1:])][0] if match and match.lastgroup else ""
