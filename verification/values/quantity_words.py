"""The words of a quantity: numbers in words, units, powers, bounds ("at least"), and the period of a rate.

The words are data, in ``quantity_words.toml`` and in the languages' files. ``UNITS`` maps a written unit (case-folded)
to its dimension and its factor to that dimension's basic unit. ``SCALES`` maps a scale word to its factor. Articles
that also mean one ("a", "ein", "un") are not numbers here. A fraction counts only right before its unit.
"""

import re
from functools import cache, lru_cache
from typing import Literal, NamedTuple
from unicodedata import numeric

from text_to_num import text2num  # type: ignore[import-untyped]  # ships no types

from verification.text.language import compile_pattern, load_table, values_by_language, words_by_language

Bound = Literal["", ">=", "<=", ">", "<", "~"]


class Unit(NamedTuple):
    """A unit: ``dimension`` names what is measured, ``factor`` is its size in the dimension's basic unit."""

    dimension: str
    factor: float


_DATA = load_table(__file__)
OTHER_COINS = frozenset(_DATA["money"]["other"].split())
"""Words for money that are not in ``CURRENCIES`` or may also be a weight: such an amount is not in euros."""
HUNDREDTHS = frozenset(_DATA["coins"]["words"].split())
_MONEY: dict[str, str] = {currency: words for currency, words in _DATA["money"].items() if currency != "other"}
CURRENCIES = frozenset(_MONEY)
UNITS: dict[str, Unit] = {
    word: Unit(dimension, float(factor))
    for dimension, family in _DATA["units"].items()
    for factor, words in family.items()
    for word in words.split()
} | {word: Unit(currency, 1) for currency, words in _MONEY.items() for word in words.split()}
SCALES: dict[str, float] = {word: float(factor) for factor, words in _DATA["scales"].items() for word in words.split()}
# Capital letters are scales only right after a number: "1.2M", "3B". Small "m" and "b" are metres and bytes.
GLUED_SCALES: dict[str, float] = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "bn": 1e9, "mn": 1e6}

_BASES = frozenset({2.0, 10.0})  # after any other number a raised digit marks a footnote
_MAX_EXPONENT = 40
_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_PLAIN = str.maketrans(f"⁻{_DIGITS}", "-0123456789")
_EXPONENT = re.compile(rf"(?:⁻?[{_DIGITS}]{{1,2}}|\^-?\d{{1,2}}(?!\d))")
_SQUARE = re.compile(r"²|2(?![\d.,]*\d|\w)|\s(?:carrés?|cuadrados?|persegi)\b", re.IGNORECASE)
_CUBE = re.compile(r"³|3(?![\d.,]*\d|\w)|\s(?:cubes?|cúbicos?|kubik)\b", re.IGNORECASE)

# "1½", "two and a half", "deux heures et demie". 10月半ば is the middle of October, and 2个半天 are two half days.
_HALF = re.compile(
    r"\s?([¼½¾⅓⅔⅛⅜⅝⅞])|[个個]?半(?![ば数期額年天日价價场場成])"
    r"|[\s-](?:and[\s-]a[\s-]half|und\seine?n?\shalbe[ns]?|et\sdemie?|y\smedi[oa]|setengah)(?![^\W\d_])",
    re.IGNORECASE,
)

# "a second" is a time only if no noun follows.
_ENDS_THERE = r"(?=\s*(?:$|[.,;:!?)\[|]|(?:are|is|and|or|at|on|in|with)\b))"
_ADVERB = r"hourly|daily|weekly|monthly|quarterly|yearly|annually|täglich|wöchentlich|monatlich|jährlich"
# "600 requests per minute", "12 a day". Not an ordinal ("a second try") or a date ("a year ago").
_RATE = (
    r"(?:\s(?!(?:per|pro|par|por|an?|each|every|in|im|the|and|or|for|to|of)\b)[^\W\d_]+){0,2}"
    r"(?:\s?/\s?(?P<unit>{periods}|s|min|h|d)\b"
    r"|\s(?:per|an?|each|every|pro|je|im|in der|am|par|à la|al|a la|por|cada|setiap)"
    rf"\s(?P<every>(?:{{periods}}|night|nacht|nuit|noche|malam))(?<!\san second)(?:(?<!\sa second)|{_ENDS_THERE})\b"
    r"(?!\s(?:\d{4}|ago|later|earlier|before|after))"
    rf"|\s(?P<adverb>{_ADVERB})\b)"
)
PERIODS: dict[str, str] = {word: unit for unit, words in _DATA["periods"].items() for word in words.split()}
_ADVERB_BEFORE = re.compile(rf"\b({_ADVERB})\s$", re.IGNORECASE)
_MAX_ADVERB_LEAD = 13  # length of the longest adverb, with the blank after it and the sign before it
_MONTH = 30.4375 * 86_400  # seconds: a twelfth of an average year

