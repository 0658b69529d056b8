"""Forms of settings: how the text of a variable becomes a value, and what it must look like."""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

# A user group, a channel by its id, a channel by its name.
_PLACE = re.compile(r"[SCG][A-Z0-9]{2,}|#[^\s#<>]{1,80}")
_HOST = re.compile(r"(?:[^\W_][^\s/@:*<>|]*|\[[0-9A-Fa-f:]+\])(?::\d{1,5})?")


def split_names(value: Any) -> Any:
    """Split names at commas or white space."""
    return frozenset(value.replace(",", " ").split()) if isinstance(value, str) else value


def split_folders(value: Any) -> Any:
    """Split folders at ``:`` (the host's own separator)."""
    if not isinstance(value, str):
        return value
    return tuple(Path(part).expanduser() for part in value.split(os.pathsep) if part.strip())


def split_entries(value: Any) -> Any:
    """Return entries with semicolons or line ends between them."""
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


def like(example: str) -> AfterValidator:
    """Return a check that accepts only web addresses. ``example`` is one for the error message."""

    def check(value: str) -> str:
        if value and not is_web_address(value):
            message = f"must be a web address such as {example}"
            raise ValueError(message)
        return value

    return AfterValidator(check)


def check_hosts(value: frozenset[str]) -> frozenset[str]:
    """Accept only hosts. An address or a pattern would match no link, without a warning."""
    if not all(map(_HOST.fullmatch, value)):
        message = "must be hosts such as wiki.example.com, without https://, a path or a *"
        raise ValueError(message)
    return value


def check_searxng(value: str) -> str:
    """Accept the address of a SearXNG without a login, which would be logged."""
    if value and not re.fullmatch(r"https?://[^\s/@]+(?:/[^\s?#]*)?", value):
        message = "must be an address such as http://localhost:8888, without a name, a password or a query"
        raise ValueError(message)
    return value


def check_environment(value: str) -> str:
    """Return a name that Langfuse takes: it drops any other without a word."""
    if value and (value.startswith("langfuse") or not re.fullmatch("[a-z0-9_-]{1,40}", value)):
        message = "must be at most 40 of a-z, 0-9, - and _, and must not start with langfuse"
        raise ValueError(message)
    return value


def check_place(value: str) -> str:
    """Accept a user group, or a channel by its id or name."""
    if value and not _PLACE.fullmatch(value):
        message = "must be a user group (S…), a channel (C… or G…) or a channel's #name"
        raise ValueError(message)
    return value


Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh"]
Names = Annotated[frozenset[str], NoDecode, BeforeValidator(split_names)]
Folders = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(split_folders)]
Switch = Annotated[bool, BeforeValidator(to_switch)]
Amount = Annotated[int, BeforeValidator(without_separators)]
Entries = Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_entries)]
File = Annotated[Path | None, BeforeValidator(to_path)]
Hosts = Annotated[Names, AfterValidator(check_hosts)]
ChannelPlace = Annotated[str, AfterValidator(check_place)]
SearxngUrl = Annotated[str, AfterValidator(check_searxng)]
SlackUrl = Annotated[str, like("https://slack.com/api/")]
ServerUrl = Annotated[str, like("http://127.0.0.1:11434/v1")]
AzureUrl = Annotated[str, like("https://my-resource.openai.azure.com")]
LangfuseUrl = Annotated[str, like("https://cloud.langfuse.com")]
PagesUrl = Annotated[str, like("https://wiki.example.com/")]  # this and the next ones: Slack links nothing else
CommitsUrl = Annotated[str, like("https://git.example.com/{repository}/commit/{commit}")]
FilesUrl = Annotated[str, like("https://git.example.com/{repository}/blob/{ref}/{path}")]
WorkspaceUrl = Annotated[str, like("https://acme.slack.com")]
