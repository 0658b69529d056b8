"""Render a source as one line of mrkdwn: number, linked title, age. No title can end the link or start a mention."""

import html
from datetime import date

from agent.texts.catalogue import age
from agent.texts.truncate import truncate
from verification.rules.injection import safe_title
from verification.types import Source

_MAX_TITLE_LENGTH = 120


def escape(text: str) -> str:
    """Escape the three characters that Slack reads as control characters."""
    return html.escape(text, quote=False)


def link(url: str, label: str) -> str:
    """Return ``<url|label>``, or the escaped label alone if the address is not a web address."""
    shown = escape(" ".join(label.split())).replace("|", "¦")
    if not url.startswith(("https://", "http://")):
        return shown
    address = "".join(f"%{ord(c):02X}" if c in '<>|"' or c.isspace() else c for c in url)
    return f"<{address.replace('&', '&amp;')}|{shown}>"


def source_line(source: Source, today: date, language: str | None = None) -> str:
    """Return ``[n] title · age``, the title a link if the source has an address."""
    shown = link(source.url, f"[{source.id}] {truncate(safe_title(source), _MAX_TITLE_LENGTH)}")
    return with_age(shown, source.updated_at, today, language)


def with_age(shown: str, updated_at: str, today: date, language: str | None = None) -> str:
    """Append the document's age to its shown title."""
    return " · ".join(filter(None, (shown, age(updated_at, today, language))))