_EDGE = "*_~(,.;:"
_AFTER: dict[str, Bound] = {
    r"or (?:more|longer|above|over)|and (?:more|above)|oder mehr|ou plus|o más|atau lebih|以上|\+": ">=",
    r"or (?:less|fewer|below|under)|oder weniger|ou moins|o menos|atau kurang|以下|以内|以內|まで": "<=",
    r"を超え": ">",
    r"未満": "<",
}
_AFTER_PATTERN = re.compile(rf"\s?(?:[^\W\d_]{{1,12}}\s?)?(?:({')|('.join(_AFTER)}))", re.IGNORECASE)
_ARTICLES = frozenset({"the", "a", "an", "der", "die", "das", "den", "les", "los", "las", "des", "total"})
_MAX_PHRASE_WORDS = 4
_MAX_LEAD = 24
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")  # Chinese and Japanese


def apply_exponent(text: str, end: int, readings: tuple[float, ...]) -> tuple[tuple[float, ...], int]:
    """Apply a written power to the readings of a number that ends at ``end``. Also return the power's end."""
    match = _EXPONENT.match(text, end) if _BASES.issuperset(readings) else None
    exponent = int(match.group().lstrip("^").translate(_PLAIN)) if match else 0
    if match is None or abs(exponent) > _MAX_EXPONENT:
        return readings, end
    return tuple(reading**exponent for reading in readings), match.end()


def read_half(text: str, end: int) -> tuple[float, int]:
    """Read the fraction that follows a number or its unit, and its end; 0 without one."""
    match = _HALF.match(text, end)
    return (numeric(match[1]) if match[1] else 0.5, match.end()) if match else (0.0, end)


def apply_unit_power(text: str, end: int, unit: Unit) -> tuple[Unit, int]:
    """Turn the unit that ends at ``end`` into a square or cube if it is written as one. Also return its end."""
    for power, pattern in ((2, _SQUARE), (3, _CUBE)):
        if unit.dimension == "length" and (match := pattern.match(text, end)):
            return Unit(f"length {power}", unit.factor**power), match.end()
    return unit, end


def is_span(unit: Unit) -> bool:
    """Return True if a unit measures time."""
    return unit.dimension in {"time", "months"}


def seconds(period: Unit) -> float:
    """The length of a period. Months have their average length."""
    return period.factor * (_MONTH if period.dimension == "months" else 1.0)


def read_period(text: str, start: int, end: int) -> Unit | None:
    """The period of the amount at this place: "25 euros a month", "monatlich 25 Euro"."""
    if match := compile_pattern(_RATE).match(text, end):
        word = (match["unit"] or match["every"] or match["adverb"]).casefold()
        return UNITS.get(PERIODS.get(word, word))
    before = _ADVERB_BEFORE.search(text, max(0, start - _MAX_ADVERB_LEAD), start)
    return UNITS[PERIODS[before[1].casefold()]] if before else None


def rate_end(text: str, end: int) -> int:
    """The end of the words for the period after an amount, or ``end`` without any."""
    match = compile_pattern(_RATE).match(text, end)
    return match.end() if match else end


@cache
def _bound_phrases() -> dict[str, Bound]:
    """Phrases before a number that make it a bound, longest first: "不超过" is not "超过"."""
    listed = [pair for bounds in values_by_language("bounds").values() for pair in bounds.items()]
    phrases = {phrase: sign for sign, words in listed for phrase in words.replace("’", "'").split("|")}
    return dict(sorted(phrases.items(), key=lambda pair: -len(pair[0])))


def read_bound(text: str, start: int, end: int) -> Bound:
    """The bound that the words around ``text[start:end]``, a number with its unit, put on it."""
    words = text[max(0, start - _MAX_LEAD) : start].rstrip("$€£¥ (").casefold().replace("’", "'").split()
    if words and words[-1] in _ARTICLES:
        words.pop()
    for length in range(min(_MAX_PHRASE_WORDS, len(words)), 0, -1):
        if sign := _bound_phrases().get(" ".join(words[-length:]).strip(_EDGE)):
            return sign
    if words and _UNSPACED.search(words[-1]):
        for phrase, sign in _bound_phrases().items():
            if words[-1].endswith(phrase):
                return sign
    behind = _AFTER_PATTERN.match(text, end)
    return [*_AFTER.values()][(behind.lastindex or 0) - 1] if behind else ""


