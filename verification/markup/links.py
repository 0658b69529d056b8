"""Links: Markdown's become Slack tokens, and those of any text are found and compared.

A destination that Slack cannot open is shown as code after its label. ``[n]`` citations, ``name[i](x)`` and prose in
brackets are not links. The number of open brackets is bounded, so any nesting stays linear.
"""

import html
import re
import unicodedata
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from verification.markup.scanner import ANY_SCHEME, ESCAPES, SCHEMES, UNESCAPED, MarkupPage, blank_spans

# CommonMark: the parentheses of a destination balance. A pattern cannot count, so two levels of them.
_FLAT = r"(?:[^\s()<>\\]|\\[^\s])"
_ONE = rf"(?:{_FLAT}|\({_FLAT}*+\))"
_TWO = rf"(?:{_FLAT}|\({_ONE}*+\))"
_TITLE = r"(?:[ \t]+(?:\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|\([^()\n]{0,400}\)))?+"
_DESTINATION = re.compile(rf"\([ \t]*+(?:<([^<>|\n]{{0,2000}})>|({_TWO}*+)){_TITLE}[ \t]*+\)")
_WORDS = re.compile(r"\(([^()<>\n]{1,400})\)")
_ABSOLUTE = re.compile(rf"(?:{SCHEMES}):[^\s]+", re.IGNORECASE)
_LOCATOR = re.compile(rf"{ANY_SCHEME}://\S+", re.IGNORECASE)
# CommonMark: any ASCII punctuation may have a backslash before it.
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
DEFINITION = re.compile(
    r"[ \t]{0,3}\[([^\]\[\n]{1,200})\](:)[ \t]*(<[^<>\s]+>|(?:" + ANY_SCHEME + r":|\.{0,2}/|#)\S+)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
# Any one word may be a destination in Markdown, on the next line too.
LOOSE_DEFINITION = re.compile(
    r"[ \t]{0,3}\[[^\]\[^\n][^\]\[\n]*\](:)[ \t]*\n?[ \t]*\S+[ \t]*(?:[\"'(].*)?$", re.MULTILINE
)
FOOTNOTE = re.compile(r"\[(\^)(\w[\w.-]{0,40})\](:?)")
_UNSAFE = str.maketrans({" ": "%20", "|": "%7C", "<": "%3C", ">": "%3E", "`": "%60", "\\": "%5C", "\t": "%20"})
_REFERENCE = re.compile(r"\[([^\]\[\n]{0,200})\]")
_CITED = re.compile(r"\d{1,3}(?:\s*,\s*\d{1,3})*")
_IMAGE = re.compile(r"(?<!(?<!\\)\\)!\Z")  # not escaped by a backslash
_TARGET_SIGN = re.compile(r"[:/.#]")
_LINE_END_OR_PIPE = re.compile(r"[ \t]*\n[ \t]*|\|")
_MAX_LABEL = 2000  # maximum letters: longer brackets are not a label, and noise stays linear
_PIPE = "\u2223"  # looks like the pipe between address and label of Slack's token


def unescape_url(url: str) -> str:
    """Return a destination without Markdown's escapes."""
    return html.unescape(_ESCAPED.sub(r"\1", url)) if "\\" in url or "&" in url else url


def is_absolute(url: str) -> bool:
    """Return True if Slack can open the URL."""
    return bool(_ABSOLUTE.fullmatch(url.replace(" ", "%20")))


def quote_url(url: str) -> str:
    """Percent-encode the characters that would end a URL inside a ``<…>`` token."""
    return url.translate(_UNSAFE)


def reference_key(label: str) -> str:
    """Lookup key of a reference's name: case and inner white space do not count."""
    # CommonMark: labels are compared case-folded, any white space as one blank.
    return " ".join(label.split()).casefold()


class Place(NamedTuple):
    """An open bracket or ``<a>``: its start, its label's start, and the number of runs before it."""

    start: int
    label: int
    runs: int
    image: bool = False
    url: str = ""


@dataclass(slots=True)
class Brackets:
    """The open brackets in a range of text. Emphasis inside a label is paired before the label is closed."""

    _page: MarkupPage
    _text: str
    _start: int
    _end: int
    _pair_emphasis: Callable[[int], None]
    _open: deque[Place] = field(default_factory=lambda: deque(maxlen=64))
    codes: list[tuple[int, int]] = field(default_factory=list)
    last_token: int = -1

    def open(self, start: int, runs: int) -> int:
        """Process a ``[``: a footnote's mark, or perhaps the start of a label. Return where to continue."""
        note = FOOTNOTE.match(self._text, start, self._end) if self._text.startswith("[^", start) else None
        if note and (note[2].isdigit() or note[2] in self._page.footnotes):
            self._page.replace("footnote", note.start(1), note.end(1), "")
            return note.end(2) + 1
        image = bool(_IMAGE.search(self._text, max(self._start, start - 3), start))
        self._open.append(Place(start - image, start + 1, runs, image))
        return start + 1

    def close(self, close: int) -> int:
        """Process a ``]``: perhaps the end of a link's label. Return where to continue."""
        end = close + 1
        if not self._open:
            return end
        place = self._open.pop()
        if close - place.label > _MAX_LABEL:
            return end
        follows = self._text[end] if end < self._end else ""
        if follows == "(" and (after := self._destination(place, close)):
            return after
        return self._reference(place, close) if self._page.references else end

    def _destination(self, place: Place, close: int) -> int:
        """Process ``[label](…)``: a link, an image, or words after a bracket. Return 0 for anything else."""
        match = _DESTINATION.match(self._text, close + 1, self._end)
        words = None if match else _WORDS.match(self._text, close + 1, self._end)
        if not (tail := match or words):
            return 0
        url = unescape_url(match[1] or match[2] or "") if match else ""
        before = self._text[place.start - 1] if place.start > self._start else " "
        if (before.isalnum() or before in "_)]") and not place.image and not _TARGET_SIGN.search(url):
            return close + 1
        if words:  # they only look like a link: its brackets go, and the words stay
            if self._page.is_mrkdwn:
                self._page.fault("link", place.start, close + 1)
                keep = bool(_CITED.fullmatch(self._text, place.label, close))
                self._page.edit(place.start, place.label, "[" if keep else "")
                self._page.edit(close, close + 1, "] " if keep else " ")
            return close + 1
        if not self._page.is_mrkdwn and not place.image and self.last_token < place.start:
            self.last_token = place.start
            return tail.end()
        self.link(place, (close, tail.end()), url)
        return tail.end()

    def _reference(self, place: Place, close: int) -> int:
        """Process ``[label][id]``, ``[label][]`` and ``[label]`` if a definition has the name."""
        label = self._text[place.label : close]
        name, end = reference_key(label), close + 1
        if _CITED.fullmatch(label):
            return end
        if second := _REFERENCE.match(self._text, end, self._end):
            name = reference_key(second[1]) or name
            end = second.end()
        url = self._page.references.get(name)
        if url is None:
            return close + 1
        self._page.used.add(name)
        self.link(place, (close, end), url)
        return end

    def link(self, place: Place, tail: tuple[int, int], url: str) -> None:
        """Turn a label and its destination into a link. ``tail`` is the stretch from the label's end on."""
        self._pair_emphasis(place.runs)
        nested = self.last_token >= place.label
        self.last_token = place.start
        self._page.fault("image" if place.image else "link", place.start, tail[1])
        if _MAIL_ADDRESS.fullmatch(url):
            url = f"mailto:{url}"
        head, foot = self._shape(self._text[place.label : tail[0]], url, nested=nested)
        self._page.edit(place.start, place.label, head)
        self._page.edit(tail[0], tail[1], foot)
        if not head.startswith("<"):
            return
        # A token's label has no line endings, pipes or raw angle brackets, even in code.
        for match in _LINE_END_OR_PIPE.finditer(self._text, place.label, tail[0]):
            self._page.edit(match.start(), match.end(), _PIPE if match[0] == "|" else " ")
        while self.codes and self.codes[-1][0] >= place.label:
            for match in UNESCAPED.finditer(self._text, *self.codes.pop()):
                self._page.edit(match.start(), match.end(), ESCAPES[match[0]])

    def _shape(self, label: str, url: str, *, nested: bool) -> tuple[str, str]:
        """Return the text before and after the label."""
        if not is_absolute(url):
            # An address with another scheme stays readable for the citation rule, which knows whether a source has it.
            shown = url if "`" in url or _LOCATOR.fullmatch(url) else f"`{url}`"
            return "", "" if not url or url.startswith("#") else f" ({shown})"
        url = quote_url(url)
        if nested or not label.strip():
            return "", (" " if nested else "") + f"<{url}>"
        if not self._page.is_mrkdwn:
            return "[", f"]({url})"
        return (f"<{url}|[", "]>") if _CITED.fullmatch(label) else (f"<{url}|", ">")


_TOP_LEVEL: Final = (
    "(?:com|net|org|io|dev|app|ai|co|info|biz|xyz|site|online|top|link|click|me|cloud"
    "|de|fr|es|id|jp|cn|uk|eu|ru|nl|it|example|test|invalid)"
)
# Case makes no difference here, and to ignore it would take most of this module's import time.
_URL_LETTER: Final = '(?-i:[^\\s<>`|"“”«»\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])'
_MAX_URL: Final = 2000
_BARE: Final = re.compile(
    # Emphasis may surround an address, and Slack links "-https://…": only a letter belongs to the scheme.
    rf"(?:(?<![A-Za-z]){ANY_SCHEME}://|(?<![A-Za-z0-9@./-])(?<!\w_)www\.(?=\w)){_URL_LETTER}{{1,{_MAX_URL}}}"
    rf"|(?<![A-Za-z0-9@./:-])(?<!\w_)(?:[a-z0-9](?:[a-z0-9-]{{0,62}})\.){{1,8}}{_TOP_LEVEL}(?::[0-9]{{1,5}})?/{_URL_LETTER}{{1,{_MAX_URL}}}",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(rf"(?<!\\)<({ANY_SCHEME}:[^<>|\s]+)(?:\|([^<>\n]*))?>", re.IGNORECASE)
# Slack's dates may contain a link.
_DATE: Final = re.compile(r"<!date\^[^<>|^\n]*\^[^<>|^\n]*\^([^<>|\n]+)(?:\|([^<>\n]*))?>")
# Compiled for the first text with "](", because that takes as long as a check.
_MARKDOWN: Final = (
    r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]{0,100}\]){0,200})\]"
    r"\(\s{0,3}(?:<([^<>\n]{1,2000})>|((?:[^\s()<>]|\([^\s()<>]{0,300}\)){1,4000}))(?:\s{1,3}[\"'(][^\n]{0,300}?[\"')])?\s{0,3}\)"
)
_TRAILING_CITATIONS: Final = re.compile(r"(?:\[[0-9][0-9, -]{0,40}\][.,;:!?]?)+$")
_TRAILING: Final = ".,;:!?'*_~。，、；：！？」』】）"
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_RUN: Final = re.compile("[^\\s<>`、。，；：！？」』】）]+")
_QUOTES: Final = frozenset('"“”«»')
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,31});", re.IGNORECASE)
_MORE_RECIPIENTS: Final = re.compile(r"[?&](?:b?cc|to)=", re.IGNORECASE)
_HOST_AND_PATH: Final = re.compile(r"([^/?#]*)(/?)(.*)", re.DOTALL)
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class TextLink(NamedTuple):
    """A link in a text: its span, its target as written, and its label (empty without one)."""

    start: int
    end: int
    target: str
    label: str = ""


