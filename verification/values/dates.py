"""Dates and times of day in the usual spellings of en, de, fr, es, id, ja, zh and ISO 8601.

A ``Moment`` has only what is written (a missing year stays missing), and an ambiguous 03/04/2021 gives both readings.
Relative dates ("next Friday") are never resolved. ``WEAK`` words have other meanings and count only next to a day or a
year.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from verification.text.language import all_words, values_by_language
from verification.values.quantity_words import UNITS, is_span


def _numbered_words(key: str) -> dict[str, int]:
    """The words of the languages with their number, counted from 1."""
    rows = (row for listed in values_by_language(key).values() for row in enumerate(listed, start=1))
    return {word: number for number, alike in rows for word in alike.split()}


MONTHS: dict[str, int] = _numbered_words("months")
WEEKDAYS: dict[str, int] = _numbered_words("weekdays")
_WEEKEND = 8
WEEKDAYS |= dict.fromkeys(
    ("week-end", "week-ends", "fin de semana", "fines de semana", "akhir pekan", "akhir minggu"), _WEEKEND
)
WEAK: frozenset[str] = all_words("weak_months")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One date or time expression. Missing parts are None; ``hour`` is 0 to 23, ``weekday`` 1 is Monday."""

    start: int
    end: int
    year: int | None = None
    month: int | None = None
    day: int | None = None
    hour: int | None = None
    minute: int | None = None
    weekday: int | None = None
    half_known: bool = True  # False for "at 2:30", which may be morning or afternoon
    decade: bool = False

    @property
    def is_year(self) -> bool:
        """A year alone, or a decade."""
        return self.year is not None and self.month is None


# A run of digits or letters, or a weekend of two words. The patterns below are tried only at its start.
_TOKEN = re.compile(r"\d+|(?i:week-ends?|fin(?:es)? de semana|akhir (?:pekan|minggu))\b|[^\W\d_]+")
_SPELLED_MONTH = r"(?P<month>[^\W\d_]{3,10})\b\.?"
_GLUED = re.compile(r"(?<=[a-z])[A-Z][a-z]+$")
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?:1\d{3}|2[0-2]\d{2})"
_HOURS, _NOON, _MONTHS = 24, 12, 12
_SHORT_YEAR_DIGITS = 2
_PIVOT = 70  # 69 is 2069, 70 is 1970
_TH = r"(?:st|nd|rd|th|er|º|\.)?"

