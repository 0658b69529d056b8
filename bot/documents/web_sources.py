"""Sites of ``ORION_WEB_DOCS`` with their pages and sitemaps. Only hosts named there are ever asked."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from agent.knowledge.sources.web import WebSource
from agent.thread.audience import PUBLIC, parse_audience
from bot.errors import WrongUse
from bot.settings import Settings

_WRONG_ADDRESS = (
    "ORION_WEB_DOCS: {entry} should be the address of a page or a sitemap, such as https://docs.acme.com/sitemap.xml, "
    "without a name or a password."
)
_WRONG_AUDIENCE = (
    "ORION_WEB_DOCS_AUDIENCE should be public, or ids of channels, people or workspaces with commas between, such as "
    "C0123ABCD."
)


def web_sources(settings: Settings) -> tuple[WebSource, ...]:
    """Return one source for each site. Raises ``WrongUse``."""
    audience = _audience(settings.web_docs_audience)
    sites: dict[str, list[str]] = {}
    hosts: set[str] = set()
    for entry in sorted(settings.web_docs):
        parts = _parse_address(entry)
        sites.setdefault(f"{parts.scheme}://{parts.netloc}".lower(), []).append(entry.partition("#")[0])
        bare = (parts.hostname or "").removeprefix("www.")
        hosts |= {bare, f"www.{bare}"}  # each host with and without www
    private = frozenset(host.lower() for host in settings.web_docs_hosts)
    return tuple(
        WebSource(
            site=site,
            entries=tuple(entries),
            hosts=frozenset(hosts | private),
            private_hosts=private,
            audience=audience,
            max_pages=settings.web_docs_pages,
        )
        for site, entries in sites.items()
    )


def _parse_address(entry: str) -> SplitResult:
    try:
        parts = urlsplit(entry)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        usable = ""
    if not usable:
        raise WrongUse(_WRONG_ADDRESS.format(entry=entry.rpartition("@")[2]))
    return parts


def _audience(entries: Iterable[str]) -> str:
    given = sorted(entries)
    if given in ([], [PUBLIC]):
        return PUBLIC
    audience = parse_audience(given)
    if audience is None:
        raise WrongUse(_WRONG_AUDIENCE)
    return audience
