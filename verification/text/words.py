"""The words of a text, stems of content words, and the characters that hide, reverse or disguise words.

Chinese and Japanese give pairs of characters. Disguises are removed before sending, and decoded to search for orders.
In an answer a zero-width space next to a mark stays, because repair puts it there. So do joiners between letters or
emoji that need them, and the tags of a flag such as Scotland's. The readings of a disguised source are never shown and
never evidence.
"""

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import snowballstemmer  # type: ignore[import-untyped]  # ships no types

from verification.text.language import all_words, detect_language, words_by_language

_ALGORITHMS = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "id": "indonesian"}
_TOKEN = re.compile(r"[^\W_]+(?:[’'][^\W\d_]+)?")
_SPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_CJK = re.compile("[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_SUBJECT_CJK = re.compile("[\u3400-\u9fff\uf900-\ufaff々]+|[\u30a1-\u30ff]+")
_LINKS = re.compile(r"https?://\S+|<[@#!][^<>\n]*>")
_EVEN = str.maketrans("’‘“”„«»\u00a0\u2010\u2011\u2012\u2013\u2014\u2212", '\'\'""""" ------')


class Term(NamedTuple):
    """One word. ``word`` is case-folded. ``stem`` is empty for a function word."""

    stem: str
    word: str
    start: int
    end: int
    capital: bool


def terms(text: str, language: str | None) -> tuple[Term, ...]:
    """The words of ``text`` in order. A run of Chinese or Japanese gives pairs of characters."""
    result: list[Term] = []
    for match in _TOKEN.finditer(text):
        word = match.group()
        if not word.isascii() and _CJK.search(word):
            result += _cjk_pairs(word, match.start())
        else:
            result.append(Term(stem(word, language), word.casefold(), match.start(), match.end(), word[0].isupper()))
    return tuple(result)


def _cjk_pairs(word: str, offset: int) -> Iterator[Term]:
    for run in _SUBJECT_CJK.finditer(word):
        letters = run.group()
        for index in range(max(1, len(letters) - 1)):
            pair = letters[index : index + 2]
            start = offset + run.start() + index
            yield Term(pair, pair, start, start + len(pair), capital=False)


def stem_list(words: Iterable[str], language: str | None) -> list[str]:
    """The stems of case-folded words in order, without empty ones."""
    return [stemmed for word in words if (stemmed := stem(word, language))]


def folded_words(text: str) -> Iterator[str]:
    """Yield the case-folded words in order, as pairs of characters for Chinese and Japanese."""
    for word in _TOKEN.findall(text):
        if not word.isascii() and _CJK.search(word):
            yield from (term.word for term in _cjk_pairs(word, 0))
        else:
            yield word.casefold()


@lru_cache(maxsize=50_000)  # some megabytes: one answer looks up ten thousand words
def stem(word: str, language: str | None) -> str:
    """The stem of a word without accents. Empty for function words and single letters."""
    if _CJK.search(word):  # a pair of characters is its own stem
        return word
    word = word.casefold().replace("’", "'").removesuffix("'s")
    if word.isdecimal() and word.isascii():
        return word
    name = language if language in _ALGORITHMS else "en"
    if len(word) < 2 and not word.isdigit():  # noqa: PLR2004  # one letter carries no subject
        return ""
    function_words = words_by_language("function_words")[name]
    if word in function_words or word.partition("'")[0] in function_words:
        return ""
    return strip_accents(str(snowballstemmer.stemmer(_ALGORITHMS[name]).stemWord(word)))


def strip_accents(word: str) -> str:
    """The word without Unicode's combining marks."""
    if word.isascii():
        return word
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


def normalise_text(text: str) -> str:
    """Normalise case, typographic quotes, dashes and white space, for comparing strings."""
    even = text if text.isascii() else text.translate(_EVEN)
    return " ".join(even.casefold().split())


def content_stems(text: str, language: str | None = None) -> frozenset[str]:
    """The stems of the content words. If the language is unknown, the stems of every stemmer."""
    known_language = language or detect_language(text)
    bare = _LINKS.sub(" ", text)
    words = [*folded_words(bare)]
    stems = frozenset(
        stem for name in ([known_language] if known_language else _ALGORITHMS) for stem in stem_list(words, name)
    )
    return frozenset(stem for stem in stems if not all_words("function_letters").issuperset(stem))


def is_spaced(text: str) -> bool:
    """Return True if the text's script separates words with spaces, unlike Chinese and Japanese."""
    return text.isascii() or not _SPACED.search(text)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # UTF-8 excludes them (RFC 3629), so no request can contain them
_CONTROL: Final = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
# Direction marks and overrides, and other characters without width, none of which belongs in an answer.
_DIRECTION: Final = "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
_WITHOUT_WIDTH: Final = (
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
_FLAG: Final = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f"
_TAG_LETTER: Final = "[\U000e0000-\U000e007f]"
# Data may hide in rows of variation selectors behind one emoji.
_SELECTORS: Final = (
    "(?<=[\u3400-\u9fff])[\U000e0100-\U000e01ef](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])|(?<=[0-9#*\u00a9\u00ae\u1000-\U0001faff])"
    "[\ufe0e\ufe0f](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])"
)
_JOINER: Final = "(?<=[^\x00-\u02ff])[\u200c\u200d](?=[^\x00-\u02ff\u200b-\u200d])"
_MARK: Final = r"[*_~`#\[\](){}<>|\\+\-:.,&;=]"
_GUARD: Final = f"(?<={_MARK})\u200b(?!\u200b)|(?<!\u200b)\u200b(?={_MARK})"
_UNSENDABLE: Final = re.compile(
    f"(?P<keep>{_FLAG}|{_SELECTORS}|{_JOINER}|{_GUARD})"
    f"|{_CONTROL}|{_DIRECTION}|{_WITHOUT_WIDTH}|{_TAG_LETTER}|[\u200b-\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


def remove_unencodable(text: str) -> str:
    """Replace or remove only what cannot be encoded or shown. A source keeps its disguises, so that they are found."""
    return re.sub(_CONTROL, "", _SURROGATE.sub("\ufffd", text))


def remove_unsendable(text: str) -> tuple[str, int]:
    """Remove unsendable and invisible characters. Lone surrogates become U+FFFD. Also return how many were removed."""
    if text.isascii() and text.translate(_LAYOUT).isprintable():  # a fast check that most texts pass
        return text, 0
    text, count = _SURROGATE.subn("\ufffd", text)
    while (clean := _UNSENDABLE.sub(lambda match: match["keep"] or "", text)) != text:
        count += len(text) - len(clean)
        text = clean  # removing one character may expose another
    return text, count


_LAYOUT: Final = str.maketrans("\n\t\r", "   ")


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
    "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαιρυν",
    "aeopcyxijshdqwABEKMHOPCTYXIJSABEZHIKMNOPTYXoaipuv",
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
    if text.isascii():
        return text
    forms = ((char, unicodedata.normalize("NFKC", char)) for char in text.translate(_PLAIN_FORMS))
    return "".join(plain if len(plain) == 1 else char for char, plain in forms)


def readings(text: str) -> tuple[str, ...]:
    """Return other readings of a text. A plain text has none."""
    return tuple(sorted({*_readings(text)} - {text, ""}))


def _readings(text: str) -> Iterator[str]:
    if _UNSEEN.search(text) or _STYLED.search(text) or _MIXED.search(text):
        yield _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).translate(_LOOK_ALIKE)
    yield "\n".join("".join(chr(ord(c) - 0xE0000) for c in run) for run in _TAG_LETTERS.findall(text))
    yield "\n".join(run[::-1] for run in _BACKWARDS.findall(text))
    if _ENTITY.search(text):
        yield html.unescape(text)
    if "<!--" in text:
        yield text.replace("<!--", "\n").replace("-->", "\n")
    yield "\n".join(re.sub(r" {2,}", " ", _GAP.sub("", run)) for run in _SPACED_OUT.findall(text))
    yield "\n".join(filter(None, map(_decode_base64, _ENCODED.findall(text)[:_MAX_ENCODED])))
    if sum(1 for word in text.split() if len(word) <= _MAX_WORD and _DIGIT_IN_WORD.search(word)) >= _MIN_LEET_WORDS:
        yield text.translate(_LEET)


def _decode_base64(encoded: str) -> str:
    # RFC 4648 has a second alphabet for URLs.
    bare = encoded.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        plain = base64.b64decode(f"{bare}==").decode()  # extra padding is ignored
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return plain if sum(c.isprintable() for c in plain) >= _MIN_PRINTABLE * len(plain) else ""
