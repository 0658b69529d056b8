"""Notion's pages as a feed, read with Notion's own client.

Its API does not report who may see a page, so the settings name audiences: one for each listed page and the pages below
it, and one for all others.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from httpx import HTTPError
from notion_client import Client
from notion_client.errors import NotionClientErrorBase
from notion_client.helpers import iterate_paginated_api

from agent.knowledge.feeds.lines import FeedError, FeedPage, Printer, read_setting

_MAX_PARTS: Final = 50  # maximum requests for one page whose text comes in parts
Audience = str | Sequence[str]


def print_pages(config: Mapping[str, Any], printer: Printer) -> None:
    """Print every page that is shared with the integration. Raises ``FeedError``."""
    options = {"base_url": config["url"]} if config.get("url") else {}
    with Client(auth=read_setting(config, "token"), **options) as notion:
        try:
            found = list(iterate_paginated_api(notion.search, page_size=100))
            tree = Tree(found, config)
            for item in found:
                if item["object"] == "page" and not item.get("in_trash"):
                    page = tree.page(item)
                    if printer.is_needed(page):
                        printer.print_page(page, _markdown(notion, str(item["id"])))
        except (NotionClientErrorBase, HTTPError) as error:
            message = f"Notion did not answer as expected: {type(error).__name__} {getattr(error, 'code', '')}".rstrip()
            raise FeedError(message) from None


def _markdown(notion: Client, page: str) -> str:
    """Return a page's text. Parts that Notion omits from a long reply are requested by the ids of their blocks."""
    texts, waiting, seen = [], [page], set[str]()
    while waiting and len(seen) < _MAX_PARTS:
        part = waiting.pop(0)
        seen.add(part)
        answer: Any = notion.pages.retrieve_markdown(part)
        texts.append(str(answer["markdown"]))
        if answer.get("truncated"):
            waiting += [block for block in answer.get("unknown_block_ids", ()) if block not in seen]
    if waiting:
        texts.append("(The rest of this page was not read: it is too long.)")
    return "\n\n".join(texts)


class Tree:
    """Pages and databases with their parents. An audience applies to a page and all pages below it."""

    def __init__(self, found: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> None:
        parents = {_id(item["id"]): item.get("parent") or {} for item in found}
        self._parents = {
            page: "" if parent.get("workspace") else _id(parent.get(parent.get("type"), ""))
            for page, parent in parents.items()
        }
        self._listed: dict[str, Audience] = {_id(page): who for page, who in dict(config.get("pages", {})).items()}
        self._default: Audience = config.get("audience", ())
        self._has_hidden = not self._listed.keys() <= self._parents.keys()

    def page(self, item: Mapping[str, Any]) -> FeedPage:
        """Return a page from the search results, with its audience."""
        titles = [value["title"] for value in item["properties"].values() if value.get("type") == "title"]
        title = "".join(part.get("plain_text", "") for part in (titles[0] if titles else ()))
        return FeedPage(
            key=_id(item["id"]),
            title=title or "Untitled",
            url=str(item.get("url") or ""),
            updated=str(item["last_edited_time"]),
            audience=self._audience(_id(item["id"])),
            reason="neither it nor a page above it has an audience in the settings",
        )

    def _audience(self, page: str) -> Audience:
        seen: set[str] = set()
        while page and page not in seen:
            if page in self._listed:
                return self._listed[page]
            seen.add(page)
            if page not in self._parents:  # its parent is not shared, and neither might be a listed page above it
                return () if self._has_hidden else self._default
            page = self._parents[page]
        return self._default


def _id(text: object) -> str:
    try:
        return UUID(str(text)).hex
    except ValueError:
        return str(text)
