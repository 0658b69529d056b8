"""Parse the text of environment variables into values, and check its form."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode


def split_names(value: Any) -> Any:
    """Split names at commas or white space."""
    return frozenset(value.replace(",", " ").split()) if isinstance(value, str) else value


def split_folders(value: Any) -> Any:
    """Split folders at ``:`` (the host's own separator)."""
    if not isinstance(value, str):
        return value
    return tuple(Path(part).expanduser() for part in value.split(os.pathsep) if part.strip())


def split_entries(value: Any) -> Any:
    """Return entries that are separated by semicolons or line breaks."""
    if not isinstance(value, str):
        return value
    return tuple(entry.strip() for entry in re.split(r"[;\n]", value) if entry.strip())


def to_path(value: Any) -> Any:
    """Return a path; `~` is the home folder."""
    return Path(value.strip()).expanduser() if isinstance(value, str) else value


def without_separators(value: Any) -> Any:
    """Remove separators between digits."""
    return value.replace("_", "").replace(",", "").strip() if isinstance(value, str) else value


def to_switch(value: Any) -> Any:
    """Return the word for a switch; blank is off."""
    return value.strip() or "off" if isinstance(value, str) else value


def is_web_address(text: str) -> bool:
    """Return True for ``http://…`` or ``https://…`` with a host and, if one is named, a valid port."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises unless it is a number up to 65535
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not any(c.isspace() for c in text)


def accept(is_right: Callable[[str], object], wish: str) -> AfterValidator:
    """Return a check for a text, which must be empty or of the form that ``wish`` describes."""

    def check(value: str) -> str:
        if value and not is_right(value):
            message = f"must be {wish}"
            raise ValueError(message)
        return value

    return AfterValidator(check)


def match(pattern: str, wish: str) -> AfterValidator:
    """Return a check for texts of this form."""
    return accept(re.compile(pattern).fullmatch, wish)


def address(example: str) -> AfterValidator:
    """Return a check for web addresses."""
    return accept(is_web_address, f"a web address such as {example}")


def server(example: str) -> AfterValidator:
    """Return a check for addresses of servers. Nothing after # reaches a server, but it would be printed."""
    return accept(lambda text: is_web_address(text) and "#" not in text, f"a web address such as {example}, without #")


def plain(example: str) -> AfterValidator:
    """Return a check for addresses to which paths are appended, and which have no login."""
    wish = f"an address such as {example}, without a name, a password or a query"
    return accept(lambda text: is_web_address(text) and not set("@?#") & set(text), wish)


Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh"]
Names = Annotated[frozenset[str], NoDecode, BeforeValidator(split_names)]
Folders = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(split_folders)]
Switch = Annotated[bool, BeforeValidator(to_switch)]
Amount = Annotated[int, BeforeValidator(without_separators)]
Entries = Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_entries)]
File = Annotated[Path | None, BeforeValidator(to_path)]
# Any other host, such as a pattern or an address, would silently match no link.
Host = Annotated[
    str,
    match(
        r"(?:[^\W_][^\s/@:*<>|]*|\[[0-9A-Fa-f:]+\])(?::\d{1,5})?",
        "hosts such as wiki.example.com, without https://, a path or a *",
    ),
]
Hosts = Annotated[frozenset[Host], NoDecode, BeforeValidator(split_names)]
ChannelPlace = Annotated[
    str, match(r"[SCG][A-Z0-9]{2,}|#[^\s#<>]{1,80}", "a user group (S…), a channel (C… or G…) or a channel's #name")
]
SearxngUrl = Annotated[str, plain("http://localhost:8888")]  # a login would be logged
Environment = Annotated[  # Langfuse silently drops any other
    str, match(r"(?!langfuse)[a-z0-9_-]{1,40}", "at most 40 of a-z, 0-9, - and _, and must not start with langfuse")
]
SlackUrl = Annotated[str, server("https://slack.com/api/")]
ServerUrl = Annotated[str, server("http://127.0.0.1:11434/v1")]
AzureUrl = Annotated[str, server("https://my-resource.openai.azure.com")]
LangfuseUrl = Annotated[str, plain("https://cloud.langfuse.com")]  # a login would be sent in place of the keys
# this and the next ones, because Slack links nothing else
PagesUrl = Annotated[str, address("https://wiki.example.com/")]
CommitsUrl = Annotated[str, address("https://git.example.com/{repository}/commit/{commit}")]
FilesUrl = Annotated[str, address("https://git.example.com/{repository}/blob/{ref}/{path}")]
WorkspaceUrl = Annotated[str, address("https://acme.slack.com")]
