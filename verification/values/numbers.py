"""Quantities in text: numbers in digits or words, with unit and scale, in any spelling.

1,200 = 1.200 = 1 200 = 1200 = 1.2k, and "50 %" = half. An ambiguous 1,205 keeps both readings. Dates, times, versions
and identifiers are not quantities: the caller passes their spans as ``reserved``.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from verification.text.language import words_by_language
from verification.values.quantity_words import (
    CJK_NUMERAL,
    COUNTING,
    CURRENCIES,
    GLUED_SCALES,
    ONES,
    SCALES,
    UNITS,
    Bound,
    Unit,
    apply_exponent,
    apply_unit_power,
    fractions,
    is_number_word,
    is_span,
    read_bound,
    read_cjk_numeral,
    read_half,
    read_number_words,
    read_period,
    read_unit_alone,
    weak_words,
)

# Limits on letters, parts, words and groups keep long runs linear.
_WORD = r"[^\W\d_]{1,100}"
_TOKEN = re.compile(rf"\d+|{_WORD}(?:-{_WORD}){{0,20}}")
_MAX_WORDS = 24
# The separators of CLDR's locales: 1'200 in Switzerland, 1 200 with a narrow blank in French, 12,34,567 in India.
_NUMERAL = re.compile(
    r"(?P<grouped>\d{1,3}(?P<sep>[.,'’\u00a0\u202f ])\d{3}(?:(?P=sep)\d{3}){0,5}(?:(?!(?P=sep))[.,]\d+)?)(?!\d)"
    r"|(?P<indian>\d{1,2}(?:,\d{2})+,\d{3})(?!\d)"
    r"|(?P<fraction>\d{1,2}/\d{1,2})(?![\d/])"
    r"|(?P<plain>\d+(?:[.,]\d+)?)"
)
_FRACTION_CJK = re.compile(r"\s?分[の之]\s?(?P<top>\d{1,9})(?!\d)")
_AFTER = re.compile(rf"[ \u00a0\u202f]{{0,6}}-?(?P<word>[%％‰°€$£¥₹](?:[CF]\b)?|{_WORD}\.?(?:[-/]{_WORD}){{0,20}})")
ORDINALS = frozenset({"st", "nd", "rd", "th"})
_CENTURY = re.compile(
    r"(?:st|nd|rd|th|\.|e|er|ème)?[ -](?:century|centuries|Jahrhunderts?|siècles?|siglos?)\b|世紀|世纪", re.IGNORECASE
)
_MILLION = re.compile(r"m\b")
_CURRENCY_BEFORE = re.compile(r"(?:([$€£¥₹])|\b(USD|EUR|GBP|CHF|IDR|Rp)\.?)\s?$")
_OF = re.compile(r"\s(?:of|de|d[’'])\s?")
_A_THIRD = re.compile(r"(?<=\ba )third(?= of\b)|(?<=\bone )third(?= of\b)", re.IGNORECASE)
# "30 calendar days", "5 working days": the unit may follow an adjective.
_LATER_UNIT = re.compile(r"[ \u00a0](?P<word>[^\W\d_]{3,})")
_BINDING_WORDS = (
    "per a an of in for to each every the or and times out und pro im par por de des von o ou et y dan x more less mal"
    " fois veces kali"
)
_BINDING = frozenset(_BINDING_WORDS.split())
_TWO_WORDS = {"pour": "cent", "por": "ciento", "per": "cent"}
RANGE = re.compile(
    r"\s?(?:-|–|—|~|〜|～|to|through|bis|à|au|al?|y|and|und|et|or|oder|ou|o|u|dan|atau|hingga|sampai|至|到|から|或|か)\s?",
    re.IGNORECASE,
)
_AND = re.compile(r"\s(?:and|und|et|y|dan|&)\s", re.IGNORECASE)
_CJK_EXPRESSION = re.compile(
    rf"百分之(?P<percent>\d+(?:\.\d+)?|{CJK_NUMERAL.pattern})"
    rf"|(?P<bottom>{CJK_NUMERAL.pattern})分[の之](?P<top>{CJK_NUMERAL.pattern})"
    r"|(?P<half>半分|一半|半数)"
    rf"|(?P<numeral>{CJK_NUMERAL.pattern})"
    r"(?P<counter>[名人個个件回次台本社つ階层条項项份种種位倍割行頁页章]"
    r"|(?=[日月年時时分秒週周天小円元万億億か个個]|ユーロ|ドル|パーセント|キロ|メートル|バイト|欧元|美元|美金|日元|人民币|公里))?"
)
_NOT_NUMERALS = frozenset(
    {"十分", "一人", "一部", "一個", "一个", "一次", "一回", "一件", "一条", "一种", "一種", "一位", "一項", "一项"}
)
_SPACES = frozenset(" -\u00a0")
_MAX_DIGITS = 18  # longer ones are account numbers and keys
_DIGITS_BEHIND = 12  # digits after 百分之 are a separate token
_MAX_CJK_UNIT = 4


class Quantity(NamedTuple):
    """One number.

    ``readings`` are its values, scale included (two for an ambiguous 1,205). ``unit`` is None if the next word is not a
    known unit; ``noun`` is then that word (case-folded) or empty. ``worded`` marks a number in words, ``weak`` one that
    may not be meant as a number ("one", "third", "half"), ``century`` an ordinal ("15th century"). ``period`` is the
    minute of "600 requests per minute".
    """

    start: int
    end: int
    readings: tuple[float, ...]
    unit: Unit | None = None
    noun: str = ""
    bound: Bound = ""
    worded: bool = False
    scaled: bool = False
    weak: bool = False
    century: bool = False
    period: Unit | None = None

    def amounts(self) -> tuple[float, ...]:
        """The readings in the basic unit of the dimension."""
        factor = self.unit.factor if self.unit else 1.0
        return tuple(reading * factor for reading in self.readings)


def quantities(
    text: str, language: str | None = None, reserved: Sequence[tuple[int, int]] = ()
) -> tuple[Quantity, ...]:
    """Return the quantities of ``text`` in order. ``reserved`` spans belong to something else."""
    result: list[Quantity] = []
    occupied = bytearray(len(text))
    for start, end in reserved:
        occupied[start:end] = b"\x01" * (end - start)
    position = 0
    while token := _TOKEN.search(text, position):
        read = _read_digits if token.group()[0].isdigit() else _read_words
        quantity = None if occupied[token.start()] else read(text, token, language)
        result += [quantity] if quantity else []
        position = quantity.end if quantity else token.end()
    return tuple(_share_units(text, _join_durations(text, result)))


def _read_digits(text: str, token: re.Match[str], _language: str | None) -> Quantity | None:
    start = token.start()
    before = text[start - 1] if start else " "
    in_word = before == "_" or (before.isascii() and before.isalpha())
    if in_word or (before in ".,/" and text[start - 2 : start - 1].isdigit()):
        return None
    match = _NUMERAL.match(text, start)
    if match is None or len(match.group()) > _MAX_DIGITS:
        return None
    fraction = _FRACTION_CJK.match(text, match.end())
    if fraction and match.group().isdigit() and int(match.group()):
        value = 100 * int(fraction["top"]) / int(match.group())
        return _quantity(text, (start, fraction.end()), (value,), unit=UNITS["%"])
    readings = _numeral_readings(match)
    century = _CENTURY.match(text, match.end())
    if century and match.group().isdigit():
        return Quantity(start=start, end=century.end(), readings=readings, noun="century", century=True)
    readings, end = apply_exponent(text, match.end(), readings)
    currency = _CURRENCY_BEFORE.search(text, max(0, start - 5), start)
    unit = UNITS[(currency[1] or currency[2]).casefold()] if currency else None
    return _quantity(text, (start, end), readings, unit=unit)


def _numeral_readings(match: re.Match[str]) -> tuple[float, ...]:
    if match["fraction"]:
        top, bottom = map(int, match["fraction"].split("/"))
        return (top / bottom, float(top)) if bottom else (float(top),)
    written, separator = match.group(), match["sep"]
    if match["indian"]:
        return (float(written.replace(",", "")),)
    decimal = written.replace(",", ".")
    if not separator:
        return (float(decimal),)
    joined = float(written.replace(separator, "").replace(",", "."))
    if separator in ".," and written.count(separator) == 1 and not {".", ","} <= set(written):
        # 1.250 is never written for one and a quarter.
        readings = (joined,) if written.endswith("0") else (joined, float(decimal))
        return (float(decimal),) if written.startswith("0") else readings
    return (joined,)


def _read_words(text: str, token: re.Match[str], language: str | None) -> Quantity | None:
    """Read a number in words. In an unknown language it may support a claim, but never fails one."""
    if part := read_unit_alone(text, token.start()):
        value, unit, end = part
        bound = read_bound(text, token.start(), end)
        return Quantity(start=token.start(), end=end, readings=(value,), unit=unit, bound=bound, worded=True)
    if not token.group().isascii() and (numeral := _read_cjk(text, token)):
        return numeral
    folded = "one-third" if _A_THIRD.match(text, token.start()) else token.group().casefold()
    if folded in fractions():
        share = _quantity(text, token.span(), (fractions()[folded],), unit=UNITS["%"], worded=True)
        return share._replace(weak=True)
    head = folded.partition("-")[0]
    if is_number_word(head, language or "en"):
        return _read_run(text, token, language or "en")
    if head in weak_words():  # "one", "third": a number only before a unit, or in "within one hour"
        quantity = _quantity(text, (token.start(), token.start() + len(head)), (weak_words()[head],), worded=True)
        is_deadline = quantity.bound == "<=" and head in ONES
        counts = quantity.unit and (head in COUNTING or (is_deadline and is_span(quantity.unit)))
        return quantity._replace(weak=not counts)
    spoken = (each for each in words_by_language("numbers") if language is None and is_number_word(head, each))
    run = next((_read_run(text, token, each) for each in spoken), None)
    return run._replace(weak=True) if run else None


def _quantity(
    text: str, span: tuple[int, int], readings: tuple[float, ...], *, unit: Unit | None = None, worded: bool = False
) -> Quantity:
    start, end = span
    measured = unit is not None and unit.dimension not in CURRENCIES
    if unit and not measured and (million := _MILLION.match(text, end)):  # a small m after an amount of money
        readings, end = tuple(reading * 1e6 for reading in readings), million.end()
    half, end = read_half(text, end)
    factor, named, noun, end = (1.0, None, "", end) if measured else _read_tail(text, end)
    if named and is_span(named) and not half:
        more, after = read_half(text, end)
        following = _AFTER.match(text, after)
        if not following or following["word"].casefold() not in UNITS:  # it is another amount in "and a half day"
            half, end = more, after
    return Quantity(
        start=start,
        end=end,
        readings=tuple((reading + half) * factor for reading in readings) if half or factor != 1 else readings,
        unit=unit or named,
        noun=noun,
        bound=read_bound(text, start, end),
        worded=worded,
        scaled=factor != 1,
        period=read_period(text, start, end),
    )


def _read_tail(text: str, end: int) -> tuple[float, Unit | None, str, int]:
    """Read the words after a numeral: its scale, its unit or noun, and the end of the unit."""
    match = _AFTER.match(text, end)
    factor, end = _read_scale(match, end) if match else (1.0, end)
    if factor != 1:
        link = _OF.match(text, end)
        behind = link.end() if link else end
        match = _AFTER.match(text, behind - 1 if link and text[behind - 1] == " " else behind)
    if match is None:
        return factor, None, "", end
    word = match["word"].rstrip(".")
    unit, length = _read_unit(text, match, word)
    # In "first six weeks" the six counts the weeks, not the first.
    folded, languages = word.casefold(), words_by_language("numbers")
    binds = folded in _BINDING or any(is_number_word(folded, each) for each in languages)
    if unit is None and not binds and (later := _LATER_UNIT.match(text, match.end())):
        unit = UNITS.get(later["word"].casefold())
        unit = unit if unit and is_span(unit) else None
        length = later.end() - match.start("word")
    if unit is None:
        return factor, None, folded, end
    unit, end = apply_unit_power(text, match.start("word") + length, unit)
    return factor, unit, "", end


def _read_scale(match: re.Match[str], end: int) -> tuple[float, int]:
    """The factor of a scale word after a number ("1.2k", "3 million", "5万") and its end. 1 without one."""
    start, word = match.start("word"), match["word"]
    if start == end and word in GLUED_SCALES:
        return GLUED_SCALES[word], match.end()
    if word.rstrip(".").casefold() in SCALES:
        return SCALES[word.rstrip(".").casefold()], match.end()
    for length in (2, 1):
        if word[:length] in SCALES and not word[0].isascii():
            return SCALES[word[:length]], start + length
    return 1.0, end


def _read_unit(text: str, match: re.Match[str], word: str) -> tuple[Unit | None, int]:
    """The unit that begins at the matched word, and its length in characters."""
    folded = word.casefold()
    if folded in UNITS:
        return UNITS[folded], len(word)
    if folded in _TWO_WORDS:
        second = _AFTER.match(text, match.end())
        if second and second["word"].casefold().rstrip(".") == _TWO_WORDS[folded]:
            return UNITS["%"], second.end() - match.start("word")
    head = folded.replace("/", "-").partition("-")[0]
    if head != folded and head in UNITS:
        return UNITS[head], len(head)
    for length in range(min(_MAX_CJK_UNIT, len(word)), 0, -1) if not word[0].isascii() else ():
        if word[:length] in UNITS:
            return UNITS[word[:length]], length
    return None, 0


def _read_run(text: str, token: re.Match[str], language: str) -> Quantity | None:
    # The number of "ten-pin" and "five-day" ends at the hyphen, that of "twenty-five" after it.
    ends = [token.start() + len(token.group().split("-", 1)[0]), token.end()]
    following = _TOKEN.match(text, token.end() + 1)
    while following and text[following.start() - 1] in _SPACES and len(ends) < _MAX_WORDS:
        word = following.group().casefold().split("-", 1)[0]
        if not (is_number_word(word, language) or word in words_by_language("joiners").get(language, ())):
            break
        ends.append(following.end())
        following = _TOKEN.match(text, following.end() + 1)
    for end in reversed(ends):
        run = text[token.start() : end].casefold()
        value = read_number_words(" ".join(run.split()), language)
        if value is not None:
            return _quantity(text, (token.start(), end), (value,), worded=True)
    return None


def _read_cjk(text: str, token: re.Match[str]) -> Quantity | None:
    """Read the first number in Chinese or Japanese numerals in the token. 一 and 十分 alone are words."""
    for match in _CJK_EXPRESSION.finditer(text, token.start(), token.end() + _DIGITS_BEHIND):
        numeral = match["numeral"]
        if match.start() >= token.end():
            return None
        if not numeral:
            share = 50.0
            if percent := match["percent"]:
                share = float(percent) if percent[0].isdecimal() else read_cjk_numeral(percent)
            elif match["top"]:
                share = 100 * read_cjk_numeral(match["top"]) / (read_cjk_numeral(match["bottom"]) or 1)
            return _quantity(text, match.span(), (share,), unit=UNITS["%"], worded=True)
        end = match.end("numeral")
        if match["counter"] is not None and numeral + text[end : end + 1] not in _NOT_NUMERALS:
            return _quantity(text, match.span("numeral"), (read_cjk_numeral(numeral),), worded=True)
    return None


def _join_durations(text: str, quantities: list[Quantity]) -> list[Quantity]:
    """Join "2 hours and 35 minutes" into one number."""
    joined: list[Quantity] = []
    for quantity in quantities:
        last = joined[-1] if joined else quantity
        mine, other = last.unit, quantity.unit
        gap = text[last.end : quantity.start]
        is_longer = mine and other and mine.dimension == other.dimension == "time" and mine.factor > other.factor
        if mine and other and is_longer and (gap == " " or _AND.fullmatch(gap)):
            total = last.readings[0] * (mine.factor / other.factor) + quantity.readings[0]
            joined[-1] = quantity._replace(start=last.start, readings=(total,), bound=last.bound)
        else:
            joined.append(quantity)
    return joined


def _share_units(text: str, quantities: list[Quantity]) -> Iterator[Quantity]:
    """Share the unit of "3 to 5 days" with the first number, and the period of "1,200 euros and 5 days a year"."""
    for quantity, following in zip_longest(quantities, quantities[1:]):
        if following is None:
            yield quantity
        elif quantity.unit is None and following.unit and RANGE.fullmatch(text, quantity.end, following.start):
            yield quantity._replace(unit=following.unit, noun="", period=quantity.period or following.period)
        elif (  # "the 17th and 21st centuries"
            following.century
            and quantity.noun in ORDINALS
            and RANGE.fullmatch(text, quantity.end + len(quantity.noun), following.start)
        ):
            yield quantity._replace(noun="century", century=True)
        elif not quantity.period and _AND.fullmatch(text, quantity.end, following.start):
            yield quantity._replace(period=following.period)
        else:
            yield quantity
