"""Readers of text: encodings, programs, and the code and links of Markdown."""

import codecs
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from html import unescape
from typing import Final
from unicodedata import normalize
from urllib.parse import urljoin

from agent.knowledge.readers.document import Content, ReadDocument, ReadLimits, clean, raise_or_lower, whole
from agent.knowledge.types import ReadError

_BOMS: Final = (
    *((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32")),
    *((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")),
)
_SAMPLE: Final = 4_096
_SAMPLE_LINES: Final = 200
_FOREIGN_SHARE: Final = 0.15  # Western text has fewer non-ASCII letters; text with more is in another encoding
_EAST_ASIAN: Final = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
_MAX_CHAOS: Final = 0.06  # of the detector's estimate: Russian and Western text taken for East Asian has more
_ZERO_SHARE: Final = 0.001  # share of zero bytes: browsers and editors ignore a stray one
CODE: Final = re.compile(
    r"^[ \t]*(?P<mark>`{3,}|~{3,}).*?(?:^[ \t]*(?P=mark)[`~]*[ \t]*$|\Z)"
    r"|(?P<label>(?<!`)`(?:[^`\n]+`(?=[^\[\]`\n]*\][(\[])|[^`\[\]\n]+`(?=[^\[\]`\n]*\])))"
    r"|(?<!`)(?P<tick>`++)[^`\n]++(?P=tick)(?!`)",
    re.MULTILINE | re.DOTALL,
)
TEMPLATE_CODE: Final = (
    (re.compile(r"\{\{[<%].*?\}\}", re.DOTALL), "}}"),
    (re.compile(r"\{%.*?%\}", re.DOTALL), "%}"),
    (re.compile(r"\{\{-?(?!\s*\w+\s*-?\}\})(?:[^{}]|\{[^{}]*+\}|\}(?!\}))*+\}\}"), "}}"),
    (re.compile(r"<%.*?%>", re.DOTALL), "%>"),
)
_RAISED: Final = re.compile(r"<(?P<way>su[pb])\b[^>]*>(?P<inside>[^<]*(?:<(?!/su[pb])[^<]*)*)</su[pb]>", re.IGNORECASE)
_RAISED_ENDS: Final = ("</sup>", "</sub>", "</SUP>", "</SUB>")
_TAG: Final = re.compile(r"<[^>]*>")
_CUE_NOTE: Final = re.compile(r"(?:\A|(?<=\n\n))(?:WEBVTT|NOTE|STYLE|REGION)\b.*(?:\n.+)*")
_CUE_TIME: Final = re.compile(  # with the id that may be above it
    r"^(?:(?<=\n\n).+\n|(?<![\s\S])\d+\n)?(?P<begin>(?:\d+:)?\d\d:\d\d)[.,]\d{3}[ \t]+-->.*$", re.MULTILINE
)
_CUE_SPEAKER: Final = re.compile(r"<v(?:\.[\w.]*)?\s+([^<>\n]{1,200})>")
_CUE_TAG: Final = re.compile(r"</?(?:[a-z][\w.]*(?:\s[^<>\n]*)?|[\d:.]+)>")


def read_text(data: bytes, _: ReadLimits) -> Content:
    """Read plain text or a program."""
    return Content(parts=whole(decode(data)))


def read_transcript(data: bytes, _: ReadLimits) -> Content:
    """Read subtitles (WebVTT, SRT): who says what, after the time at which it begins. Lines stay the same."""
    text = _CUE_NOTE.sub(lambda note: "\n" * note[0].count("\n"), decode(data))
    text = _CUE_TIME.sub(lambda cue: "\n" * cue[0].count("\n") + f"[{cue['begin']}]", text)
    return Content(parts=whole(unescape(_CUE_TAG.sub("", _CUE_SPEAKER.sub(r"\1: ", text)))))


def strip_template_code(data: bytes) -> bytes:
    """Return a template (``page.html.erb``) without its code, on the same lines."""
    text = data.decode("latin-1")  # byte by byte: the page may declare its encoding
    for pattern, closing in TEMPLATE_CODE:
        text = replace_closed(pattern, lambda code: "\n" * code[0].count("\n"), text, closing)
    return text.encode("latin-1")


def outside_code(text: str, change: Callable[[str], str], *, in_labels: bool = False) -> str:
    """Apply ``change`` to Markdown except its code; with ``in_labels`` also to code in the labels of links."""
    pieces = []
    at = 0
    for code in CODE.finditer(text):
        if not (in_labels and code["label"]):
            pieces += [change(text[at : code.start()]), code[0]]
            at = code.end()
    return "".join([*pieces, change(text[at:])])


def apply_raised_tags(text: str) -> str:
    """Return HTML or Markdown with Unicode characters in place of ``<sup>`` and ``<sub>``."""

    def mark(found: re.Match[str]) -> str:
        space = " " if "<a " in found["inside"].lower() else ""  # a note's number, not an exponent
        return space + raise_or_lower(_TAG.sub("", found["inside"]), found["way"].lower())

    return replace_closed(_RAISED, mark, text, *_RAISED_ENDS)


def replace_closed(
    pattern: re.Pattern[str], new: str | Callable[[re.Match[str]], str], text: str, *closings: str
) -> str:
    """Replace the pattern's matches up to the last closing sign. To search for one after each opening would be slow."""
    end = max((text.rfind(closing) + len(closing) for closing in closings if closing in text), default=0)
    return pattern.sub(new, text[:end]) + text[end:]


def decode(data: bytes, declared: str = "") -> str:
    """Decode text by its byte order mark, as UTF-8 (with few bad bytes), as ``declared``, or by its letters."""
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "")
    sample = data[:65_536]
    has_zeros = sample.count(b"\0") > _ZERO_SHARE * len(sample)
    if not encoding and not has_zeros:
        with suppress(UnicodeDecodeError):
            return clean(data.decode())
    encoding = encoding or _utf16_without_mark(data)
    if not encoding and has_zeros:
        raise ReadError(reason="is binary, although its name says text")
    text = data.decode(encoding or "utf-8", "replace")
    broken = text.count("\ufffd")
    if encoding or 2 * broken <= len(text) - len(text.encode("ascii", "ignore")):
        return clean(text)
    is_western = len(data.translate(None, bytes(range(128)))) <= _FOREIGN_SHARE * len(data)
    for name in filter(None, (declared, "cp1252" if is_western else _east_asian_encoding(data))):
        with suppress(UnicodeDecodeError, LookupError):
            return clean(data.decode(name))
    raise ReadError(reason="is not UTF-8, nor in the encoding that it names; save it as UTF-8")


def _east_asian_encoding(data: bytes) -> str:
    """Return the encoding in which the lines that are not ASCII are Japanese, Chinese or Korean, or an empty text."""
    from charset_normalizer.md import mess_ratio  # noqa: PLC0415 - slow to load, and few files need it

    lines = [line for line in data.splitlines() if not line.isascii()]  # whole: half a character fits no encoding
    least, best = _MAX_CHAOS, ""
    for encoding in _EAST_ASIAN:
        with suppress(UnicodeDecodeError):
            text = normalize("NFKC", b"\n".join(lines[:_SAMPLE_LINES]).decode(encoding))  # ① is usual, but not to it
            if (chaos := mess_ratio(text)) < least:
                least, best = chaos, encoding
    return best


def _utf16_without_mark(data: bytes) -> str:
    """Return the UTF-16 variant in which the data is printable text, or an empty text."""
    sample = data[:_SAMPLE]
    if b"\0" not in sample or len(data) % 2:
        return ""
    most, best = 0, ""  # text has line endings or spaces
    for encoding in ("utf-16-le", "utf-16-be"):
        text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
        count = sum(character.isascii() for character in text)
        if count > most and "\ufffd" not in text and all(c.isprintable() or c.isspace() for c in text):
            most, best = count, encoding
    return best


_DEFINITION: Final = re.compile(
    r"^ {0,3}\[(?P<label>[^\[\]^]{1,200})\]:[ \t]*\n?[ \t]*(?P<url><[^<>\n]{0,2000}>|[^\s<>]{1,2000})"
    r"(?:[ \t]+(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|\([^()]{0,2000}\)|[\"'(][^\n]{0,300}))?[ \t]*$",
    re.MULTILINE,
)
_LINK: Final = re.compile(
    r"(?P<image>!?)(?<!\\)\[(?P<label>(?:[^\[\]\\]|\\.|\[[^\[\]]{0,100}\]){0,500})\]"
    r"(?:\([ \t]*(?P<url><[^<>\n]{0,2000}>|[^\s()<>]{0,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,500})?)"
    r"(?:\s+[\"'][^\n]{0,300}?[\"'])?\s*\)"
    r"|\[(?P<reference>[^\[\]]{0,200})\])?"
)
_IMAGE: Final = re.compile(r"!\[([^\[\]\n]{0,500})\]\([^()\n]{0,2000}\)")
_WIKI_LINK: Final = re.compile(  # of Obsidian and wikis: ``[[Page|label]]``, and pictures: ``![[plan.png|300]]``
    r"!\[\[[^\[\]\n]{1,300}?\.(?:png|jpe?g|gif|svg|webp|bmp|avif|mp[34]|m4a|mov|wav|ogg|webm)(?:[|#][^\[\]\n]{0,300})?\]\]"
    r"|!?\[\[(?=[^\]\n]{0,300}?[^\W\d_])(?:[^\[\]|\n]{1,300}\|)?#?(?P<label>[^\[\]|\n]{1,300})\]\](?!\()",
    re.IGNORECASE,
)
_ABSOLUTE: Final = re.compile(r"(?:https?://|mailto:|tel:)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\\?\[?(\d{1,4})\\?\]?")


def part_words(found: re.Match[str], words: str) -> str:
    """Return the words that replace an image, with a blank between them and the words or the image beside it."""
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    left, right = before.isalnum() or before in {")", "]", ">"}, after.isalnum()
    return f"{' ' * left}{words}{' ' * right}" if words else ""


def _key(label: str) -> str:
    return " ".join(label.split()).casefold()


def resolve_links(document: ReadDocument, url: str) -> ReadDocument:
    """Make all links of a document absolute. ``url`` is its own address, empty if it has none."""
    if document.form != "markdown":
        return document
    definitions = {_key(m["label"]): m["url"] for part in document.parts for m in _DEFINITION.finditer(part.text)}

    def replace_link(found: re.Match[str]) -> str:
        label, target = found["label"], found["url"]
        if target is None:
            target = definitions.get(_key(found["reference"] or label))
        number = _NUMBER.fullmatch(label)
        if number and not found["image"]:  # a number in brackets would be read as a citation
            label = f"({number[1]})"
        if target is None:
            return label if number else found[0]
        target = target.strip("<>").replace(" ", "%20")
        if found["image"] or not target or not label.strip():  # its target was template code, which was removed above
            return part_words(found, label)
        absolute = target if _ABSOLUTE.match(target) else urljoin(url, target) if url else ""
        shown = f"[{label}]({absolute})" if _ABSOLUTE.match(absolute) else label
        return shown + "\n" * (found[0].count("\n") - shown.count("\n"))

    def change(prose: str) -> str:
        prose = _DEFINITION.sub(lambda found: "\n" * found[0].count("\n"), prose)
        prose = _WIKI_LINK.sub(
            lambda found: found["label"] or "", _IMAGE.sub(lambda found: part_words(found, found[1]), prose)
        )
        return _LINK.sub(replace_link, prose)

    parts = tuple(replace(part, text=outside_code(part.text, change, in_labels=True)) for part in document.parts)
    return replace(document, parts=parts)
