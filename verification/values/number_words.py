"""Numbers in words, and half and quarter units of time, in the seven languages.

Articles that also mean one ("a", "ein", "un") are not numbers here. A fraction counts only right before its unit.
"""

import re
from functools import cache, lru_cache
from unicodedata import numeric

from text_to_num import text2num  # type: ignore[import-untyped]  # ships no types

from verification.text.lexicon import compile_pattern, values_by_language, words_by_language
from verification.values.units import UNITS, Unit

_ID_NUMBERS = "nol satu dua tiga empat lima enam tujuh delapan sembilan sepuluh sebelas"
_ID_ONES = {word: value for value, word in enumerate(_ID_NUMBERS.split())}
_ID_SCALES = {"puluh": 10, "ratus": 100, "ribu": 1_000, "juta": 1_000_000, "miliar": 1_000_000_000}
# "zweiundzwanzig" is one word: a list of them would never end.
_GERMAN_COMPOUND = re.compile(
    r"(?:(?:ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|sech|sieb|zwan|und|zig|ßig|hundert|"
    r"tausend)){2,}"
)
_TEN, _THOUSAND, _MYRIAD = 10, 1_000, 10_000
_SCALES = frozenset(10**power for power in range(1, 17))
CJK_NUMERAL = re.compile("[〇零一壱二两弐三四五六七八九十百千万萬億亿兆]+")
# Unicode has no number for the first before 15.1 (Python 3.13), and a million for the second from then on.
_CJK_OWN = {"两": 2, "兆": 10**12}

COUNTING = frozenset(["dozen", "dutzend", "douzaine", "docena", "zero", "null", "zéro", "cero", "nol"])
"""Words that certainly count before a unit."""
ONES = frozenset(["one", "ein", "eine", "einen", "einem", "einer", "un", "une", "uno", "una", "satu"])
"""Words that count in a deadline: "within one hour"."""


@cache
def weak_words() -> dict[str, float]:
    """Words that count or rank but may also be an article: they support a number, and accuse no claim."""
    return {
        word: float(value)
        for listed in values_by_language("weak_numbers").values()
        for value, alike in enumerate(listed)
        for word in alike.split()
    }


@cache
def fractions() -> dict[str, float]:
    """Words for a share, in percent: half, a quarter, a third."""
    return {
        word: 100 * int(share[0]) / int(share[-1])
        for listed in values_by_language("fractions").values()
        for share, alike in listed.items()
        for word in alike.split()
    }


def is_number_word(word: str, language: str) -> bool:
    """Return True if a case-folded ``word`` may begin a number in ``language``."""
    return word in words_by_language("numbers").get(language, ()) or (
        language == "de" and bool(_GERMAN_COMPOUND.fullmatch(word))
    )


@lru_cache(maxsize=4096)
def read_number_words(run: str, language: str) -> float | None:
    """The value of a run of number words (case-folded, single spaces), or None if it is not a number."""
    if language == "id":  # which text2num does not know
        return _read_indonesian(run.split())
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
    """Join digits and scales: each scale multiplies the digit before it, and from ``group_scale`` on the group."""
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
    """Read a unit without a number: its amount, the unit, and the end of the words.

    Either a fraction ("half an hour") or a deadline ("within an hour"), in which the article counts.
    """
    match = compile_pattern(_PART).match(text, start)
    share = 0.25 if match and match["part"].casefold() == "quarter" else 0.5
    if match is None and _WITHIN.search(text, start - len("within "), start):
        match, share = _A_UNIT.match(text, start), 1.0
    unit = UNITS.get(match["unit"].casefold()) if match else None
    return (share, unit, match.end()) if match and unit else None
