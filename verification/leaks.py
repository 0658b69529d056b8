"""Secrets: tokens, keys and passwords by their shape, and longer runs of texts that are not to be shown.

Promises: precise shapes only; a placeholder (``xoxb-...``, ``$TOKEN``, ``<your-key>``, ``sk-XXXX``) is none. Code is
looked into as well. The words of a violation are masked, so that a report or a retry never carries the secret on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Final

from verification.answer import Violation
from verification.reading import Reading

_SHAPES: Final = tuple(
    re.compile(shape)
    for shape in (
        r"(?<![A-Za-z0-9])xox[abeoprs](?:\.xox[abeoprs])?-[A-Za-z0-9-]{10,250}",
        r"(?<![A-Za-z0-9])xapp-[0-9]-[A-Za-z0-9-]{10,250}",
        r"(?<![A-Za-z0-9-])sk-(?:ant-|proj-|svcacct-|lf-|or-)?[A-Za-z0-9_-]{16,250}",
        r"(?<![A-Za-z0-9-])pk-lf-[A-Za-z0-9-]{16,64}",
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        r"(?<![A-Za-z0-9])gh[opsur]_[A-Za-z0-9]{20,255}",
        r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{22,255}",
        r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,64}",
        r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
        r"(?<![A-Za-z0-9])(?:sk|rk)_live_[A-Za-z0-9]{16,250}",
        r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,4000}",
        r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----\s{0,4}[A-Za-z0-9+/=:]{16}",
        r"hooks\.slack\.com/services/T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{16,40}",
    )
)
_NAME: Final = (
    r"(?:pass(?:word|wd|phrase)|passwort|kennwort|pwd|secret(?:[_-]?key)?|api[_-]?key|access[_-]?token|auth[_-]?token"
    r"|client[_-]?secret|mot de passe|contraseña|kata sandi|密码|パスワード)[\"'`*]{0,3}\s{0,2}"
)
_ASSIGNED: Final = tuple(
    re.compile(shape, re.IGNORECASE)
    for shape in (
        rf"(?<![A-Za-z0-9]){_NAME}[:=：]\s{{0,2}}[\"'`*]{{0,3}}([^\s\"'`,;。、<>]{{6,200}})",
        rf"(?<![A-Za-z0-9]){_NAME}(?:is|ist|est|es|adalah|是|は)\s{{0,2}}[\"'`*“「]{{1,3}}([^\s\"'`,;。、<>”」]{{8,200}})",
        r"://[^\s/:@<>`]{1,80}:([^\s/:@<>`]{6,120})@",
    )
)
_PLACEHOLDER: Final = re.compile(
    r"\.{3}|…|\*{3}|[xX]{4}|\$|%|[{}<>()\[\]]|(?:^|[_-])(?:your|my|example|sample|dummy|fake|changeme|placeholder|redacted"
    r"|todo|here|token|goes)(?:$|[_-])",
    re.IGNORECASE,
)
_NO_PASSWORD: Final = re.compile(
    r"[0-9]+[-–]?[A-Za-z]+|[A-Z0-9]+(?:_[A-Z0-9]+)+|[\w.-]*(?:/[\w.-]+)+/?|(?:change|pass|example)\w*"
    r"|(?:sha|aes|rsa|rs|hs|es|md|oauth|base|argon|utf|ed|tls|v|bcrypt|hmac)-?[0-9][\w.-]*",
    re.IGNORECASE,
)
_SHOWN: Final = 4
_RUN: Final = 50
"""Letters of a run that count as repeated: about sixty characters with their spaces."""
_SPACE_AND_MARKUP: Final = re.compile(r"[\s*_`~>#\"'“”]+")
_REMEDY: Final = "Leave it out; say where it is kept or who to ask instead."


def no_secrets(reading: Reading) -> tuple[Violation, ...]:
    """An error for each secret by shape, and for each run of some 60 characters out of a private text."""
    spans = sorted({*_shapes(reading.text), *_assigned(reading.text)})
    secrets = [_masked(reading, span, "This looks like a secret.") for span in spans]
    runs = [_masked(reading, span, "This repeats Orion's own instructions.") for span in _private(reading)]
    return (*secrets, *runs)


def _shapes(text: str) -> Iterator[tuple[int, int]]:
    for shape in _SHAPES:
        for match in shape.finditer(text):
            if not _PLACEHOLDER.search(match[0]) and _varied(match[0]):
                yield match.span()


def _assigned(text: str) -> Iterator[tuple[int, int]]:
    """Values given to a password or key: only those that mix letters with digits, as a made-up word does not."""
    for pattern in _ASSIGNED:
        for match in pattern.finditer(text):
            value = match[1].rstrip(".:!?)")
            if _MIXED.match(value) and not _PLACEHOLDER.search(value) and not _NO_PASSWORD.fullmatch(value):
                yield match.span(1)


_MIXED: Final = re.compile(r"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9]*[0-9])(?!.*://)")


def _varied(value: str) -> bool:
    """Whether a value has the variety of a real one: ``sk-xxxxxxxxxxxxxxxx`` has not."""
    return len(set(value.casefold())) >= min(8, len(value) // 2 + 1) and max(_repeats(value.replace("-", ""))) <= _SHOWN


def _repeats(value: str) -> Iterator[int]:
    return (sum(1 for _ in group) for _, group in groupby(value))


def _masked(reading: Reading, span: tuple[int, int], detail: str) -> Violation:
    found = reading.violation("no_secrets", span, detail, _REMEDY)
    return replace(found, words=f"{found.words[:_SHOWN]}…")


def _private(reading: Reading) -> Iterator[tuple[int, int]]:
    """The longer runs that a private text holds too, case, space and markup aside."""
    windows = {run for text in reading.draft.private_texts for run in _windows(_squeezed(text)[0])}
    if not windows:
        return
    plain, places = _squeezed(reading.text)
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


def _windows(plain: str) -> Iterator[str]:
    return (plain[at : at + _RUN] for at in range(len(plain) - _RUN + 1))


def _squeezed(text: str) -> tuple[str, list[int]]:
    """The text in lower case without space and markup, and where each letter stood."""
    letters: list[str] = []
    places: list[int] = []
    last = 0
    for match in _SPACE_AND_MARKUP.finditer(text):
        letters += text[last : match.start()].lower()[: match.start() - last]
        places += range(last, match.start())
        last = match.end()
    letters += text[last:].lower()[: len(text) - last]
    places += range(last, len(text))
    return "".join(letters), places
