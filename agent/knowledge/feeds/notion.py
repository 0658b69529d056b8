"""Notion's pages as a feed, read with Notion's own client.

Its API does not report who may see a page, so the settings name audiences: one for each listed page and the pages below
it, and one for all others.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from httpx import HTTPError
from notion_client import Client
from notion_client.errors import APIResponseError, NotionClientErrorBase
from notion_client.helpers import iterate_paginated_api

from agent.json_data import mapping, objects, string
from agent.knowledge.feeds.lines import FeedError, FeedPage, Printer, read_setting
from agent.knowledge.readers.text import outside_code

_MAX_PARTS: Final = 50  # maximum requests for one page whose text comes in parts
Audience = str | Sequence[str]
# Notion's own markup in its Markdown, and the text that it shows.
_SIGNS: Final = (
    (
        re.compile(r'<mention-date\b[^<>]*?\bstart(?:Date)?="([^"]*)"(?:[^<>]*?\bend(?:Date)?="([^"]*)")?[^<>]*>'),
        r"\1 \2",
    ),
    (
        re.compile(
            r"(?<![ \t])[ \t]*\{(?:(?:color|toggle|icon|underline)=\"[^\"]*\"[ \t]*)+\}(?=[ \t]*$)", re.MULTILINE
        ),
        "",
    ),
    (re.compile(r"^[ \t]*:{3,}[ \t]*(?:callout\b.*)?$", re.MULTILINE), ""),
    (re.compile(r"<summary\b[^<>]*>((?:(?!<summary).)*?)</summary>", re.DOTALL), r"**\1**\n"),
    (re.compile(r'<(page|database)\b[^<>]*?\burl="([^"]*)"[^<>]*>([^<]*)</\1>'), r"[\3](\2)"),
    (re.compile(r"<(?:empty-block|table_of_contents|unknown)\b[^<>]*>"), ""),
    (re.compile(r"</?(?:callout|columns?|synced_block(?:_reference)?|details|mention-[a-z-]+|span)\b[^<>]*>"), ""),
    (re.compile(r"\\([$^])"), r"\1"),
    (re.compile(r"^\t+(?![-*+] |\d+\. )", re.MULTILINE), ""),  # a tab marks a nested block, not code
)


def print_pages(config: Mapping[str, Any], printer: Printer) -> None:
    """Print every page that is shared with the integration. Raises ``FeedError``."""
    options = {"base_url": config["url"]} if config.get("url") else {}
    with Client(auth=read_setting(config, "token"), **options) as notion:
        try:
            found = list(iterate_paginated_api(notion.search, page_size=100))
            tree = Tree(found, config, {"block_id": notion.blocks.retrieve, "database_id": notion.databases.retrieve})
            for item in found:
                is_gone = any(map(item.get, ("in_trash", "archived", "is_archived")))
                if item["object"] == "page" and not is_gone:
                    page = tree.page(item)
                    if printer.is_needed(page) and (text := _markdown(notion, str(item["id"]))) is not None:
                        properties = "".join(f"- {line}\n" for line in _properties(item))
                        printer.print_page(page, f"{properties}\n{text}")
        except (NotionClientErrorBase, HTTPError, KeyError, TypeError) as error:
            message = f"Notion did not answer as expected: {type(error).__name__} {getattr(error, 'code', '')}".rstrip()
            raise FeedError(message) from None


def _markdown(notion: Client, page: str) -> str | None:
    """Return a page's text; None if it is gone, although search still lists it.

    Parts that Notion omits from a long reply are requested by the ids of their blocks.
    """
    texts, waiting, seen, is_whole = [], [page], set[str](), True
    while waiting and len(seen) < _MAX_PARTS:
        part = waiting.pop(0)
        seen.add(part)
        try:
            answer: Any = notion.pages.retrieve_markdown(part)
        except APIResponseError as error:
            if error.code != "object_not_found":
                raise
            if part == page:
                return None
            is_whole = False  # a block that is not shared
            continue
        texts.append(outside_code(str(answer["markdown"]), _without_signs))
        if answer.get("truncated"):
            waiting += [block for block in answer.get("unknown_block_ids", ()) if block not in seen | {*waiting}]
    if waiting or not is_whole:
        texts.append("(The rest of this page was not read.)")
    return "\n\n".join(texts)


def _without_signs(markdown: str) -> str:
    for sign, text in _SIGNS:
        markdown = sign.sub(text, markdown)
    return markdown


def _properties(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the properties of a row of a database, ``Status: Done``; not those that come from other rows."""
    if mapping(item, "parent").get("type") not in {"database_id", "data_source_id"}:
        return
    for name, value in item["properties"].items():
        kind = string(value, "type")
        if kind not in {"title", "relation", "rollup"} and (text := _property_text(value.get(kind))):
            yield f"{name}: {text}"


def _property_text(value: Any) -> str:
    """Return the value of a property of any kind: rich text, options, people, files, dates, formula results."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        joint = "" if all("plain_text" in each for each in objects(value)) else ", "
        return joint.join(filter(None, map(_property_text, value)))
    if not isinstance(value, Mapping):
        return " ".join(str("" if value is None else value).split())
    if value.get("start"):
        return " to ".join(filter(None, (string(value, "start"), string(value, "end"))))
    if "number" in value and "prefix" in value:
        return "-".join(str(each) for each in (value["prefix"], value["number"]) if each is not None)
    names = ("plain_text", "name", string(value, "type"))
    return next((text for name in names if (text := _property_text(value.get(name)))), "")


class Tree:
    """Pages and databases with their parents. An audience applies to a page and all pages below it."""

    def __init__(
        self, found: Sequence[Mapping[str, Any]], config: Mapping[str, Any], readers: Mapping[str, Callable[[str], Any]]
    ) -> None:
        self._parents: dict[str, str] = {}
        self._readers = readers  # for parents that search does not list, by kind
        self._unlisted: dict[str, Callable[[str], Any]] = {}
        for item in found:
            self._add(_id(item["id"]), item.get("parent") or {})
            if above := item.get("database_parent"):  # of a data source: its parent is the database
                self._add(self._parents[_id(item["id"])], above)
        self._listed: dict[str, Audience] = {_id(page): who for page, who in dict(config.get("pages", {})).items()}
        self._default: Audience = config.get("audience", ())
        self._has_hidden = not self._listed.keys() <= self._parents.keys()

    def _add(self, item: str, parent: Mapping[str, Any]) -> None:
        kind = string(parent, "type")
        self._parents[item] = "" if parent.get("workspace") else _id(parent.get(kind, ""))
        if kind in self._readers:
            self._unlisted[self._parents[item]] = self._readers[kind]

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
            if page in self._unlisted and page not in self._parents and not self._find_parent(page):
                return ()  # its parents are unknown
            if page not in self._parents:  # its parent is not shared, and neither might be a listed page above it
                return () if self._has_hidden else self._default
            page = self._parents[page]
        return self._default

    def _find_parent(self, item: str) -> bool:
        """Ask for the parent of a block or a database. Return whether Notion says so."""
        try:
            self._add(item, self._unlisted[item](item)["parent"])
        except APIResponseError as error:
            if error.code != "object_not_found":
                raise
            return False
        return True


def _id(text: object) -> str:
    try:
        return UUID(str(text)).hex
    except ValueError:
        return str(text)
