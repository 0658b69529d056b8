"""The words of a Slack message: text, blocks of every kind, attachments and shared messages, without repetitions. Pure.

Every part is first written as Slack's wire text (``<url|label>``, ``<@U…>``, ``&amp;``) and made plain at the end. Any
payload gives a text, at most as long as Slack allows.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from agent.json_data import mapping, objects, string

MAX_TEXT_CHARS: Final = 40_000  # Slack's own limit for a message
_MAX_DEPTH: Final = 8
_TOKEN: Final = re.compile(r"<(?:([@#!])([^<>|]+)|([a-z][a-z0-9+.-]*:[^<>|]*))(?:\|([^<>]*))?>", re.IGNORECASE)
_SCHEME: Final = re.compile(r"^https?://")
# A mention inside these is only quoted: fences, code, quotations, link labels.
_QUOTED: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]+`|^[ \t]*(?:&gt;){3}.*\Z|^[ \t]*(?:&gt;|>)[^\n]*|\[[^\[\]\n]*\]\([^()\n]*\)"
    r"|<[a-z][a-z0-9+.-]*:[^<>|]*\|(?:[^<>]|<[^<>]*>)*>",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_CALLS_GROUP: Final = re.compile(r"<!(?:subteam\^|here|channel|everyone)")
_WORD: Final = re.compile(r"\w+")
_UNSEEN: Final = "\u200b\u200c\u200e\u200f\u2060\ufeff"  # pasted with other text
_PLACEHOLDERS: Final = (  # as ``_key`` writes them
    *("this content can t be displayed", "this message can t be displayed", "no preview available", "no preview"),
    *("this message contains interactive elements", "this message was deleted"),
)
_PRESSED: Final = re.compile(r"overflow|feedback_buttons|(?:.*_)?(?:button|select)")
_TEXTS: Final = (
    *("title", "subtitle", "label", "text", "body", "name", "alt_text", "description", "details", "output"),
    *("author_name", "hint", "initial_value", "x_label", "y_label"),
)
_LISTS: Final = (
    *("fields", "elements", "element", "options", "accessory", "blocks", "child_blocks", "tasks", "sources", "cards"),
    *("actions", "call", "v1", "hero_image", "chart", "axis_config", "segments", "series", "data"),
)
_URLS: Final = ("title_url", "video_url", "url", "join_url")
_COLUMN_SIGN: Final = re.compile(r"\|(?![^<>]*>)")  # not the one of a link
# Elements of a rich text that name something: the field with the name, and their wire form.
_LEAVES: Final = {
    "user": ("user_id", "<@{}>"),
    "usergroup": ("usergroup_id", "<!subteam^{}>"),
    "channel": ("channel_id", "<#{}>"),
    "broadcast": ("range", "<!{}>"),
    "emoji": ("name", ":{}:"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackMessage:
    """A message as read. ``own_words`` is the text without shared content. Neither contains the mention of its reader.

    ``mentioned`` are the people it mentions, ``quoted`` those it only quotes. ``shares``: it shares another message.
    """

    text: str
    own_words: str
    mentioned: frozenset[str] = frozenset()
    quoted: frozenset[str] = frozenset()
    calls_group: bool = False
    shares: bool = False


def read_message(message: Mapping[str, Any], reader: str = "") -> SlackMessage:
    """Read a whole message. ``reader`` is the user to whom it is addressed: their mention is not text."""
    shared: list[Mapping[str, Any]] = []
    more: list[str] = []
    for one in objects(message, "attachments"):
        # A preview: Slack itself added it for a link to a web page.
        is_linked = one.get("from_url") or one.get("original_url")
        is_of_app = one.get("is_app_unfurl") or one.get("app_unfurl_url")
        if any(map(one.get, ("is_share", "is_msg_unfurl", "message_blocks"))):
            shared.append(one)
        elif is_of_app or not is_linked:
            more += _of_attachment(one, 0)
    own = _once(string(message, "text"), _of_blocks(message), more)
    live = _QUOTED.sub(" ", own)
    mentioned = frozenset(_people(live))
    words = [plain_text(own, reader), *(plain_text(_of_shared(one)) for one in shared)]
    return SlackMessage(
        text="\n\n".join(filter(None, words))[:MAX_TEXT_CHARS],
        own_words=words[0],
        mentioned=mentioned,
        quoted=frozenset(_people(own)) - mentioned,
        calls_group=bool(_CALLS_GROUP.search(live)),
        shares=bool(shared),
    )


def plain_text(wire: str, reader: str = "") -> str:
    """Return wire text as a person reads it, without the reader's mention. Ids without a name stay."""
    quoted = [found.span() for found in _QUOTED.finditer(wire)] if reader else []

    def plain(token: re.Match[str]) -> str:
        before = bisect(quoted, (token.start(), len(wire)))  # for texts with thousands of quotations and mentions
        is_live = not before or quoted[before - 1][1] <= token.start()
        return "" if is_live and token[1] == "@" and token[2] == reader else _plain_token(token)

    return unescape_wire(_TOKEN.sub(plain, wire)).strip().strip(_UNSEEN).strip()[:MAX_TEXT_CHARS]


