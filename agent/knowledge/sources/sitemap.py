"""What a sitemap, or an index of sitemaps, lists. XML entities end the reading: they could grow without end."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from xml.parsers.expat import ExpatError, ParserCreate

MOST_BYTES: Final = 50_000_000
"""Of one sitemap, unpacked: what the protocol allows."""
_ADDRESS_CHARS: Final = 2_048
_DEEPEST: Final = 20
_GZIP: Final = b"\x1f\x8b"
_ROOTS: Final = frozenset({"urlset", "sitemapindex"})


class SitemapError(Exception):
    """Not a sitemap; the text says why."""


@dataclass(slots=True, kw_only=True)
class Sitemap:
    """Addresses of pages with when they were changed (seconds since 1970, 0 where it is not told), and of sitemaps.

    ``more``: there were more pages than were asked for.
    """

    pages: dict[str, float] = field(default_factory=dict)
    maps: list[str] = field(default_factory=list)
    more: bool = False


def looks_like_sitemap(data: bytes) -> bool:
    """Whether this is XML whose first element is that of a sitemap."""
    head = data[:2_000].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith((b"<?xml", b"<urlset", b"<sitemapindex")) and any(
        f"<{root}".encode() in head for root in _ROOTS
    )


def plain(data: bytes) -> bytes:
    """The sitemap, unpacked where it is packed. Raises ``SitemapError``."""
    if not data.startswith(_GZIP):
        return data
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        text = unpack.decompress(data, MOST_BYTES + 1)
    except zlib.error as error:
        msg = "is packed in a broken way"
        raise SitemapError(msg) from error
    if len(text) > MOST_BYTES or not unpack.eof:
        msg = f"is too big or broke off (the limit is {MOST_BYTES // 1_000_000} MB unpacked)"
        raise SitemapError(msg)
    return text


def read_sitemap(data: bytes, *, most: int) -> Sitemap:
    """At most ``most`` pages and as many further sitemaps. Raises ``SitemapError``."""
    reading = _Reading(most)
    try:
        reading.read(plain(data))
    except ExpatError as error:
        msg = f"is damaged XML (line {error.lineno})"
        raise SitemapError(msg) from error
    return reading.found


class _Reading:
    """One pass over the elements."""

    def __init__(self, most: int) -> None:
        self.found = Sitemap()
        self._most = most
        self._path: list[str] = []
        self._text: list[str] = []
        self._entry: dict[str, str] = {}

    def read(self, data: bytes) -> None:
        parser = ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append
        parser.StartDoctypeDeclHandler = self._doctype
        parser.Parse(data, True)

    def _doctype(self, *_: object) -> None:
        msg = "has a document type of its own, which no sitemap needs"
        raise SitemapError(msg)

    def _start(self, name: str, _: object) -> None:
        local = name.rpartition(":")[2]
        if (not self._path and local not in _ROOTS) or len(self._path) > _DEEPEST:
            msg = "is XML, but no sitemap"
            raise SitemapError(msg)
        self._path.append(local)
        self._text.clear()

    def _end(self, _: str) -> None:
        path = "/".join(self._path[-3:])
        self._path.pop()
        text = "".join(self._text).strip()
        self._text.clear()
        if path in {"urlset/url/loc", "sitemapindex/sitemap/loc", "urlset/url/lastmod"}:
            self._entry[path.rpartition("/")[2]] = text[: _ADDRESS_CHARS + 1]
        elif path in {"urlset/url", "sitemapindex/sitemap"}:
            self._take(path == "urlset/url")

    def _take(self, is_page: bool) -> None:  # noqa: FBT001 - one of two kinds of entries
        address, changed = self._entry.get("loc", ""), self._entry.get("lastmod", "")
        self._entry = {}
        if not address or len(address) > _ADDRESS_CHARS:
            return
        if not is_page:
            if len(self.found.maps) < self._most:
                self.found.maps.append(address)
        elif len(self.found.pages) < self._most or address in self.found.pages:
            self.found.pages[address] = _seconds(changed)
        else:
            self.found.more = True


def _seconds(text: str) -> float:
    """A W3C date or time, as seconds since 1970; 0 where it is none."""
    try:
        found = datetime.fromisoformat(text)
        return max(0.0, (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return 0.0
