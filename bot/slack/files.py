"""Fetches and reads the files of a question. Whatever goes wrong becomes the file's ``trouble``.

The token goes to Slack's own hosts, or the configured server, only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import aiohttp
import structlog
from slack_sdk.web.async_client import AsyncWebClient

from agent.knowledge.readers.document import ReadDocument
from agent.knowledge.readers.formats import format_of, format_of_type
from agent.knowledge.readers.process import DocumentReader, FileToRead
from agent.knowledge.types import ReadError
from agent.thread.conversation import AttachedFile, FileTrouble, ThreadKey
from bot.slack.history import ThreadReader
from bot.slack.message import Incoming
from bot.slack.payload import mapping, objects, string
from bot.slack.web_api import DeliveryFailed, SlackCalls
from observability.loopback import proxy_for

MAX_FILES: Final = 5  # these four bound what one message costs
MAX_BYTES: Final = 10_000_000
FETCH_TIMEOUT_S: Final = 15.0
_MAX_REDIRECTS: Final = 3
_SLACK_HOSTS: Final = ("slack.com", "slack-gov.com", "slack-files.com")  # the second one is GovSlack's
_OK: Final = 200
_REDIRECTS: Final = range(300, 400)
_TEXTUAL: Final = frozenset(
    {"application/json", "application/xml", "application/x-yaml", "application/yaml", "application/toml"}
    | {"application/javascript", "application/sql", "application/x-sh", "application/csv"}
)
_log = structlog.get_logger()


class FileUnavailable(Exception):  # noqa: N818 - an outcome that the caller turns into a file's trouble
    """A file that could not be had; ``trouble`` says why."""

    def __init__(self, *, trouble: FileTrouble) -> None:
        super().__init__(trouble)
        self.trouble: FileTrouble = trouble


def has_opening_files(files: tuple[AttachedFile, ...], incoming: Incoming) -> bool:
    """Whether the thread's first message has files that the next question may be about: read, or away just now."""
    opens = incoming.ts == incoming.thread.thread_ts
    return any((file.opening or opens) and file.trouble in {"", "away", "many"} for file in files)