@lru_cache(maxsize=64)  # several steps ask for the same text
def links(masked: str) -> tuple[TextLink, ...]:
    """Return the links of a text without code, in order, none inside another."""
    found = (match for pattern in (_TOKEN, _DATE) for match in pattern.finditer(masked)) if "<" in masked else ()
    tokens = [TextLink(*match.span(), match[1], match[2] or "") for match in found]
    rest = blank_spans(masked, [link[:2] for link in tokens])
    labelled = re.finditer(_MARKDOWN, rest) if "](" in rest else ()
    markdown = [TextLink(*match.span(), match[2] or match[3], match[1]) for match in labelled]
    rest = blank_spans(rest, [link[:2] for link in markdown])
    shown = ((match.start(), _bare_spellings(match)[-1]) for match in _BARE.finditer(rest))
    bare = [TextLink(start, start + len(target), target) for start, target in shown]
    return tuple(sorted([*tokens, *markdown, *bare], key=lambda link: link.start))


def _bare_spellings(match: re.Match[str]) -> tuple[str, ...]:
    """The address up to white space, or up to a character that ends it here; both if that is unclear."""
    text, start, end = match.string, match.start(), match.end()
    shorter = trim_punctuation(_TRAILING_CITATIONS.sub("", match[0]))
    run = _RUN.match(text, start)
    longer = trim_punctuation(_TRAILING_CITATIONS.sub("", run[0][:_MAX_URL])) if run else shorter
    sign = text[end : end + 1]
    if len(longer) <= len(shorter) or not sign:
        return (shorter,)
    if sign == "|":
        in_table = text[text.rfind("\n", 0, start) + 1 : start].lstrip().startswith("|")
        return (shorter,) if in_table else (longer,)
    if sign in _QUOTES:
        return (shorter,) if text[start - 1 : start] in _QUOTES else (longer,)
    # A Chinese or Japanese sentence may continue right after the address, unless a slash precedes it.
    return (longer, shorter) if match[0][-1].isalnum() or match[0].count("/") <= len("//") else (longer,)


