"""Parser of sitemaps and sitemap indexes. It refuses XML entities, which can expand without end."""

import io
from dataclasses import dataclass, field
from typing import Final
from xml.etree import ElementTree as ET

from agent.knowledge.readers.dates import parse_timestamp
from agent.knowledge.sources.fetch import decompress
from agent.knowledge.types import ReadError

MAX_SITEMAP_BYTES: Final = 50_000_000  # of one sitemap, decompressed: what the protocol allows
_MAX_ADDRESS_CHARS: Final = 2_048  # what the protocol allows
_MAX_DEPTH: Final = 20
_GZIP: Final = b"\x1f\x8b"
_ROOTS: Final = (b"<urlset", b"<sitemapindex")


@dataclass(slots=True, kw_only=True)
class Sitemap:
    """Contents of a sitemap. ``pages`` maps addresses to the time of change (seconds since 1970, 0 if unknown).

    ``maps`` are addresses of further sitemaps. ``more``: there are more pages than requested.
    """

    pages: dict[str, float] = field(default_factory=dict)
    maps: list[str] = field(default_factory=list)
    more: bool = False


def looks_like_sitemap(data: bytes) -> bool:
    """Return whether this is XML whose root element is that of a sitemap."""
    head = data[:2_000].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith((b"<?xml", *_ROOTS)) and any(root in head for root in _ROOTS)


def read_sitemap(data: bytes, *, max_pages: int) -> Sitemap:
    """Parse at most ``max_pages`` pages and as many further sitemaps. Raises ``ReadError``."""
    text = decompress([data], "gzip", MAX_SITEMAP_BYTES) if data.startswith(_GZIP) else data
    if b"<!DOCTYPE" in text.replace(b"\0", b""):  # of two-byte characters half are zero
        raise ReadError(reason="has a document type of its own, which no sitemap needs")
    try:
        return _read(text, max_pages)
    except ET.ParseError as error:
        raise ReadError(reason=f"is damaged XML (line {error.position[0]})") from error
    except (ValueError, LookupError) as error:  # expat knows Unicode, and one-byte encodings through Python
        raise ReadError(reason="is in an encoding that is not read") from error


def _read(text: bytes, max_pages: int) -> Sitemap:
    found = Sitemap()
    path: list[ET.Element] = []
    for event, element in ET.iterparse(io.BytesIO(text), ("start", "end")):  # noqa: S314 - it has no entities
        if event == "start":
            path.append(element)
            if f"<{_name(path[0])}".encode() not in _ROOTS or len(path) > _MAX_DEPTH:
                raise ReadError(reason="is XML, but not a sitemap")
            continue
        path.pop()
        if len(path) == 1:
            _take(element, found, max_pages)
            path[0].clear()  # free its memory
    return found


def _take(entry: ET.Element, found: Sitemap, max_pages: int) -> None:
    said = {_name(child): (child.text or "").strip() for child in entry}
    address = said.get("loc", "")
    if not 0 < len(address) <= _MAX_ADDRESS_CHARS:
        return
    if _name(entry) == "sitemap":
        found.maps += [address] if len(found.maps) < max_pages else []
    elif len(found.pages) < max_pages or address in found.pages:
        found.pages[address] = parse_timestamp(said.get("lastmod", ""))
    else:
        found.more = True


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
