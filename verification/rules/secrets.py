"""Finds secrets: tokens, keys and passwords by their shape, and longer runs of texts that are not to be shown.

A placeholder (``xoxb-...``, ``$TOKEN``, ``<your-key>``, ``sk-XXXX``) is none. The words of a violation are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Final

from verification.draft_view import Reading
from verification.types import Violation

_SHAPES: Final = (
    ("xox", r"(?<![A-Za-z0-9])xox[abeoprs](?:\.xox[abeoprs])?-[A-Za-z0-9-]{10,250}"),
    ("xapp-", r"(?<![A-Za-z0-9])xapp-[0-9]-[A-Za-z0-9-]{10,250}"),
    ("sk-", r"(?<![A-Za-z0-9-])sk-(?:ant-|proj-|svcacct-|lf-|or-)?[A-Za-z0-9_-]{16,250}"),
    ("pk-lf-", r"(?<![A-Za-z0-9-])pk-lf-[A-Za-z0-9-]{16,64}"),
    ("AKIA ASIA", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("gho_ ghp_ ghs_ ghu_ ghr_", r"(?<![A-Za-z0-9])gh[opsur]_[A-Za-z0-9]{20,255}"),
    ("github_pat_", r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{22,255}"),
    ("glpat-", r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,64}"),
    ("AIza", r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("sk_live_ rk_live_", r"(?<![A-Za-z0-9])(?:sk|rk)_live_[A-Za-z0-9]{16,250}"),
    ("npm_", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    ("eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,4000}"),
    ("-----BEGIN", r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----\s{0,4}[A-Za-z0-9+/=:]{16}"),
    (
        "_v1_ hf_ glsa_",
        r"(?<![A-Za-z0-9])(?:do[opr]_v1_[a-f0-9]{64}|hf_[A-Za-z0-9]{30,64}|glsa_[A-Za-z0-9_]{32,64})",
    ),
    ("shp", r"(?<![A-Za-z0-9])shp(?:at|ca|pa|ss)_[a-f0-9]{32}"),
    (
        "hvs. hvb. hvr. dckr_pat_ lin_api_",
        r"(?<![A-Za-z0-9])(?:hv[sbr]\.[A-Za-z0-9_-]{24,200}|dckr_pat_[A-Za-z0-9_-]{20,64}|lin_api_[A-Za-z0-9]{32,64})",
    ),
    (
        "pypi- whsec_ NRAK-",
        r"(?<![A-Za-z0-9])(?:pypi-[A-Za-z0-9_-]{50,250}|whsec_[A-Za-z0-9+/=]{24,100}|NRAK-[A-Z0-9]{20,40})",
    ),
    (
        "SG. AGE-SECRET",
        r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{30,60}|AGE-SECRET-KEY-1[A-Z0-9]{50,60}",
    ),
    ("ya29. ATATT3", r"(?<![A-Za-z0-9])ya29\.[A-Za-z0-9_-]{30,400}|(?<![A-Za-z0-9])ATATT3[A-Za-z0-9_=-]{50,250}"),
    ("hooks.slack.com", r"hooks\.slack\.com/services/T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{16,40}"),
)
"""Each with the letters one of which it cannot do without: most texts have none, and no pattern is compiled then."""
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
_CALLED_SIGNS: Final = "pass kennwort pwd passe contraseña sandi 密 パスワード"
_ASSIGNED: Final = (
    (_CALLED_SIGNS, rf"(?<![A-Za-z0-9]){_CALLED}{_OF}[\"']{{0,2}}{_GIVES}{_OPEN}{_VALUE}"),
    ("secret key token", rf"(?<![A-Za-z0-9]){_SMALL_KEY}[\"']{{0,2}}\s{{0,2}}[:=：]\s{{0,2}}{_OPEN}{_VALUE}"),
    ("@", r"://[^\s/:@<>`]{1,80}:([^\s/:@<>`]{6,120})@"),
)
# A key or a token is long and without sense; its name alone is in many a text about keys.
_ISSUED: Final = (
    ("secret token credential key", rf"(?<![A-Za-z0-9]){_KEY}{_OF}[\"']{{0,2}}{_GIVES}{_OPEN}{_LONG}"),
    ("bearer authorization", rf"\b(?:bearer|authorization:\s{{0,2}}(?:basic|token|apikey))\s{{1,2}}{_LONG}"),
)
_SECRET_COLUMN: Final = re.compile(rf"\W*(?:\w+ )?(?:{_CALLED}|{_KEY}|secret|token)s?\W*", re.IGNORECASE)
_PASSWORD_COLUMN: Final = re.compile(rf".*{_CALLED}.*", re.IGNORECASE)
_ROW: Final = re.compile(r"^(?:[^\n|]*\|[^\n]*|[-+ ]{3,})$", re.MULTILINE)
_CELL: Final = re.compile(r"[^|]+")
_COLUMN_SIGNS: Final = (*_CALLED_SIGNS.split(), "secret", "token", "credential", "key")
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
_SPACE_AND_MARKUP: Final = re.compile(r"[\s*_`~>#\"'“”]+")
_REMEDY: Final = "Leave it out; say where it is kept or who to ask instead."


def no_secrets(reading: Reading) -> tuple[Violation, ...]:
    """An error for each secret by shape, and for each run of some 60 characters out of a private text."""
    bare = _HIDING.sub("", reading.text)
    folded = _folded(bare)
    found = {*_shapes(bare), *_split(bare), *_assigned(bare, folded), *_issued(bare, folded), *_tabled(bare, folded)}
    places = _places(reading.text) if found else ()
    spans = sorted({(places[start], places[end - 1] + 1) for start, end in found})
    secrets = [_masked(reading, span, "This looks like a secret.") for span in spans]
    runs = [_masked(reading, span, "This repeats Orion's own instructions.") for span in _private(reading)]
    return (*secrets, *runs)


_HIDING: Final = re.compile("[*`\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+")


def _places(text: str) -> Sequence[int]:
    """Where each letter stood that is left without emphasis, back-ticks and what cannot be seen."""
    places: list[int] = []
    last = 0
    for match in _HIDING.finditer(text):
        places += range(last, match.start())
        last = match.end()
    places += range(last, len(text))
    return places


def _shapes(text: str) -> Iterator[tuple[int, int]]:
    for signs, shape in _SHAPES:
        for match in re.finditer(shape, text) if _any(signs.split(), text) else ():
            if not _PLACEHOLDER.search(match[0]) and _varied(match[0]):
                yield match.span()


def _folded(text: str) -> str:
    """The text in small letters; such as patterns take for an i or an s are made one."""
    folded = text.casefold()
    return folded if text.isascii() else folded.replace("\u0131", "i").replace("i\u0307", "i")


def _any(signs: Iterable[str], text: str) -> bool:
    return any(sign in text for sign in signs)


_SPLIT: Final = re.compile(
    r"(?<![A-Za-z0-9-])(?:sk-|xox[abeoprs]-|xapp-|gh[opsur]_|github_pat_|glpat-|AIza|AKIA|(?:sk|rk)_live_|npm_)"
    r"[A-Za-z0-9_-]{2,60}(?:\s(?=[A-Za-z_-]{0,20}[0-9])(?=[0-9_-]{0,20}[A-Za-z])[A-Za-z0-9_-]{8,120}){1,3}"
)


_BEGINNINGS: Final = (
    *("sk-", "xox", "xapp-", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "AIza", "AKIA"),
    *("k_live_", "npm_"),
)
"""One of these stands in each of them."""


def _split(text: str) -> Iterator[tuple[int, int]]:
    """Tokens with a space or a line end in them: each part behind it has letters and digits."""
    for match in _SPLIT.finditer(text) if _any(_BEGINNINGS, text) else ():
        if not _PLACEHOLDER.search(match[0]) and _varied(match[0]):
            yield match.span()


def _assigned(text: str, folded: str) -> Iterator[tuple[int, int]]:
    """Values given to a password or key: only those that mix letters with digits, as a made-up word does not."""
    for signs, pattern in _ASSIGNED:
        if _any(signs.split(), folded):
            found = re.finditer(pattern, text, re.IGNORECASE)
            yield from (match.span(1) for match in found if _is_password(match[1]))


def _is_password(written: str) -> bool:
    value = written.rstrip(".:!?)")
    return bool(_MIXED.match(value)) and not _PLACEHOLDER.search(value) and not _NO_PASSWORD.fullmatch(value)


def _issued(text: str, folded: str) -> Iterator[tuple[int, int]]:
    """Long values without sense, given to something that is called a key or a token."""
    for signs, pattern in _ISSUED:
        if _any(signs.split(), folded):
            found = re.finditer(pattern, text, re.IGNORECASE)
            yield from (match.span(1) for match in found if _is_key(match[1]))


def _is_key(written: str) -> bool:
    """Hexadecimal digits, or letters of both cases mixed with digits over and over: a name or a path is neither."""
    value = written.rstrip(".")
    if len(value) < _LEAST_KEY or _PLACEHOLDER.search(value) or not _MIXED.match(value) or not _varied(value):
        return False
    return bool(_HEX.fullmatch(value)) or len(_CHANGES.findall(value)) * 4 >= len(value)


def _tabled(text: str, folded: str) -> Iterator[tuple[int, int]]:
    """Values under a table's head that says password, secret or token."""
    if "|" not in text or not _any(_COLUMN_SIGNS, folded):
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


_CITED: Final = re.compile(r"\[[0-9, ]{1,12}\]")
_SHORTEST_PASSWORD: Final = 6
_LEAST_KEY: Final = 16
_HEX: Final = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_CHANGES: Final = re.compile(r"(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]|(?<=[a-z])[A-Z]|(?<=[A-Z])[a-z]")
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
    windows = _private_windows(reading.draft.private_texts)
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


@lru_cache(maxsize=4)
def _private_windows(texts: tuple[str, ...]) -> frozenset[str]:
    """All runs of private texts. Remembered: a deployment has the same ones from answer to answer."""
    return frozenset(run for text in texts for run in _windows(_squeezed(text)[0]))


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