def trim_punctuation(target: str) -> str:
    """Remove the sentence's punctuation from a URL or path. A closing bracket stays if it was opened inside."""
    # GitHub's autolinks do the same with punctuation and unopened brackets.
    while target:
        last = target[-1]
        unopened = last in _PAIRS and target.count(last) > target.count(_PAIRS[last])
        if last not in _TRAILING and not unopened:
            break
        target = target[:-1]
    return target


@lru_cache(maxsize=256)
def mentioned_targets(text: str) -> frozenset[str]:
    """The normalised targets in a text: its links, including those in code, and its mail addresses."""
    # Cached: an answer's attempts have the same sources.
    targets = [link.target for shown in links(text) for link in (shown, *links(shown.label))]
    bare = (match for match in _BARE.finditer(text) if match[0][-1] != ")")
    targets += [spelling for match in bare for spelling in _bare_spellings(match)[:-1]]
    targets += [f"mailto:{match[0]}" for match in _MAIL_ADDRESS.finditer(text)]
    targets += [f"tel:{match[0]}" for match in _PHONE.finditer(text)]
    return frozenset(map(normalise_url, targets))


_PHONE: Final = re.compile(r"(?<![\w.,-])\+?\d[\d ()./-]{4,20}\d(?!\w)")
_NOT_DIALLED: Final = re.compile(r"[^\d+]")
_MAIL_ADDRESS: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")


