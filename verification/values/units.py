"""Units of measure in the seven languages, as data: what a word after a number measures and in which scale.

``UNITS`` maps a written unit (case-folded) to its dimension and its factor to that dimension's basic unit, ``SCALES`` a
scale word to its factor.
"""

from __future__ import annotations

from typing import NamedTuple


class Unit(NamedTuple):
    """``dimension`` names what is measured, ``factor`` is the size in the dimension's basic unit."""

    dimension: str
    factor: float


_TIME: dict[float, str] = {
    0.001: "ms millisecond milliseconds millisekunde millisekunden milliseconde millisecondes milisegundo milisegundos "
    "milidetik ミリ秒 毫秒",
    1: "s sec secs second seconds sek sekunde sekunden seconde secondes segundo segundos detik 秒 秒間 秒钟",
    60: "min mins minute minutes minuten minuto minutos menit 分 分間 分钟 分鐘",
    3600: "h hr hrs hour hours std stunde stunden heure heures hora horas jam 時間 小时 小時 个小时",
    86400: "d day days tag tage tagen tages jour jours día días dia dias hari 日 日間 天",
    604800: "week weeks wk wks woche wochen semaine semaines semana semanas minggu pekan 週間 周 个星期 星期",
}
_MONTHS: dict[float, str] = {
    1: "month months monat monate monaten monats mois mes meses bulan か月 ヶ月 カ月 ヵ月 箇月 个月 個月 かげつ",
    3: "quarters quartal quartale quartalen trimestre trimestres kuartal 四半期",
    12: "year years yr yrs jahr jahre jahren jahres ans année années annee annees año años ano anos tahun 年間 年 年間",
    120: "decade decades jahrzehnt jahrzehnte jahrzehnten décennie décennies década décadas dekade 十年間",
    1200: "century centuries jahrhundert jahrhunderte siècle siècles siglo siglos abad 世紀 世纪",
}
_BYTES: dict[float, str] = {
    1: "byte bytes octet octets バイト 字节",
    1e3: "kb kilobyte kilobytes ko",
    1e6: "mb megabyte megabytes mo メガバイト 兆字节",
    1e9: "gb gigabyte gigabytes go ギガバイト",
    1e12: "tb terabyte terabytes テラバイト",
    1e15: "pb petabyte petabytes",
    1024: "kib",
    1024**2: "mib",
    1024**3: "gib",
    1024**4: "tib",
}
_LENGTH: dict[float, str] = {
    0.001: "mm millimetre millimetres millimeter millimeters milimeter ミリ 毫米",
    0.01: "cm centimetre centimetres centimeter centimeters zentimeter センチ 厘米",
    1: "m metre metres meter meters metern mètre mètres metro metros メートル 米",
    1000: "km kilometre kilometres kilometer kilometers kilometern kilomètre kilomètres kilómetro kilómetros "
    "キロ キロメートル 公里 千米 kph kmh",
    0.0254: "inch inches zoll pouce pouces pulgada pulgadas inci インチ 英寸",
    0.3048: "ft foot feet pied pieds kaki",
    1609.344: "mi mile miles meile meilen milles milla millas マイル 英里 mph",
}
_AREA: dict[float, str] = {
    1e-6: "mm²",
    1e-4: "cm²",
    1: "m² sqm quadratmeter quadratmetern 平方メートル 平方米",
    1e6: "km² quadratkilometer quadratkilometern 平方キロメートル 平方公里",
}
_SPACE: dict[float, str] = {1e-9: "mm³", 1e-6: "cm³", 1e9: "km³", 1: "m³ kubikmeter kubikmetern 立方メートル 立方米"}
_MASS: dict[float, str] = {
    0.001: "mg milligram milligrams milligramm",
    1: "g gram grams gramm gramme grammes gramo gramos グラム 克",
    1000: "kg kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramo kilogramos キログラム 公斤 千克",
    1e6: "tonne tonnes tonnen tonelada toneladas ton tons トン 吨",
    453.592: "lb lbs",
}
_VOLUME: dict[float, str] = {
    0.001: "ml millilitre millilitres milliliter milliliters mililiter",
    1: "l litre litres liter liters litern litro litros リットル 升",
    3.785: "gallon gallons gallone gallonen galón galones",
}
_RATIO: dict[float, str] = {
    0.1: "‰ promille permille pour-mille",
    10: "割",
    1: "% percent per-cent prozent pourcent porciento persen パーセント ％ pct",
}
_POINTS: dict[float, str] = {1: "percentage-points prozentpunkte prozentpunkten"}
_CELSIUS: dict[float, str] = {1: "°c"}
_FAHRENHEIT: dict[float, str] = {1: "°f"}
_MONEY: dict[str, str] = {
    "EUR": "€ eur euro euros ユーロ 欧元",
    "USD": "$ usd us$ dollar dollars dólar dólares dolar ドル 美元 美金",
    "GBP": "£ gbp",
    "JPY": "¥ jpy yen 円 日元",
    "CNY": "cny rmb yuan 元 人民币",
    "IDR": "rp idr rupiah",
    "CHF": "chf franken",
    "INR": "₹ inr rupee rupees",
}


def _table() -> dict[str, Unit]:
    families = {
        "time": _TIME,
        "months": _MONTHS,
        "bytes": _BYTES,
        "length": _LENGTH,
        "length 2": _AREA,
        "length 3": _SPACE,
        "mass": _MASS,
        "ratio": _RATIO,
        "points": _POINTS,
        "volume": _VOLUME,
        "celsius": _CELSIUS,
        "fahrenheit": _FAHRENHEIT,
    }
    table = {
        word: Unit(dimension, factor)
        for dimension, family in families.items()
        for factor, words in family.items()
        for word in words.split()
    }
    for currency, words in _MONEY.items():
        table.update({word: Unit(currency, 1) for word in words.split()})
    return table


UNITS: dict[str, Unit] = _table()
CURRENCIES: frozenset[str] = frozenset(_MONEY)
OTHER_COINS: frozenset[str] = frozenset(
    [
        "pound",
        "pounds",
        "pfund",
        "livres",
        "libras",
        "peso",
        "pesos",
        "krone",
        "kroner",
        "kronen",
        "krona",
        "kronor",
        "zloty",
        "lira",
        "rubles",
        "roubles",
        "won",
    ]
)
"""Words for money that is none of ``CURRENCIES`` or that may also be a weight: such an amount is not one in euros."""

SCALES: dict[str, float] = {
    word: factor
    for factor, words in {
        1e2: "hundred hundert ratus 百",
        1e3: "k thousand thousands tausend mille mil ribu rb 千",
        1e4: "万 萬",
        1e6: "million millions mio mio. mln millionen millones millón juta jt 百万",
        1e8: "億 亿",
        1e9: "bn billion billions mrd mrd. milliarde milliarden milliard milliards miliar",
        1e12: "trillion trillions bio. billionen triliun 兆",
    }.items()
    for word in words.split()
}
# Glued capital letters scale only after a number: "1.2M", "3B". Small "m" and "b" are metres and bytes, never scales.
GLUED_SCALES: dict[str, float] = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "bn": 1e9, "mn": 1e6}
