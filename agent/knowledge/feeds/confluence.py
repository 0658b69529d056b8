"""Confluence's pages as a feed, read with version 1 of its REST API, which both Cloud and Data Center have.

A page's audience is the one that the settings give its space, without people whom a restriction excludes: on the page,
on a page above it, or on a page whose text it includes. Restrictions name people, who are matched to Slack by e-mail
address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape, unescape
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from atlassian.rest_client import AtlassianRestAPI
from requests import HTTPError, RequestException

from agent.knowledge.feeds.lines import FeedError, FeedPage, Printer, read_setting

_EXPANDED: Final = "version,ancestors,restrictions.read.restrictions.user,restrictions.read.restrictions.group"
_MAX_LISTED: Final = 100  # pages of a list; Confluence allows 200 with such expansions
_MAX_BODIES: Final = 25  # Confluence allows 50
_MAX_RETRIES: Final = 8
_MAX_BACKOFF_S: Final = 120
_INCLUDE: Final = re.compile(r'ac:name="(?:include|excerpt-include)".*?</ac:structured-macro>', re.DOTALL)
_INCLUDED_PAGE: Final = re.compile(r'<ri:page\b[^<>]*\bri:content-title="([^"]*)"[^<>]*>')
_INCLUDED_SPACE: Final = re.compile(r'\bri:space-key="([^"]*)"')
# Text for things that a page shows with a script, a style or a picture.
_SHOWN: Final = (
    (re.compile(r'<li\b[^<>]*\bclass="checked"[^<>]*\bdata-inline-task-id=[^<>]*>'), r"\g<0>[x] "),
    (re.compile(r'<li\b(?![^<>]*\bclass="checked")[^<>]*\bdata-inline-task-id=[^<>]*>'), r"\g<0>[ ] "),
    (re.compile(r'(<div\b[^<>]*\bexpand-content\b[^<>]*?)\sstyle="[^"]*"'), r"\1"),
    (re.compile(r'<span class="summary">Getting issue details\.\.\.</span>\s*<span[^<>]*>STATUS</span>'), ""),
    (re.compile(r'(<span class="aui-icon\b[^<>]*>)Icon</span>'), r"\1</span>"),
)

Emails = frozenset[str]


def print_pages(config: Mapping[str, Any], printer: Printer) -> None:
    """Print every page of the configured spaces. Raises ``FeedError``."""
    spaces = config.get("spaces")
    if not isinstance(spaces, dict) or not spaces:
        message = 'spaces is missing: name each with its audience, such as ENG = "public" or HR = ["C0123ABCD"].'
        raise FeedError(message)
    api = AtlassianRestAPI(
        read_setting(config, "url").rstrip("/"),
        username=config.get("username"),
        password=config["token"] if config.get("username") else None,
        token=None if config.get("username") else read_setting(config, "token"),
        backoff_and_retry=True,
        max_backoff_retries=_MAX_RETRIES,
        max_backoff_seconds=_MAX_BACKOFF_S,
    )
    emails = {str(person): str(email) for person, email in dict(config.get("people", {})).items()}
    wiki = Wiki(api=api, emails=emails, spaces=spaces)
    try:
        for space in spaces:
            wiki.list_space(space)
        _print_pages(wiki, printer)
    except (RequestException, KeyError, TypeError) as error:
        response = error.response if isinstance(error, RequestException) else None
        status = f" (HTTP {response.status_code})" if response is not None else ""
        raise FeedError(why=f"Confluence did not answer as expected: {type(error).__name__}{status}") from None


def _print_pages(wiki: Wiki, printer: Printer) -> None:
    pages = {number: wiki.page(number) for number in wiki.items}
    needed = [number for number, page in pages.items() if printer.is_needed(page)]
    for start in range(0, len(needed), _MAX_BODIES):
        wanted = needed[start : start + _MAX_BODIES]
        items = wiki.search(f"id in ({','.join(wanted)})", "body.view", _MAX_BODIES)
        bodies = {str(item["id"]): item["body"]["view"]["value"] for item in items}
        for number in wanted:
            if number not in bodies:  # a page omitted here would be deleted from the index
                raise FeedError(why=f"Confluence lists page {number} and does not return its text")
            html = bodies[number]
            for pattern, text in _SHOWN:
                html = pattern.sub(text, html)
            title = escape(pages[number].title)
            page = f"<html><head><title>{title}</title></head><body>{html}</body></html>"
            printer.print_page(pages[number], page, name="page.html")


def narrow_audience(audience: str | Sequence[str], allowed: Emails) -> list[str]:
    """Return the entries for the people in an audience whose addresses are allowed; ``C1+ann@x`` requires both."""
    if isinstance(audience, str):
        return sorted(allowed)
    narrowed: set[str] = set()
    for entry in audience:
        people = {part.lower() for part in entry.split("+") if "@" in part}
        narrowed |= {entry} if people & allowed else {f"{entry}+{email}" for email in allowed if not people}
    return sorted(narrowed)


@dataclass(slots=True, kw_only=True)
class Wiki:
    """Confluence's REST API, and the pages that it listed.

    ``emails`` are addresses by account id or user name, in case Confluence hides them. ``spaces`` have the audiences.
    """

    api: AtlassianRestAPI
    emails: dict[str, str]
    spaces: Mapping[str, str | Sequence[str]]
    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    _space_of: dict[str, str] = field(default_factory=dict)
    _numbers: dict[tuple[str, str], str] = field(default_factory=dict)  # by space and title
    _included: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    _readers: dict[str, Emails | None] = field(default_factory=dict)
    _groups: dict[str, Emails] = field(default_factory=dict)

    def list_space(self, space: str) -> None:
        """List the space's pages with their restrictions and with the pages that they include."""
        query = f'type = page and space = "{space}"'
        found = self.search(query, _EXPANDED, _MAX_LISTED)
        listed = [item for item in found if item.get("status") in {None, "current"}]
        if not listed:  # an account that may not see a space finds nothing in it
            self._get(f"/rest/api/space/{space}")
        for item in listed:
            number = str(item["id"])
            self.items[number], self._space_of[number] = item, space
            self._numbers[space, str(item["title"])] = number
            self._remember_restrictions(number, item["restrictions"]["read"]["restrictions"])
        if listed:
            query += " and macro in (include, excerpt-include)"
            for item in self.search(query, "body.storage", _MAX_BODIES):
                storage = str(item.get("body", {}).get("storage", {}).get("value", ""))
                self._included[str(item["id"])] = [
                    (space_key[1] if (space_key := _INCLUDED_SPACE.search(page[0])) else space, unescape(page[1]))
                    for macro in _INCLUDE.finditer(storage)
                    for page in _INCLUDED_PAGE.finditer(macro[0])
                ]

    def page(self, number: str) -> FeedPage:
        """Return a page with its audience. It is as new as the newest text that it includes."""
        item, space = self.items[number], self._space_of[number]
        audience, allowed = self.spaces[space], self._find_readers(number)
        included = (self._numbers.get(each, number) for each in self._included.get(number, ()))
        return FeedPage(
            key=f"{space}/{number}",
            title=str(item["title"]),
            url=f"{self.api.url}{item['_links']['webui']}",
            updated=max(str(self.items[each]["version"]["when"]) for each in (number, *included)),
            audience=audience if allowed is None else narrow_audience(audience, allowed),
            reason="restricted in Confluence to people without a visible e-mail address, or includes an unknown page",
        )

    def search(self, query: str, expand: str, limit: int) -> Iterator[dict[str, Any]]:
        """Yield the pages that a CQL query finds."""
        return self._results("/rest/api/content/search", {"cql": query, "expand": expand, "limit": limit})

    def _find_readers(self, number: str, outer: frozenset[str] = frozenset()) -> Emails | None:
        """Return the addresses of those who may read the whole page; None for all. ``outer`` pages include it."""
        above = (str(page["id"]) for page in self.items[number]["ancestors"])
        limits = [self._readers_of(each) for each in (number, *above)]
        for space, title in self._included.get(number, ()):
            other = self._numbers.get((space, title), "")
            if not other or self.spaces[space] != self.spaces[self._space_of[number]]:
                limits.append(frozenset())  # its readers are unknown
            elif other not in outer:
                limits.append(self._find_readers(other, outer | {number}))
        known = [limit for limit in limits if limit is not None]
        return frozenset.intersection(*known) if known else None

    def _remember_restrictions(self, number: str, restrictions: Mapping[str, Any]) -> None:
        users, groups = restrictions["user"]["results"], restrictions["group"]["results"]
        allowed = frozenset(filter(None, map(self._email, users))).union(*map(self._members, groups))
        self._readers[number] = allowed if users or groups else None

    def _readers_of(self, number: str) -> Emails | None:
        """Return the addresses that a page's own restriction allows; None if it has no restriction."""
        if number not in self._readers:  # a folder, or a page of another space
            try:
                found = self._get(f"/rest/api/content/{number}/restriction/byOperation/read")
                self._remember_restrictions(number, found["restrictions"])
            except HTTPError as error:
                if error.response.status_code not in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
                    raise
                self._readers[number] = frozenset()  # its readers are unknown
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
        seen: set[str] = set()
        while path and path not in seen:
            seen.add(path)
            answer = self._get(path, params)
            yield from answer["results"]
            path, params = str(answer.get("_links", {}).get("next") or ""), None

    def _get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        own = urlsplit(self.api.url)  # paths are relative to it, or to the server, or complete
        is_below = path.startswith("/") and not (own.path and path.startswith(f"{own.path}/"))
        url = f"{self.api.url}{path}" if is_below else urljoin(self.api.url, path)
        if urlsplit(url).netloc != own.netloc:
            raise FeedError(why="Confluence names a next page on another server")  # which would get the token
        answer = self.api.get(url, params=params, absolute=True)
        if not isinstance(answer, dict):
            raise FeedError(why=f"Confluence did not answer {path.partition('?')[0]} with JSON")
        return answer
