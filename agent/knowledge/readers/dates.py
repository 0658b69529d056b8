"""Date of a document, as stated by its front matter, its repository or the beginning of its text."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Final

from verification.values.dates import moments

# Labels of a document's age in seven languages.
_AGES: Final = (
    r"(?:last[ _-]?)?(?:updated|modified|reviewed|changed|revised)(?:[ _-](?:on|at))?|lastmod|date[ _-]?modified"
    r"|update[ _-]date|as of|stand|(?:version|versión|fassung) (?:of|vom|du|del?)"
    r"|(?:zuletzt )?(?:aktualisiert|geändert|überarbeitet)(?: am)?|(?:dernière )?mise? à jour(?: le)?"
    r"|dernière modification|(?:última )?(?:actualización|modificación)|actualizado(?: el)?"
    r"|(?:terakhir )?diperbarui(?: pada)?|pembaruan terakhir|(?:最終)?更新日?|最后更新|更新日期|更新时间|更新于"
)
_CREATED: Final = (
    r"date|datum|fecha|tanggal|日付|日期|created(?:[ _-](?:on|at))?|published(?:[ _-](?:on|at))?|pub[ _-]?date"
)
_LABELS: Final = (re.compile(_AGES, re.IGNORECASE), re.compile(_CREATED, re.IGNORECASE))
# A label begins a line, or follows another fact: "Owner: Sales. Last updated: 2024-01-10".
_HEAD_DATE: Final = re.compile(
    rf"(?:^|(?<=[.;·•–—][ \t]))[*_>#\- \t(]{{0,6}}(?:(?:{_AGES})|(?:{_CREATED})(?=[*_ ]{{0,3}}[:：]))"
    r"[*_]{0,2}[ \t]*[:：]?[*_]{0,2}[ \t]*(?P<rest>[^\n]{4,40})",
    re.IGNORECASE | re.MULTILINE,
)
_HEAD_CHARS: Final = 600
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d")
_NOT_PROSE: Final = re.compile(
    r"^(?:[ \t]*\|.*|(?: {4}|\t).*)$|^(?P<fence>```|~~~).*?(?:^(?P=fence)|\Z)", re.MULTILINE | re.DOTALL
)


def date_of(fields: Mapping[str, str], text: str, *, committed: float, changed: float) -> str:
    """Return an ISO 8601 date or an empty string. ``committed`` and ``changed`` are seconds since 1970, 0 if unknown.

    Front matter comes first, modified before created; then the last commit, the label in the text's head, the file.
    """
    head = _NOT_PROSE.sub("", text[:_HEAD_CHARS])
    stated = next(_field_dates(fields), "") or _day(committed)
    return (
        stated or next(filter(None, (_read(found["rest"]) for found in _HEAD_DATE.finditer(head))), "") or _day(changed)
    )


def parse_timestamp(text: str) -> float:
    """Return an ISO 8601 date or time in seconds since 1970; 0 if it is invalid."""
    try:
        moment = datetime.fromisoformat(text)
        return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return 0.0


def _field_dates(fields: Mapping[str, str]) -> Iterator[str]:
    for label in _LABELS:
        values = [value for name, value in fields.items() if label.fullmatch(name.replace("_", " "))]
        yield from filter(None, (_iso(value) or _read(value) for value in values))


def _read(text: str) -> str:
    """Return the date at the start of a text; for a month its first day. "03/04/2026" is ambiguous and ignored."""
    found = moments(text.rstrip("*_) "))
    begins = found[1].start if found and found[0].weekday and found[1:] else 0  # "Wednesday, 11 November"
    days = {(m.year, m.month, m.day or 1) for m in found if m.start == begins and m.month}
    if len(days) != 1:
        return ""
    year, month, day = days.pop()
    return _iso(f"{year or 0:04}-{month:02}-{day:02}")


def _iso(text: str) -> str:
    """Return the day of an ISO 8601 date or time; empty if there is not one."""
    found = _ISO.match(text)
    try:
        return date.fromisoformat(found[0]).isoformat() if found else ""
    except ValueError:
        return ""


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat() if seconds else ""
