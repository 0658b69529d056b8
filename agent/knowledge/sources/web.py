"""The pages of a web site as documents, from its sitemaps or from single addresses.

A deleted page is removed from the index. A page that cannot be fetched for now keeps its last version. Sitemaps with
XML entities are refused, because entities can expand endlessly.
"""

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Final, NoReturn
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

from agent.knowledge.readers.reading import FORMATS_BY_TYPE, digest_of, format_of, parse_timestamp
from agent.knowledge.sources.fetch import CrawlPolicy, Fetcher, Resolve, WebReply, decompress, resolve_host
from agent.knowledge.types import FETCHED, IndexRun, NotModifiedError, Readable, ReadError
from agent.thread.conversation import PUBLIC

MAX_PAGES: Final = 1_000
_MAX_SITEMAPS: Final = 500
_MAX_NAMED: Final = 10  # skipped addresses to list; others are only counted
_UNSPECIFIED: Final = frozenset({"", "application/octet-stream", "binary/octet-stream", "text/plain"})
_SITEMAP_KINDS: Final = frozenset({"application/xml", "text/xml", "application/gzip", "application/x-gzip"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSource:
    """One site with its pages and sitemaps. Only ``hosts`` are contacted; ``private_hosts`` may be internal."""

    site: str
    entries: tuple[str, ...]
    hosts: frozenset[str]
    private_hosts: frozenset[str] = frozenset()
    audience: str = PUBLIC
    max_pages: int = MAX_PAGES
    policy: CrawlPolicy = field(default_factory=CrawlPolicy)
    resolve: Resolve = resolve_host

    @property
    def key(self) -> str:
        """Prefix of the keys of all its documents."""
        return f"web:{self.site}"

    @property
    def part(self) -> str:
        """The configured addresses and the page limit."""
        return f"{self.max_pages} of {' '.join(self.entries)}"

    def documents(self, run: IndexRun) -> Iterator[Readable]:
        """Yield every page, the longest unread first, so that a run continues where the last one stopped."""
        fetcher = Fetcher(self.hosts, private_hosts=self.private_hosts, policy=self.policy, resolve=self.resolve)
        with fetcher:
            yield from _Visit(self, fetcher, run).pages()


@dataclass(slots=True, kw_only=True)
class _Memory:
    """Facts about a page that are kept between runs. ``at`` is when it was last seen, in seconds since 1970."""

    digest: str = ""
    etag: str = ""
    modified: str = ""
    changed: float = 0.0
    at: float = 0.0
    size: int = 0


class _Visit:
    def __init__(self, source: WebSource, fetcher: Fetcher, run: IndexRun) -> None:
        self._source = source
        self._fetcher = fetcher
        self._run = run
        self._pages: dict[str, float] = {}
        self._maps: list[str] = []
        self._other_hosts: list[str] = []
        self._more = False

    def pages(self) -> Iterator[Readable]:
        """Yield the pages of the sitemaps and the single pages."""
        for entry in self._source.entries:
            if _path(entry).endswith((".xml", ".xml.gz")):
                self._maps.append(entry)
            else:
                self._pages[entry] = 0.0
        self._read_maps()
        done: set[str] = set()
        while waiting := [url for url in self._pages if url not in done][: self._source.max_pages - len(done)]:
            for url in sorted(waiting, key=lambda url: self._memory(url).at):
                done.add(url)
                yield from self._page(url)
            self._read_maps()
        failed, other = self._run.failed, self._other_hosts
        failed += [(url, "is on a host that ORION_WEB_DOCS does not name") for url in other[:_MAX_NAMED]]
        if len(other) > _MAX_NAMED:
            failed.append((self._source.site, f"lists {len(other) - _MAX_NAMED} more pages of other hosts"))
        if self._more or len(self._pages) > len(done):
            failed.append((self._source.site, f"has more pages; {len(done)} are read (ORION_WEB_DOCS_PAGES)"))

    def _read_maps(self) -> None:
        read: set[str] = set()
        while self._maps and len(read) < _MAX_SITEMAPS:
            url = self._maps.pop(0)
            if url in read:
                continue
            read.add(url)
            try:
                self._add_sitemap(self._fetcher.get(url, limit_of=lambda _: MAX_SITEMAP_BYTES).body)
            except ReadError as error:
                self._run.missing.append(self._source.key)
                self._run.failed.append((url, f"{error}; its pages stay as they were"))
        if self._maps:
            reason = f"has more than {_MAX_SITEMAPS} sitemaps; the rest is left out"
            self._run.failed.append((self._source.site, reason))
            self._maps.clear()

    def _add_sitemap(self, body: bytes) -> None:
        found = read_sitemap(body, max_pages=self._source.max_pages)
        self._more = self._more or found.more
        self._maps += filter(self._is_allowed, found.maps)
        for url, changed in found.pages.items():
            address = url.partition("#")[0]
            if self._is_allowed(address):
                self._pages[address] = max(changed, self._pages.get(address, 0.0))

    def _is_allowed(self, url: str) -> bool:
        if self._fetcher.is_allowed(url):
            return True
        self._other_hosts.append(url)
        return False

    def _page(self, url: str) -> Iterator[Readable]:
        """Yield the page, unless it turns out to be a sitemap. A failure is raised when the page is read."""
        source, memory = self._source, self._memory(url)
        key = f"{source.key}/{url}"
        words = unquote(url.partition("://")[2]).rstrip("/")
        shown = self._run.unique_id("".join(c if c.isprintable() else "?" for c in words), "web")
        is_current = self._run.known.get(key) == (memory.digest, shown, source.audience, url)
        asked = {"etag": memory.etag, "modified": memory.modified} if is_current else {}
        name = ""
        try:
            page = self._fetcher.get(url, limit_of=partial(_size_limit, url), **asked)
            if looks_like_sitemap(page.body):
                self._add_sitemap(page.body)
                return
            last = PurePosixPath(_path(url)).name or urlsplit(url).netloc
            name = f"{PurePosixPath(last).stem or last}{_suffix(page.kind, url)}"
            read = self._page_reader(url, page, memory)
        except (ReadError, NotModifiedError) as error:
            read = partial(_fail, error)
        yield Readable(id=shown, key=key, name=name, source=source.key, read=read, audience=source.audience, url=url)

    def _page_reader(self, url: str, page: WebReply, before: _Memory) -> Callable[[], tuple[bytes, float]]:
        """Return the page's ``read``, and remember it. Raises ``ReadError`` and ``NotModifiedError``."""
        if page.status == HTTPStatus.NOT_MODIFIED:
            self._remember(url, before)
            raise NotModifiedError(before.size)
        if page.kind in _SITEMAP_KINDS:
            raise _unsupported_type(page.kind)
        known, data = format_of("x" + _suffix(page.kind, url)), page.body
        if page.charset and known and not known.packed:
            with suppress(LookupError, ValueError):  # the page may declare another encoding itself
                data = data.decode(page.charset).encode("utf-8")
        digest, modified, stated = digest_of(data), page.headers.get("last-modified", ""), self._pages[url]
        with suppress(ValueError, TypeError, OverflowError):
            stated = stated or max(0.0, parsedate_to_datetime(modified).timestamp())
        first_seen = before.changed if before.digest == digest and before.changed else time.time()
        changed = min(stated, time.time()) if stated else first_seen
        etag = page.headers.get("etag", "")
        self._remember(url, _Memory(digest=digest, etag=etag, modified=modified, changed=changed, size=len(data)))
        return lambda: (data, changed)

    def _remember(self, url: str, memory: _Memory) -> None:
        note = {**asdict(memory), "at": round(time.time(), 3)}
        self._run.new_notes[f"{FETCHED}{self._source.key}/{url}"] = json.dumps(note)

    def _memory(self, url: str) -> _Memory:
        with suppress(KeyError, ValueError, TypeError):
            return _Memory(**json.loads(self._run.notes[f"{FETCHED}{self._source.key}/{url}"]))
        return _Memory()


def _fail(error: Exception) -> NoReturn:
    raise error


def _size_limit(url: str, kind: str) -> int:
    if kind in _SITEMAP_KINDS:
        return MAX_SITEMAP_BYTES
    known = format_of("x" + _suffix(kind, url))
    if known is None:
        raise _unsupported_type(kind)
    return known.max_bytes


def _unsupported_type(kind: str) -> ReadError:
    return ReadError(f"has a format that is not read ({kind or 'no content type'})")


def _suffix(kind: str, url: str) -> str:
    """Return the suffix of the page's format; empty if it is not read."""
    of_type, own = FORMATS_BY_TYPE.get(kind), PurePosixPath(_path(url)).suffix.lower()
    if kind not in _UNSPECIFIED:
        return of_type.suffixes[0] if of_type else ""
    of_name = format_of(f"x{own}")
    if of_name and not (kind == "text/plain" and (of_name.packed or of_name.name == "HTML")):
        return own
    return ".txt" if kind == "text/plain" else ""


def _path(url: str) -> str:
    try:
        return unquote(urlsplit(url).path)
    except ValueError:
        return ""


MAX_SITEMAP_BYTES: Final = 50_000_000  # size of one sitemap, decompressed, that the protocol allows
_MAX_ADDRESS_CHARS: Final = 2_048  # what the protocol allows
_MAX_DEPTH: Final = 20
_GZIP: Final = b"\x1f\x8b"
_ROOTS: Final = (b"<urlset", b"<sitemapindex")


@dataclass(slots=True, kw_only=True)
class Sitemap:
    """Pages with times of change (seconds since 1970, 0 if unknown), and further sitemaps. ``more``: not all pages."""

    pages: dict[str, float] = field(default_factory=dict)
    maps: list[str] = field(default_factory=list)
    more: bool = False

    def add(self, entry: ET.Element, max_pages: int) -> None:
        """Add the page or the sitemap of an entry."""
        texts = {_local_name(child): (child.text or "").strip() for child in entry}
        address = texts.get("loc", "")
        if not 0 < len(address) <= _MAX_ADDRESS_CHARS:
            return
        if _local_name(entry) == "sitemap":
            self.maps += [address] if len(self.maps) < max_pages else []
        elif len(self.pages) < max_pages or address in self.pages:
            self.pages[address] = parse_timestamp(texts.get("lastmod", ""))
        else:
            self.more = True


def looks_like_sitemap(data: bytes) -> bool:
    """Return whether this is XML whose root element is that of a sitemap."""
    head = data[:2_000].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith((b"<?xml", *_ROOTS)) and any(root in head for root in _ROOTS)


def read_sitemap(data: bytes, *, max_pages: int) -> Sitemap:
    """Parse at most ``max_pages`` pages and as many further sitemaps. Raises ``ReadError``."""
    text = decompress([data], "gzip", MAX_SITEMAP_BYTES) if data.startswith(_GZIP) else data
    if b"<!DOCTYPE" in text.replace(b"\0", b""):  # in text of two-byte characters half of the bytes are zero
        raise ReadError(reason="has a document type of its own, which no sitemap needs")
    found = Sitemap()
    path: list[ET.Element] = []
    try:
        for event, element in ET.iterparse(io.BytesIO(text), ("start", "end")):  # noqa: S314 - it has no entities
            if event == "start":
                path.append(element)
                if f"<{_local_name(path[0])}".encode() not in _ROOTS or len(path) > _MAX_DEPTH:
                    raise ReadError(reason="is XML, but not a sitemap")
                continue
            path.pop()
            if len(path) == 1:
                found.add(element, max_pages)
                path[0].clear()  # free its memory
    except ET.ParseError as error:
        raise ReadError(reason=f"is damaged XML (line {error.position[0]})") from error
    except (ValueError, LookupError) as error:  # expat knows Unicode, and one-byte encodings through Python
        raise ReadError(reason="is in an encoding that is not read") from error
    return found


def _local_name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
