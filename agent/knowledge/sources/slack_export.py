"""Exported Slack channels as documents: one per thread, and one per day for other messages.

Only its own channel may see a private channel's documents. Direct messages and bots are left out.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from agent.json_data import mapping
from agent.knowledge.readers.document import front_matter
from agent.knowledge.slack_message import read_message, with_names
from agent.knowledge.types import DocumentSource, IndexRun, Readable, ReadError
from agent.thread.conversation import PUBLIC

_MAX_BYTES: Final = 50_000_000
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
_TS: Final = re.compile(r"\d{1,12}\.\d{1,9}")
_CHANNEL: Final = re.compile(r"[CG][A-Z0-9]{2,20}")
_MAX_TITLE_CHARS: Final = 60

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackExport(DocumentSource):
    """An unpacked export. ``url`` is the workspace's address, such as ``https://acme.slack.com``."""

    folder: Path
    url: str = ""

    @property
    def key(self) -> str:
        """Prefix of the keys of all its documents."""
        return f"slack:{self.folder.resolve()}"

    def documents(self, run: IndexRun) -> Iterator[Readable]:
        """Yield every thread of every channel."""
        groups, users = self.folder / "groups.json", self.folder / "users.json"
        try:
            listed = [(channel, PUBLIC) for channel in _read_list(self.folder / "channels.json")]
            listed += [(group, str(group.get("id"))) for group in (_read_list(groups) if groups.exists() else ())]
            people = _read_list(users) if users.exists() else []
        except ReadError as error:
            run.missing.append(self.key)
            run.failed.append((str(self.folder), f"is not an unpacked Slack export: one of its lists {error.reason}"))
            return
        names: dict[str, str] = {}
        for person in people:
            shown = mapping(person, "profile").get("display_name")
            if name := str(shown or person.get("real_name") or person.get("name") or ""):
                names[str(person.get("id"))] = f"@{name}"
        names |= {str(channel.get("id")): f"#{channel.get('name')}" for channel, _ in listed}
        for channel, audience in listed:
            name, identity = str(channel.get("name")), str(channel.get("id"))
            folder = self.folder / name
            # A name must not lead out of the export.
            if _CHANNEL.fullmatch(identity) and folder.parent == self.folder and folder.is_dir():
                for key, messages in _group_by_thread(_read_messages(folder, run)).items():
                    first = str(messages[0]["ts"]).replace(".", "")
                    yield Readable(
                        id=run.unique_id(f"slack/{name}/{key}", self.folder.name or "export"),
                        key=f"{self.key}/{identity}/{key}",
                        audience=audience,
                        source=self.key,
                        url=f"{self.url.rstrip('/')}/archives/{identity}/p{first}" if self.url else "",
                        name="thread.md",
                        read=partial(_document, name, key, messages, names),
                    )


def _document(channel: str, key: str, messages: Sequence[Message], names: Mapping[str, str]) -> tuple[bytes, float]:
    """Return messages in order as Markdown, and the time of the last one."""
    texts = [with_names(read_message(message).text, names, unknown="@someone") for message in messages]
    authors = [names.get(str(message["user"]), "@someone").removeprefix("@") for message in messages]
    days = [_format_time(message)[:10] for message in messages]
    what = " ".join(texts[0].split())[:_MAX_TITLE_CHARS] if "." in key else days[0]
    heads = (f"{who} ({_format_time(message)})" for who, message in zip(authors, messages, strict=True))
    body = "\n\n".join(f"{head}: {text}" for head, text in zip(heads, texts, strict=True))
    text = f"{front_matter(f'#{channel}: {what}', days[-1])}{body}\n"
    return text.encode("utf-8", "replace"), float(messages[-1]["ts"])


def _read_list(file: Path) -> list[dict[str, Any]]:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise ReadError(reason="is too big")
        found = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ReadError(reason=f"({file.name}) cannot be read") from error
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _read_messages(folder: Path, run: IndexRun) -> Iterator[Message]:
    """Yield the messages that people wrote, in order: no bots, no joins."""
    for file in sorted(folder.iterdir()):
        if not _DAY.fullmatch(file.name):
            continue
        try:
            found = _read_list(file)
        except ReadError as error:
            run.failed.append((f"slack/{folder.name}/{file.name}", error.reason))
            continue
        for message in found:
            by_person = message.get("user") and not message.get("bot_id")
            known = message.get("subtype") in {None, "thread_broadcast", "file_share", "me_message"}
            if by_person and known and _TS.fullmatch(str(message.get("ts"))) and read_message(message).text:
                yield message


def _group_by_thread(messages: Iterator[Message]) -> dict[str, list[Message]]:
    found: defaultdict[str, dict[str, Message]] = defaultdict(dict)
    for message in messages:
        thread = str(message.get("thread_ts") or "")
        found[thread if _TS.fullmatch(thread) else _format_time(message)[:10]][str(message["ts"])] = message
    return {key: [of[ts] for ts in sorted(of, key=float)] for key, of in found.items()}


def _format_time(message: Message) -> str:
    return datetime.fromtimestamp(float(message["ts"]), UTC).strftime("%Y-%m-%d %H:%M")
