"""The background sync, and `ORION_WEB_DOCS` as an admin writes it."""

import asyncio
import pickle
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.sources.fetch import CrawlPolicy
from agent.knowledge.sources.web import WebSource
from agent.knowledge.types import KnowledgeAwayError, SourceState, due_at
from bot.documents.corpus import SYNC_LOCK, Corpus, available_figures, figures_of, index_for, sync_index
from bot.documents.open import open_index, web_sources
from bot.documents.sync import ELSEWHERE, FAILED, Syncing, SyncOrder, _log_crash, run_order
from bot.errors import WrongUse
from bot.settings import load_settings
from tests.support.waiting import wait_until
from tests.support.web_site import LocalSite, Reply, html

HOST = frozenset({"localhost"})


@pytest.fixture
def site() -> Iterator[LocalSite]:
    with LocalSite() as running:
        yield running


def web(site: LocalSite, path: str) -> WebSource:
    policy = CrawlPolicy(delay_s=0.0)
    return WebSource(site=site.url, entries=(f"{site.url}{path}",), hosts=HOST, private_hosts=HOST, policy=policy)


@pytest.fixture
def corpus(tmp_path: Path, site: LocalSite) -> Corpus:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Alpha\n\nThe canteen opens at noon.\n")
    site.pages["/w"] = html("The web opens at one.", "Web")
    return Corpus(roots=(docs,), index_path=tmp_path / "home" / "knowledge.sqlite3", sources=(web(site, "/w"),))


def order(corpus: Corpus, every_s: float = 3600.0) -> SyncOrder:
    return SyncOrder(corpus=corpus, every_s=every_s, json=True, debug=False)


@asynccontextmanager
async def at_work(syncing: Syncing) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(syncing.run())
        yield
        task.cancel()


async def test_a_start_reads_only_local_sources_and_the_sync_reads_all(corpus: Corpus, site: LocalSite) -> None:
    async with open_index(corpus) as (index, report):
        assert (report.added, site.asked) == (1, [])
        assert run_order(order(corpus)) == 0
        assert [document.title for document in index.documents()] == ["Alpha", "Web"]
        figures = figures_of(index)
        assert [(s.kind, s.held.documents, s.state.failures) for s in figures.sources] == [
            ("folder", 1, 0),
            ("web", 1, 0),
        ]
        assert (figures.documents, figures.passages, figures.failures) == (2, 2, 0)
        assert figures.synced == min(source.state.synced for source in figures.sources)
        assert figures.size == len(site.pages["/w"].body) + (corpus.roots[0] / "a.md").stat().st_size


def test_a_sync_that_comes_too_early_or_second_does_nothing(corpus: Corpus) -> None:
    assert sync_index(corpus, every_s=3600) is not None
    assert run_order(order(corpus)) == ELSEWHERE
    with index_for(corpus) as index, index.alone(SYNC_LOCK):
        assert run_order(order(corpus, every_s=0)) == ELSEWHERE
    assert run_order(order(corpus, every_s=0)) == 0


async def test_no_one_waits_forever_for_another_sync(corpus: Corpus) -> None:
    with index_for(corpus) as other, other.alone(SYNC_LOCK):
        async with open_index(corpus, wait_s=0) as (index, report):
            assert (report.added, index.documents()) == (0, ())


def test_an_impossible_sync_fails(corpus: Corpus, tmp_path: Path) -> None:
    away = Corpus(roots=corpus.roots, index_path=corpus.index_path, database=f"postgresql:///none?host={tmp_path}")
    assert run_order(order(away)) == FAILED
    corpus.index_path.mkdir(parents=True)
    assert run_order(order(corpus)) == FAILED


async def test_changes_are_indexed_while_orion_works(corpus: Corpus) -> None:
    async with open_index(corpus) as (index, _):
        (corpus.roots[0] / "b.md").write_text("# Beta\n\nDinner is at six.\n")
        counted: list[str] = []
        async with at_work(Syncing(corpus=corpus, index=index, every_s=0.5, count=counted.append)):
            await wait_until(lambda: bool(counted), "a run has ended", 60)
        assert counted[0] == "synced"
        assert {document.title for document in index.documents()} >= {"Alpha", "Beta", "Web"}


async def test_a_running_sync_ends_with_orion_and_the_next_one_continues(corpus: Corpus, site: LocalSite) -> None:
    site.pages["/w"] = Reply(hangs=True)
    async with open_index(corpus) as (index, _):
        async with at_work(Syncing(corpus=corpus, index=index, every_s=1.0)):
            await wait_until(lambda: "/w" in site.asked, "the page is being asked for", 60)
            began = time.monotonic()
        assert time.monotonic() - began < 20
        with index.alone(SYNC_LOCK, 10) as alone:
            assert alone
        site.pages["/w"] = html("The web opens at one.", "Web")
        assert run_order(order(corpus, every_s=0)) == 0
        assert [document.title for document in index.documents()] == ["Alpha", "Web"]


