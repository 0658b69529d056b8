"""``web_search`` through a configured SearXNG (D3).

The text that the search engine shows is the source; no page is fetched.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from agent.tools.tool import ToolFailed, ToolResult, ToolSpec
from observability.loopback import is_loopback, trusted_at
from verification.types import Source

if TYPE_CHECKING:
    import httpx2

WEB_SEARCH: Final = "web_search"
FOUND: Final = 5
FOUND_MOST: Final = 10
TIMEOUT_S: Final = 12.0
"""Seconds until the server has to go on with its reply."""
REPLY_MOST: Final = 2_000_000
TEXT_MOST: Final = 2_000
_FORBIDDEN: Final = 403
_OK: Final = 200


class WebSearchFailed(ToolFailed):
    """The search engine gave nothing."""

    def __init__(self, reason: str, hint: str = "Go on without the web, or try again later.") -> None:
        super().__init__(reason)
        self.hints = (hint,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One thing found."""

    title: str
    url: str
    text: str
    published: str = ""


class SearxNG:
    """One server by its JSON interface."""

    def __init__(self, url: str, client: httpx2.AsyncClient) -> None:
        self._url = url.rstrip("/").removesuffix("/search") + "/search"
        self._client = client

    async def search(self, query: str) -> list[SearchHit]:
        """What was found, best first. Raises ``WebSearchFailed``."""
        import httpx2  # noqa: PLC0415 - a tenth of a second, for those alone who use it

        try:
            async with self._client.stream("GET", self._url, params={"q": query, "format": "json"}) as reply:
                if reply.status_code != _OK:
                    raise _refused(reply.status_code)
                body = bytearray()
                async for piece in reply.aiter_bytes():
                    body += piece
                    if len(body) > REPLY_MOST:
                        msg = "The search engine sent more than can be read."
                        raise WebSearchFailed(msg)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            late = isinstance(error, httpx2.TimeoutException)
            msg = "The search engine did not answer in time." if late else "The search engine cannot be reached."
            raise WebSearchFailed(msg) from error
        return list(_pages(bytes(body)))


class WebSearchTool:
    """The tool over one server."""

    spec = ToolSpec(
        name=WEB_SEARCH,
        description=(
            "Searches the web and returns pages with title, link and an excerpt. Use it for what the team's own "
            "documents cannot hold. Never put private words of a person or document into the query."
        ),
        parameters={
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 400, "description": "A few words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": FOUND_MOST, "default": FOUND},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    )

    def __init__(self, engine: SearxNG) -> None:
        self._engine = engine

    async def run(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Search; one source a page, its text the excerpt."""
        pages = await self._engine.search(str(arguments["query"]))
        limit = int(arguments.get("limit", FOUND))
        lines = [f"{page.title} ({page.url})" for page in pages[:limit]]
        if limit < min(len(pages), FOUND_MOST):
            lines.append(f"{len(pages)} pages were found. A limit of up to {FOUND_MOST} brings more of them.")
        pages = pages[:limit]
        return ToolResult(
            call_id=call_id,
            tool=WEB_SEARCH,
            ok=True,
            content="\n".join(lines) or "Nothing was found.",
            sources=tuple(map(_source, pages)),
            hints=() if pages else ("Try other or fewer words.",),
        )


@asynccontextmanager
async def open_searxng(url: str) -> AsyncIterator[SearxNG]:
    """The server with connections of its own."""
    import httpx2  # noqa: PLC0415 - as above

    options: dict[str, Any] = {"trust_env": not is_loopback(url), "verify": trusted_at(url)}
    async with httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False, **options) as client:
        yield SearxNG(url, client)


def _refused(status: int) -> WebSearchFailed:
    if status == _FORBIDDEN:
        hint = "An admin can allow it: `search: formats: [html, json]` in SearXNG's settings.yml."
        return WebSearchFailed("The search engine does not give JSON.", hint)
    return WebSearchFailed(f"The search engine answered with status {status}.")


def _pages(body: bytes) -> Iterator[SearchHit]:
    try:
        reply = json.loads(body)
        found = reply["results"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        msg = "The search engine answered something that is no list of results."
        raise WebSearchFailed(msg) from error
    for result in found if isinstance(found, list) else ():
        if isinstance(result, dict) and (url := _address(result.get("url"))) and (text := _line(result.get("content"))):
            title = _line(result.get("title")) or url
            yield SearchHit(
                title=title[:200], url=url, text=text[:TEXT_MOST], published=_date(result.get("publishedDate"))
            )


def _source(page: SearchHit) -> Source:
    origin = f"tool:{WEB_SEARCH}"
    return Source(id=0, title=page.title, url=page.url, text=page.text, origin=origin, updated_at=page.published)


def _address(value: object) -> str:
    """A web address that a link may have: no other scheme, no name and password, nothing that ends the link."""
    if not isinstance(value, str) or any(c <= " " or c in '<>|"\\' or c == "\x7f" for c in value):
        return ""
    try:
        parts = urlsplit(value)
        plain = parts.scheme in {"http", "https"} and parts.hostname and not parts.username and not parts.password
    except ValueError:
        return ""
    return value if plain else ""


def _line(value: object) -> str:
    """Text on one line, without half characters."""
    return " ".join(value.encode("utf-8", "replace").decode().split()) if isinstance(value, str) else ""


def _date(value: object) -> str:
    """The day, if it begins like one."""
    day = value[:10] if isinstance(value, str) else ""
    shape = "".join("9" if c in "0123456789" else c for c in day)
    return day if shape == "9999-99-99" else ""
