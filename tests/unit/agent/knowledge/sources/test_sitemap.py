"""Sitemaps of every kind, whole and hostile."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.sources.web import looks_like_sitemap, read_sitemap
from agent.knowledge.types import ReadError

SPACE = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
)


def urls(*entries: str) -> bytes:
    listed = "".join(f"<url>{entry}</url>" for entry in entries)
    return f'<?xml version="1.0"?>\n<urlset {SPACE}>{listed}</urlset>'.encode()


def test_pages_come_in_order_with_the_time_of_their_change() -> None:
    found = read_sitemap(
        urls(
            "<loc>\n https://a.example/?x=1&amp;y=2 </loc><lastmod>2026-01-02T03:04:05+00:00</lastmod>",
            "<loc>https://a.example/b</loc><lastmod>2026-01-02</lastmod><image:image><image:loc>no</image:loc></image:image>",
            "<loc><![CDATA[https://a.example/c]]></loc><lastmod>yesterday</lastmod>",
            "<lastmod>2026-01-02</lastmod>",
            f"<loc>https://a.example/{'x' * 3000}</loc>",
        ),
        max_pages=10,
    )
    assert found.pages == {
        "https://a.example/?x=1&y=2": 1_767_323_045.0,
        "https://a.example/b": 1_767_312_000.0,
        "https://a.example/c": 0.0,
    }
    assert (found.maps, found.more) == ([], False)


def test_no_more_lines_are_kept_than_requested() -> None:
    found = read_sitemap(urls(*(f"<loc>https://a.example/{n % 4}</loc>" for n in range(9))), max_pages=3)
    assert (list(found.pages), found.more) == ([f"https://a.example/{n}" for n in range(3)], True)
    maps = "".join(f"<sitemap><loc>https://a.example/{n}.xml</loc></sitemap>" for n in range(9))
    index = read_sitemap(f"<s:sitemapindex xmlns:s='x'>{maps}</s:sitemapindex>".encode(), max_pages=3)
    assert len(index.maps) == 3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is damaged XML"),
        (b"<urlset><url>", "is damaged XML"),
        (b"<html><body/></html>", "is XML, but not a sitemap"),
        (b"<urlset>" + b"<a>" * 100_000, "is XML, but not a sitemap"),
        (
            b'<!DOCTYPE u [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>',
            "document type",
        ),
        (b'<!DOCTYPE u SYSTEM "file:///etc/passwd"><urlset/>', "document type"),
        (b"<?xml version='1.0' encoding='GB2312'?><urlset/>", "an encoding that is not read"),
        (b"<?xml version='1.0' encoding='none'?><urlset/>", "an encoding that is not read"),
        (b"\x1f\x8bno gzip", "broken compression"),
        (gzip.compress(b"<urlset/>", mtime=0)[:-4], "ended early"),
    ],
)
def test_an_invalid_sitemap_is_reported_as_such(data: bytes, reason: str) -> None:
    with pytest.raises(ReadError, match=reason):
        read_sitemap(data, max_pages=10)


def test_a_compression_bomb_is_not_unpacked() -> None:
    pack = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    bomb = b"".join(pack.compress(b" " * 1_000_000) for _ in range(51)) + pack.flush()
    with pytest.raises(ReadError, match="too big"):
        read_sitemap(bomb, max_pages=1)


def test_a_sitemap_is_recognised_by_its_first_element() -> None:
    assert looks_like_sitemap(b"\xef\xbb\xbf" + urls())
    assert looks_like_sitemap(b"  <sitemapindex>")
    assert not looks_like_sitemap(b"<html>&lt;urlset></html>")
    assert not looks_like_sitemap(b"<?xml version='1.0'?><rss/>")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_sitemap_or_an_error(data: bytes) -> None:
    try:
        assert read_sitemap(b"<urlset>" + data, max_pages=2).maps == []
    except ReadError:
        return
