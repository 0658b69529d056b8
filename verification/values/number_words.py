"""Numbers in words, and half and quarter units of time, in the seven languages: tables, and the reading of one run.

Articles that also mean one ("a", "ein", "un") are no numbers here; a part of a unit counts only right before it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from text_to_num import text2num  # type: ignore[import-untyped]  # ships no types

from verification.values.units import UNITS, Unit

_EN = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion"
)
_DE = (
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn "
    "neunzehn zwanzig dreißig dreissig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend einhundert "
    "eintausend"
)
_FR = (
    "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize vingt vingts trente "
    "quarante "
    "cinquante soixante septante huitante nonante cent cents mille million millions milliard milliards"
)
_ES = (
    "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho "
    "diecinueve veinte veintiuno veintiún veintiuna veintidós veintitrés veinticuatro veinticinco veintiséis "
    "veintisiete "
    "veintiocho veintinueve treinta cuarenta cincuenta sesenta setenta ochenta noventa cien ciento doscientos "
    "doscientas "
    "trescientos trescientas cuatrocientos quinientos seiscientos setecientos ochocientos novecientos mil millón "
    "millones"
)
_ID_TWO_TO_NINE = ("dua", "tiga", "empat", "lima", "enam", "tujuh", "delapan", "sembilan")
_ID_ONES = dict(zip(_ID_TWO_TO_NINE, range(2, 10), strict=True), satu=1, nol=0, se=1)
_ID_SCALES = {"puluh": 10, "ratus": 100, "ribu": 1_000, "juta": 1_000_000, "miliar": 1_000_000_000}
_ID_WHOLE = {"sepuluh": (1, "puluh"), "seratus": (1, "ratus"), "seribu": (1, "ribu"), "sejuta": (1, "juta")}
_ID = " ".join([*_ID_ONES, *_ID_SCALES, *_ID_WHOLE, "sebelas", "belas"]).replace(" se ", " ")

WORDS: dict[str, frozenset[str]] = {
    "en": frozenset(_EN.split()),
    "de": frozenset(_DE.split()),
    "fr": frozenset(_FR.split()),
    "es": frozenset(_ES.split()),
    "id": frozenset(_ID.split()) - {"satu"},
}
# Words that may stand inside a run of number words but start none.
JOINERS: dict[str, frozenset[str]] = {
    "en": frozenset({"and", "one"}),
    "de": frozenset({"und"}),
    "fr": frozenset({"et", "un", "une"}),
    "es": frozenset({"y", "un", "uno", "una"}),
    "id": frozenset({"satu"}),
}
_GERMAN_COMPOUND = re.compile(
    r"(?:(?:ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|sech|sieb|zwan|und|zig|ßig|hundert|"
    r"tausend)){2,}"
)
_THOUSAND, _MYRIAD = 1_000, 10_000
_CJK_DIGITS = {
    c: n for n, cs in enumerate(("〇零", "一壱", "二两弐", "三", "四", "五", "六", "七", "八", "九")) for c in cs
}
_CJK_SCALES = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8, "兆": 10**12}
CJK_NUMERAL = re.compile(f"[{''.join(_CJK_DIGITS)}{''.join(_CJK_SCALES)}]+")

_SMALL = {
    0: "zero null zéro cero nol",
    1: "one first 1st eins ein eine einen einem einer erste ersten erster erstes un une premier première uno una "
    "primer primero primera satu pertama",
    2: "second zweite zweiten zweiter zweites deuxième segunda kedua",
    3: "third dritte dritten dritter drittes troisième tercer tercero tercera ketiga",
    4: "fourth vierte vierten vierter quatrième cuarto cuarta keempat",
    5: "fifth fünfte fünften fünfter cinquième quinto quinta kelima",
    6: "sixth sechste sechsten sixième sexto sexta keenam",
    7: "seventh siebte siebten septième séptimo séptima ketujuh",
    8: "eighth achte achten huitième octavo octava kedelapan",
    9: "ninth neunte neunten neuvième noveno novena kesembilan",
    10: "tenth zehnte zehnten dixième décimo décima kesepuluh",
    11: "eleventh elfte elften onzième undécimo kesebelas",
    12: "twelfth zwölfte zwölften douzième dozen dutzend douzaine docena",
    13: "thirteenth dreizehnte dreizehnten treizième",
    14: "fourteenth vierzehnte vierzehnten quatorzième",
    15: "fifteenth fünfzehnte fünfzehnten quinzième",
    16: "sixteenth sechzehnte sechzehnten seizième",
    17: "seventeenth siebzehnte siebzehnten",
    18: "eighteenth achtzehnte achtzehnten",
    19: "nineteenth neunzehnte neunzehnten",
    20: "twentieth zwanzigste vingtième vigésimo",
}
# Words that count or rank but may as well be an article: they bear a number out and are never held against a claim.
WEAK_WORDS: dict[str, float] = {word: float(value) for value, words in _SMALL.items() for word in words.split()}
COUNTING = frozenset(["dozen", "dutzend", "douzaine", "docena", "zero", "null", "zéro", "cero", "nol"])
"""Those that count for certain before a unit."""
ONES = frozenset(["one", "ein", "eine", "einen", "einem", "einer", "un", "une", "uno", "una", "satu"])
"""Those that count in a deadline: "within one hour"."""
FRACTIONS: dict[str, float] = {
    word: percent
    for percent, words in {
        50.0: "half hälfte moitié mitad setengah separuh",
        25.0: "quarter viertel seperempat",
        75.0: "three-quarters dreiviertel",
        100 / 3: "one-third drittel tiers tercio sepertiga",
        200 / 3: "two-thirds thirds zweidrittel",
    }.items()
    for word in words.split()
}


def is_number_word(word: str, language: str) -> bool:
    """True if ``word`` (case-folded) may start a number in ``language``."""
    return word in WORDS.get(language, ()) or (language == "de" and bool(_GERMAN_COMPOUND.fullmatch(word)))


@lru_cache(maxsize=4096)
def read(run: str, language: str) -> float | None:
    """The value of a run of number words (case-folded, single spaces), or None if it makes no number."""
    if language == "id":
        return _indonesian(run.split())
    try:
        return float(text2num(run, language))
    except ValueError:
        return None


def _indonesian(words: list[str]) -> float | None:
    """Groups of ones times ratus and puluh, closed by ribu, juta, miliar."""
    total = group = last = 0
    for word in words:
        ones, scale = _ID_WHOLE.get(word, (0, word))
        if word == "sebelas":
            last = 11
        elif word in _ID_ONES:
            last = _ID_ONES[word]
        elif word == "belas":
            last += 10
        elif _ID_SCALES[scale] >= _THOUSAND:
            total, group, last = total + (group + (ones or last)) * _ID_SCALES[scale], 0, 0
        else:
            group, last = group + (ones or last) * _ID_SCALES[scale], 0
    return float(total + group + last)


def read_cjk(run: str) -> float:
    """The value of a run of Chinese or Japanese numerals (十二, 三千五百, 二〇二四)."""
    if all(letter in _CJK_DIGITS for letter in run):
        return float("".join(str(_CJK_DIGITS[letter]) for letter in run))
    total, group, last = 0, 0, 0
    for letter in run:
        if letter in _CJK_DIGITS:
            last = _CJK_DIGITS[letter]
        elif _CJK_SCALES[letter] >= _MYRIAD:
            total, group, last = total + (group + last or 1) * _CJK_SCALES[letter], 0, 0
        else:
            group, last = group + (last or 1) * _CJK_SCALES[letter], 0
    return float(total + group + last)


PERIODS = (
    r"second|minute|hour|day|week|month|quarter|year|sekunde|minute|stunde|tag|woche|monat|quartal|jahr|seconde"
    r"|heure|jour"
    r"|semaine|mois|trimestre|an|année|segundo|minuto|hora|día|semana|mes|año|detik|menit|jam|hari|minggu|bulan|tahun"
)
_HALF = "half halbe halben halber halbes demi medio media setengah"
HALVES: dict[str, float] = {**dict.fromkeys(_HALF.split(), 0.5), "quarter": 0.25}
_PART = re.compile(rf"(?P<part>{'|'.join(HALVES)})(?:(?: of)? an? |[ -])(?P<unit>{PERIODS})\b", re.IGNORECASE)


_WITHIN = re.compile(r"\bwithin\s$", re.IGNORECASE)
_A_UNIT = re.compile(r"an? (?P<unit>second|minute|hour|day|week|month|quarter|year)\b(?!['’])", re.IGNORECASE)


def a_unit_within(text: str, start: int) -> tuple[float, Unit, int] | None:
    """One unit, as in "within an hour", where the article counts."""
    match = _A_UNIT.match(text, start)
    unit = (
        UNITS.get(match["unit"].casefold()) if match and _WITHIN.search(text, start - len("within "), start) else None
    )
    return (1.0, unit, match.end()) if match and unit else None


def part_of_a_unit(text: str, start: int) -> tuple[float, Unit, int] | None:
    """The share, its unit and where the words end, if such a part begins at ``start``."""
    match = _PART.match(text, start)
    unit = UNITS.get(match["unit"].casefold()) if match else None
    return (HALVES[match["part"].casefold()], unit, match.end()) if match and unit else None
