"""Decide whether a number, date or time can follow in one step from values in the sources, the question or the thread.

Such a value is doubtful, not invented: a judge or a person decides whether the step is meant. Only values from the
sentences nearest to the claim count, so that a coincidence does not excuse an invented number.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from itertools import combinations, pairwise
from typing import NamedTuple, TypeVar

from verification.evidence.evidence import MAX_VALUES, Evidence
from verification.evidence.passages import Passage
from verification.text.language import all_words, compile_pattern, words_by_language
from verification.values.amounts import is_result, is_same_kind
from verification.values.dates import Moment
from verification.values.numbers import ORDINALS, RANGE, Quantity
from verification.values.quantity_words import CURRENCIES, PERIODS, UNITS, Unit, is_span, seconds

_MAX_SENTENCES = 4  # sentences: from more of them, any small number would follow
_MAX_NUMBERS, _MAX_TIMES = 16, 24  # maximum values, because all pairs are tried
_MAX_COUNT = 12  # people count items in a list up to this length
_CALCULATION_WORDS = r"\b(?:{reckoned})|\b(?:by|um)(?= \W?\d)|{reckoned_unparted}"
_YEARS_AWAY = r"\b(?:years?|Jahre?|ans?|años?) (?:{years_away})\b|\b(?:following|next|previous) year\b"
# Words for dates counted from today, with the number of days that they may reach.
_TODAY = r"\b(?:{today})\b|{today_unparted}"
CHRISTMAS = r"(?<![\w-])(?:{christmas})\b|{christmas_unparted}"
_RELATIVE = {
    _TODAY: 2,
    r"\b(?:{relative_days})\b|{relative_days_unparted}": 2,
    r"\b(?:{relative_weeks})\b|{relative_weeks_unparted}": 14,
    r"\b(?:{relative_months})\b|{relative_months_unparted}": 62,
    r"\b(?:{relative_years})\b|{relative_years_unparted}": 731,
}
_WEEKS, _MONTH_DAYS, _MAX_DAYS_FROM_QUESTION = 14, 31, 366
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*•◦]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*\|", re.MULTILINE)
_SERIES = re.compile(r"(?:,|、|，|;)?\s*\b(?:and|or|und|oder|et|ou|y|o|dan|atau)\b\s+|[、，,;]\s*|と|和|及び|および")
_SECOND, _DAY, _YEAR, _PERCENT, _COUNT = *(UNITS[word] for word in ("second", "day", "year", "%")), Unit("count", 1)
_MONEY = tuple(Unit(currency, 1) for currency in sorted(CURRENCIES))
_UNMEASURED = frozenset({None, _COUNT})
_A_DAY, _SOME_YEAR = 86_400, 2001  # any year but a leap year
_End = TypeVar("_End", Quantity, Moment)


class _Value(NamedTuple):
    number: float
    unit: Unit | None = None


def is_derivable(quantity: Quantity, evidence: Evidence) -> bool:
    """Return True if the number is a sum, difference, product, share, count or span, or is in a range."""
    claim, near = evidence.claim, _nearby_passages(evidence)
    in_range = any(quantity in pair and is_same_kind(*pair) for pair in _ranges(claim, claim.quantities[:MAX_VALUES]))
    if in_range or quantity.century or quantity.noun in ORDINALS:
        return False
    claimed = quantity._replace(readings=quantity.readings[:1], unit=_value(quantity).unit)
    bounds = (pair for passage in near for pair in _ranges(passage, passage.quantities))
    alike = ((low.amounts(), high.amounts()) for low, high in bounds if is_same_kind(quantity, low))
    return (
        any(is_result(claimed, *result) for result in _results(quantity, evidence, near))
        or any(low < quantity.amounts() < high for low, high in alike)
        or _is_count(quantity, evidence)
    )


def is_derivable_moment(moment: Moment, evidence: Evidence) -> bool:
    """Return True if the date is in a range, or follows from another date and a span of time."""
    near = _nearby_passages(evidence)
    if any(_is_within(moment, *pair) for passage in near[:1] for pair in _ranges(passage, passage.moments)):
        return True
    asked = [other for passage in evidence.known for other in passage.moments]
    in_month = any(other.month and not other.day and moment.month == other.month for other in asked)
    if in_month or any(_is_near(moment, other, _MAX_DAYS_FROM_QUESTION) for other in asked):
        return True
    # A calendar determines the weekday of a date; no source needs to state it.
    if moment.weekday and any(_is_near(moment, other, 0) for one in evidence.cited_and_known for other in one.moments):
        return True
    # Today explains only a date that the text, its source or the question expresses in words.
    lengths = _lengths((*near, evidence.claim))
    reach = _days_in_words(evidence, lengths, in_claim=not moment.weekday)  # "next Friday" does not explain Friday
    today = [other for passage in evidence.conversation for other in passage.moments][:_MAX_TIMES]
    if any(_is_apart(moment, other, lengths) or _is_near(moment, other, reach) for other in today):
        return True
    # The claim says how far away it is: "two weeks before, so by 1 June". From two values of a source derive only
    # years, with the same day: otherwise a wrong day would fit by chance.
    said = _lengths([evidence.claim])
    origins = [(passage, other) for passage in near for other in passage.moments[:_MAX_TIMES]]
    alike = (pair for pair in origins if moment.month and (pair[1].month, pair[1].day) == (moment.month, moment.day))
    return any(_is_apart(moment, other, said) for _, other in origins) or any(
        _is_apart(moment, other, _lengths([passage])) for passage, other in alike
    )


def unexplained_words(evidence: Evidence) -> Iterator[tuple[int, int]]:
    """Yield the places of "tomorrow", "next month" or "Christmas" that no text, date or span of time explains.

    "Today" is not such a word, because other dates are counted from it.
    """
    if not any(_relative_words(evidence.claim, words) for words in (*_RELATIVE, CHRISTMAS)):
        return  # as for nearly all claims
    passages, shortest = evidence.cited_and_known, 0.25  # days: half an hour does not explain "tomorrow"
    today = [moment for passage in evidence.context for moment in passage.moments if moment.day]
    dates = [moment for passage in passages for moment in passage.moments if moment.month]
    units = (UNITS[PERIODS.get(word, word)] for word in evidence.words & {*UNITS, *PERIODS})  # "every month", "monthly"
    spans = [seconds(unit) / _A_DAY for unit in units if is_span(unit) and seconds(unit) > _A_DAY]
    spans += _days(_lengths(passages))
    anchors = [(words, days, today) for words, days in _RELATIVE.items() if today and words != _TODAY]
    for words, days, origins in (*anchors, (CHRISTMAS, 8, [Moment(start=0, end=0, month=12, day=25)])):
        if any(_relative_words(passage, words) for passage in passages):
            continue
        near = (_is_near(other, day, days) for other in dates for day in origins)
        if not any(shortest < span <= days for span in spans) and not any(near):
            yield from _relative_words(evidence.claim, words)
        shortest = days


def _relative_words(passage: Passage, words: str) -> list[tuple[int, int]]:
    """Return the places of the words. "Hier" is yesterday in French, but only here in German."""
    common = words_by_language("function_words").get(passage.language or "en", frozenset())
    return [m.span() for m in compile_pattern(words).finditer(passage.text) if m[0].casefold() not in common]


def _days(lengths: Iterable[tuple[str, float]]) -> list[float]:
    return [size / _A_DAY if kind == "time" else size * _MONTH_DAYS for kind, size in lengths]


def _days_in_words(evidence: Evidence, lengths: Iterable[tuple[str, float]], *, in_claim: bool) -> int:
    """The number of days from today that "tomorrow", "next month" or "today … within 30 days" may reach, or -1."""
    texts = [hit.text for hit in evidence.hits[:_MAX_SENTENCES]]
    texts += [passage.text for passage in (*evidence.known, *([evidence.claim] if in_claim else []))]
    days = [days for words, days in _RELATIVE.items() if any(map(compile_pattern(words).search, texts))]
    if any(moment.weekday for passage in evidence.known for moment in passage.moments):
        days.append(_WEEKS)
    if not days:
        return -1
    # Spans may add up: 30 days to decide, and 7 more to pay.
    return max(*days, min(round(sum(_days(lengths))), _MAX_DAYS_FROM_QUESTION))


def _lengths(passages: Sequence[Passage]) -> set[tuple[str, float]]:
    """The spans of time in the passages. "A year later" has no number and counts as twelve months."""
    spans = [(q.unit, q) for passage in passages for q in passage.quantities if q.unit][:_MAX_TIMES]
    lengths = {(unit.dimension, amount) for unit, span in spans if unit for amount in span.amounts()}
    a_year = any(compile_pattern(_YEARS_AWAY).search(passage.text) for passage in passages)
    return lengths | {("months", 12.0)} if a_year else lengths


def _nearby_passages(evidence: Evidence) -> list[Passage]:
    return [*(hit.passage for hit in evidence.hits[:_MAX_SENTENCES]), *evidence.conversation]


def _ranges(passage: Passage, ends: Sequence[_End]) -> Iterator[tuple[_End, _End]]:
    return (pair for pair in pairwise(ends) if RANGE.fullmatch(passage.text, pair[0].end, pair[1].start))


def _results(quantity: Quantity, evidence: Evidence, near: list[Passage]) -> Iterator[_Value]:
    claim, conversation = evidence.claim, evidence.conversation
    times = [*(hit.passage for hit in evidence.hits), *conversation, claim]
    yield from _spans([moment for passage in times for moment in passage.moments][:_MAX_TIMES])
    for cited in evidence.cited:
        yield from (span for pair in _ranges(cited.passage, cited.passage.moments) for span in _spans(pair))
    # "3h30" reads as a time of day, but in a question it may be a duration.
    lengths = [_second(moment) for passage in conversation for moment in passage.moments]
    yield from (_Value(length, _SECOND) for length in lengths if length)
    # A count is not derived from the claim's own counts: "6–7, 6–3" would excuse each other.
    claim_values = [_value(q) for q in claim.quantities if q is not quantity and (quantity.unit or q.unit)]
    near_values = [_value(other) for passage in near for other in passage.quantities if not other.weak]
    values = list(dict.fromkeys((*claim_values, *near_values)))[:_MAX_NUMBERS]
    given_values = {*claim_values, *(_value(each) for talk in conversation for each in talk.quantities)}
    # Two numbers that the claim does not mention or calculate with give any small number by chance.
    calculates = bool(claim.words & all_words("more") or compile_pattern(_CALCULATION_WORDS).search(claim.text))
    for passage in near if calculates else ():  # the sums of a sentence's values that have the same unit or none
        summands = [_value(other) for other in passage.quantities[:_MAX_NUMBERS]]
        for unit in {value.unit for value in summands}:
            alike = [value.number for value in summands if value.unit in {unit, None}]
            yield from [_Value(sum(alike), unit)] if len(alike) > 1 else []
    yield from _times_per_period(quantity, values, evidence)
    for one, other in combinations(values, 2):
        yield from _shares(one, other)
        if calculates or one in given_values or other in given_values:
            yield from _of_two(one, other)


def _times_per_period(quantity: Quantity, values: list[_Value], evidence: Evidence) -> Iterator[_Value]:
    """Yield other forms of each value, and its products with factors that need no citation.

    The factors are two ("both"), and how often a shorter span of time fits into the period.
    """
    period = seconds(quantity.period) if quantity.period else 0
    spans = (UNITS[word] for word in evidence.words & UNITS.keys() if is_span(UNITS[word]))
    factors = [period / seconds(unit) for unit in spans] if period else []
    if not (all_words("both").isdisjoint(evidence.claim.words) and all_words("pairs").isdisjoint(evidence.words)):
        factors.append(2)
    for value in values:
        yield from _of_one(value)
        if period and value.unit and is_span(value.unit) and value.number:  # every six hours is four times a day
            yield _Value(period / (value.number * seconds(value.unit)), _COUNT)
        yield from (result for factor in factors for result in _products(value, _Value(factor, _COUNT)))


def _value(quantity: Quantity) -> _Value:
    """The number in its unit. It is a count if it counts something, and has no unit if it may measure anything."""
    counts = (bool(quantity.noun) or quantity.worded) and quantity.noun not in all_words("more")
    return _Value(quantity.readings[0], quantity.unit or (_COUNT if counts else None))


def _of_one(value: _Value) -> Iterator[_Value]:
    """Yield other forms of one value: 45 pence are 0.45 pounds, and 40 % more is 1.4 times as much."""
    if value.unit == _PERCENT:
        yield _Value(100 - value.number, _PERCENT)
        yield from (_Value(start + sign * value.number / 100, _COUNT) for start, sign in ((0, 1), (1, 1), (1, -1)))
    elif value.unit in _UNMEASURED:
        yield from (_Value(value.number / 100, coin) for coin in _MONEY)
    elif value.unit in _MONEY:
        yield _Value(value.number * 100, _COUNT)


def _of_two(one: _Value, other: _Value) -> Iterator[_Value]:
    """Yield sum, difference, mean and ratio of values of the same kind, and product and quotient of others."""
    a, b = one.number, _convert(one, other)
    if b is not None:
        yield from (_Value(each, one.unit or other.unit) for each in (a + b, abs(a - b), (a + b) / 2))
        if a and b and one.unit and other.unit:
            yield from (_Value(each, _COUNT) for each in (a / b, b / a))
    if b is None or not {one.unit, other.unit}.isdisjoint(_UNMEASURED):
        yield from _products(one, other)


def _products(one: _Value, other: _Value) -> Iterator[_Value]:
    """Yield product and quotient in the unit of either value; a count takes the unit of the other."""
    a, b = one.number, other.number
    if not {a, b} & {0, 1}:
        units = {one.unit, other.unit} - _UNMEASURED or {one.unit, other.unit}
        yield from (_Value(each, unit) for unit in units for each in (a * b, a / b, b / a))


def _shares(one: _Value, other: _Value) -> Iterator[_Value]:
    """Yield one value as a percentage of the other, its growth or fall, and a percentage of another value."""
    a, b = one.number, _convert(one, other)
    if b and a and (one.unit is None) == (other.unit is None) and _PERCENT not in {one.unit, other.unit}:
        low, high = sorted((a, b))
        ratios = (low / high, high / low, (high - low) / low, 1 - low / high)
        yield from (_Value(100 * ratio, _PERCENT) for ratio in ratios)
    if _PERCENT in {one.unit, other.unit} and one.unit != other.unit:
        share, total = (one, other) if one.unit == _PERCENT else (other, one)
        parts = (share.number, 100 - share.number, 100 + share.number)
        yield from (_Value(total.number * part / 100, total.unit) for part in parts)


def _convert(one: _Value, other: _Value) -> float | None:
    """The second number converted to the unit of the first. None if they measure different things."""
    if one.unit and other.unit:
        like = one.unit.dimension == other.unit.dimension
        return other.number * other.unit.factor / one.unit.factor if like else None
    return other.number


def _spans(moments: Sequence[Moment]) -> Iterator[_Value]:
    """Yield the years, days and times between every two moments. The last day may be included."""
    for one, other in combinations(moments, 2):
        if one.year and other.year:
            yield _Value(abs(one.year - other.year), _YEAR)
        days, times = _days_between(one, other), (_second(one), _second(other))
        if days is not None:
            yield from (_Value(days, _DAY), _Value(days + 1, _DAY))
        if times[0] is not None and times[1] is not None:
            yield _Value(abs(times[0] - times[1]), _SECOND)


def _days_between(one: Moment, other: Moment) -> int | None:
    """The days between two dates, or None if one is not a real date. If one has no year, it takes the other's."""
    if one.month and one.day and other.month and other.day:
        with suppress(ValueError):
            year = one.year or other.year or _SOME_YEAR
            first = date(year, one.month, one.day)
            return abs((first - date(other.year or year, other.month, other.day)).days)
    return None


