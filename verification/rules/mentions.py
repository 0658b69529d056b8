"""An answer never mentions a channel, a group, or a person whom the question did not name.

Text and chunks are searched, and code in which Slack would still see a token. Mentions are never repaired.
"""

import re
from typing import Final

from verification.markup.scanner import prose
from verification.types import Reading, Violation

_TOKEN: Final = re.compile(
    r"<!(?:(?:here|channel|everyone)(?:\|[^<>\n]{0,80})?|subteam\^[^<>\n]{0,120})>|<@([A-Z0-9]{2,32}|[uw][a-z0-9]{7,31})(?:\|[^<>\n]{0,80})?>"
)
# If a text is parsed (parse=full, link_names), Slack notifies for the plain word too.
_PLAIN: Final = re.compile(
    r"(?<![A-Za-z0-9_@/.&#+-])@(?:here|channel|everyone)(?![A-Za-z0-9_/@-]|\.[A-Za-z0-9])", re.IGNORECASE
)
_LOOSE: Final = re.compile(
    r"<[\s\u200b]*(?:!|@)[\s\u200b]*(?:here|channel|everyone|subteam)\b[^<>\n]{0,80}>?", re.IGNORECASE
)
_REMEDY: Final = "Leave the mention out: name the role or the channel in words."


def no_broadcast(reading: Reading) -> tuple[Violation, ...]:
    """Return an error for each mention of everyone, of a group, or of a person the question did not name."""
    spans = {match.span() for match in _TOKEN.finditer(reading.text) if _is_foreign(match, reading)}
    spans |= {match.span() for match in _LOOSE.finditer(reading.prose)}
    if "@" in reading.prose:
        spans |= {match.span() for match in _PLAIN.finditer(reading.prose)}
    in_chunks = (match for chunk in reading.chunks for match in _TOKEN.finditer(chunk))
    if not spans and (any(_is_foreign(match, reading) for match in in_chunks) or _called_in_a_table(reading)):
        spans = {(0, len(reading.text))}
    detail = "This would notify people whom the question did not name."
    return tuple(reading.violation("no_broadcast", span, detail, _REMEDY) for span in sorted(spans))


def _called_in_a_table(reading: Reading) -> bool:
    """Find mentions in a table of the draft. Drawn as code it notifies no one, but the model meant to."""
    text = reading.draft.text
    if not (reading.draft.repair and "|" in text and ("@" in text or "<" in text)):
        return False
    written = prose(text)
    foreign = any(_is_foreign(match, reading) for match in _TOKEN.finditer(written))
    return foreign or bool(_LOOSE.search(written) or _PLAIN.search(written))


def _is_foreign(match: re.Match[str], reading: Reading) -> bool:
    return not match[1] or match[1] not in reading.draft.mentions
