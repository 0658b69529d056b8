"""Confluence's pages as a feed, read with version 1 of its REST API, which both Cloud and Data Center have.

A page's audience is the one that the settings give its space, without people whom a restriction on the page or on a
page above it excludes. Restrictions name people, who are matched to Slack by e-mail address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

from atlassian.rest_client import AtlassianRestAPI
from requests import RequestException

from agent.knowledge.feeds.lines import FeedError, FeedPage, Printer, read_setting

_EXPANDED: Final = "version,ancestors,restrictions.read.restrictions.user,restrictions.read.restrictions.group"
_MAX_LISTED: Final = 100  # pages of a list; Confluence allows 200 with such expansions
_MAX_BODIES: Final = 25  # Confluence allows 50
_MAX_RETRIES: Final = 8
_MAX_BACKOFF_S: Final = 120

Emails = frozenset[str]


def print_pages(config: Mapping[str, Any], printer: Printer) -> None:
    """Print every page of the configured spaces. Raises ``FeedError``."""
    spaces = config.get("spaces")
    if not isinstance(spaces, dict) or not spaces:
        message = 'spaces is missing: name each with its audience, such as ENG = "public" or HR = ["C0123ABCD"].'
        raise FeedError(message)
    wiki = Wiki(
        api=AtlassianRestAPI(
            read_setting(config, "url").rstrip("/"),
            username=config.get("username"),
            password=config["token"] if config.get("username") else None,
            token=None if config.get("username") else read_setting(config, "token"),
            backoff_and_retry=True,
            max_backoff_retries=_MAX_RETRIES,
            max_backoff_seconds=_MAX_BACKOFF_S,
        ),
        emails={str(person): str(email) for person, email in dict(config.get("people", {})).items()},
    )
    try:
        for space, audience in spaces.items():
            _print_space(wiki, str(space), audience, printer)
    except RequestException as error:
        status = f" (HTTP {error.response.status_code})" if error.response is not None else ""
        message = f"Confluence did not answer as expected: {type(error).__name__}{status}"
        raise FeedError(message) from None


def _print_space(wiki: Wiki, space: str, audience: str | Sequence[str], printer: Printer) -> None:
    listed = list(wiki.pages(f'type = page and space = "{space}"', _EXPANDED, _MAX_LISTED))
    for item in listed:  # the pages below need no request of their own
        wiki.remember_restrictions(str(item["id"]), item["restrictions"]["read"]["restrictions"])
    pages = {str(item["id"]): _page(wiki, space, audience, item) for item in listed}
    needed = [number for number, page in pages.items() if printer.is_needed(page)]
    for start in range(0, len(needed), _MAX_BODIES):
        wanted = needed[start : start + _MAX_BODIES]
        bodies = {
            str(item["id"]): item["body"]["view"]["value"]
            for item in wiki.pages(f"id in ({','.join(wanted)})", "body.view", _MAX_BODIES)
        }
        for number in wanted:
            if number not in bodies:  # a page omitted here would be deleted from the index
                message = f"Confluence lists page {number} and does not return its text"
                raise FeedError(message)
            page = pages[number]
            html = f"<html><head><title>{escape(page.title)}</title></head><body>{bodies[number]}</body></html>"
            printer.print_page(page, html, name="page.html")


def _page(wiki: Wiki, space: str, audience: str | Sequence[str], item: Mapping[str, Any]) -> FeedPage:
    allowed: Emails | None = None
    for number in (str(item["id"]), *(str(above["id"]) for above in item.get("ancestors", ()))):
        readers = wiki.readers(number)
        if readers is not None:
            allowed = readers if allowed is None else allowed & readers
    return FeedPage(
        key=f"{space}/{item['id']}",
        title=str(item["title"]),
        url=f"{wiki.api.url}{item['_links']['webui']}",
        updated=str(item["version"]["when"]),
        audience=audience if allowed is None else narrow_audience(audience, allowed),
        reason="restricted in Confluence to people without a visible e-mail address",
    )


def narrow_audience(audience: str | Sequence[str], allowed: Emails) -> list[str]:
    """Return the entries for the people in an audience whose addresses are allowed; ``C1+ann@x`` requires both."""
    if isinstance(audience, str):
        return sorted(allowed)
    people = [entry for entry in audience if entry in allowed]
    return sorted([*people, *(f"{entry}+{email}" for entry in audience if "@" not in entry for email in allowed)])


@dataclass(slots=True, kw_only=True)
class Wiki:
    """Confluence's REST API. ``emails`` are addresses by account id or user name, in case Confluence hides them."""

    api: AtlassianRestAPI
    emails: dict[str, str]
    _readers: dict[str, Emails | None] = field(default_factory=dict)
    _groups: dict[str, Emails] = field(default_factory=dict)

    def pages(self, query: str, expand: str, limit: int) -> Iterator[dict[str, Any]]:
        """Yield the pages that a CQL query finds."""
        return self._results("/rest/api/content/search", {"cql": query, "expand": expand, "limit": limit})

    def remember_restrictions(self, number: str, restrictions: Mapping[str, Any]) -> None:
        """Keep the addresses that a page's restrictions allow."""
        users, groups = restrictions["user"]["results"], restrictions["group"]["results"]
        allowed = frozenset(filter(None, map(self._email, users))).union(*map(self._members, groups))
        self._readers[number] = allowed if users or groups else None

    def readers(self, number: str) -> Emails | None:
        """Return the addresses that a page's own restriction allows; None if it has no restriction."""
        if number not in self._readers:  # a folder, or a page of another space
            found = self._get(f"/rest/api/content/{number}/restriction/byOperation/read")
            self.remember_restrictions(number, found["restrictions"])
        return self._readers[number]

    def _email(self, user: Mapping[str, Any]) -> str:
        name = str(user.get("accountId") or user.get("username") or "")
        return str(self.emails.get(name) or user.get("email") or "").lower()

    def _members(self, group: Mapping[str, Any]) -> Emails:
        path = f"{group['id']}/membersByGroupId" if group.get("id") else f"{group['name']}/member"
        if path not in self._groups:
            members = self._results(f"/rest/api/group/{path}", {"limit": 200})
            self._groups[path] = frozenset(filter(None, map(self._email, members)))
        return self._groups[path]

    def _results(self, path: str, params: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
        while path:
            answer = self._get(path, params)
            yield from answer["results"]
            path, params = str(answer.get("_links", {}).get("next") or ""), None

    def _get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self.api.get(f"{self.api.url}{path}", params=params, absolute=True)
        if not isinstance(answer, dict):
            message = f"Confluence did not answer {path.partition('?')[0]} with JSON"
            raise FeedError(message)
        return answer