def unescape_wire(text: str) -> str:
    """Decode the three entities of Slack's wire text; ``&amp;`` last, or ``&amp;lt;`` would be decoded twice."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def named_ids(text: str) -> tuple[str, ...]:
    """Return the ids of people, channels and groups left in a plain text, in order."""
    ids = (token[2].removeprefix("subteam^") for token in _TOKEN.finditer(text) if _is_id(token))
    return tuple(dict.fromkeys(ids))


def with_names(text: str, names: Mapping[str, str], unknown: str = "") -> str:
    """Put names (``@Ben``, ``#ops``) in place of ids. An id without a name becomes ``unknown``, or stays."""

    def name(token: re.Match[str]) -> str:
        return (names.get(token[2].removeprefix("subteam^")) or unknown or token[0]) if _is_id(token) else token[0]

    return _TOKEN.sub(name, text)


def shared_files(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the file objects of a message and of the messages shared with it, without deleted files."""
    attached = (file for one in objects(message, "attachments") for file in objects(one, "files"))
    return [file for file in (*objects(message, "files"), *attached) if file.get("mode") != "tombstone"]


def _is_id(token: re.Match[str]) -> bool:
    return bool(token[2]) and (token[1] in {"@", "#"} or token[2].startswith("subteam^"))


def _people(wire: str) -> Iterator[str]:
    return (token[2] for token in _TOKEN.finditer(wire) if token[1] == "@" and token[2])


def _plain_token(token: re.Match[str]) -> str:
    sigil, body, label = token[1], token[2] or token[3], token[4] or ""
    if sigil == "@":
        return f"<@{body}>"
    if sigil == "#":
        return f"#{label}" if label else f"<#{body}>"
    if sigil == "!":
        kind, _, rest = body.partition("^")
        if kind != "date":
            return label or (token[0] if kind == "subteam" else f"@{kind}")
        seconds = rest.partition("^")[0]
        is_known = seconds.isdecimal() and len(seconds) <= 10  # noqa: PLR2004 - digits of a date before the year 2286
        shown = f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M UTC}" if is_known else ""
        return label or shown
    shown = body.removeprefix("mailto:").removeprefix("tel:")
    if label and label == _SCHEME.sub("", shown):
        return label  # Slack also turns "README.md" into a link: the author did not write "http://"
    return shown if not label or label in body else f"{label} ({shown})"


def _once(text: str, blocks: Iterable[str], more: Iterable[str]) -> str:
    """Join all parts without repetitions: Slack repeats the blocks, or their beginning, in the text."""
    parts = [part for part in blocks if part.strip()]
    begin = text.rstrip()
    if begin.endswith(("…", "...")):  # cut inside a word
        begin = begin.rpartition(" ")[0]
    whole, begin = _key("\n".join(parts)), _key(begin)
    if begin not in whole or begin == whole:
        parts.insert(0, text)
    known, kept = "", []
    for part in (*parts, *more):
        key = _key(part)
        if part.strip() and key.strip() not in _PLACEHOLDERS and (not key.strip() or key not in known):
            known += key
            kept.append(part)
    return "\n".join(kept)


def _key(wire: str) -> str:
    """Return the words of a part, or its signs ("???"), which are the same under different markup."""
    text = unescape_wire(wire).casefold()
    return f" {' '.join(_WORD.findall(text) or text.split())} "


def _of_shared(attachment: Mapping[str, Any]) -> str:
    """A message that was shared or forwarded, with its author."""
    inner = [attachment, *(mapping(one, "message") for one in objects(attachment, "message_blocks"))]
    blocks = [part for one in inner for part in _of_blocks(one)]
    more = [string(one, "text") for one in inner[1:] if not one.get("blocks")]
    more += [part for one in inner for each in objects(one, "attachments") for part in _of_attachment(each, 0)]
    text = _once(string(attachment, "text"), blocks, more) or _once(string(attachment, "fallback"), (), ())
    author = string(attachment, "author_name") or string(attachment, "author_subname")
    return f"{author}: {text}" if author and text else text


def _of_attachment(attachment: Mapping[str, Any], depth: int) -> list[str]:
    """The parts of an app's attachment; its fallback only if there is nothing else."""
    title = _link(string(attachment, "title_link"), string(attachment, "title"))
    fields = (": ".join(filter(None, (string(f, "title"), string(f, "value")))) for f in objects(attachment, "fields"))
    parts = [string(attachment, "pretext"), string(attachment, "author_name"), title, string(attachment, "text")]
    nested = objects(attachment, "attachments") if depth <= _MAX_DEPTH else ()
    inner = (part for one in nested for part in _of_attachment(one, depth + 1))
    buttons = (_of_block(one, 0) for one in objects(attachment, "actions"))
    parts = [*parts, *fields, *_of_blocks(attachment), *inner, *buttons, string(attachment, "footer")]
    return parts if any(parts) else [string(attachment, "fallback")]


def _of_blocks(holder: Mapping[str, Any]) -> list[str]:
    return [_of_block(block, 0) for block in objects(holder, "blocks")]


def _of_block(block: Mapping[str, Any], depth: int) -> str:
    """The texts of one block of any kind, without those of buttons, unless they are links."""
    kind = string(block, "type")
    if depth > _MAX_DEPTH:
        return ""
    if _PRESSED.fullmatch(kind):
        url, label = string(block, "url"), block.get("text")
        text = label if isinstance(label, str) else string(mapping(label), "text")
        return _link(url, text) if url else ""
    if kind == "plain_text":
        return _wire(string(block, "text"))
    if kind == "rich_text":
        return "\n".join(_rich(element, depth) for element in objects(block, "elements"))
    if kind.endswith("table"):
        rows = block.get("rows")
        cells = [[_of_cell(cell, depth) for cell in objects(row)] for row in (rows if isinstance(rows, list) else ())]
        lines = [f"| {' | '.join(row)} |" for row in cells]
        lines[1:1] = [f"|{' --- |' * len(row)}" for row in cells[:1]]
        return "\n".join(filter(None, (string(block, "caption"), *lines)))
    parts: list[str] = []
    for name in (*_TEXTS, *_LISTS):
        inner = block.get(name)
        found = [one for one in (inner if isinstance(inner, list) else [inner]) if isinstance(one, str | Mapping)]
        parts += (one if isinstance(one, str) else _of_block(one, depth + 1) for one in found)
    parts += [f"<{link}>" for name in _URLS if (link := string(block, name))][:1]
    text = (" " if kind == "context" else "\n").join(dict.fromkeys(filter(None, parts)))
    return f"{text}: {number}" if type(number := block.get("value")) in {int, float} else text  # a chart's


def _of_cell(cell: Mapping[str, Any], depth: int) -> str:
    value = cell if string(cell, "type") == "rich_text" else cell.get("text", cell.get("value"))
    is_plain = isinstance(value, str | int | float)
    text = _wire(str(value)) if is_plain else _of_block(mapping(value), depth + 1)
    return _COLUMN_SIGN.sub(r"\\|", " ".join(text.split()))


def _rich(element: Mapping[str, Any], depth: int) -> str:
    """An element of a rich text as wire text."""
    kind = string(element, "type")
    inner = [_rich(one, depth + 1) for one in objects(element, "elements")] if depth <= _MAX_DEPTH else []
    if kind == "rich_text_list":
        indent, offset = (value if isinstance(value := element.get(name), int) else 0 for name in ("indent", "offset"))
        begin, is_ordered = "    " * max(0, min(indent, _MAX_DEPTH)), string(element, "style") == "ordered"
        items = enumerate(inner, offset + 1)
        return "\n".join(f"{begin}{f'{number}.' if is_ordered else '•'} {item}" for number, item in items)
    if kind == "rich_text_preformatted":
        return f"```\n{''.join(inner)}\n```"
    if kind == "rich_text_quote":
        return "\n".join(f"&gt; {line}" for line in "".join(inner).split("\n"))
    return "".join(inner) or _rich_leaf(kind, element)


def _rich_leaf(kind: str, element: Mapping[str, Any]) -> str:
    if leaf := _LEAVES.get(kind):
        name, form = leaf
        return form.format(string(element, name))
    if kind == "date":
        fallback = string(element, "fallback")
        return f"<!date^{element.get('timestamp')}^{'|' if fallback else ''}{_wire(fallback)}>"
    text = _wire(string(element, "text") or string(element, "value") or string(element, "fallback"))
    text = f"`{text}`" if mapping(element, "style").get("code") and text.strip() else text
    return _link(string(element, "url"), text)


def _link(url: str, label: str) -> str:
    """A link as wire text; only the label, or only the link, if there is nothing else."""
    target = unescape_wire(url).replace("|", "%7C").replace("<", "%3C").replace(">", "%3E").replace("&", "&amp;")
    return f"<{target}|{label}>" if url and label else f"<{target}>" if url else label


def _wire(text: str) -> str:
    """Raw text as wire text; Slack may have escaped it already."""
    return unescape_wire(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
