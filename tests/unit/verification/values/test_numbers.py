"""Numbers in every spelling: readings, units, powers, rates, bounds, words, and text that is not a number."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verification.check import check
from verification.evidence.passages import analyse
from verification.types import Draft, Source
from verification.values.numbers import Quantity, quantities
from verification.values.quantity_words import GLUED_SCALES, SCALES, UNITS, read_cjk_numeral, read_number_words


def only(text: str, language: str | None = "en") -> Quantity:
    (quantity,) = quantities(text, language)
    return quantity


def test_twelve_hundred_is_read_in_every_spelling() -> None:
    for written in ["1,200", "1.200", "1 200", "1\u202f200", "1'200", "1200", "1.2k", "1.2 thousand"]:
        assert 1200.0 in only(f"{written} users").readings


def test_ambiguous_grouping_keeps_both_readings() -> None:
    for written, readings in [
        ("1,205", (1205.0, 1.205)),
        ("1,200", (1200.0,)),
        ("1.250", (1250.0,)),
        ("0.125", (0.125,)),
        ("12,5", (12.5,)),
        ("1.234.567", (1234567.0,)),
        ("1,234.56", (1234.56,)),
        ("1.234,56", (1234.56,)),
        ("12,34,567", (1234567.0,)),
        ("3/4", (0.75, 3.0)),
    ]:
        assert only(written).readings == readings


def test_values_are_read_with_their_units() -> None:
    for text, language, value, dimension, factor in [
        ("50 %", "en", 50, "ratio", 1),
        ("50 per cent", "en", 50, "ratio", 1),
        ("30 pour cent", "fr", 30, "ratio", 1),
        ("20 por ciento", "es", 20, "ratio", 1),
        ("百分之五十", "zh", 50, "ratio", 1),
        ("百分之12.5", "zh", 12.5, "ratio", 1),
        ("3割", "ja", 3, "ratio", 10),
        ("半分", "ja", 50, "ratio", 1),
        ("予算の半分です", "ja", 50, "ratio", 1),
        ("百分之٥", "zh", 5, "ratio", 1),
        ("百分之零", "zh", 0, "ratio", 1),
        ("4分の1", "ja", 25, "ratio", 1),
        ("4分の3", "ja", 75, "ratio", 1),
        ("四分の一", "ja", 25, "ratio", 1),
        ("$5 million", "en", 5e6, "USD", 1),
        ("Rp 5 juta", "id", 5e6, "IDR", 1),
        ("2,5 millions d'euros", "fr", 2.5e6, "EUR", 1),
        ("1億円", "ja", 1e8, "JPY", 1),
        ("三千五百元", "zh", 3500, "CNY", 1),
        ("5 Mio. Euro", "de", 5e6, "EUR", 1),
        ("30-day", "en", 30, "time", 86400),
        ("24h", "en", 24, "time", 3600),
        ("10 GB/s", "en", 10, "bytes", 1e9),
        ("zwölf Tage", "de", 12, "time", 86400),
        ("zweiundzwanzig Stunden", "de", 22, "time", 3600),
        ("quatre-vingt-dix jours", "fr", 90, "time", 86400),
        ("veintidós días", "es", 22, "time", 86400),
        ("dua puluh lima hari", "id", 25, "time", 86400),
        ("tiga ratus ribu rupiah", "id", 3e5, "IDR", 1),
        ("三十日", "ja", 30, "time", 86400),
        ("12 months", "en", 12, "months", 1),
    ]:
        quantity = only(text, language)
        assert quantity.readings[0] == pytest.approx(value)
        assert quantity.unit is not None
        assert (quantity.unit.dimension, quantity.unit.factor) == (dimension, factor)
        assert quantity.amounts()[0] == pytest.approx(value * factor)


def test_bounds_before_and_after_a_number_are_read() -> None:
    for text, language, bound in [
        ("at least 5 people", "en", ">="),
        ("no more than 5 people", "en", "<="),
        ("more than $5", "en", ">"),
        ("under 5 people", "en", "<"),
        ("about 5 people", "en", "~"),
        ("a total of 5 people", "en", ""),
        ("5 people or more", "en", ">="),
        ("5 or fewer", "en", "<="),
        ("mindestens 5 Personen", "de", ">="),
        ("höchstens 5 Personen", "de", "<="),
        ("au moins 5 personnes", "fr", ">="),
        ("como máximo 5 personas", "es", "<="),
        ("paling banyak 5 orang", "id", "<="),
        ("5人以上", "ja", ">="),
        ("5日以内", "ja", "<="),
        ("約5人", "ja", "~"),
        ("至少5人", "zh", ">="),
        ("5人未満", "ja", "<"),
        ("5 and counting", "en", ""),
        ("more than the 5 people", "en", ">"),
        ("über die 5 Personen", "de", ">"),
    ]:
        assert only(text, language).bound == bound


def test_text_that_is_not_a_number() -> None:
    for text in ["Q3", "v2", "x_5", "iPhone", "a top-ten list", "十分です", "一人", "", "1234567890123456789"]:
        assert quantities(text, "en" if text.isascii() else "ja") == ()


def test_numbers_at_the_limits_of_the_reader_are_read() -> None:
    assert only("123456789012345678 rows").readings == (123456789012345678.0,)
    assert [q.readings for q in quantities("1.2.3 is out", "en")] == [(1.2,)]
    assert [q.readings for q in quantities("half a quarter", "en")] == [(50.0,), (25.0,)]
    assert [q.readings for q in quantities("/8 is not 5", "en")] == [(8.0,), (5.0,)]
    assert all(only(written, "ja").worded for written in ("半分", "四分の一", "百分之五十", "三十日"))
    assert [only(f"{written} rows").readings for written in ("1.2M", "3B", "2 B")] == [(1.2e6,), (3e9,), (2.0,)]
    assert only("30 pour les enfants", "fr").unit is None


def test_the_numbers_of_a_range_share_its_unit() -> None:
    first, second = quantities("3 to 5 days", "en")
    assert first.unit == second.unit is not None
    assert quantities("3 apples, 5 days", "en")[0].unit is None
    assert [q.period for q in quantities("3 to 5 days a week", "en")] == [UNITS["week"]] * 2
    assert [q.period for q in quantities("1,200 euros and 5 days a year", "en")] == [UNITS["year"]] * 2


def test_articles_and_ordinals_are_weak() -> None:
    assert [(q.readings, q.weak) for q in quantities("one third half the second-most", "en")] == [
        ((value,), True) for value in (1.0, 3.0, 50.0, 2.0)
    ]
    assert only("the 15th century").century
    assert only("the sixteenth century").readings == (16.0,)
    assert only("dua belas bulan", None).weak


def test_fractions_and_dozens_of_a_unit_are_quantities() -> None:
    for text, language, value, weak in [
        ("within half an hour", "en", 0.5, False),
        ("a quarter of an hour", "en", 0.25, False),
        ("une demi-heure"[4:], "fr", 0.5, False),
        ("medio año", "es", 0.5, False),
        ("setengah jam", "id", 0.5, False),
        ("a dozen minutes", "en", 12.0, False),
        ("within one hour", "en", 1.0, False),
        ("within one mile", "en", 1.0, True),
        ("a dozen eggs", "en", 12.0, True),
        ("the twelfth week", "en", 12.0, True),
        ("half of the budget", "en", 50.0, True),
    ]:
        (found,) = quantities(text, language)
        assert (found.readings, found.weak) == ((value,), weak)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("2½ hours", "en"), ("2 ½ hours", "en"), ("two and a half hours", "en"), ("two hours and a half a day", "en"),
        ("zweieinhalb Stunden", "de"), ("zwei und eine halbe Stunde", "de"), ("deux heures et demie", "fr"),
        ("dos horas y media", "es"), ("dua setengah jam", "id"), ("2時間半です", "ja"), ("两个半小时", "zh"),
    ],
)  # fmt: skip
def test_a_half_belongs_to_the_number_before_it(text: str, language: str) -> None:
    found = only(text, language)
    assert (found.readings, found.unit) == ((2.5,), UNITS["hours"])


def test_a_half_of_something_else_is_no_part_of_the_number_before_it() -> None:
    assert quantities("two weeks and a half day", "en")[0].readings == (2.0,)
    assert quantities("10月半ば", "ja")[0].readings == (10.0,)
    assert [quantities(text, "zh")[0].readings for text in ("培训共3个半天", "第2个半价")] == [(3.0,), (2.0,)]


RANKS = {
    "en": (
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth"
        " fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
    ),
    "de": (
        "erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte elfte zwölfte dreizehnte vierzehnte"
        " fünfzehnte sechzehnte siebzehnte achtzehnte neunzehnte zwanzigste"
    ),
}


def test_ranks_in_words_are_in_order() -> None:
    for language, ranks in RANKS.items():
        assert [only(word, language).readings[0] for word in ranks.split()] == list(range(1, 21))


def test_fractions_in_words_are_shares() -> None:
    for word, language, percent in [
        ("quarter", "en", 25),
        ("one-third", "en", 33.333),
        ("a third of them", "en", 33.333),
        ("Hälfte", "de", 50),
        ("zweidrittel", "de", 66.667),
        ("three-quarters", "en", 75),
    ]:
        assert only(word, language).readings[0] == pytest.approx(percent, rel=1e-4)


def test_number_words_end_where_they_stop_making_sense() -> None:
    assert [q.readings[0] for q in quantities("two hundred and five people", "en")] == [205.0]
    assert [q.readings[0] for q in quantities("twenty-five ten-pin lanes", "en")] == [25.0, 10.0]
    assert [q.readings[0] for q in quantities("three and more", "en")] == [3.0]
    assert [q.readings[0] for q in quantities("two three", "en")] == [2.0, 3.0]


def test_number_words_are_read_unless_they_make_no_number() -> None:
    runs = {"dua belas": 12, "sebelas": 11, "sepuluh": 10, "seratus dua": 102, "seribu": 1000, "dua juta": 2e6}
    assert {run: read_number_words(run, "id") for run in runs} == runs
    assert read_number_words("and and", "en") is None
    numerals = {
        "十二": 12,
        "三千五百": 3500,
        "二〇二四": 2024,
        "一億二千万": 120_000_000,
        "百": 100,
        "两百": 200,
        "三兆": 3e12,
    }
    assert {run: read_cjk_numeral(run) for run in numerals} == numerals


@given(st.integers(min_value=2, max_value=999_999_999))
def test_grouped_digits_are_read_as_written(value: int) -> None:
    assert float(value) in only(f"{value:,}").readings
    assert float(value) in only(f"{value:,}".replace(",", ".")).readings


@given(st.text(max_size=80))
def test_any_text_is_read_without_trouble(text: str) -> None:
    for language in (None, "en", "de", "ja"):
        for quantity in quantities(text, language):
            assert 0 <= quantity.start < quantity.end <= len(text)


STEPS = (
    "week day 7, day hour 24, hour minute 60, minute second 60, second ms 1000, year month 12, quarters month 3,"
    " decade year 10, century decade 10, pb tb 1000, tb gb 1000, gb mb 1000, mb kb 1000, kb byte 1000, tib gib 1024,"
    " gib mib 1024, mib kib 1024, kib byte 1024, km m 1000, m cm 100, cm mm 10, mile km 1.609344, foot inch 12,"
    " tonne kg 1000, kg gram 1000, gram mg 1000, kg lb 2.2046226, litre ml 1000, gallon litre 3.785, km² m² 1e6,"
    " m² cm² 1e4, m³ cm³ 1e6, % ‰ 10, 割 % 10"
)


def test_each_unit_is_a_multiple_of_the_next() -> None:
    for larger, smaller, times in map(str.split, STEPS.split(",")):
        assert UNITS[larger].dimension == UNITS[smaller].dimension
        assert UNITS[larger].factor / UNITS[smaller].factor == pytest.approx(float(times), rel=1e-6)


def test_each_scale_word_is_a_multiple_of_the_next() -> None:
    steps = ("hundred", "k", "万", "million", "億", "billion", "trillion")
    factors = [SCALES[word] for word in steps]
    assert [after / before for before, after in pairwise(factors)] == [10, 10, 100, 100, 10, 1000]
    assert [GLUED_SCALES[sign] for sign in "kMB"] == [SCALES[word] for word in ("k", "million", "billion")]


def test_the_longest_number_in_words_is_read_as_one() -> None:
    group = "nine hundred and ninety nine"
    words = f"{group} billion {group} million {group} thousand {group}"
    assert only(f"{words} users").readings == (999_999_999_999.0,)


def test_a_power_is_read_as_one_number() -> None:
    for text, readings, dimension in [
        ("10² rows", (100.0,), None),
        ("2¹⁰ bytes", (1024.0,), "bytes"),
        ("10^6 rows", (1e6,), None),
        ("10⁻³ rows", (0.001,), None),
        ("30² days", (30.0,), "time"),  # the mark of a note
        ("2⁴⁰ bytes", (2.0**40,), "bytes"),
        ("10⁴¹ rows", (10.0,), None),
        ("100 kg2.", (100.0,), "mass"),
        ("10⁹⁹ rows", (10.0,), None),
        ("100 m²", (100.0,), "length 2"),
        ("100 m2.", (100.0,), "length 2"),
        ("100 m 2", (100.0,), "length"),
        ("5 m³", (5.0,), "length 3"),
        ("5 m3", (5.0,), "length 3"),
        ("100 mètres carrés", (100.0,), "length 2"),
        ("100 Quadratmeter", (100.0,), "length 2"),
        ("100 kg²", (100.0,), None),
    ]:
        quantity = analyse(text, "en").quantities[0]
        assert quantity.readings == readings
        assert (quantity.unit.dimension if quantity.unit else None) == dimension


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        ("The table holds 10² rows.", "The table holds 100 rows [1].", "The table holds 10³ rows [1]."),
        ("The hall measures 100 m².", "The hall measures 100 m2 [1].", "The hall measures 100 m³ [1]."),
        ("The park measures 2 km².", "The park measures 2,000,000 m² [1].", "The park measures 2 km³ [1]."),
    ],
)
def test_a_different_power_is_an_error(source: str, right: str, wrong: str) -> None:
    pages = (Source(id=1, title="", text=source),)
    assert check(Draft(text=right, sources=pages)).passed
    assert not check(Draft(text=wrong, sources=pages)).passed


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("600 requests per minute", "minute"),
        ("600 requests/s", "s"),
        ("12 a night", "day"),
        ("12 euros monthly", "month"),
        ("12 euros im Quartal", "quarters"),
        ("12 par an", "ans"),
        ("12 a second.", "second"),
        ("monatlich 12 Euro", "month"),
        ("paid weekly 12 euros", "week"),
        ("12 rows a year ago", None),
        ("12 a second try", None),
        ("12 and a day", None),
        ("einmalig 12 Euro", None),
    ],
)
def test_the_period_of_a_rate_is_read_before_or_after_it(text: str, unit: str | None) -> None:
    assert analyse(text, "en").quantities[0].period == (UNITS[unit] if unit else None)
