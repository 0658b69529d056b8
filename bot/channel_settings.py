"""Settings of single channels, from a TOML file that is read again when it changes.

A line that cannot be used is named, and its channel keeps its last good settings. ``docs/people.md`` has an example.
"""

import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, get_args

import structlog

from agent.texts.catalogue import LANGUAGES

log = structlog.get_logger()

MAX_INSTRUCTION_CHARS: Final = 500
MAX_PREFIXES: Final = 50
MAX_FILE_BYTES: Final = 1_000_000
_CHANNEL: Final = re.compile(r"(?:[TE][A-Z0-9]{1,20}/)?[CG][A-Z0-9]{1,20}")
_HANDOFF: Final = re.compile(r"[SCG][A-Z0-9]{2,}|#[^\s#<>]{1,80}")
Mode = Literal["mention", "listen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """What holds in one channel.

    ``documents`` are prefixes of document paths or sources; empty means all. ``instruction`` is an admin's wish about
    the form of answers, never a source. ``handoff`` replaces ORION_HANDOFF. ``language`` is the one Orion speaks there.
    """

    documents: tuple[str, ...] = ()
    instruction: str = ""
    mode: Mode = "mention"
    handoff: str = ""
    language: str = ""

    @property
    def model_instruction(self) -> str:
        """Return what the model is told about answers in this channel."""
        speaks = f"Write every answer in the language with the code {self.language}." if self.language else ""
        return " ".join(filter(None, (self.instruction, speaks)))

    def to_toml(self, channel: str) -> str:
        """Return the table of a channel; values equal to the default are left out."""
        default = ChannelSettings()
        lines = [f'["{channel}"]']
        for name in (each.name for each in fields(self)):
            value = getattr(self, name)
            if value != getattr(default, name):
                lines.append(f"{name} = {_toml_value(value)}")
        return "\n".join(lines) + "\n"


class ChannelFile:
    """The file, and ORION_LISTEN, whose channels listen unless the file says otherwise."""

    def __init__(self, path: Path, listen: frozenset[str] = frozenset()) -> None:
        self.path = path
        self.faults: tuple[str, ...] = ()
        self._listen = listen
        self._channels: dict[str, ChannelSettings] = {}
        self._stamp: tuple[int, int, int] | None = None

    def of(self, team: str, channel: str) -> ChannelSettings:
        """Return the settings of a channel; the defaults if it has none."""
        self._refresh()
        found = self._channels.get(f"{team}/{channel}") or self._channels.get(channel)
        if found is not None:
            return found
        listens = not self._listen.isdisjoint({channel, f"{team}/{channel}"})
        return ChannelSettings(mode="listen" if listens else "mention")

    @property
    def channels(self) -> Mapping[str, ChannelSettings]:
        """All channels that the file names or that listen, by id."""
        self._refresh()
        return dict.fromkeys(self._listen, ChannelSettings(mode="listen")) | self._channels

    def save(self, channel: str, settings: ChannelSettings) -> None:
        """Write a channel's settings in place of its earlier ones. Raises ``OSError``, and ``ValueError`` for a fault.

        Comments of the file are lost.
        """
        if fault := find_fault(channel, {each.name: getattr(settings, each.name) for each in fields(settings)}):
            raise ValueError(fault)
        self._refresh()
        tables = {**self._channels, channel: settings}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".", suffix=".part")
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write("\n".join(found.to_toml(key) for key, found in sorted(tables.items())))
        Path(name).replace(self.path)

    def _refresh(self) -> None:
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            self._channels, self._stamp, self.faults = {}, None, ()
            return
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            with self.path.open("rb") as stream:
                tables = tomllib.loads(stream.read(MAX_FILE_BYTES).decode("utf-8"))
        except (OSError, ValueError) as error:  # half written, or not TOML: the last good state stays
            self.faults = (f"{self.path.name}: {error}",)
            log.warning("channel_settings_unreadable", reason=str(error))
            return
        self._channels, self.faults = self._parse(tables)
        if self.faults:
            log.warning("channel_settings_wrong", faults=list(self.faults))

    def _parse(self, tables: Mapping[str, Any]) -> tuple[dict[str, ChannelSettings], tuple[str, ...]]:
        parsed: dict[str, ChannelSettings] = {}
        faults: list[str] = []
        for channel, values in tables.items():
            if fault := find_fault(channel, values):
                faults.append(fault)
                if channel in self._channels:
                    parsed[channel] = self._channels[channel]
            else:
                documents = tuple(values.get("documents", ()))
                parsed[channel] = ChannelSettings(**{**values, "documents": documents})
        return parsed, tuple(faults)


def find_fault(channel: str, values: Any) -> str:
    """Return why a channel's table cannot be used; empty if it can."""
    if not _CHANNEL.fullmatch(channel):
        return f"[{channel}] is not the id of a channel, such as C0123ABCD or T0ACME/C0123ABCD."
    if not isinstance(values, dict):
        return f"{channel} is not a table; write [{channel}] on a line of its own."
    known = [each.name for each in fields(ChannelSettings)]
    faults = [f"{name} is unknown; there are {', '.join(known)}." for name in values if name not in known]
    faults += [
        f"{name} {wish}" for name, wish in _WISHES.items() if name in values and not _is_valid(name, values[name])
    ]
    return f"[{channel}] {faults[0]}" if faults else ""


_WISHES: Final = {
    "documents": f"must be a list of at most {MAX_PREFIXES} beginnings of document paths.",
    "instruction": f"must be a text of at most {MAX_INSTRUCTION_CHARS} characters.",
    "mode": f"must be one of {', '.join(get_args(Mode))}.",
    "handoff": "must be a user group (S…), a channel (C… or G…) or a channel's #name.",
    "language": f"must be one of {', '.join(LANGUAGES)}.",
}


def _is_valid(name: str, value: Any) -> bool:
    if name == "documents":
        entries = value if isinstance(value, list | tuple) else [None]
        return len(entries) <= MAX_PREFIXES and all(isinstance(entry, str) and entry.strip() for entry in entries)
    if not isinstance(value, str):
        return False
    return {
        "instruction": len(value) <= MAX_INSTRUCTION_CHARS,
        "mode": value in get_args(Mode),
        "handoff": not value or _HANDOFF.fullmatch(value) is not None,
        "language": value in {"", *LANGUAGES},
    }[name]


def _toml_value(value: str | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    # TOML allows no control character in a string (TOML 1.0, "String").
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'
