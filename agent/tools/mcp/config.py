"""Reads the MCP servers from the usual JSON, ``{"mcpServers": {name: {…}}}``.

``${NAME}`` in a value is replaced from the environment. Error messages never quote a value, because it may be a token.
"""

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from agent.thread.conversation import NOBODY, parse_audience

MAX_ALL_TOOLS: Final = 100  # from all servers: with Orion's own, fewer than the 128 that models accept
TIMEOUT_S: Final = 25.0
DEFAULT_MAX_CHARS: Final = 12_000
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
MIN_SECRET_CHARS: Final = 6  # a shorter value would also be removed from ordinary words


def _to_audience(entries: object) -> str:
    if (audience := parse_audience(entries)) is None:
        message = 'it should be "public" or a list of ids and e-mail addresses, as in orion-audience.toml'
        raise ValueError(message)
    return audience


class McpServer(BaseModel):
    """One server, by ``command``, ``args``, ``env``, ``cwd`` (a program to start), or by ``url``, ``headers`` (HTTP).

    Orion's own keys are ``audience`` (people who may use it; required), ``allow`` (names of tools, ``*`` for any
    part), ``link_hosts`` (hosts that sources may link to, besides its own), ``timeout_s`` (seconds a call may take) and
    ``max_chars`` (characters of a result that the model gets at once).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,30}$")]
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = Field(default="", repr=False)
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    audience: Annotated[str, BeforeValidator(_to_audience)] = NOBODY
    allow: tuple[str, ...] = ()
    link_hosts: tuple[str, ...] = ()
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

    def allows(self, tool: str, *, reads: bool | None) -> bool:
        """Return whether a tool may be used. A pattern allows none that declares (``reads``) that it changes things."""
        if not self.allow:
            return reads is True
        return tool in self.allow or (reads is not False and any(fnmatchcase(tool, each) for each in self.allow))

    def links_to(self, url: str) -> bool:
        """Return whether a source of this server may link to the address."""
        try:
            parts, own = urlsplit(url), urlsplit(self.url).hostname
        except ValueError:
            return False
        return parts.scheme in {"http", "https"} and parts.hostname in {own, *map(str.lower, self.link_hosts)} - {None}

    def without_secrets(self, text: str) -> str:
        """Return the text without the values of ``env`` and ``headers``."""
        words = " ".join((*self.env.values(), *self.headers.values(), self.url)).split()
        for word in sorted((each for each in words if len(each) >= MIN_SECRET_CHARS), key=len, reverse=True):
            text = text.replace(word, "…")
        return text


def read_servers(text: str, environment: Mapping[str, str]) -> tuple[McpServer, ...]:
    """Return the servers of a file that are not ``disabled``. Raises ``ValueError``, without the values."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    servers = raw.get("mcpServers") if isinstance(raw, dict) else None
    if not isinstance(servers, dict):
        message = 'It should be a JSON object such as {"mcpServers": {"name": {"command": "…"}}}.'
        raise ValueError(message)  # noqa: TRY004 - for the caller all that is wrong with a file is one kind
    # Not validated, because a disabled server may be incomplete, or meant for another program.
    off = [name for name, given in servers.items() if isinstance(given, dict) and given.get("disabled") is True]
    read = {name: given for name, given in servers.items() if name not in off}
    return tuple(_server(name, _expand(given, environment, f"Server {name!r}")) for name, given in read.items())


def _expand(value: Any, environment: Mapping[str, str], place: str) -> Any:
    """Replace ``${NAME}`` in all texts of a value. Raises ``ValueError`` for a name that is not set."""
    if isinstance(value, dict):
        return {key: _expand(item, environment, f"{place}, {key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, environment, place) for item in value]
    if not isinstance(value, str):
        return value
    if unset := [name for name in _VARIABLE.findall(value) if name not in environment]:
        message = f"{place}: {unset[0]} is not set in the environment."
        raise ValueError(message)
    return _VARIABLE.sub(lambda found: environment[found[1]], value)


def _server(name: str, given: object) -> McpServer:
    try:
        return McpServer.model_validate({**given, "name": name} if isinstance(given, dict) else given)
    except ValidationError as error:
        errors = error.errors(include_input=False, include_url=False, include_context=False)
    places = (".".join(map(str, fault["loc"])) for fault in errors)
    said = (fault["msg"].removeprefix("Value error, ") for fault in errors)
    faults = "; ".join(f"{place}: {what}" if place else what for place, what in zip(places, said, strict=True))
    message = f"Server {name!r}: {faults}."
    raise ValueError(message)
