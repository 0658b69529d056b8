"""The text as a reader sees it: without the syntax of links, images, footnotes and HTML, and without escapes.

Quotations are compared in this form. A writer quotes what a page shows, not the Markdown behind it.
"""

import re
from functools import lru_cache
from html import unescape

from verification.markup.inline import HTML_TAGS

_TARGET = r"\((?:[^()\n]|\([^()\n]{0,300}\)){0,2000}\)"
_IMAGE = re.compile(rf"!\[([^\[\]\n]{{0,300}})\]{_TARGET}")
# A label has a letter: "[1][2]" are citations.
_LINK = re.compile(
    rf"\[((?=[^\[\]\n]{{0,300}}[^\W\d_])(?:[^\[\]\n]|\[[^\[\]\n]{{0,100}}\]){{1,300}})\](?:{_TARGET}|\[[^\[\]\n]{{0,100}}\])"
)
_TOKEN = re.compile(r"<(?:[a-z][a-z0-9+.-]{1,30}:[^<>|\n]+)\|([^<>\n]*)>", re.IGNORECASE)
_ADDRESS = re.compile(r"<((?:https?|mailto|tel):[^<>|\s]+)>", re.IGNORECASE)
_FOOTNOTE = re.compile(r"\[\^[\w.-]{1,40}\]:?|<sup>\s*\[?\d{1,3}\]?\s*</sup>", re.IGNORECASE)
_TAG = re.compile(
    rf"<!--.{{0,4000}}?-->|</?(?:{'|'.join(sorted(HTML_TAGS))})(?:\s[^<>\n]{{0,1000}})?/?>", re.DOTALL | re.IGNORECASE
)
_LINE_MARK = re.compile(r"^[ \t]{0,3}(?:(?:>[ \t]?)+|#{1,6}[ \t]+)", re.MULTILINE)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~\n])")


@lru_cache(maxsize=512)
def text_as_read(text: str, *, captions: bool = False) -> str:
    """Return the text as a page shows it. ``captions``: images give their alternative text instead of nothing."""
    if "[" in text:
        text = _LINK.sub(r"\1", _FOOTNOTE.sub("", _IMAGE.sub(r"\1" if captions else "", text)))
    if "<" in text:
        text = _TAG.sub("", _ADDRESS.sub(r"\1", _TOKEN.sub(r"\1", _FOOTNOTE.sub("", text))))
    if "&" in text:
        text = unescape(text)
    return _ESCAPE.sub(r"\1", _LINE_MARK.sub("", text))
