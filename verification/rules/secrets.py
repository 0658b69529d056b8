"""Finds secrets: tokens, keys and passwords by their shape, and longer runs of texts that are not to be shown.

A placeholder (``xoxb-...``, ``$TOKEN``, ``<your-key>``, ``sk-XXXX``) is none. The words of a violation are masked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from itertools import groupby
from typing import Final

from verification.text.lexicon import beside, folded_as_matched
from verification.types import Reading, Violation

_CALLED: Final = (
    r"(?:pass(?:word|wd|phrase|code)|passwort|kennwort|pwd|mot de passe|contraseña|kata sandi|密码|密碼|パスワード)"
)
_KEY: Final = (
    r"(?:(?:[A-Za-z0-9]{1,30}[_-]){0,5}(?:secret|token|credentials?|(?:api|access|auth|private|signing)[ _-]?key)"
    r"(?:[_-](?:[A-Za-z0-9]{1,30})){0,4}|(?:aws|client|app|shared|signing) secret)"
)
_SMALL_KEY: Final = r"(?:secret(?:[_-]?key)?|api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret)"
# "for the test database", "des Administrators": what the password is for may stand before the value.
_OF: Final = (
    r"(?:\s(?:for|of|to|on|für|des|der|vom|von|zum|zur|pour|de|du|del|para|untuk)\s[\w.@-]{1,40}"
    r"(?:\s[\w.@-]{1,40}){0,3}?)?"
)
_OPEN: Final = r"[\"'(„“”«「‘‹]{0,3}\s?"
_GIVES: Final = r"\s{0,2}(?:[:=：]|(?:is|ist|lautet|est|es|adalah|ialah)\b|是|为|為|は)\s{0,2}(?:[:：=]\s{0,2})?"
_VALUE: Final = r"(?![\"'(])((?:(?![\"'`,;<>])[!-~]){6,200})"
_LONG: Final = r"([A-Za-z0-9+/_.=~-]{16,400})"
_CALLED_SIGNS: Final = ["pass", "kennwort", "pwd", "contraseña", "sandi", "密", "パスワード"]
_KEY_SIGNS: Final = ["secret", "token", "credential", "key"]
_SECRET_COLUMN: Final = re.compile(rf"\W*(?:\w+ )?(?:{_CALLED}|{_KEY}|secret|token)s?\W*", re.IGNORECASE)
_PASSWORD_COLUMN: Final = re.compile(rf".*{_CALLED}.*", re.IGNORECASE)
_ROW: Final = re.compile(r"^(?:[^\n|]*\|[^\n]*|[-+ ]{3,})$", re.MULTILINE)
_CELL: Final = re.compile(r"[^|]+")
_PLACEHOLDER: Final = re.compile(
    r"\.{3}|…|\*{3}|[xX]{4}|\$|%|[{}<>()\[\]]|(?:^|[_-])(?:your|my|example|sample|dummy|fake|changeme|placeholder"
    r"|redacted"
    r"|todo|here|token|goes)(?:$|[_-])",
    re.IGNORECASE,
)
_NO_PASSWORD: Final = re.compile(
    r"[0-9]+[-–]?[A-Za-z]+(?:-[A-Za-z]+)*|[A-Z0-9]+(?:_[A-Z0-9]+)+|[\w.-]*(?:/[\w.-]+)+/?|(?:change|pass|example)\w*"
    r"|(?:sha|aes|iso|uuid|k|pbkdf|scrypt|argon|saml|rsa|rs|hs|es|md|oauth|base|argon|utf|ed|tls|v|bcrypt"
    r"|hmac)-?[0-9]{1,5}(?:[._-][\w.-]*|[a-z]{0,6})",
    re.IGNORECASE,
)
_SHOWN: Final = 4
_RUN: Final = 50
"""Letters of a run that count as repeated: about sixty characters with their spaces."""
# Marks and letters that nobody sees: a token that was split by one passed.
_HIDING: Final = re.compile("[*`\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+")
_SPACE_AND_MARKUP: Final = re.compile(r"[\s*_`~>#\"'“”]+")
_CITED: Final = re.compile(r"\[[0-9, ]{1,12}\]")
_SHORTEST_PASSWORD: Final = 6
_LEAST_KEY: Final = 16
_HEX: Final = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_CHANGES: Final = re.compile(r"(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]|(?<=[a-z])[A-Z]|(?<=[A-Z])[a-z]")
_MIXED: Final = re.compile(r"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9]*[0-9])(?!.*://)")
_REMEDY: Final = "Leave it out; say where it is kept or who to ask instead."


def no_secrets(reading: Reading) -> tuple[Violation, ...]:
    """An error for each secret by shape, and for each run of some 60 characters out of a private text."""
    bare, places = _without(_HIDING, reading.text)
    folded = folded_as_matched(bare)
    found = {*_patterned(bare, folded), *_tabled(bare, folded)}
    spans = sorted({(places[start], places[end - 1] + 1) for start, end in found})
    secrets = [_masked(reading, span, "This looks like a secret.") for span in spans]
    runs = [_masked(reading, span, "This repeats Orion's own instructions.") for span in _private(reading)]
    return (*secrets, *runs)


def _without(unwanted: re.Pattern[str], text: str) -> tuple[str, list[int]]:
    """The text without what the pattern finds, and where each letter stood that is left."""
    places: list[int] = []
    last = 0
    for match in unwanted.finditer(text):
        places += range(last, match.start())
        last = match.end()
    places += range(last, len(text))
    return unwanted.sub("", text), places


def _patterned(text: str, folded: str) -> Iterator[tuple[int, int]]:
    """What has the shape of a token, and what is given to something that is called a password, a key or a token."""
    for signs, pattern, is_secret in _patterns():
        if any(sign in folded for sign in signs):
            for match in re.finditer(pattern, text):
                value = match.lastindex or 0
                if is_secret(match[value]):
                    yield match.span(value)


@cache
def _patterns() -> list[tuple[list[str], str, Callable[[str], bool]]]:
    """The patterns, each with its signs and what tells whether a value that it finds is a secret."""
    return [
        *((signs.split(), shape, _is_token) for signs, shape in beside(__file__)["shapes"]),
        (_CALLED_SIGNS, rf"(?i)(?<![A-Za-z0-9]){_CALLED}{_OF}[\"']{{0,2}}{_GIVES}{_OPEN}{_VALUE}", _is_password),
        (
            ["secret", "key", "token"],
            rf"(?i)(?<![A-Za-z0-9]){_SMALL_KEY}[\"']{{0,2}}\s{{0,2}}[:=：]\s{{0,2}}{_OPEN}{_VALUE}",
            _is_password,
        ),
        (["@"], r"(?i)://[^\s/:@<>`]{1,80}:([^\s/:@<>`]{6,120})@", _is_password),
        (_KEY_SIGNS, rf"(?i)(?<![A-Za-z0-9]){_KEY}{_OF}[\"']{{0,2}}{_GIVES}{_OPEN}{_LONG}", _is_key),
        (
            ["bearer", "authorization"],
            rf"(?i)\b(?:bearer|authorization:\s{{0,2}}(?:basic|token|apikey))\s{{1,2}}{_LONG}",
            _is_key,
        ),
    ]


def _is_token(value: str) -> bool:
    return not _PLACEHOLDER.search(value) and _varied(value)


def _is_password(written: str) -> bool:
    """Only what mixes letters with digits, as a made-up word does not."""
    value = written.rstrip(".:!?)")
    return bool(_MIXED.match(value)) and not _PLACEHOLDER.search(value) and not _NO_PASSWORD.fullmatch(value)


def _is_key(written: str) -> bool:
    """Hexadecimal digits, or letters of both cases mixed with digits over and over: a name or a path is neither."""
    value = written.rstrip(".")
    if len(value) < _LEAST_KEY or not _MIXED.match(value) or not _is_token(value):
        return False
    return bool(_HEX.fullmatch(value)) or len(_CHANGES.findall(value)) * 4 >= len(value)


def _varied(value: str) -> bool:
    """Whether a value has the variety of a real one: ``sk-xxxxxxxxxxxxxxxx`` has not."""
    longest = max(len([*group]) for _, group in groupby(value.replace("-", "")))
    return len(set(value.casefold())) >= min(8, len(value) // 2 + 1) and longest <= _SHOWN


def _tabled(text: str, folded: str) -> Iterator[tuple[int, int]]:
    """Values under a table's head that says password, secret or token."""
    if "|" not in text or not any(sign in folded for sign in (*_CALLED_SIGNS, *_KEY_SIGNS)):
        return
    columns: dict[int, bool] = {}
    last = -2
    for row in _ROW.finditer(text):
        cells = list(_CELL.finditer(row[0]))
        if row.start() > last + 1:
            columns = {
                at: bool(_PASSWORD_COLUMN.fullmatch(cell[0]))
                for at, cell in enumerate(cells)
                if _SECRET_COLUMN.fullmatch(cell[0])
            }
        last = row.end()
        for at, cell in enumerate(cells):
            value = _CITED.sub("", cell[0]).strip()
            is_secret = at in columns and " " not in value and (_is_password if columns[at] else _is_key)(value)
            if is_secret and len(value) >= _SHORTEST_PASSWORD:
                yield row.start() + cell.start(), row.start() + cell.end()


