"""Fetching as a guest: TLS by the name that was asked for, at the address that was judged; and bodies of every kind."""

import ssl
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.sources.fetch import CrawlPolicy, Fetcher, decompress
from agent.knowledge.types import ReadError
from tests.support.http_server import own_certificate, tls_of
from tests.support.web_site import LocalSite, Reply, html

NAME = "docs.example"
HASTE = CrawlPolicy(delay_s=0.0, page_timeout_s=5.0, step_timeout_s=5.0)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def secure(certificate: Path) -> Iterator[LocalSite]:
    with LocalSite(tls_of(certificate)) as site:
        yield site


def fetcher(*hosts: str, tls: ssl.SSLContext | None) -> Fetcher:
    return Fetcher(hosts, private_hosts=hosts, policy=HASTE, resolve=lambda *_: ["127.0.0.1"], tls=tls)


def any_form(_: str) -> int:
    return 1_000_000


def test_the_certificate_is_checked_against_the_name_not_the_address(secure: LocalSite, certificate: Path) -> None:
    secure.pages["/"] = html("Protected.")
    trusting = ssl.create_default_context(cafile=str(certificate))
    with fetcher(NAME, tls=trusting) as guest:
        assert b"Protected." in guest.get(f"https://{NAME}:{secure.port}/", limit_of=any_form).body
    assert secure.headers["/"]["host"] == f"{NAME}:{secure.port}"


@pytest.mark.parametrize("host", ["other.example", NAME])
def test_a_certificate_for_another_host_or_an_unknown_issuer_is_refused(
    secure: LocalSite, certificate: Path, host: str
) -> None:
    secure.pages["/"] = html("Protected.")
    trusting = ssl.create_default_context(cafile=str(certificate)) if host != NAME else None
    with fetcher(host, tls=trusting) as guest, pytest.raises(ReadError, match="cannot be reached") as failed:
        guest.get(f"https://{host}:{secure.port}/", limit_of=any_form)
    assert failed.value.temporary
    assert secure.asked == []


def test_no_redirect_leads_from_a_protected_connection_to_an_open_one(secure: LocalSite, certificate: Path) -> None:
    secure.pages["/"] = Reply(status=301, headers={"Location": f"http://{NAME}/open"})
    with (
        fetcher(NAME, tls=ssl.create_default_context(cafile=str(certificate))) as guest,
        pytest.raises(ReadError, match="from a protected connection to an open one"),
    ):
        guest.get(f"https://{NAME}:{secure.port}/", limit_of=any_form)


@pytest.mark.parametrize(("status", "temporary"), [(204, False), (300, False), (404, False), (429, True), (503, True)])
def test_only_a_possible_pass_keeps_an_old_text(
    secure: LocalSite, certificate: Path, status: int, *, temporary: bool
) -> None:
    secure.pages["/"] = Reply(status=status)
    with (
        fetcher(NAME, tls=ssl.create_default_context(cafile=str(certificate))) as guest,
        pytest.raises(ReadError) as failed,
    ):
        guest.get(f"https://{NAME}:{secure.port}/", limit_of=any_form)
    assert failed.value.temporary is temporary


@given(st.binary(max_size=3_000), st.integers(1, 200), st.sampled_from(["", "gzip", "deflate", "identity"]))
def test_the_chunks_of_a_body_make_no_difference(body: bytes, size: int, encoding: str) -> None:
    window = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}.get(encoding)
    sent = body
    if window:
        pack = zlib.compressobj(6, zlib.DEFLATED, window)
        sent = pack.compress(body) + pack.flush()
    parts = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert decompress(parts, encoding, 3_000) == body
    if len(body) > 1:
        with pytest.raises(ReadError, match="too big"):
            decompress(parts, encoding, len(body) - 1)