def _second(moment: Moment) -> int | None:
    return None if moment.hour is None else moment.hour * 3600 + (moment.minute or 0) * 60


def _is_apart(moment: Moment, other: Moment, lengths: set[tuple[str, float]]) -> bool:
    second, other_second, days = _second(moment), _second(other), _days_between(moment, other)
    if second is not None and other_second is not None:
        gap = second - other_second
        return any(kind == "time" and 0 in ((gap - size) % _A_DAY, (gap + size) % _A_DAY) for kind, size in lengths)
    if days is not None and ("time", days * _A_DAY) in lengths:
        return True
    years = (moment.year or 0) - (other.year or 0)
    months = (moment.month or 0) - (other.month or 0) if moment.month else 0
    return bool(moment.year) == bool(other.year) and ("months", abs(12 * years + months)) in lengths


def _is_near(moment: Moment, other: Moment, days: int) -> bool:
    try:
        day = date(other.year or moment.year or _SOME_YEAR, other.month or 0, other.day or 0)
    except ValueError:
        return False
    reached = (day + timedelta(distance) for distance in range(-days, days + 1))
    if moment.weekday is not None:
        return other.year is not None and any(each.isoweekday() == moment.weekday for each in reached)
    if moment.month and not moment.day:
        return any((each.month, moment.year or each.year) == (moment.month, each.year) for each in reached)
    apart = _days_between(moment, other)
    return apart is not None and apart <= days


def _is_within(moment: Moment, low: Moment, high: Moment) -> bool:
    """Return True if the moment is between the two, even across midnight or the end of the week or the year."""
    seconds_of, weekdays = [*map(_second, (moment, low, high))], [each.weekday for each in (moment, low, high)]
    days = [each.month * 31 + each.day if each.month and each.day else None for each in (moment, low, high)]
    for at, first, last in (seconds_of, days, weekdays):
        if at is not None and first is not None and last is not None:
            return first < at < last if first <= last else at > first or at < last
    return False


def _is_count(quantity: Quantity, evidence: Evidence) -> bool:
    """Return True for a small whole number that counts a list or a series in a cited source."""
    value = quantity.readings[0]
    if quantity.unit or not (1 < value <= _MAX_COUNT and value.is_integer()):
        return False
    listed = [len(_LIST_MARK.findall(cited.passage.text)) for cited in evidence.cited]
    listed += [len(_ROW.findall(cited.passage.text)) - 2 for cited in evidence.cited]  # without header and rule
    series = (_SERIES.split(hit.text) for hit in evidence.hits[:_MAX_SENTENCES])
    return value in listed or any(sum(1 for part in parts if part.strip()) == value for parts in series)
