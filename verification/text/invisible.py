"""Characters that a message cannot carry or a reader cannot see, and that may hide, reverse or smuggle text.

A zero-width space next to a mark stays: repair puts it there. So does a joiner between two letters or emoji that need
it, and the tags of a flag such as Scotland's.
"""

import re
from typing import Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # UTF-8 excludes them (RFC 3629): no request could carry them
_CONTROL: Final = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
# Marks and overrides of direction, and everything else that Unicode gives no width, each with no place in an answer.
_DIRECTION: Final = "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
_UNSEEN: Final = (
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
_FLAG: Final = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f"
_TAGS: Final = "[\U000e0000-\U000e007f]"
# Data may hide in rows of variation selectors behind one emoji.
_SELECTORS: Final = (
    "(?<=[\u3400-\u9fff])[\U000e0100-\U000e01ef](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])|(?<=[0-9#*\u00a9\u00ae\u1000-\U0001faff])"
    "[\ufe0e\ufe0f](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])"
)
_JOINER: Final = "(?<=[^\x00-\u02ff])[\u200c\u200d](?=[^\x00-\u02ff\u200b-\u200d])"
_MARK: Final = r"[*_~`#\[\](){}<>|\\+\-:.,&;=]"
_GUARD: Final = f"(?<={_MARK})\u200b(?!\u200b)|(?<!\u200b)\u200b(?={_MARK})"
_ANY: Final = re.compile(
    f"(?P<keep>{_FLAG}|{_SELECTORS}|{_JOINER}|{_GUARD})"
    f"|{_CONTROL}|{_DIRECTION}|{_UNSEEN}|{_TAGS}|[\u200b-\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


def remove_unencodable(text: str) -> str:
    """Replace or remove only what cannot be encoded or shown. A source keeps its disguises, so that they are found."""
    return re.sub(_CONTROL, "", _SURROGATE.sub("\ufffd", text))


def remove_unsendable(text: str) -> tuple[str, int]:
    """Remove unsendable and invisible characters. Lone surrogates become U+FFFD. Also return how many were removed."""
    if text.isascii() and text.translate(_LAYOUT).isprintable():  # a fast check that most texts pass
        return text, 0
    whole, count = _SURROGATE.subn("\ufffd", text)
    while True:  # removing one character may expose another
        clean = _ANY.sub(lambda match: match["keep"] or "", whole)
        if clean == whole:
            return clean, count
        count += len(whole) - len(clean)
        whole = clean


_LAYOUT: Final = str.maketrans("\n\t\r", "   ")
