"""Settings and output of the shipped feeds: a TOML file in, one JSON object per line out."""

import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from agent.knowledge.readers.reading import parse_timestamp

_FRESH_S: Final = 120.0


class FeedError(Exception):
    """The feed cannot continue. The text tells the admin why, and the program ends."""

    def __init__(self, why: str) -> None:
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPage:
    """A page as it appears in a list of pages. If no one may see it, ``audience`` is empty and ``reason`` says why."""

    key: str
    title: str
    url: str
    updated: str
    audience: str | Sequence[str] = ()
    reason: str = ""

    @property
    def revision(self) -> str:
        """A digest that changes with the page's last edit, its place and its audience.

        It is empty for a page just edited: the time of the next edit may be the same, because Notion counts minutes.
        """
        if parse_timestamp(self.updated) > time.time() - _FRESH_S:
            return ""
        said = "\n".join((self.title, self.url, self.updated, str(self.audience)))
        return sha256(said.encode()).hexdigest()[:16]


@dataclass(slots=True, kw_only=True)
class Printer:
    """Output of a feed. ``dry_run`` lists what would be read instead. ``known`` has each key's last revision."""

    known: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    out: BinaryIO = field(default_factory=lambda: sys.stdout.buffer)
    _printed: int = 0

    def is_needed(self, page: FeedPage) -> bool:
        """Return whether the page's text is needed; if not, print its line."""
        if self.dry_run:
            seen_by = page.audience if isinstance(page.audience, str) else ", ".join(page.audience)
            self.out.write(f"{page.title}\t{seen_by or 'no one: ' + page.reason}\t{page.url}\n".encode())
        elif not page.audience:
            sys.stderr.write(f"{page.title}: no one may see it: {page.reason}\n")
        elif page.revision and self.known.get(page.key) == page.revision:
            self._print({"key": page.key, "unchanged": True, "audience": page.audience})
        else:
            return True
        return False

    def print_page(self, page: FeedPage, text: str, **more: str) -> None:
        """Print a page with its text, which is Markdown unless ``name`` has another suffix."""
        fields = {"key": page.key, "title": page.title, "url": page.url, "updated": page.updated}
        self._print(fields | {"audience": page.audience, "revision": page.revision, "text": text} | more)

    def finish(self) -> None:
        """If the system has no pages at all, print that: otherwise Orion would keep the earlier pages."""
        if not self._printed and not self.dry_run:
            self._print({"empty": True})

    def _print(self, fields: Mapping[str, Any]) -> None:
        self._printed += 1
        self.out.write(orjson.dumps(fields) + b"\n")
        self.out.flush()


def read_config(path: Path) -> dict[str, Any]:
    """Return the settings of a feed. Raises ``FeedError``."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise FeedError(why=f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def read_setting(config: Mapping[str, Any], name: str) -> str:
    """Return a required setting. Raises ``FeedError``."""
    value = config.get(name)
    if not isinstance(value, str) or not value:
        raise FeedError(why=f"{name} is missing. docs/knowledge.md has an example of the file.")
    return value


def read_known(stream: BinaryIO) -> dict[str, str]:
    """Read the revisions that Orion remembers from the feed's standard input."""
    lines = [orjson.loads(line) for line in stream if line.strip()]
    return {str(line["key"]): str(line["revision"]) for line in lines}
