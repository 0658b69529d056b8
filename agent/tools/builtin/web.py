"""``web_search`` through a configured SearXNG. Its excerpts are the sources; no page is fetched."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import date
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from agent.json_data import mapping, string
from agent.tools.tool import ToolFailed, ToolResult, parameter, spec_of
from observability.loopback import client_options
from verification.types import Source

if TYPE_CHECKING:
    import httpx2

WEB_SEARCH: Final = "web_search"
DEFAULT_PAGES: Final = parameter(WEB_SEARCH, "limit")["default"]
MAX_PAGES: Final = parameter(WEB_SEARCH, "limit")["maximum"]
TIMEOUT_S: Final = 12.0  # seconds between two pieces of the reply
MAX_REPLY_BYTES: Final = 2_000_000
MAX_EXCERPT_CHARS: Final = 2_000
_NO_JSON: Final = (
    "The search engine does not give JSON.",
    "An admin can allow it: `search: formats: [html, json]` in SearXNG's settings.yml.",
)
_ENDS_A_LINK: Final = re.compile(r'[\x00- <>|"\\\x7f]')


class WebSearchFailed(ToolFailed):
    """The search engine failed."""

    hints = ("Go on without the web, or try again later.",)
    away = True


class WebSearchTool:
    """The tool over one server, by its JSON interface."""

    spec = spec_of(WEB_SEARCH)

    def __init__(self, url: str, client: httpx2.AsyncClient) -> None:
        self._url = url.rstrip("/").removesuffix("/search") + "/search"
        self._client = client

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Search, and return one source per page, with the excerpt as its text."""
        results, limit = await self.search(str(arguments["query"])), int(arguments.get("limit", DEFAULT_PAGES))
        pages = results[:limit]
        lines = [f"{page.title} ({page.url})" for page in pages]
        if limit < min(len(results), MAX_PAGES):
            lines.append(f"{len(results)} pages were found. A limit of up to {MAX_PAGES} brings more of them.")
        hints = () if pages else ("Try other or fewer words.",)
        return ToolResult(content="\n".join(lines) or "Nothing was found.", sources=tuple(pages), hints=hints)

    async def search(self, query: str) -> list[Source]:
        """Return all pages that were found, best first. Raises ``WebSearchFailed``."""
        import httpx2  # noqa: PLC0415 - a tenth of a second, for those alone who use it

        from agent.limited_reply import ReplyTooLong  # noqa: PLC0415 - it imports httpx2

        try:
            reply = await self._client.get(self._url, params={"q": query, "format": "json"})
        except ReplyTooLong as error:
            raise WebSearchFailed(why="The search engine sent more than can be read.") from error
        except httpx2.TimeoutException as error:
            raise WebSearchFailed(why="The search engine did not answer in time.") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise WebSearchFailed(why="The search engine cannot be reached.") from error
        if reply.status_code == HTTPStatus.FORBIDDEN:  # SearXNG's answer if its settings do not list JSON
            raise WebSearchFailed(*_NO_JSON)
        if reply.status_code != HTTPStatus.OK:
            raise WebSearchFailed(why=f"The search engine answered with status {reply.status_code}.")
        return list(_parse_results(reply.content))


@asynccontextmanager
async def open_searxng(url: str) -> AsyncIterator[WebSearchTool]:
    """Open the tool for a server, with its own connections."""
    import httpx2  # noqa: PLC0415 - as above

    from agent.limited_reply import reply_limit  # noqa: PLC0415 - as above

    hooks = {"response": [reply_limit(MAX_REPLY_BYTES)]}
    async with httpx2.AsyncClient(timeout=TIMEOUT_S, event_hooks=hooks, **client_options(url)) as client:
        yield WebSearchTool(url, client)


def _parse_results(body: bytes) -> Iterator[Source]:
    try:
        results = json.loads(body)["results"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WebSearchFailed(why="The search engine's reply is not a list of results.") from error
    for result in results if isinstance(results, list) else ():
        found = mapping(result)
        title, text = (" ".join(string(found, name).split()) for name in ("title", "content"))
        url, updated_at = _safe_url(found.get("url")), ""
        with suppress(ValueError):
            updated_at = date.fromisoformat(str(found.get("publishedDate"))[:10]).isoformat()
        if url and text:
            title, text = (title or url)[:200], text[:MAX_EXCERPT_CHARS]
            yield Source(id=0, title=title, url=url, text=text, origin=f"tool:{WEB_SEARCH}", updated_at=updated_at)


def _safe_url(value: object) -> str:
    """Return a URL that is safe in a link: http or https, without credentials or characters that end the link."""
    with suppress(ValueError):
        parts = urlsplit(value if isinstance(value, str) and not _ENDS_A_LINK.search(value) else "")
        if parts.scheme in {"http", "https"} and parts.hostname and not parts.username and not parts.password:
            return str(value)
    return ""