@lru_cache(maxsize=1024)
def normalise_url(target: str) -> str:
    """Return a target's spelling for comparison: entities decoded, scheme and host lower case, no last slash."""
    plain = unescape_url(_ENTITY.sub(lambda match: html.unescape(match[0]), target.strip()))
    scheme, colon, rest = plain.partition(":")
    if colon and not rest.startswith("//") and "." not in scheme and "/" not in scheme:
        if scheme.casefold() == "tel":
            return f"tel:{_NOT_DIALLED.sub('', rest.partition(';')[0])}"
        # mailto: a query such as a subject does not change the address, unless it adds recipients.
        return f"{scheme.casefold()}:{(rest if _MORE_RECIPIENTS.search(rest) else rest.partition('?')[0]).casefold()}"
    if "://" not in plain and (plain.casefold().startswith("www.") or _BARE.fullmatch(plain)):
        plain = f"https://{plain}"
    scheme, slashes, rest = plain.partition("://")
    host, slash, path = _HOST_AND_PATH.findall(rest)[0] if slashes else ("", "", plain)
    # RFC 3986, 6.2: case of scheme and host and a default port do not matter.
    with suppress(UnicodeError):  # unchanged if it has no ASCII form (RFC 3490)
        host = host if host.isascii() else host.encode("idna").decode()
    host = host.casefold().removesuffix(_DEFAULT_PORTS.get(scheme.casefold(), "\0"))
    secure = "https" if scheme.casefold() == "http" else scheme.casefold()  # http and https lead to the same page
    address = f"{secure}://{host}{slash}{unquote(path)}".rstrip("/") if slashes else unquote(plain)
    return unicodedata.normalize("NFC", address)