# ISO 8601, with a blank for the T as in RFC 3339, and with other common separators. "1965-66" is a span of years.
_ISO = re.compile(
    rf"(?P<year>{_YEAR})(?P<sep>[-/.])(?P<month>1[0-2]|0?[1-9])(?:(?P=sep)(?P<day>{_DAY})|(?<=-\d\d))(?![\d/-]|\.\d)"
    r"(?:[T ](?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)
_CJK_DATE = re.compile(
    rf"(?:(?P<year>\d{{4}})\s?年(?!間))?(?:\s?(?P<month>1[0-2]|0?[1-9])\s?月(?!間)(?:\s?(?P<day>{_DAY})\s?[日号號](?!間))?)?"
)
_NUMERIC = re.compile(rf"(?P<a>{_DAY})(?P<sep>[./-])(?P<b>{_DAY})(?P=sep)(?P<year>\d{{4}}|\d{{2}})(?![\d/-]|\.\d)")
_DOTTED = re.compile(rf"(?P<day>{_DAY})\.\s?(?P<month>1[0-2]|0?[1-9])\.(?!\d)")
_DAY_MONTH = re.compile(
    rf"(?P<day>{_DAY}){_TH}(?:\s?(?:[-–]|to|bis|und|and|au|et|al|y|sampai)\s?(?P<last>{_DAY}){_TH})?"
    rf"(?:\s+(?:(?:(?<=[dht]\s)of|del?)\s+|d[’']\s*)|\s?[-–]\s?|\s+){_SPELLED_MONTH}"
    rf"(?:(?:\s*,?\s+|\s+(?:de|del|of)\s+|[-–])(?P<year>{_YEAR})\b(?!\s?%))?",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"{_SPELLED_MONTH}\s+(?:the\s+)?(?P<day>{_DAY})(?:st|nd|rd|th)?\b(?![.,]?\d|:|\s?[ap]\.?m|\s?%)"
    rf"(?:\s?[-–]\s?(?P<last>{_DAY})(?:st|nd|rd|th)?\b)?(?:\s*,?\s+(?:of\s+)?(?P<year>{_YEAR})\b)?",
    re.IGNORECASE,
)
_MONTH_YEAR = re.compile(
    rf"{_SPELLED_MONTH}(?:,?\s+(?:of\s+|de\s+|del\s+)?(?P<year>{_YEAR})|(?:\s?['’]|-)(?P<short>\d\d))\b", re.IGNORECASE
)
_SHORT_YEAR = re.compile(r"(?<![^\s(]['’])\d\d(?![\w'’]|[.,:/]\d)")
_YEARS = re.compile(r"(?P<first>1[5-9]\d{2}|20\d{2})[-–/](?P<last>\d{2})(?![\w/–-]|[.,:]\d)")
_YEAR_ALONE = re.compile(r"(?P<year>1[5-9]\d{2}|20\d{2})(?P<s>['’]?s\b)?(?!\w|[.,:/]\d|\s?-?\s?[%€$£°])")

_CLOCK = re.compile(
    r"(?P<hour>\d{1,2})(?:"
    r"\s?[時点點](?!間)(?:\s?(?P<cjk_minute>\d{1,2})\s?分|(?P<half>半))?"
    r"|(?:[:.](?P<minute>[0-5]\d))?\s?(?P<ap>[ap])\.?\s?m\b\.?"
    r"|(?:[:.](?P<de_minute>[0-5]\d))?\s?Uhr(?:\s(?P<de_after>[0-5]\d)\b(?!\s?%))?"
    r"|\s?h\s?(?P<fr_minute>[0-5]\d)\b(?!\s?min)"
    r"|:(?P<plain_minute>[0-5]\d)(?::[0-5]\d)?(?![\d:])"
    r"|\s?(?P<oclock>o['’]clock)"
    r")",
    re.IGNORECASE,
)
# With a time zone, hours are in 24-hour notation.
_ZONE = re.compile(r"\s?\(?(?:UTC|GMT|Z|CES?T|MES?Z|WIB|JST)\b")
_INDONESIAN_CLOCK = re.compile(r"(?P<hour>\d{1,2})(?:[.:](?P<minute>[0-5]\d))?")
_NEXT_WORD = re.compile(r"\s?([^\W\d_]{2,}[²³]?)")
_CJK_HALF = re.compile(r"(午前|午後|上午|下午|晚上|早上)\s?$")
_AFTERNOON = frozenset({"午後", "下午", "晚上"})
_NAMED_TIMES = {"noon": 12, "midday": 12, "midi": 12, "mediodía": 12, "mittags": 12, "正午": 12, "中午": 12}
_NAMED_TIMES |= dict.fromkeys(("midnight", "mitternacht", "minuit", "medianoche", "午夜"), 0)
_CJK_WORDS = re.compile(
    "|".join(word for word in sorted((*WEEKDAYS, *_NAMED_TIMES), key=len, reverse=True) if not "a" <= word[0] <= "ÿ")
)
_GLUE = frozenset("-/.:,$€£¥#_")


def moments(text: str) -> tuple[Moment, ...]:
    """The dates, times, years, months and days of the week written in ``text``, in order of their start."""
    result: list[Moment] = []
    position = 0
    while token := _TOKEN.search(text, position):
        is_number = token.group()[0].isdigit()
        readings = _read_digits(text, token) if is_number else tuple(_read_word(text, token))
        result += readings
        position = readings[-1].end if readings else token.end()
    return tuple(result)


def _read_digits(text: str, token: re.Match[str]) -> tuple[Moment, ...]:
    """Read a date at a run of digits. Digits glued to a number or a word are not a date."""
    start, end = token.span()
    before = text[start - 1] if start else " "
    if before in "$€£¥#_" or (before.isascii() and before.isalpha()):
        return ()
    glued = before in _GLUE and start > 1 and text[start - 2].isalnum()
    if glued and before not in "-/":
        return ()
    for read in _READERS.get(end - start, ()):
        readings = tuple(read(text, start)) if not glued or read in {_read_clock, _read_year} else ()
        if readings:
            return readings
    return ()


def _read_named_parts(text: str, start: int, patterns: Sequence[re.Pattern[str]] = (_ISO, _CJK_DATE)) -> list[Moment]:
    """Read a date from a pattern whose groups are named after the fields of ``Moment``."""
    match = next((match for pattern in patterns if (match := pattern.match(text, start)) and match.group()), None)
    if match is None:
        return []
    groups = match.groupdict() | {"sep": None}
    parts: dict[str, Any] = {part: int(digits) for part, digits in groups.items() if digits}
    return [Moment(start=match.start(), end=match.end(), **parts)]


def _read_numeric(text: str, start: int) -> Iterator[Moment]:
    """Read day first and, if possible, month first as well."""
    match = _NUMERIC.match(text, start)
    if not match:
        return
    first, second, year = int(match["a"]), int(match["b"]), _full_year(match["year"])
    if second <= _MONTHS:
        yield Moment(start=start, end=match.end(), year=year, month=second, day=first)
    if first <= _MONTHS and match["sep"] != "." and first != second:
        yield Moment(start=start, end=match.end(), year=year, month=first, day=second)


def _full_year(digits: str) -> int:
    year = int(digits)
    return year if len(digits) > _SHORT_YEAR_DIGITS else year + (2000 if year < _PIVOT else 1900)


def _read_day_and_month(text: str, start: int, pattern: re.Pattern[str] = _DAY_MONTH) -> Iterator[Moment]:
    """Read a day, or two, with a spelled month. "3 may" and "2 des" in lower case without a year are rarely dates."""
    match = pattern.match(text, start)
    month = MONTHS.get(match["month"].casefold()) if match else None
    if match and month and (match["year"] or match["month"] not in {"may", "march", "mar", "des", "set"}):
        year = int(match["year"]) if match["year"] else None
        for day in filter(None, (match["day"], match["last"])):
            yield Moment(start=match.start(), end=match.end(), year=year, month=month, day=int(day))


def _read_clock(text: str, start: int) -> Iterator[Moment]:
    match = _CLOCK.match(text, start)
    if not match and text[max(0, start - 6) : start].casefold().endswith(("pukul ", " jam ")):
        match = _INDONESIAN_CLOCK.match(text, start)
    if not match or int(match["hour"]) > _HOURS:
        return
    groups = match.groupdict()
    minute = next((value for name, value in groups.items() if name.endswith(("minute", "after")) and value), "0")
    half = _CJK_HALF.search(text, start - 3, start)
    letter = (groups.get("ap") or "").casefold()
    hour = int(match["hour"])
    half_known = half or letter or hour > _NOON or match["hour"].startswith("0") or "Uhr" in match.group()
    if hour == _NOON and letter == "a":
        hour = 0
    elif hour < _NOON and (letter == "p" or (half and half[1] in _AFTERNOON)):
        hour += _NOON
    yield Moment(
        start=start,
        end=match.end(),
        hour=hour % _HOURS,
        minute=30 if groups.get("half") else int(minute),
        half_known=bool(half_known or _ZONE.match(text, match.end())),
    )


def _read_years(text: str, start: int) -> Iterator[Moment]:
    """Read both years of the season "1988/89"."""
    match = _YEARS.match(text, start)
    if match and (int(match["first"]) + 1) % 100 == int(match["last"]):
        year = int(match["first"])
        yield Moment(start=start, end=match.end("first"), year=year)
        yield Moment(start=match.start("last"), end=match.end(), year=year + 1)


def _read_year(text: str, start: int) -> Iterator[Moment]:
    match = _YEAR_ALONE.match(text, start)
    word = _NEXT_WORD.match(text, match.end()) if match else None
    unit = UNITS.get(word[1].casefold()) if word else None
    if match and (unit is None or is_span(unit)):  # matches "2024 year-end", but not 1500 MB or 1800 Euro
        yield Moment(start=start, end=match.end(), year=int(match["year"]), decade=bool(match["s"]))


def _read_short_year(text: str, start: int) -> Iterator[Moment]:
    """Read "'27" as 2027, but not a number in quotation marks."""
    if text[max(0, start - 1) : start] in {"'", "’"} and (match := _SHORT_YEAR.match(text, start)):
        yield Moment(start=start, end=match.end(), year=_full_year(match.group()))


def _read_word(text: str, token: re.Match[str]) -> Iterator[Moment]:
    """Read a month with its day or year, a month alone, a weekday, or a named time of day."""
    word = token.group().casefold()
    start, end = token.span()
    glued = _GLUED.search(token.group())  # "SoccerMay 5"
    if word in MONTHS:
        yield from _read_month(text, start, token.group())
    elif glued and glued.group().casefold() in MONTHS:
        yield from (moment for moment in _read_month(text, start + glued.start(), glued.group()) if moment.day)
    elif word in WEEKDAYS or word in _NAMED_TIMES:
        yield from _read_named_time(word, start, end)
    elif not word.isascii():
        for match in _CJK_WORDS.finditer(text, start, end):
            yield from _read_named_time(match.group(), *match.span())


def _read_named_time(word: str, start: int, end: int) -> Iterator[Moment]:
    """Read a named time of day, a day of the week, or the weekend as both its days."""
    if word in _NAMED_TIMES:
        yield Moment(start=start, end=end, hour=_NAMED_TIMES[word], minute=0)
    else:
        for weekday in (6, 7) if WEEKDAYS[word] == _WEEKEND else (WEEKDAYS[word],):
            yield Moment(start=start, end=end, weekday=weekday)


def _read_month(text: str, start: int, word: str) -> Iterator[Moment]:
    month = MONTHS[word.casefold()]
    if days := [*_read_day_and_month(text, start, _MONTH_DAY)]:
        yield from days
    elif match := _MONTH_YEAR.match(text, start):
        yield Moment(start=start, end=match.end(), year=_full_year(match["year"] or match["short"]), month=month)
    elif word.casefold() not in WEAK or (word in {"May", "March"} and start > 0):
        yield Moment(start=start, end=start + len(word), month=month)


_DOTTED_READER = partial(_read_named_parts, patterns=[_DOTTED])
_SHORT = (_read_named_parts, _read_numeric, _read_day_and_month, _read_clock, _DOTTED_READER, _read_short_year)
_READERS: Mapping[int, Sequence[Callable[[str, int], Iterable[Moment]]]] = {
    1: _SHORT,
    2: _SHORT,
    4: (_read_named_parts, _read_years, _read_year),
}
"""Formats that can begin with a run of this many digits, in the order in which they are tried."""


def agrees(claim: Moment, known: Moment) -> bool:
    """Return True if ``known`` has everything that ``claim`` says. A missing year is not a contradiction."""
    if claim.weekday is not None:
        return claim.weekday == known.weekday
    if claim.hour is not None and claim.month is None:
        return _is_same_time(claim, known)
    if claim.is_year:
        same_decade = claim.decade and (known.year or 0) // 10 == (claim.year or 0) // 10
        return known.year is not None and (known.year == claim.year or same_decade)
    parts = ((claim.month, known.month), (claim.day, known.day))
    same_date = all(mine is None or mine == theirs for mine, theirs in parts)
    same_year = claim.year is None or known.year is None or claim.year == known.year
    return same_date and same_year and (claim.hour is None or _is_same_time(claim, known))


def _is_same_time(claim: Moment, known: Moment) -> bool:
    if claim.hour is None or known.hour is None or (claim.minute or 0) != (known.minute or 0):
        return False
    # "2:30" may be in the afternoon. "14:30" and "2:30 pm" have one meaning.
    either_open = not (claim.half_known and known.half_known)
    return claim.hour == known.hour or (either_open and claim.hour % 12 == known.hour % 12)