@dataclass(frozen=True, slots=True)
class Attachments:
    """Reads the files of one workspace's messages, with that workspace's own token."""

    client: AsyncWebClient
    calls: SlackCalls
    reader: ThreadReader
    fetch_timeout_s: float = FETCH_TIMEOUT_S
    documents: DocumentReader = field(default_factory=partial(DocumentReader, for_attachments=True))

    async def of(
        self, incoming: Incoming, first: Mapping[str, Any] | None, asked: Mapping[str, Any] | None = None
    ) -> tuple[AttachedFile, ...]:
        """The files of the message, then those of its thread's first one, as far as they can be read.

        ``first`` is that one as Slack has it; empty where it is of no interest, None where it has to be looked up.
        ``asked`` is the message itself, if it was read already. Raises ``DeliveryFailed`` where Slack is away.
        """
        # What the event told is enough; else a call to Slack.
        own = list(incoming.attached) if all(map(_has_location, incoming.attached)) else []
        if incoming.files == "unknown" or (incoming.files == "some" and not own):
            above: Mapping[str, Any] = {}
            if not asked:
                asked, above = await self._look_up(incoming.thread, incoming.ts)
            if incoming.files == "some" and not asked:
                return (AttachedFile(name="", trouble="away"),)  # the event told of it, and kept no name
            own, first = list(objects(asked, "files")), above or first or {}
        elif first is None:
            first, _ = await self._look_up(incoming.thread, incoming.thread.thread_ts)
        known = {string(one, "id") for one in own}
        more = [one for one in objects(first, "files") if string(one, "id") not in known]
        read = []
        for number, (shared, opening) in enumerate([*((one, False) for one in own), *((one, True) for one in more)]):
            many = AttachedFile(name=_name(shared), trouble="many")
            read.append(replace(many if number >= MAX_FILES else await self._read_file(shared), opening=opening))
        if read:
            _log.info("files_read", files=len(read), unread=sum(bool(file.trouble) for file in read))
        return tuple(read)

    async def _look_up(self, place: ThreadKey, ts: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """That message and the one that opened its thread; nothing where the place cannot be read."""
        try:
            return await self.reader.find_message(place, ts)
        except DeliveryFailed as failure:
            if not failure.permanent:
                raise
            # What a place has that cannot be read is not known, but that there is a file may be.
            _log.warning("files_not_looked_up", reason=failure.reason)
            return {}, {}

    async def _read_file(self, shared: Mapping[str, Any]) -> AttachedFile:
        url = ""
        try:
            known = await self._fetch_details(shared)
            url = string(known, "permalink")
            document = await self._fetch_document(known)
        except FileUnavailable as failure:
            _log.warning("file_not_read", reason=failure.trouble)
            return AttachedFile(name=_name(shared), url=url, trouble=failure.trouble)
        return AttachedFile(name=_name(known), text=document.text, url=url, is_cut=bool(document.cut))

    async def _fetch_details(self, shared: Mapping[str, Any]) -> Mapping[str, Any]:
        """All that Slack knows of the file: in channels shared between organisations it has to be asked for."""
        if string(shared, "file_access") != "check_file_info":
            return shared
        try:
            reply = await self.calls.read("files.info", file=string(shared, "id"))
        except DeliveryFailed as failure:
            raise FileUnavailable(trouble="not_allowed" if failure.reason == "missing_scope" else "away") from None
        return mapping(reply, "file") or shared

    async def _fetch_document(self, known: Mapping[str, Any]) -> ReadDocument:
        name, size = _readable_name(known), known.get("size")
        if isinstance(size, int) and size > MAX_BYTES:
            raise FileUnavailable(trouble="big")
        try:
            async with asyncio.timeout(self.fetch_timeout_s):
                data = await self._download(known)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            _log.warning("file_not_fetched", error_type=type(error).__name__)
            raise FileUnavailable(trouble="away") from None
        try:
            document, _ = await asyncio.to_thread(self.documents.read, FileToRead(name, data))
        except ReadError as error:
            _log.warning("file_not_parsed", reason=error.reason)
            raise FileUnavailable(trouble="unreadable") from None
        return document

    async def _download(self, known: Mapping[str, Any]) -> bytes:
        """The download, through redirections between allowed hosts; each is looked at before the token goes there."""
        url = string(known, "url_private_download") or string(known, "url_private")
        for _ in range(_MAX_REDIRECTS):
            if not self.is_allowed(url):
                raise FileUnavailable(trouble="elsewhere")
            found = await self._get(url, known)
            if isinstance(found, bytes):
                return found
            url = urljoin(url, found)
        raise FileUnavailable(trouble="not_allowed")

    async def _get(self, url: str, known: Mapping[str, Any]) -> bytes | str:
        session = self.client.session
        if session is None:
            raise FileUnavailable(trouble="away")
        headers = {"Authorization": f"Bearer {self.client.token}"}
        async with session.get(url, headers=headers, allow_redirects=False, proxy=proxy_for(url)) as reply:
            if reply.status in _REDIRECTS:
                return reply.headers.get("Location", "")
            if reply.status != _OK:
                raise FileUnavailable(trouble="not_allowed" if reply.status in {401, 403} else "away")
            data = bytearray()
            async for piece in reply.content.iter_chunked(65_536):
                data += piece
                if len(data) > MAX_BYTES:
                    raise FileUnavailable(trouble="big")
            if _is_sign_in(reply.content_type, len(data), known):
                raise FileUnavailable(trouble="not_allowed")
            return bytes(data)

    def is_allowed(self, url: str) -> bool:
        """Whether the token may go there: the configured server itself, or Slack over TLS where that is Slack's."""
        there, home = urlsplit(url), urlsplit(self.client.base_url)
        if (there.scheme, there.netloc) == (home.scheme, home.netloc):
            return True
        return there.scheme == "https" and _is_slack(home.hostname) and _is_slack(there.hostname)


def _is_sign_in(content_type: str, length: int, known: Mapping[str, Any]) -> bool:
    """Without the right to read files Slack answers with a page to sign in, and status 200."""
    size = known.get("size")
    as_told = string(known, "mimetype") == "text/html" and (not isinstance(size, int) or size in {0, length})
    return content_type == "text/html" and not as_told


def _is_slack(host: str | None) -> bool:
    return any(host == own or (host or "").endswith(f".{own}") for own in _SLACK_HOSTS)


def _has_location(shared: Mapping[str, Any]) -> bool:
    return bool(string(shared, "url_private") or string(shared, "file_access") == "check_file_info")


def _name(shared: Mapping[str, Any]) -> str:
    return string(shared, "name") or string(shared, "title") or string(shared, "id")


def _readable_name(known: Mapping[str, Any]) -> str:
    """The name to read it by: what is text by kind is read as text, whatever its suffix. Raises ``Unfetched``."""
    if string(known, "mode") in {"tombstone", "hidden_by_limit"}:  # deleted, or older than a free workspace keeps
        raise FileUnavailable(trouble="away")
    name, kind = _name(known), string(known, "mimetype")
    if format_of(name):
        return name
    if (of_type := format_of_type(kind)) and of_type.packed:
        return f"{name}{of_type.suffixes[0]}"
    if kind.startswith("text/") or kind in _TEXTUAL or string(known, "mode") == "snippet":
        return f"{name}.txt"
    raise FileUnavailable(trouble="form")
