"""`ORION_WEB_DOCS` as an admin writes it."""

import pytest

from bot.documents.open import web_sources
from bot.errors import WrongUse
from bot.settings import load_settings


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
