"""Makes a document's HTML safe to show: nh3 keeps an allow-list of tags, and headings get the anchors citations use."""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import Final

import nh3

from agent.knowledge.readers.chunking import slug

_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_TAGS: Final = _HEADINGS | {
    "a", "abbr", "b", "blockquote", "br", "caption", "code", "dd", "del", "div", "dl", "dt", "em", "figcaption",
    "figure", "hr", "i", "img", "kbd", "li", "ol", "p", "pre", "s", "samp", "section", "small", "span", "strong",
    "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul",
}  # fmt: skip
_DROPPED_WHOLE: Final = frozenset({
    "script", "style", "iframe", "object", "embed", "template", "noscript", "svg", "math", "title", "textarea",
    "select",
})  # fmt: skip
_ATTRIBUTES: Final = {
    "a": {"href"},
    "img": {"alt"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    **{heading: {"id"} for heading in _HEADINGS},
}
_SAFE_LINKS: Final = ("http://", "https://", "mailto:", "#")
# What nh3 writes is regular: lower case, every attribute quoted, every tag closed.
_IMAGE: Final = re.compile(r'<img(?: alt="([^"]*)")?>')
_HEADING: Final = re.compile(r'<(h[1-6])(?: id="([^"]*)")?>(.*?)</\1>', re.DOTALL)
_TAG: Final = re.compile(r"<[^>]*>")


def safe_html(source: str) -> str:
    """The document's body with only what may be shown. An image becomes its description: pages load nothing."""
    clean = nh3.clean(
        source,
        tags=set(_TAGS),
        clean_content_tags=set(_DROPPED_WHOLE),
        attributes=_ATTRIBUTES,
        attribute_filter=_kept,
    )
    seen: Counter[str] = Counter()
    return _HEADING.sub(lambda heading: _anchored(heading, seen), _IMAGE.sub(_described, clean))


def safe_link(address: str) -> str:
    """The address if a reader may follow it, else nothing. Relative ones may be followed."""
    # Browsers skip white space inside an address: "java script:" is a scheme to them.
    bare = "".join(address.split())
    if bare.lower().startswith(_SAFE_LINKS):
        return bare
    scheme = bare.partition("/")[0]
    return "" if ":" in scheme or bare.startswith("//") else bare


def _kept(tag: str, _attribute: str, value: str) -> str | None:
    if tag == "a":
        return safe_link(value) or None
    return value if tag not in {"td", "th"} or value.isdigit() else None


def _described(image: re.Match[str]) -> str:
    return f'<span class="image">{html.escape(html.unescape(image[1]))}</span>' if image[1] else ""


def _anchored(heading: re.Match[str], seen: Counter[str]) -> str:
    tag, own, inside = heading.groups()
    name = slug(" ".join(html.unescape(_TAG.sub("", inside)).split()))
    anchor = f"{name}-{seen[name]}" if seen[name] else name
    seen[name] += 1
    also = f'<span id="{own}"></span>' if own and html.unescape(own) != anchor else ""
    return f'<{tag} id="{html.escape(anchor)}">{also}{inside}</{tag}>'
