"""The pages of a web site as documents, from its sitemaps or by single addresses.

A page that is gone leaves the index; one that cannot be had for now stays as it was known.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Final, NoReturn
from urllib.parse import unquote, urlsplit

from agent.knowledge.readers.reading import PACKED, SUFFIXES, digest_of, most_bytes
from agent.knowledge.sources.fetch import Fetcher, Manners, Reply
from agent.knowledge.sources.public_address import Resolve, resolved
from agent.knowledge.sources.sitemap import MOST_BYTES, looks_like_sitemap, read_sitemap
from agent.knowledge.types import FETCHED, Ground, NotModifiedError, Readable, ReadError
from agent.thread.audience import PUBLIC

MOST_PAGES: Final = 1_000
_MOST_MAPS: Final = 500
_NAMED: Final = 10  # so many left-out addresses are named; of the others only how many there are
_HTML: Final = ".html"
_FORMS: Final = {
    "text/html": _HTML,
    "application/xhtml+xml": _HTML,
    "text/markdown": ".md",
    "text/x-markdown": ".md",
    "application/pdf": ".pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
}
_UNTOLD: Final = frozenset({"", "application/octet-stream", "binary/octet-stream", "text/plain"})
_SITEMAP_KINDS: Final = frozenset({"application/xml", "text/xml", "application/gzip", "application/x-gzip"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSource:
    """One site (``https://docs.acme.com``) and the addresses in it that are configured: pages and sitemaps.

    ``hosts`` are all hosts that may be asked, ``private_hosts`` those of them that may lie in a private network.
    """

    site: str
    entries: tuple[str, ...]
    hosts: frozenset[str]
    private_hosts: frozenset[str] = frozenset()
    audience: str = PUBLIC
    most: int = MOST_PAGES
    manners: Manners = field(default_factory=Manners)
    resolve: Resolve = resolved

    @property
    def key(self) -> str:
        """What all its documents' keys begin with."""
        return f"web:{self.site}"

    @property
    def part(self) -> str:
        """The addresses that are configured, and how many pages."""
        return f"{self.most} of {' '.join(self.entries)}"

    def documents(self, ground: Ground) -> Iterator[Readable]:
        """Every page; those that were not seen for longest come first, so that a run that ends early goes on there."""
        fetcher = Fetcher(self.hosts, private_hosts=self.private_hosts, manners=self.manners, resolve=self.resolve)
        with fetcher:
            yield from _Visit(self, fetcher, ground).pages()


@dataclass(slots=True, kw_only=True)
class _Memory:
    """What is remembered of a page between runs. ``at`` is when it was last seen, in seconds since 1970."""

    digest: str = ""
    etag: str = ""
    modified: str = ""
    changed: float = 0.0
    at: float = 0.0
    size: int = 0


class _Visit:
    def __init__(self, source: WebSource, fetcher: Fetcher, ground: Ground) -> None:
        self._source = source
        self._fetcher = fetcher
        self._ground = ground
        self._pages: dict[str, float] = {}
        self._maps: list[str] = []
        self._elsewhere: list[str] = []
        self._more = False

    def pages(self) -> Iterator[Readable]:
        """What the sitemaps list and the single pages."""
        for entry in self._source.entries:
            if _path(entry).endswith((".xml", ".xml.gz")):
                self._maps.append(entry)
            else:
                self._pages[entry] = 0.0
        self._read_maps()
        done: set[str] = set()
        while waiting := [url for url in self._pages if url not in done][: self._source.most - len(done)]:
            for url in sorted(waiting, key=lambda url: self._memory(url).at):
                done.add(url)
                yield from self._page(url)
            self._read_maps()
        self._name_what_was_left(len(done))

    def _read_maps(self) -> None:
        read: set[str] = set()
        while self._maps and len(read) < _MOST_MAPS:
            url = self._maps.pop(0)
            if url in read:
                continue
            read.add(url)
            try:
                self._take_map(self._fetcher.get(url, limit_of=lambda _: MOST_BYTES).body)
            except ReadError as error:
                self._ground.missing.append(self._source.key)
                self._ground.failed.append((url, f"{error}; what was known of its pages stays"))
        if self._maps:
            reason = f"has more than {_MOST_MAPS} sitemaps; the rest is left out"
            self._ground.failed.append((self._source.site, reason))
            self._maps.clear()

    def _take_map(self, body: bytes) -> None:
        found = read_sitemap(body, most=self._source.most)
        self._more = self._more or found.more
        self._maps += filter(self._ours, found.maps)
        for url, changed in found.pages.items():
            address = url.partition("#")[0]
            if self._ours(address):
                self._pages[address] = max(changed, self._pages.get(address, 0.0))

    def _ours(self, url: str) -> bool:
        if self._fetcher.serves(url):
            return True
        self._elsewhere.append(url)
        return False

    def _name_what_was_left(self, done: int) -> None:
        failed = self._ground.failed
        failed += [(url, "is on a host that ORION_WEB_DOCS does not name") for url in self._elsewhere[:_NAMED]]
        if len(self._elsewhere) > _NAMED:
            failed.append((self._source.site, f"lists {len(self._elsewhere) - _NAMED} more pages of other hosts"))
        if self._more or len(self._pages) > done:
            failed.append((self._source.site, f"has more pages; {done} are read (ORION_WEB_DOCS_PAGES)"))

    def _page(self, url: str) -> Iterator[Readable]:
        """The page, unless it turns out to be a sitemap; what keeps it from being read is raised when it is read."""
        source, key, memory = self._source, self._key(url), self._memory(url)
        words = unquote(url.partition("://")[2]).rstrip("/")
        shown = self._ground.unique("".join(c if c.isprintable() else "?" for c in words), "web")
        stands = self._ground.known.get(key) == (memory.digest, shown, source.audience, url)
        asked = {"etag": memory.etag, "modified": memory.modified} if stands else {}
        name = ""
        try:
            page = self._fetcher.get(url, limit_of=partial(_limit, url), **asked)
            if looks_like_sitemap(page.body):
                self._take_map(page.body)
                return
            name, read = _name(url, page.kind), self._kept(url, page, memory)
        except (ReadError, NotModifiedError) as error:
            read = partial(_fail, error)
        yield Readable(id=shown, key=key, name=name, source=source.key, read=read, audience=source.audience, url=url)

    def _kept(self, url: str, page: Reply, before: _Memory) -> Callable[[], tuple[bytes, float]]:
        """What reading a page gives, and a note for the next run. Raises ``ReadError`` and ``NotModifiedError``."""
        if page.status == HTTPStatus.NOT_MODIFIED:
            self._remember(url, before)
            raise NotModifiedError(before.size)
        if page.kind in _SITEMAP_KINDS:
            raise _unread(page.kind)
        is_text = page.charset and _suffix(page.kind, url) not in PACKED
        data = _in_utf8(page.body, page.charset) if is_text else page.body
        digest, modified = digest_of(data), page.headers.get("last-modified", "")
        stated = self._pages[url] or _seconds(modified)
        first_seen = before.changed if before.digest == digest and before.changed else time.time()
        changed = min(stated, time.time()) if stated else first_seen
        etag = page.headers.get("etag", "")
        self._remember(url, _Memory(digest=digest, etag=etag, modified=modified, changed=changed, size=len(data)))
        return lambda: (data, changed)

    def _key(self, url: str) -> str:
        return f"{self._source.key}/{url}"

    def _remember(self, url: str, memory: _Memory) -> None:
        told = {**asdict(memory), "at": round(time.time(), 3)}
        self._ground.noted[FETCHED + self._key(url)] = json.dumps(told)

    def _memory(self, url: str) -> _Memory:
        try:
            return _Memory(**json.loads(self._ground.notes[FETCHED + self._key(url)]))
        except (KeyError, ValueError, TypeError):
            return _Memory()


def _fail(error: Exception) -> NoReturn:
    raise error


def _limit(url: str, kind: str) -> int:
    suffix = _suffix(kind, url)
    if kind not in _SITEMAP_KINDS and not suffix:
        raise _unread(kind)
    return MOST_BYTES if kind in _SITEMAP_KINDS else most_bytes(suffix)


def _unread(kind: str) -> ReadError:
    return ReadError(f"has a form that is not read ({kind or 'no content type'})")


def _suffix(kind: str, url: str) -> str:
    """The suffix of a file of this form; empty for what is not read."""
    if kind not in _UNTOLD:
        return _FORMS.get(kind, "")
    own = PurePosixPath(_path(url)).suffix.lower()
    if own in SUFFIXES and not (kind == "text/plain" and own in {*PACKED, _HTML, ".htm"}):
        return own
    return ".txt" if kind == "text/plain" else ""


def _name(url: str, kind: str) -> str:
    """A file name for the page: the last part of its path, with the suffix of its form."""
    last = PurePosixPath(_path(url)).name or url.partition("://")[2].partition("/")[0]
    return f"{PurePosixPath(last).stem or last}{_suffix(kind, url)}"


def _path(url: str) -> str:
    try:
        return unquote(urlsplit(url).path)
    except ValueError:
        return ""


def _in_utf8(data: bytes, charset: str) -> bytes:
    """What the server says about the encoding counts; where that cannot be, the page's own words do."""
    try:
        return data.decode(charset).encode("utf-8")
    except (LookupError, ValueError):
        return data


def _seconds(header: str) -> float:
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp())
    except (ValueError, TypeError, OverflowError):
        return 0.0
