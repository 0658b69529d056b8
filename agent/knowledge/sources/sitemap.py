"""What a sitemap, or an index of sitemaps, lists. XML entities end the reading: they could grow without end."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from xml.etree import ElementTree as ET

from agent.knowledge.sources.fetch import unpacked
from agent.knowledge.types import ReadError

MOST_BYTES: Final = 50_000_000  # of one sitemap, unpacked: what the protocol allows
_ADDRESS_CHARS: Final = 2_048  # what the protocol allows
_DEEPEST: Final = 20
_GZIP: Final = b"\x1f\x8b"
_ROOTS: Final = (b"<urlset", b"<sitemapindex")


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
    return head.startswith((b"<?xml", *_ROOTS)) and any(root in head for root in _ROOTS)


def read_sitemap(data: bytes, *, most: int) -> Sitemap:
    """At most ``most`` pages and as many further sitemaps. Raises ``ReadError``."""
    text = unpacked([data], "gzip", MOST_BYTES) if data.startswith(_GZIP) else data
    if b"<!DOCTYPE" in text.replace(b"\0", b""):  # of two-byte characters half are zero
        raise ReadError(reason="has a document type of its own, which no sitemap needs")
    try:
        return _read(text, most)
    except ET.ParseError as error:
        raise ReadError(reason=f"is damaged XML (line {error.position[0]})") from error
    except (ValueError, LookupError) as error:  # expat knows Unicode, and one-byte encodings through Python
        raise ReadError(reason="is in an encoding that is not read") from error


def _read(text: bytes, most: int) -> Sitemap:
    found = Sitemap()
    path: list[ET.Element] = []
    for event, element in ET.iterparse(io.BytesIO(text), ("start", "end")):  # noqa: S314 - it has no entities
        if event == "start":
            path.append(element)
            if f"<{_name(path[0])}".encode() not in _ROOTS or len(path) > _DEEPEST:
                raise ReadError(reason="is XML, but no sitemap")
            continue
        path.pop()
        if len(path) == 1:
            _take(element, found, most)
            path[0].clear()  # what was taken is not kept in memory
    return found


def _take(entry: ET.Element, found: Sitemap, most: int) -> None:
    said = {_name(child): (child.text or "").strip() for child in entry}
    address = said.get("loc", "")
    if not 0 < len(address) <= _ADDRESS_CHARS:
        return
    if _name(entry) == "sitemap":
        found.maps += [address] if len(found.maps) < most else []
    elif len(found.pages) < most or address in found.pages:
        found.pages[address] = _seconds(said.get("lastmod", ""))
    else:
        found.more = True


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _seconds(text: str) -> float:
    """A W3C date or time, as seconds since 1970; 0 where it is none."""
    try:
        found = datetime.fromisoformat(text)
        return max(0.0, (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return 0.0
