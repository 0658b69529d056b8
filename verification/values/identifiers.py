"""Machine-readable names: URLs, code spans, flags, versions, paths, environment names, error codes, addresses.

They are read as written. A comparison ignores only case, dashes and space.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from verification.markup.links import trim_punctuation
from verification.markup.scanner import blank_spans
from verification.text.language import normalise_text

Kind = Literal["url", "code", "email", "flag", "version", "path", "name", "code_number", "address"]

# Limits of a mail address (RFC 5321: 64 before the @) and of a host's label (RFC 1035: 63).
# Fiscal years are dates: FY27 is FY2027.
_IDENTIFIER = re.compile(
    r"""
      (?P<url>https?://[^\s<>|"'`（）。、，]+)
    | (?P<email>(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8})
    | (?P<flag>(?<![\w-])(?:--[A-Za-z][\w-]*|-[A-Za-z](?![\w'’-])))
    | (?P<version>(?<![\w.])(?:[vV]\d+(?:\.\d+){0,3}(?:-[A-Za-z][\w.]*)?
        |\d+\.\d+\.\d+(?:\.\d+)?(?:[-+][A-Za-z][\w.]*)?|\d+(?:\.\d+)+-(?:rc|beta|alpha)[\w.]*)(?![\w]))
    | (?P<path>(?<![\w/:<.$€£¥₹%°])(?:~|\.{1,2})?/[A-Za-z0-9_.@-]+(?:/[\w.@*-]+)*/?
        |(?<![\w/.-])[\w.-]{1,80}(?:/[\w.-]{1,80}){1,20}\.[A-Za-z]\w{0,5}\b
        |(?<![\w-])[\w-]{1,80}\.(?:py|md|ya?ml|json|toml|sh|txt|cfg|conf|ini|log|sql|js|ts|html|css|csv|env|lock|service|pdf|docx|xml
        |tf|go|rs)\b)
    | (?P<name>\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|(?<![\w_])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w_])
        |(?<!\w)\#[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*\b|(?<![\w-])[a-z]{2,}(?:-[a-z]{2,}){1,3}-\d{1,2}[a-z]?(?![\w-]))
    | (?P<code_number>\b[A-Z]{1,10}-\d{1,7}\b|\b(?!FY\d)[A-Z]{1,6}\d{2,7}\b|\b[A-Z]{3,6}\d\b|\b0x[0-9A-Fa-f]+\b)
    | (?P<address>(?<![\w-])(?:[a-z0-9-]{1,63}\.){1,8}
        (?:com|org|net|io|dev|internal|local|example|test|app|ai)\b(?::\d+)?
        |\blocalhost(?::\d+)?\b)
    """,
    re.VERBOSE,
)
_CODE = re.compile(r"`[^`\n]+`")
_CALCULATION = re.compile("(?=[^=]*=)[^×÷−]*[×÷−]")  # "`24 × 6 % = 1.44`": signs of arithmetic that code does not use
_THOUSANDS = re.compile(r"\d{1,3}(?:\.\d{3})+")
_TRAILING = ".,;:!?)]}*_~'\""
_PLURAL = re.compile(r"\b([A-Z][A-Z0-9]+)['’]?e?[sn]\b")
_PLACEHOLDER = re.compile(r"[<{\[$].*|\.{3}|…|[xX]{2,}|N")
_MIN_SIMILARITY = 60  # percent: "the source has X, not Y" must not name an unrelated X


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier:
    """One identifier: ``text`` without back-ticks and trailing punctuation, and its span."""

    kind: Kind
    text: str
    start: int
    end: int


def identifiers(text: str) -> tuple[Identifier, ...]:
    """The identifiers of ``text`` in order."""
    if "`" not in text:
        return tuple(match_identifiers(text, 0, len(text)))
    spans = [match.span() for match in _CODE.finditer(text) if not _CALCULATION.match(match[0])]
    code = [Identifier(kind="code", text=text[at:end].strip("`").strip(), start=at, end=end) for at, end in spans]
    others = match_identifiers(blank_spans(text, spans), 0, len(text))
    return tuple(sorted([*code, *others], key=lambda identifier: identifier.start))


def match_identifiers(text: str, begin: int, stop: int) -> Iterator[Identifier]:
    """Yield the identifiers between two places of ``text``, without code spans."""
    if text[begin:stop].isdecimal():
        return  # a number, the most common case
    for match in _IDENTIFIER.finditer(text, begin, stop):
        kind: Kind = match.lastgroup  # type: ignore[assignment]  # every alternative is one of the kinds
        written = match.group()
        start = match.start()
        if kind == "version" and _THOUSANDS.fullmatch(written):  # 1.234.567 as German and Spanish write it
            continue
        text_kept = trim_punctuation(written) if kind in {"url", "path"} else written
        yield Identifier(kind=kind, text=text_kept, start=start, end=start + len(text_kept))


def is_whole_word_in(needle: str, haystack: str) -> bool:
    """Return True if ``haystack`` has ``needle`` (both normalised) as a whole, not as part of a longer name."""
    return needle in haystack and bool(not needle or _whole_word(needle).search(haystack))


@lru_cache(maxsize=4096)
def _whole_word(needle: str) -> re.Pattern[str]:
    """Pattern of a whole word. Letters of a script without spaces may touch it. A version may have a v or not."""
    before = after = ""
    if needle[0].isdigit():
        before = r"(?<!\d\.)(?:(?<![A-Za-z0-9_])|(?<=\bv))"
    elif needle[0].isalnum() or needle[0] == "-":  # a flag must not be the end of another one
        before = r"(?<![A-Za-z0-9_-])" if needle[0] == "-" else "(?<![A-Za-z0-9_])"
    if needle[-1].isalnum():
        after = r"(?!\.\d)(?![A-Za-z0-9_])" + (r"(?!-[^\W_])" if needle[0] == "-" else "")
    return re.compile(before + re.escape(needle) + after)


def missing_words(identifier: Identifier, haystack: str) -> tuple[str, ...]:
    """The words of an identifier that ``haystack`` (normalised) does not have. Placeholders do not count."""
    wanted = normalise_text(identifier.text)
    spellings = {wanted, wanted.removeprefix("v")} if identifier.kind == "version" else {wanted}
    if any(is_whole_word_in(spelling, haystack) for spelling in spellings):
        return ()
    if identifier.kind != "code":
        return (identifier.text,)
    words = [word for word in identifier.text.split() if not _PLACEHOLDER.fullmatch(word)]
    return tuple(
        word
        for word in words
        if not any(
            is_whole_word_in(normalise_text(form).strip(_TRAILING + "("), haystack)
            for form in {word, without_plural(word)}
        )
    )


def without_plural(words: str) -> str:
    """The words, with abbreviations in the singular: BU for BUs, PC for PCen."""
    return _PLURAL.sub(r"\1", words)


def most_similar(written: str, known: Iterable[Identifier]) -> str:
    """The known identifier that looks most like ``written``. Empty if none is close."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - a twentieth of each start, for what is wrong only

    choices = sorted({identifier.text for identifier in known})
    best = process.extractOne(written, choices, scorer=fuzz.ratio, score_cutoff=_MIN_SIMILARITY)
    return best[0] if best else ""
