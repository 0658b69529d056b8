"""Web pages as documents, from a real site on loopback, in both indexes: what changed, what is gone, what fails."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from docx import Document as WordDocument
from fpdf import FPDF

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.tables import notes
from agent.knowledge.sources.fetch import CrawlPolicy
from agent.knowledge.sources.web import WebSource
from agent.knowledge.types import DeferredSource, IndexReport, IndexRun, Readable, ReadError, SourceState
from tests.support.documents import bytes_of
from tests.support.web_site import LocalSite, Reply, html

HASTE = CrawlPolicy(delay_s=0.0, page_timeout_s=3.0, step_timeout_s=3.0, failures=3)


@pytest.fixture
def site() -> Iterator[LocalSite]:
    with LocalSite() as running:
        yield running


def gzip_reply(body: bytes) -> Reply:
    return Reply(body=gzip.compress(body, 1), headers={"Content-Encoding": "gzip"})


def source(site: LocalSite, *entries: str, **more: Any) -> WebSource:
    hosts = {"localhost", *more.pop("hosts", ())}
    return WebSource(
        site=site.url,
        entries=entries or (f"{site.url}/sitemap.xml",),
        hosts=frozenset(hosts),
        private_hosts=frozenset(more.pop("private_hosts", ("localhost",))),
        **{"policy": HASTE, **more},
    )


def document_paths(index: KnowledgeIndex, site: LocalSite) -> list[str]:
    return [document.id.removeprefix(f"localhost:{site.port}") for document in index.documents()]


def state(index: KnowledgeIndex, of: WebSource) -> SourceState:
    return index.states()[of.key]


def new_notes(index: KnowledgeIndex) -> dict[str, str]:
    with index.session() as session:
        return notes(session, "fetched:")


def trouble(page: Readable) -> str | None:
    """The reason why a page is not read."""
    try:
        page.read()
    except ReadError as error:
        return error.reason
    return None


def test_the_pages_of_a_sitemap_are_documents_with_their_link(index: KnowledgeIndex, site: LocalSite) -> None:
    site.pages["/lunch"] = html("The canteen opens at noon.", "Lunch", modified="Mon, 02 Mar 2026 10:00:00 GMT")
    site.pages["/pay"] = html("A bonus of 900.", "Pay")
    site.sitemap("/lunch", "/pay")
    web = source(site, audience="C0WEB")
    assert index.index([web]) == IndexReport(added=2)
    found = index.search("When does the canteen open?")[0]
    assert (found.title, found.url, found.updated_at) == ("Lunch", f"{site.url}/lunch", "2026-03-02")
    assert found.audience == "C0WEB"
    assert {document.source for document in index.documents()} == {f"web:{site.url}"}
    assert site.asked == ["/robots.txt", "/sitemap.xml", "/lunch", "/pay"]
    assert site.headers["/lunch"]["user-agent"].startswith("Orion/")
    assert "cookie" not in site.headers["/lunch"]
    told = state(index, web)
    assert (told.read, told.failures, told.synced) == (2, 0, told.tried)
    assert told.size == len(site.pages["/lunch"].body) + len(site.pages["/pay"].body)


def test_unchanged_pages_are_not_downloaded_again(index: KnowledgeIndex, site: LocalSite) -> None:
    site.pages["/tag"] = html("Tagged.", "Tag", etag='"v1"')
    site.pages["/date"] = html("Dated.", "Date", modified="Mon, 02 Mar 2026 10:00:00 GMT")
    site.pages["/bare"] = html("Bare.", "Bare")
    site.sitemap("/tag", "/date", "/bare")
    web = source(site)
    assert index.index([web]) == IndexReport(added=3)
    size = state(index, web).size
    assert index.index([web]) == IndexReport(unchanged=3)
    assert site.headers["/tag"]["if-none-match"] == '"v1"'
    assert site.headers["/date"]["if-modified-since"] == "Mon, 02 Mar 2026 10:00:00 GMT"
    assert state(index, web).size == size
    site.pages["/tag"] = html("Tagged anew.", "Tag", etag='"v2"')
    assert index.index([web]) == IndexReport(changed=1, unchanged=2)
    assert index.search("anew")
    assert index.index([web]) == IndexReport(unchanged=3)
    assert site.headers["/tag"]["if-none-match"] == '"v2"'


def test_a_changed_audience_is_indexed_even_if_the_page_is_unchanged(index: KnowledgeIndex, site: LocalSite) -> None:
    site.pages["/a"] = html("Text.", etag='"v1"')
    index.index([source(site, f"{site.url}/a")])
    assert index.index([source(site, f"{site.url}/a", audience="C0HR")]) == IndexReport(changed=1)
    assert [document.audience for document in index.documents()] == ["C0HR"]


def test_missing_pages_are_dropped_and_failing_ones_stay(index: KnowledgeIndex, site: LocalSite) -> None:
    for path in ("/stays", "/gone", "/late", "/broken", "/unlisted", "/secret"):
        site.pages[path] = html(f"About {path[1:]}.", path[1:])
    site.sitemap("/stays", "/gone", "/late", "/broken", "/unlisted", "/secret")
    web = source(site)
    assert index.index([web]).added == 6
    site.sitemap("/stays", "/gone", "/late", "/broken", "/secret")
    site.pages["/gone"] = Reply(status=410)
    site.pages["/late"] = Reply(hangs=True)
    site.pages["/broken"] = Reply(status=500)
    site.pages["/secret"] = Reply(status=403)
    report = index.index([web])
    assert (report.unchanged, report.removed) == (1, 1)
    assert sorted((name.rpartition("/")[2], reason) for name, reason in report.failed) == [
        ("broken", "cannot be fetched (its server answers 500)"),
        ("gone", "is gone (its server answers 410)"),
        ("late", "did not come in time"),
        ("secret", "cannot be fetched (its server answers 403)"),
    ]
    assert document_paths(index, site) == ["/broken", "/late", "/stays"]
    assert state(index, web).failed == report.failed
    assert list(new_notes(index)) == [f"fetched:{web.key}/{site.url}{path}" for path in document_paths(index, site)]


def test_an_unavailable_sitemap_keeps_all_known_pages(index: KnowledgeIndex, site: LocalSite) -> None:
    site.pages["/a"] = html("Alpha.")
    site.sitemap("/a")
    web = source(site)
    index.index([web])
    before = state(index, web)
    for reply, reason in (
        (Reply(status=404), "is gone (its server answers 404)"),
        (Reply(status=503), "cannot be fetched (its server answers 503)"),
        (Reply(body=b"<urlset><url>", kind="text/xml"), "is damaged XML (line 1)"),
        (Reply(body=b"<html></html>", kind="text/xml"), "is XML, but not a sitemap"),
    ):
        site.pages["/sitemap.xml"] = reply
        report = index.index([web])
        assert report == IndexReport(failed=((f"{site.url}/sitemap.xml", f"{reason}; its pages stay as they were"),))
        assert document_paths(index, site) == ["/a"]
    after = state(index, web)
    assert (after.synced, after.read, after.failures) == (before.synced, 1, 1)
    assert after.tried > before.tried


def test_indexes_of_sitemaps_packed_ones_and_one_found_by_its_content(index: KnowledgeIndex, site: LocalSite) -> None:
    site.pages["/a"] = html("Alpha.")
    site.pages["/b"] = html("Beta.")
    site.sitemap("/a", path="/one.xml")
    site.sitemap("/b", path="/two.xml")
    site.pages["/two.xml.gz"] = Reply(body=gzip.compress(site.pages["/two.xml"].body), kind="application/gzip")
    maps = "".join(f"<sitemap><loc>{site.url}{path}</loc></sitemap>" for path in ("/one.xml", "/two.xml.gz", "/map"))
    site.pages["/map"] = Reply(body=f"<sitemapindex>{maps}</sitemapindex>".encode(), kind="text/xml")
    assert index.index([source(site, f"{site.url}/map")]) == IndexReport(added=2)
    assert document_paths(index, site) == ["/a", "/b"]
    assert site.asked.count("/map") <= 2


def test_every_form_is_read_by_what_the_server_says_it_is(index: KnowledgeIndex, site: LocalSite) -> None:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica")
    pdf.cell(text="Portable penguins.")
    word = WordDocument()
    word.add_paragraph("Wordy walruses.")
    docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    site.pages |= {
        "/pdf": Reply(body=bytes(pdf.output()), kind="application/pdf"),
        "/word": Reply(body=bytes_of(word.save), kind=docx),
        "/md": Reply(body=b"# Marks\n\nMarked manatees.", kind="text/markdown"),
        "/raw/x.md": Reply(body=b"# Raw\n\nRaw ravens.", kind="text/plain; charset=utf-8"),
        "/text": Reply(body=b"Plain plovers.", kind="text/plain"),
        "/y.md": Reply(body=b"# Untold\n\nUntold unicorns.", kind=""),
        "/west": Reply(body="<p>Größe großer Gänse.</p>".encode("cp1252"), kind="text/html; charset=windows-1252"),
        "/odd": Reply(body=b"<p>Odd owls.</p>", kind="text/html; charset=x-unknown"),
        "/packed": gzip_reply(b"<p>Packed pandas.</p>"),
        "/script": Reply(body=b"<p>Seen seals.</p><script>var hidden = 1;</script><style>p {}</style>"),
        "/image": Reply(body=b"\x89PNG", kind="image/png"),
        "/feed": Reply(body=b"<rss></rss>", kind="application/xml"),
        "/torn": Reply(body=b"<urlset><url>", kind="application/xml"),
        "/void": Reply(body=b"", kind="text/html"),
    }
    report = index.index([source(site, site.sitemap(*site.pages))])
    assert sorted((name.rpartition("/")[2], reason) for name, reason in report.failed) == [
        ("feed", "has a format that is not read (application/xml)"),
        ("image", "has a format that is not read (image/png)"),
        ("torn", "is damaged XML (line 1)"),
        ("void", "is empty"),
    ]
    assert report.added == 10
    for animal in ("penguins", "walruses", "manatees", "ravens", "plovers", "unicorns", "Gänse", "owls", "pandas"):
        assert index.search(animal), animal
    assert index.search("penguins")[0].url.endswith("/pdf#page=1")
    text = index.document(f"localhost:{site.port}/script")
    assert text is not None
    assert "hidden" not in text.text


def test_robots_txt_is_honoured_and_read_once(index: KnowledgeIndex, site: LocalSite) -> None:
    site.pages["/robots.txt"] = Reply(
        body=b"User-agent: *\nDisallow: /private/\nDisallow: /*.pdf$\nAllow: /\n", kind="text/plain"
    )
    site.pages["/open"] = html("Open.")
    site.pages["/private/a"] = html("Private.")
    site.pages["/x.pdf"] = Reply(body=b"%PDF", kind="application/pdf")
    report = index.index([source(site, site.sitemap("/open", "/private/a", "/x.pdf"))])
    assert report.added == 1
    assert {reason for _, reason in report.failed} == {"may not be read by programs (robots.txt)"}
    assert site.asked == ["/robots.txt", "/sitemap.xml", "/open"]


@pytest.mark.parametrize(
    ("robots", "reason"),
    [
        (Reply(status=503), "cannot be fetched (its server answers 503)"),
        (Reply(hangs=True), "did not come in time"),
        (Reply(status=302, headers={"Location": "/robots.txt"}), "redirects in a circle, or more than 5 times"),
        (Reply(body=b"#" * 600_000, kind="text/plain"), "is too big (the limit is 0.512 MB)"),
    ],
)
def test_an_unavailable_robots_txt_keeps_the_known_rules(
    index: KnowledgeIndex, site: LocalSite, robots: Reply, reason: str
) -> None:
    site.pages["/a"] = html("Alpha.")
    web = source(site, f"{site.url}/a", f"{site.url}/b")
    index.index([web])
    site.pages["/robots.txt"] = robots
    report = index.index([web])
    assert {reason for _, reason in report.failed} == {f"was not asked for: its robots.txt {reason}"}
    assert document_paths(index, site) == ["/a"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("file:///etc/passwd", "is not a web address that may be fetched"),
        ("http://user:secret@localhost/", "is not a web address that may be fetched"),
        ("http://local\0host/", "is not a web address"),
        ("http://elsewhere.example/", "leads to another site (elsewhere.example)"),
        ("http://[half/", "leads to another site (%5Bhalf)"),
    ],
)
def test_only_web_addresses_of_named_hosts_are_asked(site: LocalSite, entry: str, reason: str) -> None:
    run = IndexRun()
    (page,) = source(site, entry).documents(run)
    with pytest.raises(ReadError) as raised:
        page.read()
    assert (raised.value.reason, raised.value.temporary) == (reason, False)
    assert site.asked == []


def test_a_redirect_is_checked_at_every_hop(index: KnowledgeIndex, site: LocalSite) -> None:
    targets = {
        "/near": f"http://127.0.0.1:{site.port}/secret",
        "/metadata": "http://169.254.169.254/latest/",
        "/other": "https://login.example/",
        "/file": "file:///etc/passwd",
        "/half": "http://lo\x7fcal/",
        "/forbidden": "/private",
        "/circle": "/circle",
        "/moved": "/step",
        "/step": "target",
    }
    site.pages = {path: Reply(status=302, headers={"Location": to}) for path, to in targets.items()}
    site.pages["/target"] = html("Arrived.")
    site.pages["/robots.txt"] = Reply(body=b"User-agent: *\nDisallow: /private\n", kind="text/plain")
    site.pages["/private"] = html("Private.")
    entries = [f"{site.url}{path}" for path in targets if path != "/step"]
    report = index.index([source(site, *entries, hosts=("127.0.0.1", "169.254.169.254"))])
    assert report.added == 1
    assert index.search("arrived")[0].url == f"{site.url}/moved"
    private = "leads into a private network (ORION_WEB_DOCS_HOSTS can allow its host)"
    assert {name.rpartition("/")[2]: reason for name, reason in report.failed} == {
        "near": f"was not asked for: its robots.txt {private}",
        "metadata": f"was not asked for: its robots.txt {private}",
        "other": "leads to another site (login.example)",
        "file": "is not a web address that may be fetched",
        "half": "is not a web address that may be fetched",
        "forbidden": "may not be read by programs (robots.txt)",
        "circle": "redirects in a circle, or more than 5 times",
    }
    assert "/secret" not in site.asked
    assert "/private" not in site.asked


def test_a_page_that_moved_permanently_is_dropped_and_an_unavailable_one_stays(
    index: KnowledgeIndex, site: LocalSite
) -> None:
    for path in ("/login", "/moved"):
        site.pages[path] = html(f"About {path}.")
    web = source(site, f"{site.url}/login", f"{site.url}/moved")
    index.index([web])
    site.pages["/login"] = Reply(status=302, headers={"Location": "https://login.example/"})
    site.pages["/moved"] = Reply(status=301, headers={"Location": "https://new.example/"})
    assert {reason for _, reason in index.index([web]).failed} == {
        "leads to another site (login.example)",
        "leads to another site (new.example)",
    }
    assert document_paths(index, site) == ["/login"]


def test_a_private_network_is_refused_unless_its_host_is_named(index: KnowledgeIndex, site: LocalSite) -> None:
    site.pages["/a"] = html("Alpha.")
    report = index.index([source(site, f"{site.url}/a", private_hosts=())])
    assert [reason for _, reason in report.failed] == [
        "was not asked for: its robots.txt leads into a private network (ORION_WEB_DOCS_HOSTS can allow its host)"
    ]
    assert site.asked == []


def test_endless_oversized_and_broken_pages_are_reported(index: KnowledgeIndex, site: LocalSite) -> None:
    site.pages |= {
        "/endless": Reply(endless=b"x" * 1_000_000),
        "/drips": Reply(drips=True),
        "/bomb": gzip_reply(b"\0" * 30_000_000),
        "/brotli": Reply(body=b"abc", headers={"Content-Encoding": "br"}),
        "/torn": Reply(body=b"\x1f\x8bnonsense", headers={"Content-Encoding": "gzip"}),
        "/half": Reply(body=gzip.compress(b"text" * 99)[:-9], headers={"Content-Encoding": "gzip"}),
        "/short": Reply(body=b"short", length=500),
        "/good": html("Good."),
    }
    entries = [f"{site.url}{path}" for path in site.pages]
    patient = CrawlPolicy(delay_s=0, page_timeout_s=2.0, step_timeout_s=1.0, failures=9)
    report = index.index([source(site, *entries, policy=patient)])
    assert report.added == 1
    assert {name.rpartition("/")[2]: reason for name, reason in report.failed} == {
        "endless": "is too big (the limit is 10 MB)",
        "drips": "did not come in time",
        "bomb": "is too big (the limit is 10 MB)",
        "brotli": "has a compression that was not asked for",
        "torn": "has broken compression",
        "half": "ended early",
        "short": "cannot be reached (RemoteProtocolError)",
    }


def test_sitemaps_that_name_themselves_or_too_much_are_cut_off(index: KnowledgeIndex, site: LocalSite) -> None:
    site.pages["/p"] = html("Page.")
    here = f"<sitemap><loc>{site.url}/sitemap.xml</loc></sitemap><sitemap><loc>{site.url}/big.xml</loc></sitemap>"
    site.pages["/sitemap.xml"] = Reply(body=f"<sitemapindex>{here}</sitemapindex>".encode(), kind="text/xml")
    site.sitemap("/p", *(f"/p?{n}" for n in range(12)), *(f"https://o{n}.example/" for n in range(12)), path="/big.xml")
    for n in range(12):
        site.pages[f"/p?{n}"] = site.pages["/p"]
    report = index.index([source(site, max_pages=5)])
    assert report.added == 5
    assert [reason for _, reason in report.failed] == ["has more pages; 5 are read (ORION_WEB_DOCS_PAGES)"]
    assert site.asked.count("/sitemap.xml") == 1
    report = index.index([source(site, max_pages=100)])
    assert (report.added, report.unchanged) == (8, 5)
    assert [reason for _, reason in report.failed] == [
        *["is on a host that ORION_WEB_DOCS does not name"] * 10,
        "lists 2 more pages of other hosts",
    ]


def test_too_many_sitemaps_are_left_out(site: LocalSite) -> None:
    maps = "".join(f"<sitemap><loc>{site.url}/{n}.xml</loc></sitemap>" for n in range(600))
    site.pages["/sitemap.xml"] = Reply(body=f"<sitemapindex>{maps}</sitemapindex>".encode(), kind="text/xml")
    run = IndexRun()
    assert list(source(site, policy=CrawlPolicy(delay_s=0, run_timeout_s=0.2)).documents(run)) == []
    assert run.failed[-1] == (site.url, "has more than 500 sitemaps; the rest is left out")
    assert set(run.missing) == {f"web:{site.url}"}


def test_an_unresponsive_server_is_not_called_for_a_while(index: KnowledgeIndex, site: LocalSite) -> None:
    for n in range(6):
        site.pages[f"/{n}"] = Reply(status=429)
    report = index.index([source(site, site.sitemap(*(f"/{n}" for n in range(6))))])
    assert [reason for _, reason in report.failed] == [
        *["cannot be fetched (its server answers 429)"] * 3,
        *["was not asked for: its server failed 3 times in a row"] * 3,
    ]
    assert len(site.asked) == 5


def test_a_sites_crawl_delay_is_kept_or_the_site_is_not_read(site: LocalSite) -> None:
    site.pages["/a"] = html("Alpha.")
    entries = (f"{site.url}/a", f"{site.url}/b")
    for delay, reasons in (
        ("0.3", {None, "is gone (its server answers 404)"}),
        ("86400", {"asks for 86400 s between two pages; Orion waits at most 60 s"}),
    ):
        site.pages["/robots.txt"] = Reply(body=f"User-agent: *\nCrawl-delay: {delay}\n".encode(), kind="text/plain")
        pages = list(source(site, *entries).documents(IndexRun()))
        assert set(map(trouble, pages)) == reasons


def test_a_crawl_cut_short_continues_with_the_pages_not_seen_for_longest(
    index: KnowledgeIndex, site: LocalSite
) -> None:
    for path in "abc":
        site.pages[f"/{path}"] = html(f"About {path}.")
    web = source(site, site.sitemap("/a", "/b"))
    index.index([web])
    site.sitemap("/a", "/b", "/c")
    site.asked.clear()
    index.index([web])
    assert site.asked == ["/robots.txt", "/sitemap.xml", "/c", "/a", "/b"]
    report = index.index([source(site, policy=CrawlPolicy(delay_s=0, run_timeout_s=-1.0))])
    assert (report.removed, len(index.documents())) == (0, 3)


def test_a_narrower_audience_applies_at_once_even_if_the_source_is_deferred(
    index: KnowledgeIndex, site: LocalSite
) -> None:
    site.pages["/a"] = html("Alpha.")
    web = source(site, f"{site.url}/a")
    index.index([web])
    assert index.index([DeferredSource(key=web.key, part=web.part, audience="C0HR")]) == IndexReport(removed=1)
    assert index.documents() == ()
    assert web.key not in index.states()
    assert index.index([source(site, f"{site.url}/a", audience="C0HR")]) == IndexReport(added=1)


def test_a_deferred_source_stays_unchanged(index: KnowledgeIndex, site: LocalSite) -> None:
    site.pages["/a"] = html("Alpha.")
    web = source(site, f"{site.url}/a")
    index.index([web])
    before = state(index, web)
    assert index.index([DeferredSource(key=web.key, part=web.part)]) == IndexReport()
    assert (document_paths(index, site), state(index, web)) == (["/a"], before)
    assert index.index([DeferredSource(key=web.key, part="1000 of another/page")]) == IndexReport()
    assert (document_paths(index, site), index.states()) == (["/a"], {})
    assert index.index([]) == IndexReport(removed=1)
    assert (index.states(), new_notes(index)) == ({}, {})
