"""Reads the MCP servers from the usual JSON, ``{"mcpServers": {name: {…}}}``.

Messages about faults never quote a value: it may be a token.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

TIMEOUT_S: Final = 25.0
DEFAULT_MAX_CHARS: Final = 12_000
Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""Text for a process: no argument and no variable may hold a zero byte."""


class McpServer(BaseModel):
    """One server, by ``command``, ``args``, ``env``, ``cwd`` (a program to start), or by ``url``, ``headers`` (HTTP).

    Orion's own keys are ``allow`` (names of tools, ``*`` for any part; none means all), ``timeout_s`` (seconds a call
    may take) and ``max_chars`` (characters of a result that the model gets).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,30}$")]
    command: Text = ""
    args: tuple[Text, ...] = ()
    env: dict[Text, Text] = Field(default_factory=dict, repr=False)
    cwd: Text = ""
    url: str = Field(default="", repr=False)
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    allow: tuple[str, ...] = ()
    timeout_s: Annotated[float, Field(ge=0.1, le=600)] = TIMEOUT_S
    max_chars: Annotated[int, Field(ge=100, le=16_000)] = DEFAULT_MAX_CHARS
    type: str = ""
    disabled: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        parts = urlsplit(self.url)
        fault = ""
        if bool(self.command) == bool(self.url):
            fault = "it needs either 'command' or 'url'"
        elif self.url and not (parts.scheme in {"http", "https"} and parts.hostname):
            fault = "'url' should be an http or https address"
        if fault:
            raise ValueError(fault)
        return self

    def allows(self, tool: str) -> bool:
        """Return True if the server's tool of this name may be used."""
        return not self.allow or any(fnmatchcase(tool, allowed) for allowed in self.allow)


def read_servers(text: str) -> tuple[McpServer, ...]:
    """Return the servers of a file that are not ``disabled``. Raises ``ValueError`` with the place, without a value."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    servers = raw.get("mcpServers") if isinstance(raw, dict) else None
    if not isinstance(servers, dict):
        message = 'It should be a JSON object such as {"mcpServers": {"name": {"command": "…"}}}.'
        raise ValueError(message)  # noqa: TRY004 - for the caller all that is wrong with a file is one kind
    # Not validated: a disabled server may be unfinished, or meant for another program.
    off = [name for name, given in servers.items() if isinstance(given, dict) and given.get("disabled") is True]
    return tuple(_server(name, given) for name, given in servers.items() if name not in off)


def _server(name: str, given: object) -> McpServer:
    try:
        return McpServer.model_validate({**given, "name": name} if isinstance(given, dict) else given)
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False, include_context=False)
    message = f"Server {name!r}: {'; '.join(map(_sentence, faults))}."
    raise ValueError(message)


def _sentence(fault: Mapping[str, Any]) -> str:
    place = ".".join(map(str, fault["loc"]))
    what = fault["msg"].removeprefix("Value error, ")
    return f"{place}: {what}" if place else what
