"""Settings of individual channels, from a TOML file that is read again when it changes.

An unusable line is reported, and its channel keeps its last good settings. ``docs/people.md`` has an example.
"""

import json
import re
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import structlog
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from agent.texts.catalogue import LANGUAGES
from bot.setting_values import ChannelPlace, match

log = structlog.get_logger()

MAX_INSTRUCTION_CHARS: Final = 500
MAX_PREFIXES: Final = 50
MAX_FILE_BYTES: Final = 1_000_000
_CHANNEL: Final = re.compile(r"(?:[TE][A-Z0-9]{1,20}/)?[CG][A-Z0-9]{1,20}")
Mode = Literal["mention", "listen"]
_Prefix = Annotated[
    str, StringConstraints(pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")
]  # PostgreSQL takes no text with a NUL
_WISHES: Final = {
    "documents": f"must be a list of at most {MAX_PREFIXES} beginnings of document paths",
    "instruction": f"must be a text of at most {MAX_INSTRUCTION_CHARS} characters",
    "mode": f"must be one of {', '.join(get_args(Mode))}",
    "handoff": "must be a user group (S…), a channel (C… or G…) or a channel's #name",
    "language": f"must be one of {', '.join(LANGUAGES)}",
}


class ChannelSettings(BaseModel):
    """Settings of one channel. ``documents`` are prefixes of document paths or sources; empty means all."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    documents: Annotated[tuple[_Prefix, ...], Field(max_length=MAX_PREFIXES, strict=False)] = ()
    instruction: Annotated[str, Field(max_length=MAX_INSTRUCTION_CHARS)] = ""
    mode: Mode = "mention"
    handoff: ChannelPlace = ""
    language: Annotated[str, match("|".join(LANGUAGES), "a language")] = ""


class ChannelSettingsError(ValueError):
    """A table that cannot be used. The text is a sentence; ``field`` names the line at fault, if it is a single one."""

    def __init__(self, why: str, field: str = "") -> None:
        super().__init__(why)
        self.field = field


class ChannelFile:
    """The file, and ORION_LISTEN, in whose channels Orion listens unless the file says otherwise."""

    def __init__(self, path: Path, listen: frozenset[str] = frozenset()) -> None:
        self.path, self._listen = path, listen
        self.faults: tuple[str, ...] = ()
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
        """All channels that the file names or that Orion listens in, by id."""
        self._refresh()
        return dict.fromkeys(self._listen, ChannelSettings(mode="listen")) | self._channels

    def channels_of(self, team: str) -> dict[str, ChannelSettings]:
        """Return the same for one workspace, by the channel's id without the workspace's."""
        ids = [key.rpartition("/")[2] for key in self.channels if key.partition("/")[0] in {team, key}]
        return {channel: self.of(team, channel) for channel in sorted(ids)}

    def save(self, team: str, channel: str, settings: ChannelSettings) -> None:
        """Replace a channel's settings in the file. Raises ``OSError``, and ``ChannelSettingsError``."""
        self._refresh()
        key = channel if channel in self._channels else f"{team}/{channel}"
        text = _replace_table(self._read() if self._stamp else "", key, settings.model_dump(exclude_defaults=True))
        target = self.path.resolve()  # a link stays a link
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, encoding="utf-8", delete=False) as part:
            try:
                part.write(text)
                part.close()
                with suppress(FileNotFoundError):
                    shutil.copymode(target, part.name)
                Path(part.name).replace(target)
            finally:
                Path(part.name).unlink(missing_ok=True)

    def _read(self) -> str:
        with self.path.open("rb") as stream:
            return stream.read(MAX_FILE_BYTES).decode("utf-8-sig")

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
            tables = tomllib.loads(self._read())
        except (OSError, ValueError) as error:  # half written, or not TOML: keep the last good settings
            self.faults = (f"{self.path.name}: {error}",)
            log.warning("channel_settings_unreadable", reason=str(error))
            return
        parsed, faults = dict[str, ChannelSettings](), list[str]()
        for channel, values in tables.items():
            try:
                parsed[channel] = parse_settings(channel, values)
            except ChannelSettingsError as fault:
                faults.append(str(fault))
                if channel in self._channels:
                    parsed[channel] = self._channels[channel]
        self._channels, self.faults = parsed, tuple(faults)
        if faults:
            log.warning("channel_settings_wrong", faults=faults)


def parse_settings(channel: str, values: Any) -> ChannelSettings:
    """Return the settings in a channel's table. Raises ``ChannelSettingsError``."""
    if not _CHANNEL.fullmatch(channel):
        why = f"[{channel}] is not the id of a channel, such as C0123ABCD or T0ACME/C0123ABCD."
        raise ChannelSettingsError(why)
    if not isinstance(values, dict):
        raise ChannelSettingsError(why=f"{channel} is not a table; write [{channel}] on a line of its own.")
    try:
        return ChannelSettings(**values)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        wish = _WISHES.get(name, f"is unknown; there are {', '.join(ChannelSettings.model_fields)}")
        raise ChannelSettingsError(why=f"[{channel}] {name} {wish}.", field=name) from None


def _replace_table(text: str, key: str, values: Mapping[str, Any]) -> str:
    """Return the text with these values as the table of ``key``. Raises ``ChannelSettingsError``."""
    try:
        tables = tomllib.loads(text)
    except ValueError as error:
        raise ChannelSettingsError(why=str(error)) from None
    # JSON's strings and lists are valid TOML except for one control character (TOML 1.0, "String").
    fields = {name: json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") for name, value in values.items()}
    table = "\n".join([f'["{key}"]', *(f"{name} = {value}" for name, value in fields.items())]) + "\n"
    if key not in tables:
        return f"{text.rstrip()}\n\n{table}" if text.strip() else table
    wanted = {**tables, key: {name: list(value) if name == "documents" else value for name, value in values.items()}}
    old = text.splitlines(keepends=True)
    heads = [number for number, line in enumerate(old) if line.lstrip().startswith("[")]
    for start in (number for number in heads if key in old[number]):
        for end in (*(number for number in heads if number > start), len(old)):
            last = end
            while last > start + 1 and (not old[last - 1].strip() or old[last - 1].lstrip().startswith("#")):
                last -= 1  # these lines belong to the next table
            new = "".join([*old[:start], table, *old[last:]])
            # A line inside a text or list may look like a table header, so check that the result has the new settings.
            with suppress(ValueError):
                if tomllib.loads(new) == wanted:
                    return new
    raise ChannelSettingsError(why=f"[{key}] is not a table that begins on a line of its own.")
