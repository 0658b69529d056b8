"""What a disguised text says to a model that reads through the disguise: decoded, unfolded, set the right way round.

Each reading is a text of its own, used only to look for orders; it is never shown and never evidence.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Final

_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]"
)
# Unicode's tag block: all of ASCII once more, and no font shows it.
_TAGS: Final = re.compile("[\U000e0020-\U000e007e]+")
# Right-to-left override and isolate, up to the sign that ends them.
_BACKWARDS: Final = re.compile("[\u202e\u2067]([^\u202c\u2069\n]{4,4000})")
_ENTITY: Final = re.compile(r"&#x?[0-9a-f]{1,6};", re.IGNORECASE)
_SPACED: Final = re.compile(r"(?<!\S)(?:\S {1,3}){10,2000}\S(?!\S)")
_GAP: Final = re.compile(r"(?<=\S) (?=\S)")
_ENCODED: Final = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{24,4000}={0,2}(?![A-Za-z0-9+/=_-])")
_MIXED: Final = re.compile("[A-Za-z][\u0370-\u03ff\u0400-\u04ff]|[\u0370-\u03ff\u0400-\u04ff][A-Za-z]")
_STYLED: Final = re.compile("[\uff21-\uff3a\uff41-\uff5a\u249c-\u24e9\U0001d400-\U0001d7ff\U0001f130-\U0001f189]")
# This stands in what is spaced, and is found faster.
_SPACED_SIGN: Final = re.compile(r" \S {1,3}\S {1,3}\S {1,3}")
_DIGIT_IN_WORD: Final = re.compile(r"[013457$@](?<=[a-z].)(?=[a-z])", re.IGNORECASE)
_LEAST_ENCODED: Final = 24
_FEWEST_IN_WORDS: Final = 2
_LONGEST_WORD: Final = 20
_PRINTABLE: Final = 0.9
_MOST_ENCODED: Final = 20

_LOOK_ALIKE: Final = str.maketrans(
    "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαιρυν",
    "aeopcyxijshdqwABEKMHOPCTYXIJSABEZHIKMNOPTYXoaipuv",
)
_LEET: Final = str.maketrans("431057$@", "aeiostsa")


def readings(text: str) -> tuple[str, ...]:
    """What else the text may be read as; none for a plain one."""
    found = {reading for decode in _DECODERS for reading in decode(text)}
    return tuple(sorted(found - {text, ""}))


def _unfolded(text: str) -> Iterator[str]:
    """Letters that cannot be seen left out, styled, wide and look-alike ones made plain."""
    if text.isascii():
        return
    hidden = _UNSEEN.search(text) or _STYLED.search(text) or _MIXED.search(text)
    if hidden:
        yield _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).translate(_LOOK_ALIKE)


def _tagged(text: str) -> Iterator[str]:
    """Letters of the invisible tag block."""
    if not text.isascii():
        yield "\n".join("".join(chr(ord(c) - 0xE0000) for c in run) for run in _TAGS.findall(text))


def _turned(text: str) -> Iterator[str]:
    """What is written backwards behind a mark that turns it round."""
    if not text.isascii():
        yield "\n".join(run[::-1] for run in _BACKWARDS.findall(text))


def _unescaped(text: str) -> Iterator[str]:
    """Numbered entities as letters, and what stands in comments."""
    if "&#" in text and _ENTITY.search(text):
        yield html.unescape(text)
    if "<!--" in text:
        yield text.replace("<!--", "\n").replace("-->", "\n")


def _closed_up(text: str) -> Iterator[str]:
    """Words written with a space after each letter."""
    if _SPACED_SIGN.search(text):
        yield "\n".join(re.sub(r" {2,}", " ", _GAP.sub("", run)) for run in _SPACED.findall(text))


def _decoded(text: str) -> Iterator[str]:
    """Base64 that holds a text."""
    long = "\n".join([word for word in text.split() if len(word) >= _LEAST_ENCODED])
    found = (_plain_of(match) for match in _ENCODED.findall(long)[:_MOST_ENCODED])
    yield "\n".join(plain for plain in found if plain)


def _plain_of(encoded: str) -> str:
    # RFC 4648 has a second alphabet, for URLs.
    bare = encoded.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        plain = base64.b64decode(f"{bare}==").decode()  # more padding than is needed does no harm
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return plain if sum(c.isprintable() for c in plain) >= _PRINTABLE * len(plain) else ""


def _spelled(text: str) -> Iterator[str]:
    """Digits in the place of letters."""
    if not _DIGIT_IN_WORD.search(text):
        return
    words = (word for word in text.split() if len(word) <= _LONGEST_WORD and _DIGIT_IN_WORD.search(word))
    if len(list(islice(words, _FEWEST_IN_WORDS))) == _FEWEST_IN_WORDS:
        yield text.translate(_LEET)


_DECODERS: Final = (_unfolded, _tagged, _turned, _unescaped, _closed_up, _decoded, _spelled)
