"""The words of the calendar in the seven languages, as data: months, days of the week, halves of the day.

Promises: every word is case-folded and stands for one number (months 1 to 12, days 1 = Monday to 7). ``WEAK`` words
mean something else as well and count only next to a day or a year.
"""

from __future__ import annotations

_MONTH_WORDS = (
    "january januar jänner janvier enero januari jan janv ene",
    "february februar feber février fevrier febrero februari feb févr fev",
    "march märz maerz mars marzo maret mar mrz mär",
    "april avril abril apr avr abr",
    "may mai mayo mei",
    "june juni juin junio jun",
    "july juli juillet julio jul juil",
    "august août aout agosto agustus aug ago agu",
    "september septembre septiembre setiembre sep sept",
    "october oktober octobre octubre oct okt",
    "november novembre noviembre nov nopember",
    "december dezember décembre decembre diciembre desember dec dez déc dic des",
)
_DAY_WORDS = (
    "monday montag lundi lunes senin mondays montags lundis 月曜日 月曜 星期一 周一 週一",
    "tuesday dienstag mardi martes selasa tuesdays dienstags mardis 火曜日 火曜 星期二 周二 週二",
    "wednesday mittwoch mercredi miércoles miercoles rabu wednesdays mittwochs mercredis 水曜日 水曜 星期三 周三 週三",
    "thursday donnerstag jeudi jueves kamis thursdays donnerstags jeudis 木曜日 木曜 星期四 周四 週四",
    "friday freitag vendredi viernes jumat fridays freitags vendredis 金曜日 金曜 星期五 周五 週五",
    (
        "saturday samstag sonnabend samedi sábado sabado sabtu saturdays samstags samedis sábados sabados"
        " 土曜日 土曜 星期六 周六 週六"
    ),
    "sunday sonntag dimanche domingo sundays sonntags dimanches domingos 日曜日 日曜 星期日 星期天 周日 週日",
)
_SHORT_DAYS = ("mon mo", "tue tues di", "wed mi", "thu thur thurs do", "fri fr", "sat sa", "sun so")


def _numbered(rows: tuple[str, ...]) -> dict[str, int]:
    return {word: number for number, words in enumerate(rows, start=1) for word in words.split()}


MONTHS: dict[str, int] = _numbered(_MONTH_WORDS)
WEEKDAYS: dict[str, int] = _numbered(_DAY_WORDS)
SHORT_WEEKDAYS: dict[str, int] = _numbered(_SHORT_DAYS)
# Words that are also a verb, an animal, a sea, or cut too short to stand alone.
_WEAK_WORDS = (
    "may march mar mars mai mei jan feb apr avr abr jun jul aug ago agu sep sept oct okt nov dec dez déc dic des ene "
    "janv fev févr juil mrz mär"
)
WEAK: frozenset[str] = frozenset(_WEAK_WORDS.split())
