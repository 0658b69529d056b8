"""Messages and views as the page shows them: mrkdwn, Markdown and blocks as HTML, all escaped, with nothing to load.

It also converts typed text to the form that Slack stores.
"""

import html
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from agent.knowledge.slack_message import unescape_wire
from bot.local.model.messages import LocalMessage, MessageLog
from bot.local.model.roster import Json

Names = Mapping[str, str]
"""Display names of members and channels by id."""

EMOJI: Final = {
    "+1": "👍", "-1": "👎", "eyes": "👀", "white_check_mark": "✅", "x": "❌", "warning": "⚠️", "mag": "🔍",
    "bulb": "💡", "link": "🔗", "wave": "👋", "heart": "❤️", "lock": "🔒", "hourglass_flowing_sand": "⏳",
    "page_facing_up": "📄", "slightly_smiling_face": "🙂", "information_source": "ℹ️",
}  # fmt: skip
_FENCE: Final = re.compile(r"\n?```(.*?)```\n?", re.DOTALL)
_PIECE: Final = re.compile(
    r"`(?P<code>[^`\n]+)`"
    r"|<(?P<angle>[^<>\n]+)>"
    r"|(?P<url>https?://[^\s<>|`]+[^\s<>|`.,;:!?)\]}'\"*_~])"
    r"|:[a-z0-9_+-]+:(?!//)"
)
_MENTION: Final = re.compile(r"<([@#!][^<>\n]+)>")
_LINK_IN_CODE: Final = re.compile(r"<(https?://[^<>|\n]+)(?:\|[^<>\n]*)?>")
_SHORTCODE: Final = re.compile(r":([a-z0-9_+-]+):")
# Zero bytes are removed from messages first, so that no text can look like a placeholder.
_HELD: Final = re.compile("\x00(\\d+)\x00")
_QUOTE: Final = re.compile(r"^(?:&gt;|>) ?")
_BULLET: Final = re.compile(r"^( *)(•|◦|▪|-|\d{1,3}\.) +(?=\S)")
_MARKS: Final = tuple(
    (
        re.compile(rf"(?<![\w{sign}]){sign}(?![\s{sign}])([^{sign}\n]*[^\s{sign}]){sign}(?![\w{sign}])"),
        rf"<{tag}>\1</{tag}>",
    )
    for sign, tag in ((r"\*", "strong"), ("_", "em"), ("~", "s"))
)
_LINKABLE: Final = ("http://", "https://", "mailto:")
# Do not replace names inside code or an address. Punctuation at the end belongs to the sentence.
_VERBATIM: Final = re.compile(r"(```.*?```|`[^`\n]+`|https?://[^\s<>|`\"]*[^\s<>|`\".,;:!?)\]}'*_~])", re.DOTALL)
_BROADCASTS: Final = frozenset({"here", "channel", "everyone"})
_IDS_TO_CHOOSE: Final = {"users_select": "U", "conversations_select": "C"}


def escape(text: str) -> str:
    """Return message text as HTML text, after decoding Slack's three entities."""
    return html.escape(unescape_wire(text))


def plain_html(text: str) -> str:
    """A ``plain_text`` object as HTML: escaped, with emoji."""
    return _with_emoji(escape(text))


def link_html(address: str, label: str) -> str:
    """Return a link, or only its label if the address is unsafe. ``label`` is HTML already."""
    target = unescape_wire(address).strip()
    if not target.lower().startswith(_LINKABLE):
        return label
    return f'<a href="{html.escape(target)}" target="_blank" rel="noopener noreferrer">{label}</a>'


def mrkdwn_html(text: str, names: Names) -> str:
    """Mrkdwn as HTML. ``names`` gives the display names of member and channel ids."""
    parts = _FENCE.split(text.replace("\x00", ""))  # every second piece is code
    return "".join(
        f"<pre>{_code(part)}</pre>" if number % 2 else _flowing(part, names) for number, part in enumerate(parts)
    )