def _masked(reading: Reading, span: tuple[int, int], detail: str) -> Violation:
    found = reading.violation("no_secrets", span, detail, _REMEDY)
    return replace(found, words=f"{found.words[:_SHOWN]}…")


def _private(reading: Reading) -> Iterator[tuple[int, int]]:
    """The longer runs that a private text holds too, case, space and markup aside."""
    windows = _private_windows(reading.draft.private_texts)
    if not windows:
        return
    plain, places = _without(_SPACE_AND_MARKUP, reading.text)
    start = end = -1
    for at, window in enumerate(_windows(plain)):
        if window not in windows:
            continue
        if at > end:
            if end >= 0:
                yield places[start], places[end - 1] + 1
            start = at
        end = at + _RUN
    if end >= 0:
        yield places[start], places[end - 1] + 1


@lru_cache(maxsize=4)
def _private_windows(texts: tuple[str, ...]) -> frozenset[str]:
    """All runs of private texts. Remembered: a deployment has the same ones from answer to answer."""
    return frozenset(run for text in texts for run in _windows(_SPACE_AND_MARKUP.sub("", text)))


def _windows(plain: str) -> Iterator[str]:
    small = "".join(letter.lower()[0] for letter in plain)  # letter by letter: İ has two in its place
    return (small[at : at + _RUN] for at in range(len(small) - _RUN + 1))
