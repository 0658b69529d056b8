"""Confluence and Notion on a free loopback port, in the shapes that their makers document, with pages as data.

Change ``wikis.pages`` and ``wikis.notes`` between runs; ``wikis.asked`` lists the paths.
"""

import json
import re
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(kw_only=True)
class WikiPage:
    """A page of Confluence. ``people`` and ``groups`` restrict who reads it; ``above`` is the way down to it."""

    title: str
    html: str
    when: str = "2026-11-01T09:00:00.000Z"
    people: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    status: str = "current"
    includes: str = ""  # the page's own markup, if it includes others


@dataclass(kw_only=True)
class Note:
    """A page of Notion. ``parts`` are further texts, each asked for by the id of a block.

    ``above`` is its parent in Notion's form, if that is not a page; ``fields`` are added to what search returns.
    """

    title: str
    markdown: str
    parent: str = ""
    when: str = "2026-11-01T09:00:00.000Z"
    parts: dict[str, str] = field(default_factory=dict)
    above: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)


PEOPLE = {"a1": {"accountId": "a1", "email": "ann@acme.example"}, "b2": {"accountId": "b2", "email": ""}}


@dataclass(slots=True)
class Wikis:
    """Both servers. ``refusals`` are statuses for the next requests; a 429 asks to wait for no time."""

    pages: dict[str, WikiPage] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    notes: dict[str, Note] = field(default_factory=dict)
    blocks: dict[str, dict[str, Any]] = field(default_factory=dict)  # the parents of Notion's blocks and databases
    asked: list[str] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    url: str = ""
    next_url: str = "/rest/api"  # how the next page of a list begins
    has_space: bool = True

    def answer(self, path: str, headers: Message, body: bytes) -> tuple[int, bytes]:  # noqa: ARG002 - as ``Answer``
        parts = urlsplit(path)
        self.asked.append(parts.path)
        found = self._find(parts.path, parse_qs(parts.query))
        if self.refusals or found is None:
            status = self.refusals.pop(0) if self.refusals else 404
            code = {404: "object_not_found", 429: "rate_limited"}.get(status, "internal_server_error")
            return status, json.dumps({"object": "error", "code": code, "message": "no"}).encode()
        return 200, json.dumps(found).encode()

    def _find(self, path: str, query: dict[str, list[str]]) -> dict[str, Any] | None:
        """Return the JSON for a request; None if there is nothing at the path."""
        if path == "/wiki/rest/api/content/search":
            return self._search(query)
        if path == "/wiki/rest/api/space/ENG" and self.has_space:
            return {"key": "ENG"}
        if found := re.fullmatch(r"/wiki/rest/api/group/(\w+)/membersByGroupId", path):
            return {"results": [PEOPLE[who] for who in self.groups[found[1]]], "_links": {}}
        return self._find_note(path)

    def _find_note(self, path: str) -> dict[str, Any] | None:
        if path == "/v1/search":
            return {"results": [self._note(key) for key in self.notes], "has_more": False, "next_cursor": None}
        if found := re.fullmatch(r"/v1/pages/([\w-]+)/markdown", path):
            return self._markdown(found[1])
        if (found := re.fullmatch(r"/v1/(?:blocks|databases)/([\w-]+)", path)) and found[1] in self.blocks:
            return {"object": "block", "parent": self.blocks[found[1]]}
        return None

    def _search(self, query: dict[str, list[str]]) -> dict[str, Any]:
        cql = query["cql"][0]
        wanted = re.findall(r"\d+", cql.partition(" in ")[2]) or list(self.pages)
        if "macro in (include, excerpt-include)" in cql:
            wanted = [number for number in wanted if self.pages[number].includes]
        start, step = int(query.get("start", ["0"])[0]), 2  # a small page of results, so that paging is seen
        found = [self._item(number) for number in wanted[start : start + step] if number in self.pages]
        more = f"{self.next_url}/content/search?cql={cql}&start={start + step}"
        return {"results": found, "_links": {"next": more} if start + step < len(wanted) else {}}

    def _item(self, number: str) -> dict[str, Any]:
        page = self.pages[number]
        groups = [{"type": "group", "name": name, "id": name} for name in page.groups]
        restrictions = {"user": {"results": [PEOPLE[who] for who in page.people]}, "group": {"results": groups}}
        return {
            "id": number,
            "title": page.title,
            "status": page.status,
            "version": {"when": page.when},
            "ancestors": [{"id": above} for above in page.above],
            "restrictions": {"read": {"restrictions": restrictions}},
            "body": {"view": {"value": page.html}, "storage": {"value": page.includes}},
            "_links": {"webui": f"/spaces/ENG/pages/{number}"},
        }

    def _note(self, key: str) -> dict[str, Any]:
        note = self.notes[key]
        workspace = {"type": "workspace", "workspace": True}
        parent = note.above or ({"type": "page_id", "page_id": note.parent} if note.parent else workspace)
        title = {"type": "title", "title": [{"plain_text": note.title}]}
        return {
            "object": "page",
            "id": key,
            "parent": parent,
            "last_edited_time": note.when,
            "url": f"https://notion.example/{key}",
            "properties": {"Name": title, **note.properties},
            **note.fields,
        }

    def _markdown(self, key: str) -> dict[str, Any] | None:
        parts = {block: text for note in self.notes.values() for block, text in note.parts.items()}
        if key in parts:
            return {"object": "page_markdown", "markdown": parts[key], "truncated": False, "unknown_block_ids": []}
        if key not in self.notes or self.notes[key].fields.get("gone"):
            return None
        note, left = self.notes[key], list(self.notes[key].parts)
        shown = {"markdown": note.markdown, "truncated": bool(left), "unknown_block_ids": left}
        return {"object": "page_markdown", **shown}
