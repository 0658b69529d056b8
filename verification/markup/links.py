"""Convert Markdown links, images, definitions and footnotes to Slack tokens.

A destination that Slack cannot open is shown as code after its label. ``[n]`` citations, ``name[i](x)`` and prose in
brackets are not links. The number of open brackets is bounded, so any nesting stays linear.
"""

import html
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from verification.markup.edits import ESCAPES, UNESCAPED, MarkupPage
from verification.markup.scanner import ANY_SCHEME, SCHEMES

# CommonMark: the parentheses of a destination balance. A pattern cannot count, so two levels of them.
_FLAT = r"(?:[^\s()<>\\]|\\[^\s])"
_ONE = rf"(?:{_FLAT}|\({_FLAT}*+\))"
_TWO = rf"(?:{_FLAT}|\({_ONE}*+\))"
_TITLE = r"(?:[ \t]+(?:\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|\([^()\n]{0,400}\)))?+"
_DESTINATION = re.compile(rf"\([ \t]*+(?:<([^<>|\n]{{0,2000}})>|({_TWO}*+)){_TITLE}[ \t]*+\)")
_WORDS = re.compile(r"\(([^()<>\n]{1,400})\)")
_ABSOLUTE = re.compile(rf"(?:{SCHEMES}):[^\s]+", re.IGNORECASE)
_LOCATOR = re.compile(rf"{ANY_SCHEME}://\S+", re.IGNORECASE)
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# CommonMark: any sign of ASCII may have a backslash before it.
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
DEFINITION = re.compile(
    r"[ \t]{0,3}\[([^\]\[\n]{1,200})\](:)[ \t]*(<[^<>\s]+>|(?:" + ANY_SCHEME + r":|\.{0,2}/|#)\S+)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
FOOTNOTE = re.compile(r"\[(\^)(\w[\w.-]{0,40})\](:?)")
_UNSAFE = str.maketrans({" ": "%20", "|": "%7C", "<": "%3C", ">": "%3E", "`": "%60", "\\": "%5C", "\t": "%20"})
_REFERENCE = re.compile(r"\[([^\]\[\n]{0,200})\]")
_CITED = re.compile(r"\d{1,3}(?:\s*,\s*\d{1,3})*")
_IMAGE = re.compile(r"(?<!(?<!\\)\\)!\Z")  # unless a backslash escapes it
_TARGET_SIGN = re.compile(r"[:/.#]")
_LINE_END_OR_PIPE = re.compile(r"[ \t]*\n[ \t]*|\|")
_MAX_LABEL = 2000  # letters: longer brackets are not a label, and noise stays linear
_PIPE = "\u2223"  # looks like the pipe between address and label of Slack's token


class Destination(NamedTuple):
    """The destination of a link and the end of its closing parenthesis. ``url`` is empty for plain words."""

    end: int
    url: str
    words: str = ""


def read_destination(text: str, start: int, end: int) -> Destination | None:
    """Read the parentheses that open at ``start``. None if they contain no destination."""
    match = _DESTINATION.match(text, start, end)
    if match:
        return Destination(match.end(), unescape_url(match[1] if match[1] is not None else match[2]))
    match = _WORDS.match(text, start, end)
    return Destination(match.end(), "", match[1]) if match else None


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
    """The open brackets of a stretch. ``settle`` pairs the emphasis inside a label before the label is closed."""

    _page: MarkupPage
    _text: str
    _start: int
    _end: int
    _settle: Callable[[int], None]
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
        if follows == "(" and (found := read_destination(self._text, end, self._end)):
            return self._destination(place, close, found)
        return self._reference(place, close) if self._page.references else end

    def _destination(self, place: Place, close: int, found: Destination) -> int:
        """Process ``[label](…)``: a link, an image, or words after a bracket."""
        before = self._text[place.start - 1] if place.start > self._start else " "
        if (before.isalnum() or before in "_)]") and not place.image and not _TARGET_SIGN.search(found.url):
            return close + 1
        if found.words:
            return self._words(place, close)
        if not self._page.is_mrkdwn and not place.image and self.last_token < place.start:
            self.last_token = place.start
            return found.end
        self.link(place, (close, found.end), found.url)
        return found.end

    def _words(self, place: Place, close: int) -> int:
        """Remove the brackets of ``[label](some words)``, which only looks like a link. The words stay."""
        if not self._page.is_mrkdwn:
            return close + 1
        self._page.fault("link", place.start, close + 1)
        keep = bool(_CITED.fullmatch(self._text, place.label, close))
        self._page.edit(place.start, place.label, "[" if keep else "")
        self._page.edit(close, close + 1, "] " if keep else " ")
        return close + 1

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
        self._settle(place.runs)
        nested = self.last_token >= place.label
        self.last_token = place.start
        self._page.fault("image" if place.image else "link", place.start, tail[1])
        if _ADDRESS.fullmatch(url):
            url = f"mailto:{url}"
        head, foot = self._shape(self._text[place.label : tail[0]], url, nested=nested)
        self._page.edit(place.start, place.label, head)
        self._page.edit(tail[0], tail[1], foot)
        if head.startswith("<"):
            self._clean_label(place.label, tail[0])

    def _shape(self, label: str, url: str, *, nested: bool) -> tuple[str, str]:
        """The text before and after the label."""
        if not is_absolute(url):
            # An address of another scheme stays readable for the citation rule, which knows if a source has it.
            shown = url if "`" in url or _LOCATOR.fullmatch(url) else f"`{url}`"
            return "", "" if not url or url.startswith("#") else f" ({shown})"
        url = quote_url(url)
        if nested or not label.strip():
            return "", (" " if nested else "") + f"<{url}>"
        if not self._page.is_mrkdwn:
            return "[", f"]({url})"
        return (f"<{url}|[", "]>") if _CITED.fullmatch(label) else (f"<{url}|", ">")

    def _clean_label(self, start: int, end: int) -> None:
        """Remove line ends, pipes and raw angle brackets from a token's label, even in code."""
        for match in _LINE_END_OR_PIPE.finditer(self._text, start, end):
            self._page.edit(match.start(), match.end(), _PIPE if match[0] == "|" else " ")
        while self.codes and self.codes[-1][0] >= start:
            for match in UNESCAPED.finditer(self._text, *self.codes.pop()):
                self._page.edit(match.start(), match.end(), ESCAPES[match[0]])
