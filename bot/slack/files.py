"""Fetches and reads the files of a question. A failure becomes the file's ``trouble``.

The token is sent only to Slack's own hosts or to the configured server.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import aiohttp
import structlog

from agent.json_data import mapping, objects, string
from agent.knowledge.readers.chunking import Chunk
from agent.knowledge.readers.document import ReadDocument
from agent.knowledge.readers.process import ATTACHMENT_LIMITS, DocumentReader, FileToRead, TimeLeft
from agent.knowledge.readers.reading import FORMATS_BY_TYPE, format_of
from agent.knowledge.slack_message import shared_files
from agent.knowledge.types import ReadError
from agent.thread.conversation import AttachedFile, FilePart, FileTrouble, ThreadKey
from bot.slack.client import REDIRECTS
from bot.slack.history import ThreadReader
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from observability.loopback import proxy_for

MAX_FILES: Final = 5  # these limit what one message costs
READ_TIMEOUT_S: Final = 20.0  # for reading all files of a message: the next message waits for them
MAX_BYTES: Final = 10_000_000
FETCH_TIMEOUT_S: Final = 15.0
_MAX_REDIRECTS: Final = 3
_SLACK_HOSTS: Final = ("slack.com", "slack-gov.com", "slack-files.com")  # the second one is GovSlack's
_TEXTUAL: Final = frozenset(
    f"application/{kind}" for kind in ("json", "xml", "x-yaml", "yaml", "toml", "javascript", "sql", "x-sh", "csv")
)
_ZIPPED: Final = {b"word/": ".docx", b"ppt/": ".pptx", b"xl/": ".xlsx"}  # a folder inside the file
# Slack's own kinds of files: the field with the address of the words (else the file's own), and their format.
_CANVAS: Final = ("", ".html")
_CLIP: Final = ("vtt", ".vtt")
_OWN_KINDS: Final = {
    "canvas": _CANVAS,
    "quip": _CANVAS,  # also notes of a huddle
    "list": ("list_csv_download_url", ".csv"),
    "slack_audio": _CLIP,
    "slack_video": _CLIP,
}
log = structlog.get_logger()


@dataclass
class FileUnavailable(Exception):  # noqa: N818 - an outcome that the caller turns into a file's trouble
    """A file that could not be fetched; ``trouble`` says why."""

    trouble: FileTrouble


def has_opening_files(files: tuple[AttachedFile, ...], incoming: Incoming) -> bool:
    """Return whether the first message of the thread has files that the next question may be about."""
    opens = incoming.ts == incoming.thread.thread_ts
    return any((file.opening or opens) and file.trouble in {"", "away", "many", "slow", "clip"} for file in files)


@dataclass(frozen=True, slots=True)
class Attachments:
    """Reads the files of one workspace's messages with its token."""

    reader: ThreadReader
    fetch_timeout_s: float = FETCH_TIMEOUT_S
    documents: DocumentReader = field(default_factory=partial(DocumentReader, ATTACHMENT_LIMITS))

    async def read_all(
        self, incoming: Incoming, first: Mapping[str, Any] | None, asked: Mapping[str, Any] | None = None
    ) -> tuple[AttachedFile, ...]:
        """Read the files of the message, then those of the first message of its thread.

        ``first`` is that message from Slack; empty if it does not matter, None if it must be looked up. ``asked`` is
        the message itself, if it was already read. Raises ``DeliveryFailed`` while Slack is down.
        """
        # Only facts that are missing from the event cost a call to Slack.
        located = all(
            one.get("url_private") or one.get("file_access") == "check_file_info" for one in incoming.attached
        )
        own = list(incoming.attached) if located else []
        if incoming.files == "unknown" or (incoming.files == "some" and not own):
            above: Mapping[str, Any] = {}
            if not asked:
                asked, above = await self._look_up(incoming.thread, incoming.ts)
            if incoming.files == "some" and not asked:
                return (AttachedFile(name="", trouble="away"),)  # the event had a file without a name
            own, first = shared_files(asked), above or first or {}
        elif first is None:
            first, _ = await self._look_up(incoming.thread, incoming.thread.thread_ts)
        known = {string(one, "id") for one in own}
        files = [*own, *(one for one in shared_files(first) if string(one, "id") not in known)]
        left = TimeLeft(READ_TIMEOUT_S)
        read = [await self._read_file(shared, left) for shared in files[:MAX_FILES]]
        read += [AttachedFile(name=_name(shared), trouble="many") for shared in files[MAX_FILES:]]
        if read:
            log.info("files_read", files=len(read), unread=sum(bool(file.trouble) for file in read))
        return tuple(replace(file, opening=number >= len(own)) for number, file in enumerate(read))

    async def _look_up(self, place: ThreadKey, ts: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        try:
            return await self.reader.find_message(place, ts)
        except DeliveryFailed as failure:
            if not failure.permanent:
                raise
            log.warning("files_not_looked_up", reason=failure.reason)
            return {}, {}

    async def _read_file(self, shared: Mapping[str, Any], left: TimeLeft) -> AttachedFile:
        known = shared
        try:
            # In channels shared between organisations, and for a transcript, which comes after the message.
            if string(shared, "file_access") == "check_file_info" or _own_kind(shared):
                reply = await self.reader.workspace.calls.read("files.info", file=string(shared, "id"))
                known = mapping(reply, "file") or shared
            document, chunks = await self._fetch_document(known, left)
        except (FileUnavailable, DeliveryFailed) as failure:
            trouble: FileTrouble = "away"
            if isinstance(failure, FileUnavailable):
                trouble = failure.trouble
            elif failure.reason == "missing_scope":
                trouble = "not_allowed"
            log.warning("file_not_read", reason=trouble)
            return AttachedFile(name=_name(shared), url=string(known, "permalink"), trouble=trouble)
        head, url = _mail_head(known), string(known, "permalink")
        parts = [FilePart("", 1, head)] if head else []
        parts += [FilePart(chunk.path, chunk.line, chunk.text) for chunk in chunks]
        text, cut = head + document.text, bool(document.cut or (_own_kind(known) == _CLIP and not string(known, "vtt")))
        return AttachedFile(name=_name(known), text=text, parts=tuple(parts), url=url, is_cut=cut)

    async def _fetch_document(self, known: Mapping[str, Any], left: TimeLeft) -> tuple[ReadDocument, tuple[Chunk, ...]]:
        own, size = _own_kind(known), known.get("size")
        name = f"{_name(known)}{own[1]}" if own else _name_by_type(known)
        if not own and isinstance(size, int) and size > MAX_BYTES:
            raise FileUnavailable(trouble="big")
        try:
            async with asyncio.timeout(self.fetch_timeout_s):
                data = _transcript_begin(known) or await self._download(known)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            log.warning("file_not_fetched", error_type=type(error).__name__)
            raise FileUnavailable(trouble="away") from None
        try:
            to_read = FileToRead(_name_by_content(name, data), data)
            return await asyncio.to_thread(self.documents.read, to_read, left=left)
        except ReadError as error:
            log.warning("file_not_parsed", reason=error.reason)
            raise FileUnavailable(error.trouble) from None

    async def _download(self, known: Mapping[str, Any]) -> bytes:
        """Download through redirects. Check each host before sending it the token."""
        field, _ = _own_kind(known) or _CANVAS
        url = string(known, field) if field else string(known, "url_private_download") or string(known, "url_private")
        if not url and field:
            raise FileUnavailable(trouble="form")
        client = self.reader.workspace.calls.client
        headers = {"Authorization": f"Bearer {client.token}"}
        for _ in range(_MAX_REDIRECTS):
            if "redir=" in urlsplit(url).query:  # the page to sign in
                raise FileUnavailable(trouble="not_allowed")
            if not self.is_allowed(url):
                raise FileUnavailable(trouble="elsewhere")
            if client.session is None:
                raise FileUnavailable(trouble="away")
            options: dict[str, Any] = {"allow_redirects": False, "middlewares": (), "proxy": proxy_for(url)}
            async with client.session.get(url, headers=headers, **options) as reply:
                if reply.status not in REDIRECTS:
                    return await _read_body(reply, known)
                url = urljoin(url, reply.headers.get("Location", ""))
        raise FileUnavailable(trouble="not_allowed")

    def is_allowed(self, url: str) -> bool:
        """Return whether the token may be sent there: to the configured server, or from Slack to Slack over TLS."""
        there, home = urlsplit(url), urlsplit(self.reader.workspace.calls.client.base_url)
        if (there.scheme, there.netloc) == (home.scheme, home.netloc):
            return True
        return there.scheme == "https" and _is_slack(home.hostname) and _is_slack(there.hostname)


async def _read_body(reply: aiohttp.ClientResponse, known: Mapping[str, Any]) -> bytes:
    """Read the reply to a download. Raises ``FileUnavailable`` if it is not this file."""
    if reply.status != HTTPStatus.OK:
        raise FileUnavailable(trouble="not_allowed" if reply.status in {401, 403} else "away")
    data = bytearray()
    async for piece in reply.content.iter_chunked(65_536):
        data += piece
        if len(data) > MAX_BYTES:
            raise FileUnavailable(trouble="big")
    size = known.get("size")
    own = _own_kind(known)
    same_size = own or not isinstance(size, int) or size in {0, len(data)} or string(known, "mode") == "email"
    # If Orion may not read files, Slack sends its sign-in page, with status 200.
    is_page = own == _CANVAS or (string(known, "mimetype") == "text/html" and same_size)
    if reply.content_type == "text/html" and not is_page:
        raise FileUnavailable(trouble="not_allowed")
    if not same_size and (not data or reply.content_type == "application/json"):  # an error in place of the file
        raise FileUnavailable(trouble="away")
    return bytes(data)


def _is_slack(host: str | None) -> bool:
    return any(host == own or (host or "").endswith(f".{own}") for own in _SLACK_HOSTS)


def _name(shared: Mapping[str, Any]) -> str:
    return string(shared, "name") or string(shared, "title") or string(shared, "id")


def _own_kind(known: Mapping[str, Any]) -> tuple[str, str] | None:
    names = (string(known, name) for name in ("subtype", "filetype", "mode"))
    return next((_OWN_KINDS[name] for name in names if name in _OWN_KINDS), None)


def _transcript_begin(known: Mapping[str, Any]) -> bytes:
    """Return the first words of a clip that has no file with its transcript. Raises ``FileUnavailable`` without any."""
    if _own_kind(known) != _CLIP or string(known, "vtt"):
        return b""
    if words := string(mapping(mapping(known, "transcription"), "preview"), "content"):
        return words.encode()
    raise FileUnavailable(trouble="clip")


def _name_by_type(known: Mapping[str, Any]) -> str:
    """Return a name whose suffix selects the reader, by Slack's type first. Raises ``FileUnavailable``."""
    name, kind, mode = _name(known), string(known, "mimetype"), string(known, "mode")
    if mode == "hidden_by_limit":  # older than a free workspace keeps
        raise FileUnavailable(trouble="away")
    if mode == "email" or string(known, "filetype") == "email":
        return f"{name}.html"
    by_type = FORMATS_BY_TYPE.get(kind) or format_of(f"file.{string(known, 'filetype')}")
    if by_type and kind != "text/plain":  # also Slack's type for programs and tables
        return name if format_of(name) == by_type else f"{name}{by_type.suffixes[0]}"
    if format_of(name) or kind in {"", "application/octet-stream"}:
        return name
    if kind.startswith("text/") or kind in _TEXTUAL or mode == "snippet":
        return f"{name}.txt"
    raise FileUnavailable(trouble="form")


def _name_by_content(name: str, data: bytes) -> str:
    """Return the name with the suffix that fits the content. Raises ``FileUnavailable`` for an unknown format."""
    begin, by_name, suffix = data[:1_024].lstrip(b"\xef\xbb\xbf \t\r\n").lower(), format_of(name), ""
    if begin.startswith(b"%pdf-"):
        suffix = ".pdf"
    elif begin.startswith(b"pk\x03\x04"):
        suffix = next((found for part, found in _ZIPPED.items() if part in data), "")
    elif begin.startswith((b"<!doctype html", b"<html")) and not (by_name and by_name.form == "markdown"):
        suffix = ".html"
    elif not by_name and b"\0" not in data[:8_192]:
        suffix = ".txt"
    if suffix and format_of(f"file{suffix}") not in {None, by_name}:
        return f"{name}{suffix}"
    if by_name is None:
        raise FileUnavailable(trouble="form")
    return name


def _mail_head(known: Mapping[str, Any]) -> str:
    """Return subject and senders of a forwarded e-mail, which its body does not repeat."""
    if string(known, "mode") != "email":
        return ""
    senders = [string(one, "original") or string(one, "address") for one in objects(known, "from")]
    lines = {"Subject": string(known, "subject") or string(known, "title"), "From": ", ".join(filter(None, senders))}
    return "".join(f"{name}: {value}\n" for name, value in lines.items() if value) + "\n"
