"""Find secrets: tokens, keys and passwords by their form, and longer runs of private texts.

A placeholder (``xoxb-...``, ``$TOKEN``, ``<your-key>``, ``sk-XXXX``) is not a secret. Violations mask their words.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import groupby
from typing import Final
from urllib.parse import unquote

from verification.rules.references import cited_sources
from verification.text.disguise import fold_letters
from verification.text.language import load_table
from verification.types import Reading, Violation

_CALLED: Final = (
    r"(?:[A-Za-z]{0,12}pass(?:word|wd|phrase)|passcode|[A-Za-z0-9]{1,20}_(?:pass|pw)|passwort|kennwort|pwd"
    r"|mot de passe|contraseña|clave|senha"
    r"|wachtwoord|hasło|\u043f[a\u0430][p\u0440][o\u043e]\u043b\u044c|비밀번호|kata sandi|密码|密碼|パスワード)"
)
# One of these, in lower case and without an i, which may be dotless, is in each of them.
_CALLED_SIGNS: Final = (
    "pass _pw kennwort pwd contrase clave senha wachtwoord hasło ль 비밀번호 kata 密码 密碼 パスワード"
)
_KEY_WORD: Final = (
    r"(?:(?:[A-Za-z0-9]{1,30}[_-]){0,5}(?:secret|token|credentials?"
    r"|(?:api|access|auth|private|signing|encryption|routing|integration)[ _-]?key)"
    r"(?:[_-](?:[A-Za-z0-9]{1,30})){0,4}|(?:aws|client|app|shared|signing) secret)"
)
_SMALL_KEY_WORD: Final = r"(?:secret(?:[_-]?key)?|api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret)"
# "for the test database", "des Administrators": the purpose may precede the value.
_PURPOSE: Final = (
    r"(?:\s(?:for|of|to|on|für|des|der|vom|von|zum|zur|pour|de|du|del|para|untuk)\s[\w.@-]{1,40}"
    r"(?:\s[\w.@-]{1,40}){0,3}?)?"
)
_OPEN: Final = r"[\"'(„“”«「‘‹]{0,3}\s?"
# A ">" also separates the items of a menu ("Password > Step2"): alone it counts only right before the value, as in XML.
_SIGN: Final = r"(?:=(?:>|&gt;)|[:=：])"
_ASSIGNS: Final = (
    rf"\s{{0,2}}(?:{_SIGN}|(?:>|&gt;)(?=\S)|(?:is|ist|lautet|est|es|adalah|ialah)\b|是|为|為|は)"
    r"\s{0,2}(?:[:：=]\s{0,2})?"
)
_VALUE: Final = r"(?![\"'(])((?:(?![\"'`,;<>])[!-~]){6,200})"
_LONG: Final = r"([A-Za-z0-9+/_.=~-]{16,400})"
_SECRET_COLUMN: Final = re.compile(rf"\W*(?:\w+ )?(?:{_CALLED}|{_KEY_WORD}|secret|token)s?\W*", re.IGNORECASE)
_PASSWORD_COLUMN: Final = re.compile(rf".*{_CALLED}.*", re.IGNORECASE)
_ROW: Final = re.compile(r"^(?:[^\n|]*\|[^\n]*|[-+ ]{3,})$", re.MULTILINE)
_CELL: Final = re.compile(r"[^|]+")
_PLACEHOLDER: Final = re.compile(
    r"\.{3}|…|\*{3}|[xX]{4}|\$|%|&[lg]t;|[{}<>()\[\]]|(?:^|[_-])(?:your|my|example|sample|dummy|fake|changeme|placeholder"
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
_EXAMPLE_PASSWORD: Final = re.compile(
    r"(?:pass(?:word|wd|wort)?|pwd|secret|user|admin|port|host|x+|\*+)\d{0,3}", re.IGNORECASE
)
_LOGIN: Final = r"(?:\s-u|\s--user)[\s=]{1,2}[\"']?([^\s:\"']{1,60}):([^\s\"'`]{4,120})"  # curl
# .pgpass: host:port:database:user:password. The stars for any host and any port are removed as marks.
_PGPASS: Final = (
    r"(?<![\w:.-])(?!\d+:)[\w.-]{0,80}:(?:[0-9]{2,5})?:[\w.-]{0,60}:[\w.@-]{1,60}:"
    r"((?!\d+(?:\s|$))(?:\\.|[^\s:\\,;\"']){5,120})(?![\w:])"
)
_WORD_AND_NUMBER: Final = re.compile(r"[A-Za-z]{1,20}[0-9]{0,4}")
_MAX_SHOWN: Final = 4
_RUN_LENGTH: Final = 50
"""Minimum letters of a repeated run: about sixty characters with their spaces."""
# Marks and invisible characters: one of them inside a token would hide it.
_HIDING: Final = re.compile("[*`\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+")
_UNBROKEN: Final = re.compile(r"[A-Za-z0-9_.+/=~-]{20}")
_SPACE_AND_MARKUP: Final = re.compile(r"[\s*_`~>#\"'“”]+")
_CITED: Final = re.compile(r"\[[\d\s,;–-]{1,40}\](?:\s?\([^()\s]*\))?")  # in any spelling
_MIN_PASSWORD: Final = 6
_MIN_KEY: Final = 16
_HEX: Final = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_CHANGES: Final = re.compile(r"(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]|(?<=[a-z])[A-Z]|(?<=[A-Z])[a-z]")
_MIXED: Final = re.compile(r"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9]*[0-9])(?!.*://)")
_REMEDY: Final = "Leave it out; say where it is kept or who to ask instead."


def no_secrets(reading: Reading) -> Iterator[Violation]:
    """Yield an error for each secret by its form, and for each run of some 60 characters of a private text."""
    secrets = [(span, "This looks like a secret.") for span in _secret_spans(reading.text, reading)]
    runs = [(span, "This repeats Orion's own instructions.") for span in _private_spans(reading)]
    for span, detail in (*secrets, *runs):
        found = reading.violation("no_secrets", span, detail, _REMEDY)
        # Few letters are visible if the password is short.
        yield replace(found, words=f"{found.words[: min(_MAX_SHOWN, len(found.words) // 3)]}…")


@lru_cache(maxsize=256)  # the titles of sources are shown again and again
def mask_secrets(text: str) -> str:
    """Mask each letter of a secret in text that no rule checks: titles, names, questions, passages."""
    hidden = {place for span in _secret_spans(text) for place in range(*span)}
    return "".join("•" if place in hidden else letter for place, letter in enumerate(text)) if hidden else text


def _secret_spans(text: str, reading: Reading | None = None) -> list[tuple[int, int]]:
    """Return the values in the form of a token, and those assigned to a password, a key or a token."""
    bare, places = _strip_pattern(_HIDING, text) if _HIDING.search(text) else (text, range(len(text)))
    bare = bare if bare.isascii() else fold_letters(bare)  # one for one, so that positions do not change
    # Looking for what each pattern needs takes a tenth of the time of all patterns.
    folded, has_run = bare.lower(), bool(_UNBROKEN.search(bare))
    hits = {*_table_spans(bare)} if "|" in bare else set()
    for signs, pattern, is_secret in _rows():
        if any(map(folded.__contains__, signs)) if signs else has_run:
            found = (match for match in re.finditer(pattern, bare) if is_secret(match[match.lastindex or 0]))
            hits.update(match.span(match.lastindex or 0) for match in found)
    if hits and reading:
        hits -= {*_documented_logins(bare, reading)}
    return sorted({(places[start], places[end - 1] + 1) for start, end in hits})


def _strip_pattern(unwanted: re.Pattern[str], text: str) -> tuple[str, Sequence[int]]:
    """Remove what the pattern matches. Also return the original place of each remaining letter."""
    removed = {place for match in unwanted.finditer(text) for place in range(*match.span())}
    return unwanted.sub("", text), [place for place in range(len(text)) if place not in removed]


@cache
def _rows() -> list[tuple[list[str], str, Callable[[str], bool]]]:
    """The patterns, each with texts one of which must be present (empty: a long run), and a test for matches."""
    word = r"(?i)(?<![A-Za-z0-9])"
    rows: list[tuple[str, str, Callable[[str], bool]]] = [
        *((signs, pattern, _is_token) for signs, pattern in load_table(__file__)["shapes"]),
        (_CALLED_SIGNS, rf"{word}{_CALLED}{_PURPOSE}[\"']{{0,2}}{_ASSIGNS}{_OPEN}{_VALUE}", _is_password),
        (
            "secret key token",
            rf"{word}{_SMALL_KEY_WORD}[\"']{{0,2}}\s{{0,2}}{_SIGN}\s{{0,2}}{_OPEN}{_VALUE}",
            _is_password,
        ),
        ("-u", _LOGIN, _is_password),
        (
            "--password sshpass redis-cli",
            r"(?:\s--password|\bsshpass\s-p|\bredis-cli\b[^\n]{0,80}?\s-a)[\s=]{1,2}[\"']?([^\s\"'`]{6,120})",
            _is_password,
        ),
        ("configure", rf"\bconfigure\sset\s\w{{3,60}}\s{_LONG}", _is_password),
        ("mysql", r"\bmysql\w{0,8}\b[^\n]{0,80}?\s-p([^\s\"'`]{6,120})", _is_password),
        ("password", r"(?i)\blogin\s{1,2}\S{1,80}\s{1,2}password\s{1,2}(\S{6,120})", _is_password),  # .netrc
        ("secret token cred key", rf"{word}{_KEY_WORD}{_PURPOSE}[\"']{{0,2}}{_ASSIGNS}{_OPEN}{_LONG}", _is_key),
        (
            "bearer author",
            rf"(?i)\b(?:bearer|authorization:\s{{0,2}}(?:basic|token|apikey))\s{{1,2}}(?:token=)?{_LONG}",
            _is_key,
        ),
        ("cook", rf"(?i)\bcookie:\s{{0,2}}[\w.-]{{1,60}}={_LONG}", _is_key),
        ("://", r"://[^\s/:@<>`]{0,80}:([^\s/:@<>`]{2,120})@", _is_no_example),
        (":", _PGPASS, _is_no_example),
    ]
    return [(signs.split(), pattern, is_secret) for signs, pattern, is_secret in rows]


def _is_no_example(value: str) -> bool:
    """Return True for a value that its place already shows to be a password, unless it is an example."""
    return not (_PLACEHOLDER.search(value) or _EXAMPLE_PASSWORD.fullmatch(value))


def _is_token(value: str) -> bool:
    """Return True if a value is as varied as a real one. ``sk-xxxxxxxxxxxxxxxx`` is not."""
    plain = unquote(value)
    longest = max((len([*group]) for _, group in groupby(plain.replace("-", ""))), default=0)
    is_varied = len(set(plain.casefold())) >= min(8, len(plain) // 2 + 1) and longest <= _MAX_SHOWN
    return is_varied and not _PLACEHOLDER.search(plain)


def _is_password(written: str) -> bool:
    """Return True for a value that mixes letters and digits, unlike invented words."""
    value = written.rstrip(".:!?)")
    return bool(_MIXED.match(value)) and not _PLACEHOLDER.search(value) and not _NO_PASSWORD.fullmatch(value)


def _is_key(written: str) -> bool:
    """Return True for hex digits or well mixed letters and digits. Names and paths are neither."""
    value = written.rstrip(".")
    if len(value) < _MIN_KEY or not _MIXED.match(value) or not _is_token(value):
        return False
    return bool(_HEX.fullmatch(value)) or len(_CHANGES.findall(value)) * 4 >= len(value)


def _documented_logins(text: str, reading: Reading) -> Iterator[tuple[int, int]]:
    """Yield passwords of `curl -u user:password` that are a word and a number, as a cited source shows them."""
    for login in re.finditer(_LOGIN, text):
        password = login[2].rstrip(".:!?)")
        sources = cited_sources(reading.draft, reading.text) if _WORD_AND_NUMBER.fullmatch(password) else ()
        if any(re.search(rf"(?<![\w-]){re.escape(login[1])}:{password}(?![\w-])", source.text) for source in sources):
            yield login.span(2)


def _table_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield values in a column whose header says password, secret or token."""
    tests: dict[int, Callable[[str], bool]] = {}
    end = -2
    for row in _ROW.finditer(text):
        cells = [*enumerate(_CELL.finditer(row[0]))]
        if row.start() > end + 1:  # the header of another table
            heads = ((column, cell[0]) for column, cell in cells if _SECRET_COLUMN.fullmatch(cell[0]))
            tests = {column: _is_password if _PASSWORD_COLUMN.fullmatch(head) else _is_key for column, head in heads}
        end = row.end()
        for column, cell in cells:
            value = _CITED.sub("", cell[0]).strip()
            if column in tests and len(value) >= _MIN_PASSWORD and " " not in value and tests[column](value):
                yield row.start() + cell.start(), row.start() + cell.end()


def _private_spans(reading: Reading) -> Iterator[tuple[int, int]]:
    """Yield the longer runs that a private text also has, ignoring case, space and markup."""
    windows = _private_windows(reading.draft.private_texts)
    plain, places = _strip_pattern(_SPACE_AND_MARKUP, reading.text)
    spans: list[tuple[int, int]] = []
    for at in (at for at, window in enumerate(_windows(plain) if windows else ()) if window in windows):
        joins = spans and at <= spans[-1][1]
        start = spans.pop()[0] if joins else at
        spans.append((start, at + _RUN_LENGTH))
    return ((places[start], places[end - 1] + 1) for start, end in spans)


@lru_cache(maxsize=4)
def _private_windows(texts: tuple[str, ...]) -> frozenset[str]:
    """All runs of the private texts. Cached: a deployment has the same ones for every answer."""
    return frozenset(run for text in texts for run in _windows(_SPACE_AND_MARKUP.sub("", text)))


def _windows(plain: str) -> Iterator[str]:
    small = "".join(letter.lower()[0] for letter in plain)  # letter by letter: the lower case of İ has two
    return (small[at : at + _RUN_LENGTH] for at in range(len(small) - _RUN_LENGTH + 1))
