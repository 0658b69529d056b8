"""HTML from documents, made harmless: an allow-list of tags, links that can be followed, headings with anchors.

Promises that no script, style, frame, form, event attribute or foreign image of a document reaches the browser.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final

from agent.knowledge.readers.chunking import slug

_KEPT: Final = frozenset(
    [
        "a",
        "abbr",
        "b",
        "blockquote",
        "br",
        "caption",
        "code",
        "dd",
        "del",
        "div",
        "dl",
        "dt",
        "em",
        "figcaption",
        "figure",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "kbd",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "samp",
        "section",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "u",
        "ul",
    ]
)
_VOID: Final = frozenset({"br", "hr"})
_SILENCED: Final = frozenset(
    [
        "script",
        "style",
        "iframe",
        "object",
        "embed",
        "template",
        "noscript",
        "svg",
        "math",
        "head",
        "textarea",
        "select",
    ]
)
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_SAFE_LINKS: Final = ("http://", "https://", "mailto:", "#")

Attributes = Sequence[tuple[str, str | None]]


def safe_html(source: str) -> str:
    """The document's body with only what may be shown; headings get the anchors that citations use."""
    cleaner = _Cleaner()
    cleaner.feed(source)
    cleaner.close()
    return cleaner.result()


def safe_link(address: str) -> str:
    """The address if a reader may follow it, else nothing. Relative ones may be followed."""
    bare = "".join(address.split())
    if bare.lower().startswith(_SAFE_LINKS):
        return bare
    scheme = bare.partition("/")[0]
    return "" if ":" in scheme or bare.startswith("//") else bare


@dataclass(slots=True)
class _Heading:
    """A heading that is being read: where it starts in the output, and its text."""

    tag: str
    start: int
    own_id: str
    text: list[str] = field(default_factory=list)


class _Cleaner(HTMLParser):
    """Writes allowed tags again, one by one, and drops the rest."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._out: list[str] = []
        self._open: list[str] = []
        self._silenced: list[str] = []
        self._heading: _Heading | None = None
        self._seen: dict[str, int] = {}

    def result(self) -> str:
        """The clean HTML, with every open tag closed."""
        while self._open:
            self._out.append(f"</{self._open.pop()}>")
        return "".join(self._out)

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        """Writes an allowed tag; starts silence at one whose content is not text."""
        if tag in _SILENCED:
            self._silenced.append(tag)
        if self._silenced:
            return
        if tag == "img":
            self._image(dict(attrs))
        elif tag in _KEPT:
            self._start(tag, dict(attrs))

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        """``<script/>`` opens no silence that would never end; other tags go as usual."""
        if tag not in _SILENCED:
            self.handle_starttag(tag, attrs)
            if tag not in _VOID:
                self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Closes what is open."""
        if tag in self._silenced:
            while self._silenced.pop() != tag:
                pass
            return
        if self._silenced or tag not in self._open:
            return
        while self._open:
            last = self._open.pop()
            self._out.append(f"</{last}>")
            if last == tag:
                break
        if self._heading is not None and self._heading.tag == tag:
            self._name_heading(self._heading)
            self._heading = None

    def handle_data(self, data: str) -> None:
        """Text, escaped."""
        if self._silenced:
            return
        if self._heading is not None:
            self._heading.text.append(data)
        self._out.append(html.escape(data))

    def _start(self, tag: str, attributes: dict[str, str | None]) -> None:
        kept = _kept_attributes(tag, attributes)
        if tag in _HEADINGS:
            self._heading = _Heading(tag, len(self._out), attributes.get("id") or "")
        self._out.append(f"<{tag}{kept}>")
        if tag not in _VOID:
            self._open.append(tag)

    def _image(self, attributes: dict[str, str | None]) -> None:
        if alternative := attributes.get("alt"):
            self._out.append(f'<span class="image">{html.escape(alternative)}</span>')

    def _name_heading(self, heading: _Heading) -> None:
        name = slug(" ".join("".join(heading.text).split()))
        count = self._seen.get(name, 0)
        self._seen[name] = count + 1
        anchor = f"{name}-{count}" if count else name
        marker = ""
        if heading.own_id and heading.own_id != anchor:
            marker = f'<span id="{html.escape(heading.own_id)}"></span>'
        self._out[heading.start] = f'<{heading.tag} id="{html.escape(anchor)}">{marker}'


def _kept_attributes(tag: str, attributes: dict[str, str | None]) -> str:
    if tag == "a":
        target = safe_link(attributes.get("href") or "")
        return f' href="{html.escape(target)}" rel="noopener noreferrer"' if target else ""
    if tag in ("td", "th"):
        spans = ((name, attributes.get(name) or "") for name in ("colspan", "rowspan"))
        return "".join(f' {name}="{value}"' for name, value in spans if value.isdigit())
    return ""
