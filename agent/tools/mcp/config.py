"""Reads which MCP servers there are from the usual JSON, ``{"mcpServers": {name: {…}}}`` (D4).

A server has ``command``, ``args``, ``env``, ``cwd`` (a program to start), or ``url``, ``headers`` (streamable HTTP).
Orion's own keys are ``allow`` (names of tools, ``*`` for any part; none means all), ``timeout_s`` and ``max_chars``.
Messages about faults never quote a value: it may be a token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import urlsplit

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}")
TIMEOUT_S: Final = 25.0
MAX_CHARS: Final = 12_000
_STRINGS: Final = "an object of strings"
_KNOWN: Final = frozenset(
    ("command", "args", "env", "cwd", "url", "headers", "allow", "timeout_s", "max_chars", "type", "disabled")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One server, by ``command`` or by ``url``. An empty ``allow`` allows every tool.

    ``timeout_s`` is seconds a call may take, ``max_chars`` characters of a result the model gets.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    allow: tuple[str, ...] = ()
    timeout_s: float = TIMEOUT_S
    max_chars: int = MAX_CHARS

    def allows(self, tool: str) -> bool:
        """Whether the server's tool of this name may be used."""
        return not self.allow or any(fnmatchcase(tool, allowed) for allowed in self.allow)


def read_servers(text: str) -> tuple[McpServer, ...]:
    """The servers of a configuration file, those that are ``disabled`` left out.

    Raises:
        ValueError: with a sentence that says where it is wrong, and no value.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    servers = raw.get("mcpServers") if isinstance(raw, dict) else None
    if not isinstance(servers, dict):
        message = 'It should be a JSON object such as {"mcpServers": {"name": {"command": "…"}}}.'
        raise ValueError(message)  # noqa: TRY004 - for the caller all that is wrong with a file is one kind
    return tuple(_server(name, given) for name, given in servers.items() if not _disabled(given))


def _disabled(given: object) -> bool:
    return isinstance(given, dict) and given.get("disabled") is True


def _server(name: str, given: object) -> McpServer:
    wrong = list(_faults(name, given))
    if wrong or not isinstance(given, dict):
        message = f"Server {name!r}: {'; '.join(wrong)}." if NAME.fullmatch(name) else f"{wrong[0]}."
        raise ValueError(message)
    own: dict[str, Any] = {key: given[key] for key in ("command", "url", "cwd", "env", "headers") if key in given}
    if "timeout_s" in given:
        own["timeout_s"] = float(given["timeout_s"])
    if "max_chars" in given:
        own["max_chars"] = int(given["max_chars"])
    return McpServer(name=name, args=tuple(given.get("args", ())), allow=tuple(given.get("allow", ())), **own)


def _faults(name: str, given: object) -> Iterator[str]:
    if not NAME.fullmatch(name):
        yield "a server's name has 1 to 31 letters, digits, '-' and '_'"
    if not isinstance(given, dict):
        yield "it should be an object with 'command' or 'url'"
        return
    if unknown := sorted(set(map(str, given)) - _KNOWN):
        yield f"unknown: {', '.join(unknown)}"
    if bool(given.get("command")) == bool(given.get("url")):
        yield "it needs either 'command' or 'url'"
    for key, expected, fits in (
        ("command", "a string", _is_text),
        ("cwd", "a string", _is_text),
        ("url", "an http or https address", _is_address),
        ("args", "a list of strings", _are_texts),
        ("allow", "a list of strings", _are_texts),
        ("env", _STRINGS, _is_table),
        ("headers", _STRINGS, _is_table),
        ("timeout_s", "a number from 0.1 to 600", lambda value: _is_number(value, 0.1, 600)),
        ("max_chars", "a number from 100 to 16000", lambda value: _is_number(value, 100, 16_000)),
    ):
        if key in given and not fits(given[key]):
            yield f"'{key}' should be {expected}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_address(value: object) -> bool:
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
    except ValueError:
        return False
    return parts is not None and parts.scheme in {"http", "https"} and bool(parts.hostname)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values())) and all(map(_is_text, value))


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
