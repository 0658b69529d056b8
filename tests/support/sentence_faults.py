"""Faults that change one thing of one statement: a number, a date, a name, a word that turns the meaning.

Each takes a statement, all that the pages of its answer say, and a seeded source of chance; it gives the statement with
the fault, or None where there is nothing to change. What is put in stands in none of the pages, unless the kind is just
that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

Fault = Callable[[str, str, Random], str | None]

_NUMBER = re.compile(
    r"(?<![\w.,:/#$-])(?<!Version )(?<!Docker )\d+(?:[.,]\d+)*"
    r"(?![\w:/-]|[.,]\d|\.? (?:January|April|May|September|November|Juni))"
)
_WORDED = re.compile(r"\b(?:two|three|five)\b|\bone (?=approval|review|hour)(\w+)")
_VERSION_DOTS = 2
_CODE = re.compile(r"`[^`]*`|```.*?```|https?://\S+", re.DOTALL)
_MONTHS = "January|April|May|September|November|Juni"
_UNITS = {
    "hours": ("minutes", "days", "weeks"),
    "minutes": ("hours", "seconds", "days"),
    "seconds": ("minutes", "milliseconds", "hours"),
    "days": ("weeks", "hours", "months"),
    "weeks": ("days", "months"),
    "months": ("weeks", "years", "days"),
    "years": ("months", "days"),
    "metres": ("kilometres", "feet"),
    "kilograms": ("grams", "tonnes"),
    "euros": ("dollars", "pounds"),
    "litres": ("millilitres", "gallons"),
    "MB": ("GB", "KB"),
    "GB": ("TB", "MB"),
    "%": ("euros", "items"),
    "°C": ("°F", "K"),
    "km/h": ("m/s", "mph"),
    "Tage": ("Wochen", "Stunden"),
    "Euro": ("Dollar", "Pfund"),
}
_PERIODS = {"a minute": "a second", "a night": "a week", "a week": "a month", "a year": "a month", "an hour": "a day"}
_OPPOSITES = {
    "at most": "at least",
    "at least": "at most",
    "up to": "at least",
    "more than": "less than",
    "longer than": "shorter than",
    "within": "only after",
    "before": "after",
    "always": "sometimes",
    "never": "sometimes",
    "only": "also",
    "every": "hardly any",
    "each": "not every",
    "all": "some",
    "above": "below",
    "exceeds": "falls below",
    "forbidden": "allowed",
    "first": "last",
    "Höchstens": "Mindestens",
}
_NEGATIONS = (
    (r"\bmust not be\b", "must be"),
    (r"\bmust be\b", "must not be"),
    (r"\bneeds? no\b", "needs an"),
    (r"\b(is|are|was|were) not\b", r"\1"),
    (r"\bdoes not\b", "does"),
    (r"\b(is|are|was|were|must|may|can)\b(?! not)", r"\1 not"),
    (r"\bneed (?=a|the|one)", "do not need "),
    (r"\bNever (\w)", lambda m: m[1].upper()),
    (r"\bnicht ", ""),
    (r"\bdürfen\b", "dürfen nicht"),
)
_NAMES = {
    "Moreau": "Lefort",
    "Brest": "Calais",
    "Kerlann": "Tavenec",
    "Leiden": "Utrecht",
    "Okafor": "Brandt",
    "Docker": "Podman",
    "European Union": "United Kingdom",
    "Rainer": "Ludwig",
}
_ROLES = (
    "security lead",
    "engineering manager",
    "finance partner",
    "release captain",
    "database lead",
    "incident lead",
    "legal counsel",
    "office manager",
    "IT desk",
    "pilot",
    "harbour office",
)
_PLAIN_WORD = re.compile(r"[a-z]{4,}")
_OTHER_WORDS = ("summer", "carefully", "twice", "green", "weather", "tomorrow", "captain", "silently")


def number(text: str, said: str, rng: Random) -> str | None:
    """Another number, near or far, in figures or in words."""
    if "about " in text:  # what comes near it is not wrong
        said = f"{said} {' '.join(map(str, range(200)))}"
    return _changed(text, _NUMBER, lambda m: _other_number(m[0], said, rng), rng) or _worded(text, said, rng)


def _other_number(written: str, said: str, rng: Random) -> str | None:
    plain = written.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", written) else written
    if not plain.isdigit():
        return _unsaid(f"{written[:-1]}{(int(written[-1]) + rng.randint(1, 8)) % 10}", said)
    value = int(plain)
    other = rng.choice((value + rng.randint(1, 3), value * 10, value * 2 + rng.randint(3, 99), value + 100, value * 3))
    return _unsaid(f"{other:,}" if "," in written else str(other), said)


def _worded(text: str, said: str, rng: Random) -> str | None:
    other = {"two": "seven", "three": "nine", "five": "eight"}
    return _changed(text, _WORDED, lambda m: _unsaid(f"four {m[1]}s" if m[1] else other[m[0]], said), rng)


def moved_number(text: str, said: str, rng: Random) -> str | None:
    """A number that one of the pages has, but in another place."""
    others = sorted({each for each in _NUMBER.findall(_CODE.sub(" ", said)) if each.count(".") < _VERSION_DOTS})
    return _changed(text, _NUMBER, lambda m: rng.choice([each for each in others if each != m[0]] or [m[0]]), rng)


def unit(text: str, said: str, rng: Random) -> str | None:
    """Another unit behind the number, or another period behind the unit."""
    pattern = rf"(?<=\d )(?:{'|'.join(map(re.escape, _UNITS))})(?!\w)"
    periods = rf"(?<=[a-z] )(?:{'|'.join(_PERIODS)})\b"
    if rng.random() < 0.3:
        return _changed(text, re.compile(periods), lambda m: _PERIODS[m[0]], rng)
    return _changed(text, re.compile(pattern), lambda m: rng.choice(_UNITS[m[0]]), rng)


def date(text: str, said: str, rng: Random) -> str | None:
    """Another day, month, year or day of the week."""
    way = rng.choice(("day", "month", "year", "weekday", "iso"))
    if way == "iso":
        return _changed(text, re.compile(r"20\d\d-\d\d-\d\d"), lambda m: _unsaid(_other_iso(m[0], rng), said), rng)
    if way == "weekday":
        others = ("Wednesday", "Friday", "Saturday")
        return _changed(
            text, re.compile("Monday|Tuesday|Thursday|Sunday"), lambda _: _unsaid(rng.choice(others), said), rng
        )
    if way == "day":
        return _changed(text, re.compile(rf"\d{{1,2}}(?=\.? (?:{_MONTHS}))"), lambda m: str(int(m[0]) % 27 + 1), rng)
    if way == "year":
        pattern = re.compile(r"(?<=[a-z] )(?:19|20)\d\d|(?<=In )2024")
        return _changed(text, pattern, lambda m: _unsaid(str(int(m[0]) - rng.randint(1, 9)), said), rng)
    return _changed(text, re.compile(_MONTHS), lambda m: "Mai" if m[0] == "Juni" else "March", rng)


def _other_iso(written: str, rng: Random) -> str:
    year, month, day = (int(part) for part in written.split("-"))
    place = rng.randrange(3)
    if place == 0:
        return f"{year + rng.choice((-1, 1, 2))}-{month:02}-{day:02}"
    if place == 1:
        return f"{year}-{month % 12 + 1:02}-{day:02}"
    return f"{year}-{month:02}-{day % 27 + 1:02}"


def time_of_day(text: str, said: str, rng: Random) -> str | None:
    """Another hour or minute."""
    if " Uhr" in text:
        return _changed(text, re.compile(r"\d+(?= Uhr)"), lambda m: str(int(m[0]) + rng.randint(1, 4)), rng)

    def other(match: re.Match[str]) -> str | None:
        hour, minute = int(match[1]), int(match[2])
        changed = rng.choice(((hour + rng.randint(1, 20), minute), (hour, minute + rng.choice((5, 15, 20)))))
        return _unsaid(f"{changed[0] % 24:02}:{changed[1] % 60:02}", said)

    return _changed(text, re.compile(r"\b(\d\d):(\d\d)\b"), other, rng)


def quotation(text: str, said: str, rng: Random) -> str | None:
    """A word of a quotation replaced, left out or put in."""
    quoted = re.search(r'"([^"]+)"', text)
    if not quoted:
        return None
    word = rng.choice(list(_PLAIN_WORD.finditer(text, quoted.start(1), quoted.end(1))))
    new = rng.choice((rng.choice(_OTHER_WORDS), f"{rng.choice(_OTHER_WORDS)} {word[0]}"))
    return text[: word.start()] + new + text[word.end() :]


def identifier(text: str, said: str, rng: Random) -> str | None:
    """Another flag, command, path, channel, header, environment name or error code."""
    pattern = re.compile(
        r"(?<=--)[a-z-]{3,}|(?<=[`\n])[a-z][a-z-]{3,}(?= )|(?<=/)[a-z]{3,}(?=[/.`])|(?<=#)[a-z-]{4,}"
        r"|\b[A-Z]{1,4}-?\d{4}\b|\bSEV\d\b|(?<=-)[A-Z][a-z]+(?=`)|(?<=_)[A-Z]{6,}|(?<=`)[A-Z][A-Za-z]+(?=`)"
    )

    def other(match: re.Match[str]) -> str | None:
        if match[0][-1].isdigit():
            return _unsaid(f"{match[0][:-1]}{(int(match[0][-1]) + 4) % 10}", said)
        new = rng.choice(("scratch", "legacy", "fastlane", "override", "mode"))
        cased = new.upper() if match[0].isupper() else new.title() if match[0][0].isupper() else new
        return _unsaid(cased, said)

    return _changed(text, pattern, other, rng)


def version(text: str, said: str, rng: Random) -> str | None:
    """Another version."""
    pattern = re.compile(r"v?\d+\.\d+\.\d+|(?<=Version )\d+\b|(?<=Docker )\d+|(?<=AES-)\d+|(?<=/v)\d")
    return _changed(text, pattern, lambda m: _unsaid(_other_version(m[0], rng), said), rng)


def _other_version(written: str, rng: Random) -> str:
    parts = re.split(r"(\d+)", written)
    place = rng.choice([i for i, part in enumerate(parts) if part.isdigit()])
    parts[place] = str(int(parts[place]) + rng.randint(1, 4))
    return "".join(parts)


def altered_link(text: str, said: str, rng: Random) -> str | None:
    """An address of a page with another path, host or scheme."""
    ways = (("/permits", "/pilots"), ("/nights", "/nights/new"), (".example/", ".example.org/"), ("https://", "ftp://"))
    right, wrong = rng.choice(ways)
    return text.replace(right, wrong) if "://" in text and right in text else None


def negation(text: str, said: str, rng: Random) -> str | None:
    """A "not" more or less."""
    fitting = [(pattern, new) for pattern, new in _NEGATIONS if re.search(pattern, _CODE.sub(_hidden, text))]
    if not fitting or '"' in text:
        return None
    return re.sub(*rng.choice(fitting[:2]), text, count=1)


def quantifier(text: str, said: str, rng: Random) -> str | None:
    """A bound, a share or an order turned round."""
    return None if '"' in text else _replaced(text, _OPPOSITES, rng)


def name(text: str, said: str, rng: Random) -> str | None:
    """Another proper name."""
    return _replaced(text, _NAMES, rng)


def role(text: str, said: str, rng: Random) -> str | None:
    """Another role or office."""
    return _changed(
        text,
        re.compile("|".join(map(re.escape, _ROLES))),
        lambda m: _unsaid(rng.choice([each for each in _ROLES if each != m[0]]), said),
        rng,
    )


def _replaced(text: str, other: Mapping[str, str], rng: Random) -> str | None:
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, other))})\b", re.IGNORECASE)

    def opposite(match: re.Match[str]) -> str:
        new = other.get(match[0]) or other[match[0].lower()]
        return new[0].upper() + new[1:] if match[0][0].isupper() else new

    return _changed(text, pattern, opposite, rng)


def _changed(
    text: str, pattern: re.Pattern[str], change: Callable[[re.Match[str]], str | None], rng: Random
) -> str | None:
    """The text with one of the matches changed; None if nothing matches, or what was put in would be right."""
    found = list(pattern.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    new = change(match)
    return None if new is None else text[: match.start()] + new + text[match.end() :]


def _unsaid(new: str, said: str) -> str | None:
    """What is to be put in, unless a page says it."""
    return None if re.search(rf"(?<![^\Wv]){re.escape(new)}s?(?!\w)", said, re.IGNORECASE) else new


def _hidden(match: re.Match[str]) -> str:
    return " " * len(match[0])


FAULTS: dict[str, Fault] = {
    "number": number,
    "unit": unit,
    "date": date,
    "time of day": time_of_day,
    "quotation": quotation,
    "identifier": identifier,
    "version": version,
    "altered link": altered_link,
    "negation": negation,
    "quantifier": quantifier,
    "name": name,
    "role": role,
    "number of another place": moved_number,
}