_ID_NUMBERS = "nol satu dua tiga empat lima enam tujuh delapan sembilan sepuluh sebelas"
_ID_ONES = {word: value for value, word in enumerate(_ID_NUMBERS.split())}
_ID_SCALES = {"puluh": 10, "ratus": 100, "ribu": 1_000, "juta": 1_000_000, "miliar": 1_000_000_000}
# "zweiundzwanzig" is one word: a list of them would never end.
_GERMAN_COMPOUND = re.compile(
    r"(?:(?:ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|sech|sieb|zwan|und|zig|ßig|hundert|"
    r"tausend|halb)){2,}"
)
_TEN, _THOUSAND, _MYRIAD = 10, 1_000, 10_000
_SCALES = frozenset(10**power for power in range(1, 17))
CJK_NUMERAL = re.compile("[〇零一壱二两弐三四五六七八九十百千万萬億亿兆]+")
# Before 15.1 (Python 3.13) Unicode has no number for the first, and later a million for the second.
_CJK_OWN = {"两": 2, "兆": 10**12}

COUNTING = frozenset(["dozen", "dutzend", "douzaine", "docena", "zero", "null", "zéro", "cero", "nol"])
"""Words that are certainly numbers before a unit."""
ONES = frozenset(["one", "ein", "eine", "einen", "einem", "einer", "un", "une", "uno", "una", "satu"])
"""Words that are numbers in a deadline: "within one hour"."""


@cache
def weak_words() -> dict[str, float]:
    """Words that count or rank but may also be an article: they can support a number, but never fail a claim."""
    rows = (row for listed in values_by_language("weak_numbers").values() for row in enumerate(listed))
    return {word: float(value) for value, alike in rows for word in alike.split()}


@cache
def fractions() -> dict[str, float]:
    """Words for a share, in percent: half, a quarter, a third."""
    rows = (row for listed in values_by_language("fractions").values() for row in listed.items())
    return {word: 100 * int(share[0]) / int(share[-1]) for share, alike in rows for word in alike.split()}


def is_number_word(word: str, language: str) -> bool:
    """Return True if a case-folded ``word`` may begin a number in ``language``."""
    listed = words_by_language("numbers").get(language, ())
    return word in listed or (language == "de" and bool(_GERMAN_COMPOUND.fullmatch(word)))


@lru_cache(maxsize=4096)
def read_number_words(run: str, language: str) -> float | None:
    """The value of a run of number words (case-folded, single spaces), or None if it is not a number."""
    if language == "id":  # which text2num does not know
        return _read_indonesian(run.split())
    if run.endswith("einhalb"):
        whole = read_number_words(run.removesuffix("einhalb"), language)
        return None if whole is None else whole + 0.5
    try:
        return float(text2num(run, language))
    except ValueError:
        return None


def _read_indonesian(run: list[str]) -> float:
    """Read ones, and scales with "se" for one: sepuluh is satu puluh, and "belas" adds ten."""
    parts: list[int] = []
    for word in run:
        scale = word.removeprefix("se")
        if word in _ID_ONES:
            parts.append(_ID_ONES[word])
        elif word == "belas":
            parts[-1:] = [sum(parts[-1:]) + 10]
        else:
            parts += [1, _ID_SCALES[scale]] if word != scale else [_ID_SCALES[scale]]
    return _join_scales(parts, _THOUSAND)


def read_cjk_numeral(run: str) -> float:
    """The value of a run of Chinese or Japanese numerals (十二, 三千五百, 二〇二四)."""
    numbers = [_CJK_OWN.get(letter) or int(numeric(letter)) for letter in run]
    is_digits = max(numbers) < _TEN
    return float("".join(map(str, numbers))) if is_digits else _join_scales(numbers, _MYRIAD)


def _join_scales(numbers: list[int], group_scale: int) -> float:
    """Join digits and scales: a scale multiplies the digit before it, and from ``group_scale`` on the whole group."""
    total = group = last = 0
    for number in numbers:
        if number < _TEN or number not in _SCALES:
            last = number
        elif number >= group_scale:
            total, group, last = total + (group + last or 1) * number, 0, 0
        else:
            group, last = group + (last or 1) * number, 0
    return float(total + group + last)


_PART = r"(?P<part>{halves}|quarter)(?:(?: of)? an? |[ -])(?P<unit>{periods})\b"
_WITHIN = re.compile(r"\bwithin\s$", re.IGNORECASE)
_A_UNIT = re.compile(r"an? (?P<unit>second|minute|hour|day|week|month|quarter|year)\b(?!['’])", re.IGNORECASE)


def read_unit_alone(text: str, start: int) -> tuple[float, Unit, int] | None:
    """Read the amount, the unit and the end of a fraction ("half an hour") or a deadline ("within an hour")."""
    match = compile_pattern(_PART).match(text, start)
    share = 0.25 if match and match["part"].casefold() == "quarter" else 0.5
    if match is None and _WITHIN.search(text, start - len("within "), start):
        match, share = _A_UNIT.match(text, start), 1.0
    unit = UNITS.get(match["unit"].casefold()) if match else None
    return (share, unit, match.end()) if match and unit else None
