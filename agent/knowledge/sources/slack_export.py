"""Exported Slack channels as documents: a thread each, and what stands alone gathered by day.

A private channel's documents are for that channel only; direct messages and bots are left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any, Final

import orjson

from agent.knowledge.types import Ground, Readable, ReadError
from agent.thread.audience import PUBLIC

_MOST_BYTES: Final = 50_000_000
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
_TS: Final = re.compile(r"\d{1,12}\.\d{1,9}")
_CHANNEL: Final = re.compile(r"[CG][A-Z0-9]{2,20}")
_MARK: Final = re.compile(r"<(?P<kind>[@#!]?)(?P<what>[^<>|]*)(?:\|(?P<label>[^<>]*))?>")
_TITLE_CHARS: Final = 60

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackExport:
    """An unpacked export. ``url`` is the workspace's address, such as ``https://acme.slack.com``."""

    folder: Path
    url: str = ""

    @property
    def key(self) -> str:
        """What all its documents' keys begin with."""
        return f"slack:{self.folder.resolve()}"

    @property
    def part(self) -> str:
        """All of it."""
        return ""

    def documents(self, ground: Ground) -> Iterator[Readable]:
        """Every thread of every channel."""
        groups = self.folder / "groups.json"
        try:
            listed = [(channel, PUBLIC) for channel in _listed(self.folder / "channels.json")]
            listed += [(group, str(group.get("id"))) for group in (_listed(groups) if groups.exists() else ())]
            people = _people(self.folder / "users.json")
        except ReadError as error:
            ground.missing.append(self.key)
            ground.failed.append((str(self.folder), f"is no unpacked Slack export: a list of it {error.reason}"))
            return
        for channel, audience in listed:
            name, identity = str(channel.get("name")), str(channel.get("id"))
            folder = self.folder / name
            if _CHANNEL.fullmatch(identity) and folder.parent == self.folder and folder.is_dir():  # no name leads out
                for key, messages in _threads(_messages(folder, ground)).items():
                    first = str(messages[0]["ts"]).replace(".", "")
                    yield Readable(
                        id=ground.unique(f"slack/{name}/{key}", self.folder.name or "export"),
                        key=f"{self.key}/{identity}/{key}",
                        audience=audience,
                        source=self.key,
                        url=f"{self.url.rstrip('/')}/archives/{identity}/p{first}" if self.url else "",
                        name="thread.md",
                        read=partial(_document, name, key, messages, people),
                    )


def _document(channel: str, key: str, messages: Sequence[Message], people: Mapping[str, str]) -> tuple[bytes, float]:
    """A thread, or what stands alone of a day, as Markdown, and when its last message came; ``messages`` in order."""
    texts = [_plain(str(message["text"]), people) for message in messages]
    names = [people.get(str(message["user"])) or "somebody" for message in messages]
    days = [_when(message)[:10] for message in messages]
    what = " ".join(texts[0].split())[:_TITLE_CHARS] if "." in key else days[0]
    lines = [f"{who} ({_when(message)}): {text}" for who, message, text in zip(names, messages, texts, strict=True)]
    head = f"---\ntitle: #{channel}: {what}\nupdated: {days[-1]}\n---\n\n"
    return (head + "\n\n".join(lines) + "\n").encode("utf-8", "replace"), float(messages[-1]["ts"])


def _listed(file: Path) -> list[dict[str, Any]]:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ReadError(reason="is too big")
        found = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ReadError(reason=f"({file.name}) cannot be read") from error
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _people(file: Path) -> dict[str, str]:
    names: dict[str, str] = {}
    for person in _listed(file) if file.exists() else ():
        profile = person.get("profile")
        shown = profile.get("display_name") if isinstance(profile, dict) else ""
        names[str(person.get("id"))] = str(shown or person.get("real_name") or person.get("name") or "")
    return names


def _messages(folder: Path, ground: Ground) -> Iterator[Message]:
    """What people wrote, in order; nothing of bots, joins and the like."""
    for file in sorted(folder.iterdir()):
        if not _DAY.fullmatch(file.name):
            continue
        try:
            found = _listed(file)
        except ReadError as error:
            ground.failed.append((f"slack/{folder.name}/{file.name}", error.reason))
            continue
        for message in found:
            said = isinstance(message.get("text"), str) and message["text"].strip()
            by_person = message.get("user") and not message.get("bot_id")
            known = message.get("subtype") in {None, "thread_broadcast", "file_share", "me_message"}
            if said and by_person and known and _TS.fullmatch(str(message.get("ts"))):
                yield message


def _threads(messages: Iterator[Message]) -> dict[str, list[Message]]:
    found: defaultdict[str, dict[str, Message]] = defaultdict(dict)
    for message in messages:
        thread = str(message.get("thread_ts") or "")
        found[thread if _TS.fullmatch(thread) else _when(message)[:10]][str(message["ts"])] = message
    return {key: [of[ts] for ts in sorted(of, key=float)] for key, of in found.items()}


def _when(message: Message) -> str:
    return datetime.fromtimestamp(float(message["ts"]), UTC).strftime("%Y-%m-%d %H:%M")


def _plain(text: str, people: Mapping[str, str]) -> str:
    def shown(found: re.Match[str]) -> str:
        kind, what, label = found["kind"], found["what"], found["label"] or ""
        if kind == "@":
            return f"@{people.get(what) or label or 'somebody'}"
        if kind == "#":
            return f"#{label or what}"
        if kind == "!":
            return label or f"@{what.partition('^')[0]}"
        return f"{label} ({what})" if label and label != what else what

    return unescape(_MARK.sub(shown, text))