def _code(code: str) -> str:
    shown = _LINK_IN_CODE.sub(r"\1", code.strip("\n"))  # a link inside code shows as its address, as in Slack
    return f"<code>{escape(shown)}</code>"


def _flowing(text: str, names: Names) -> str:
    """Text outside fences: quoted lines in a quote, items in a list, the rest line by line."""
    shown: list[str] = []

    def kind_of(line: str) -> str:
        return "quote" if _QUOTE.match(line) else "list" if _BULLET.match(line) else "text"

    for kind, lines in groupby(text.split("\n") if text else [], key=kind_of):
        if kind == "quote":
            inside = "<br>".join(_inline(_QUOTE.sub("", line), names) for line in lines)
            shown.append(f"<blockquote>{inside}</blockquote>")
        else:
            inside = "".join(_line(line, names) for line in lines)
            shown.append(f'<div role="list">{inside}</div>' if kind == "list" else inside)
    return "".join(shown)


def _line(line: str, names: Names) -> str:
    if not line.strip():
        return '<div class="gap"></div>'
    bullet = _BULLET.match(line)
    if not bullet:
        return f'<div class="line">{_inline(line, names)}</div>'
    depth = min(len(bullet.group(1)) // 2, 3)
    rest = _inline(line[bullet.end() :], names)
    sign = html.escape(bullet.group(2))
    item = f'<span class="sign">{sign} </span><span>{rest}</span>'
    return f'<div class="line item depth{depth}" role="listitem">{item}</div>'


def _inline(text: str, names: Names) -> str:
    """HTML of one line. Code, links and emoji are set aside while the marks around them are read."""
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        if code := found["code"]:
            held.append(_code(code))
        elif inside := found["angle"]:
            held.append(_angle(inside, names))
        else:
            held.append(link_html(found[0], escape(found[0])) if found["url"] else _with_emoji(found[0]))
        return f"\x00{len(held) - 1}\x00"

    text = escape(_PIECE.sub(hold, text))
    # A mark opens after a space or punctuation, and closes before one.
    for pattern, replacement in _MARKS:
        text = pattern.sub(replacement, text)
    return _HELD.sub(lambda found: held[int(found[1])], text)


def _with_emoji(text: str) -> str:
    return _SHORTCODE.sub(lambda found: EMOJI.get(found[1], found[0]), text)


def _angle(inside: str, names: Names) -> str:
    """HTML for the content of ``<…>``: a mention, a channel, a special word or a link."""
    target, _, label = inside.partition("|")
    if target.startswith(("@", "#")):
        shown = names.get(target[1:], label or target[1:])
        kind = "mention" if target[0] == "@" else "mention channel"
        return f'<span class="{kind}" data-id="{html.escape(target[1:])}">{target[0]}{escape(shown)}</span>'
    if target.startswith("!"):
        word = target[1:]
        if word in _BROADCASTS:
            return f'<span class="mention broadcast">@{word}</span>'
        shown = escape(label or word)
        return f'<span class="mention">{shown}</span>' if word.startswith("subteam^") else shown
    if target.lower().startswith(_LINKABLE):
        shown = escape(label) if label else escape(target.removeprefix("mailto:"))
        return link_html(target, _with_emoji(shown))
    return escape(f"<{inside}>")


class _MarkdownHtml(RendererHTML):
    """The parts of a markdown block that Slack renders differently."""

    def text(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG002 - the library's signature
        """Show mentions as names."""
        parts = enumerate(_MENTION.split(tokens[index].content))
        return "".join(_angle(part, env["names"]) if n % 2 else _with_emoji(html.escape(part)) for n, part in parts)

    def image(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG002 - likewise
        """Show images as links: nothing is loaded."""
        address = str(tokens[index].attrs.get("src", ""))
        return link_html(address, html.escape(tokens[index].content or address))

    def link_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG002 - likewise
        """A link's label and its end are separate tokens."""
        return link_html(str(tokens[index].attrs.get("href", "")), "").removesuffix("</a>") or "<a>"


_PARSER: Final = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_MarkdownHtml).enable(
    ["table", "strikethrough"]
)


def markdown_html(text: str, names: Names) -> str:
    """Standard Markdown as HTML; raw HTML in it is shown as text."""
    return str(_PARSER.render(text, {"names": names}))


def as_slack_text(typed: str, names: Names) -> str:
    """``typed`` as message text. ``names`` maps ids of members and channels to the names that people type."""
    signs = {key: "@" if key.startswith("U") else "#" for key in names}
    mentions = {_escape(signs[key] + name).lower(): f"<{signs[key]}{key}>" for key, name in names.items()}
    # Otherwise "@Ann" would match in "@Ann Lee", and the longer name never.
    longest_first = "|".join(map(re.escape, sorted(mentions, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w@#])({longest_first})(?!\w)", re.IGNORECASE)

    def slack_text(part: str) -> str:
        if part.startswith("http") and _VERBATIM.fullmatch(part):
            return f"<{_escape(part)}>"
        if _VERBATIM.fullmatch(part):
            return _escape(part)
        return pattern.sub(lambda found: mentions.get(found[0].lower(), found[0]), _escape(part))

    return "".join(map(slack_text, _VERBATIM.split(typed)))


def _escape(text: str) -> str:
    return html.escape(text, quote=False)


def text_html(value: Any, names: Names) -> str:
    """A text object as HTML."""
    if not isinstance(value, dict):
        return ""
    text = str(value.get("text", ""))
    return mrkdwn_html(text, names) if value.get("type") == "mrkdwn" else plain_html(text)


def block_view(block: Json, names: Names) -> Json:
    """One block for the page."""
    view: Json = {"type": block["type"], "block_id": block.get("block_id", "")}
    match block["type"]:
        case "section" | "header":
            accessory = block.get("accessory")
            view |= {"html": text_html(block.get("text"), names)}
            view |= {"accessory": element_view(accessory, names)} if accessory else {}
        case "markdown":
            view |= {"html": markdown_html(block["text"], names)}
        case "context" | "actions":
            view |= {"elements": [element_view(one, names) for one in block["elements"]]}
        case "table":
            view |= {"rows": [[_cell(cell, names) for cell in row] for row in block["rows"]]}
        case "rich_text":
            # Slack shows each paragraph as a block of its own.
            lines = {"rich_text_section": '<div class="line">{}</div>'}
            parts = (lines.get(one["type"], "{}").format(rich_html(one, names)) for one in block.get("elements", []))
            view |= {"html": "".join(parts)}
        case "input":
            label, element = plain_html(_text(block, "label")), element_view(block["element"], names)
            view |= {"label": label, "optional": bool(block.get("optional")), "element": element}
        case _:  # a task card, or a divider without either
            view |= {key: str(block.get(key) or "") for key in ("title", "status")}
    return view


def _text(owner: Json, part: str) -> str:
    return str((owner.get(part) or {}).get("text", ""))


def element_view(element: Json, names: Names) -> Json:
    """One element: a button, a text in a context block, an input."""
    kind = element.get("type", "")
    if kind in ("mrkdwn", "plain_text"):
        return {"type": "text", "html": text_html(element, names)}
    view: Json = {
        key: element[key] for key in ("type", "action_id", "value", "style", "url", "multiline") if key in element
    }
    view |= {part: _text(element, part) for part in ("text", "placeholder") if part in element}
    if asked := element.get("confirm"):
        view["confirm"] = {part: str(given.get("text", "")) for part, given in asked.items() if isinstance(given, dict)}
    offered = [{"text": one["text"]["text"], "value": one["value"]} for one in element.get("options") or ()]
    if ids := _IDS_TO_CHOOSE.get(element.get("type", "")):
        offered = [{"text": name, "value": key} for key, name in names.items() if key.startswith(ids)]
    initial = next((element[name] for name in element if name.startswith("initial_")), "")
    chosen = initial.get("value", "") if isinstance(initial, dict) else initial
    return view | {"initial": chosen, **({"options": offered} if offered else {})}


def _cell(cell: Json, names: Names) -> str:
    if cell.get("type") != "rich_text":
        return plain_html(str(cell.get("text", "")))
    return "".join(rich_html(one, names) for one in cell.get("elements", []))


def rich_html(part: Json, names: Names) -> str:
    """A part of a rich text block as HTML."""
    kind = part.get("type", "")
    if kind == "rich_text_list":
        items = "".join(f"<li>{rich_html(one, names)}</li>" for one in part.get("elements", []))
        tag = "ol" if part.get("style") == "ordered" else "ul"
        indented = f' class="indent{min(int(part["indent"]), 4)}"' if part.get("indent") else ""
        start = f' start="{int(part["offset"]) + 1}"' if part.get("offset") else ""
        return f"<{tag}{indented}{start}>{items}</{tag}>"
    inner = "".join(_rich_element(one, names) for one in part.get("elements", []))
    if kind == "rich_text_preformatted":
        return f"<pre><code>{inner}</code></pre>"
    return f"<blockquote>{inner}</blockquote>" if kind == "rich_text_quote" else inner


def _rich_element(element: Json, names: Names) -> str:
    kind = element.get("type", "")
    if kind in ("user", "channel"):
        return _angle(f"{'@' if kind == 'user' else '#'}{element.get(f'{kind}_id', '')}", names)
    shown = escape(str(element.get("text", ""))).replace("\n", "<br>")
    if kind == "link":
        url = str(element.get("url", ""))
        shown = link_html(url, escape(str(element.get("text") or url)))
    for style, tag in (("code", "code"), ("bold", "strong"), ("italic", "em"), ("strike", "s")):
        if (element.get("style") or {}).get(style):
            shown = f"<{tag}>{shown}</{tag}>"
    return shown


def message_view(message: LocalMessage, log: MessageLog, names: Names) -> Json:
    """One message for the page."""
    shown = log.payload_of(message, metadata=True)
    typed_by_person = [block.get("type") for block in message.blocks] == ["rich_text"] and not message.bot_id
    blocks = [] if typed_by_person else [block_view(block, names) for block in message.blocks]
    metadata = message.metadata or {}
    answered = metadata.get("event_payload", {}) if metadata.get("event_type") == "orion_answer" else {}
    return {
        **{name: getattr(message, name) for name in ("channel", "ts", "thread_ts", "user", "text", "streaming")},
        "name": message.bot_name or names.get(message.user, "Slackbot"),
        "is_bot": bool(message.bot_id),
        "html": "" if blocks else mrkdwn_html(message.text, names),
        "blocks": blocks,
        "edited": bool(message.edited),
        "ephemeral": bool(message.ephemeral_for),
        "tombstone": message.subtype == "tombstone",
        "reactions": [
            {"name": name, "sign": plain_html(f":{name}:"), "count": len(users), "users": users}
            for name, users in message.reactions.items()
        ],
        "files": [{key: one[key] for key in ("id", "name", "size")} for one in message.files],
        "reply_count": shown.get("reply_count", 0),
        "reply_users": shown.get("reply_users", []),
        "latest_reply": shown.get("latest_reply", ""),
        "turn_id": str(answered.get("turn_id", "")),
        "verified": answered.get("verified"),
    }


def modal_view(view: Json, names: Names) -> Json:
    """A modal or App Home for the page."""
    return {
        "id": view["id"],
        "type": view["type"],
        **{part: _text(view, part) for part in ("title", "submit", "close")},
        "blocks": [block_view(block, names) for block in view["blocks"]],
    }
