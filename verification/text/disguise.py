"""Disguised text: characters that hide, reverse or replace letters, and encoded words.

The readings of a disguised source are searched for orders. They are never shown and never evidence.
"""

import base64
import html
import re
import unicodedata
from typing import Final

_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]"
)
# Unicode's tag block repeats ASCII invisibly.
_TAG_LETTERS: Final = re.compile("[\U000e0020-\U000e007e]+")
# Right-to-left override and isolate, up to their end mark.
_BACKWARDS: Final = re.compile("[\u202e\u2067]([^\u202c\u2069\n]{4,4000})")
_ENTITY: Final = re.compile(r"&#x?[0-9a-f]{1,6};", re.IGNORECASE)
_SPACED_OUT: Final = re.compile(r"(?<!\S)(?:\S {1,3}){10,2000}\S(?!\S)")
_GAP: Final = re.compile(r"(?<=\S) (?=\S)")
_ENCODED: Final = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{24,4000}={0,2}(?![A-Za-z0-9+/=_-])")
_MIXED: Final = re.compile("[A-Za-z][\u0370-\u03ff\u0400-\u04ff]|[\u0370-\u03ff\u0400-\u04ff][A-Za-z]")
_STYLED: Final = re.compile("[\uff21-\uff3a\uff41-\uff5a\u249c-\u24e9\U0001d400-\U0001d7ff\U0001f130-\U0001f189]")
_DIGIT_IN_WORD: Final = re.compile(r"[013457$@](?<=[a-z].)(?=[a-z])", re.IGNORECASE)
_MIN_LEET_WORDS: Final = 2
_MAX_WORD: Final = 20
_MIN_PRINTABLE: Final = 0.9
_MAX_ENCODED: Final = 20

_LOOK_ALIKE: Final = str.maketrans(
    "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαιρυν", "aeopcyxijshdqwABEKMHOPCTYXIJSABEZHIKMNOPTYXoaipuv"
)
_LEET: Final = str.maketrans("431057$@", "aeiostsa")
# Every dash that Unicode has, and the plain forms of full-width letters and signs.
_PLAIN_FORMS: Final[dict[int, int | str | None]] = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **_LOOK_ALIKE,
    **dict.fromkeys(
        map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d\u058a"), "-"
    ),
}


def fold_letters(text: str) -> str:
    """The text with look-alike, styled and wide letters and dashes in plain ASCII, character by character."""
    folded = text.translate(_PLAIN_FORMS)
    if unicodedata.is_normalized("NFKC", folded):  # as nearly always
        return folded
    forms = ((char, unicodedata.normalize("NFKC", char)) for char in folded)
    return "".join(plain if len(plain) == 1 else char for char, plain in forms)


def readings(text: str) -> tuple[str, ...]:
    """Return other readings of a text. A plain text has none."""
    found = {
        "\n".join("".join(chr(ord(c) - 0xE0000) for c in run) for run in _TAG_LETTERS.findall(text)),
        "\n".join(run[::-1] for run in _BACKWARDS.findall(text)),
        "\n".join(re.sub(r" {2,}", " ", _GAP.sub("", run)) for run in _SPACED_OUT.findall(text)),
        "\n".join(filter(None, map(_decode_base64, _ENCODED.findall(text)[:_MAX_ENCODED]))),
        text.replace("<!--", "\n").replace("-->", "\n") if "<!--" in text else "",
        html.unescape(text) if _ENTITY.search(text) else "",
    }
    if _UNSEEN.search(text) or _STYLED.search(text) or _MIXED.search(text):
        found.add(_UNSEEN.sub("", unicodedata.normalize("NFKC", text)).translate(_LOOK_ALIKE))
    if sum(1 for word in text.split() if len(word) <= _MAX_WORD and _DIGIT_IN_WORD.search(word)) >= _MIN_LEET_WORDS:
        found.add(text.translate(_LEET))
    return tuple(sorted(found - {text, ""}))


def _decode_base64(encoded: str) -> str:
    # RFC 4648 has a second alphabet for URLs.
    bare = encoded.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        plain = base64.b64decode(f"{bare}==").decode()  # extra padding is ignored
    except ValueError:
        return ""
    return plain if sum(c.isprintable() for c in plain) >= _MIN_PRINTABLE * len(plain) else ""