def test_a_run_ends_with_the_process_that_started_it(corpus: Corpus, site: LocalSite) -> None:
    site.pages["/w"] = Reply(hangs=True)
    with subprocess.Popen([sys.executable, "-m", "bot.documents.sync"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(pickle.dumps(order(corpus)))
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while "/w" not in site.asked and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(20) == FAILED


class AwayIndex(SqliteIndex):
    """An index that cannot be reached."""

    def states(self) -> dict[str, SourceState]:
        raise KnowledgeAwayError

    def holdings(self) -> tuple[()]:
        raise KnowledgeAwayError


async def test_an_unreachable_index_is_tried_again(corpus: Corpus) -> None:
    away = AwayIndex.open(corpus.index_path)
    assert await available_figures(away) is None
    syncing = Syncing(corpus=corpus, index=away, every_s=3600.0, retry_s=7.0)
    assert await syncing._seconds_until_due() == 7.0
    away.close()


async def test_a_source_that_was_never_read_is_due_at_once_and_others_after_the_interval(corpus: Corpus) -> None:
    async with open_index(corpus) as (index, _):
        syncing = Syncing(corpus=corpus, index=index, every_s=1000.0)
        assert await syncing._seconds_until_due() <= 3.0
        assert sync_index(corpus, every_s=0) is not None
        assert 990 < await syncing._seconds_until_due() <= 1003


async def test_a_failed_sync_is_counted_and_not_repeated_at_once(corpus: Corpus, tmp_path: Path) -> None:
    async with open_index(corpus) as (index, _):
        broken = Corpus(roots=(tmp_path / "docs",), index_path=tmp_path / "docs", sources=corpus.sources)
        counted: list[str] = []
        async with at_work(Syncing(corpus=broken, index=index, every_s=0.2, retry_s=600.0, count=counted.append)):
            await wait_until(lambda: bool(counted), "a run has ended", 60)
        assert counted == ["failed"]
        assert corpus.sources[0].key not in index.states()


def test_a_crash_is_reported_without_its_text() -> None:
    with capture_logs() as logs:
        _log_crash(ValueError, ValueError("a secret sentence"), None)
    assert [log["event"] for log in logs] == ["knowledge_sync_crashed"]


def test_sources_are_due_when_the_first_one_is() -> None:
    states = {"a": SourceState(tried=100.0), "b": SourceState(tried=50.0)}
    assert due_at(states, ["a", "b"], 10.0) == 60.0
    assert due_at(states, ["a", "new"], 10.0) == 0.0
    assert due_at(states, [], 10.0) == float("inf")


def test_addresses_are_grouped_by_site() -> None:
    given = frozenset({"https://docs.acme.com/sitemap.xml", "HTTPS://docs.acme.com/extra#part", "http://wiki:8080/x"})
    settings = load_settings(web_docs=given, web_docs_hosts=frozenset({"Wiki"}), web_docs_pages=7)
    docs, wiki = sorted(web_sources(settings), key=lambda source: source.key, reverse=True)
    assert (docs.key, docs.entries) == (
        "web:https://docs.acme.com",
        ("HTTPS://docs.acme.com/extra", "https://docs.acme.com/sitemap.xml"),
    )
    assert (wiki.key, wiki.entries) == ("web:http://wiki:8080", ("http://wiki:8080/x",))
    assert docs.hosts == wiki.hosts == {"docs.acme.com", "www.docs.acme.com", "wiki", "www.wiki"}
    assert (docs.private_hosts, docs.audience, docs.max_pages) == (frozenset({"wiki"}), "public", 7)


@pytest.mark.parametrize(
    "entry", ["docs.acme.com", "ftp://docs.acme.com", "https://ann:secret@docs.acme.com/", "https://", "https://[x/"]
)
def test_an_invalid_address_is_refused_by_name_and_without_its_password(entry: str) -> None:
    with pytest.raises(WrongUse, match="ORION_WEB_DOCS: ") as refused:
        web_sources(load_settings(web_docs=frozenset({entry})))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "audience"), [(set(), "public"), ({"public"}, "public"), ({"C0HR", "U0ANN"}, "C0HR,U0ANN")]
)
def test_pages_are_public_unless_a_setting_says_otherwise(given: set[str], audience: str) -> None:
    settings = load_settings(web_docs=frozenset({"https://a.example/"}), web_docs_audience=frozenset(given))
    assert [source.audience for source in web_sources(settings)] == [audience]


def test_an_invalid_audience_is_refused() -> None:
    with pytest.raises(WrongUse, match="ORION_WEB_DOCS_AUDIENCE should be public"):
        web_sources(load_settings(web_docs_audience=frozenset({"everybody"})))
