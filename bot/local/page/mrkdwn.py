"""Slack's mrkdwn, and the Markdown of its ``markdown`` block, as HTML. Everything is escaped and nothing is loaded."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

EMOJI: Final = {
    "+1": "👍",
    "-1": "👎",
    "eyes": "👀",
    "white_check_mark": "✅",
    "x": "❌",
    "warning": "⚠️",
    "hourglass_flowing_sand": "⏳",
    "mag": "🔍",
    "bulb": "💡",
    "link": "🔗",
    "page_facing_up": "📄",
    "wave": "👋",
    "heart": "❤️",
    "lock": "🔒",
    "slightly_smiling_face": "🙂",
    "information_source": "ℹ️",
}
_FENCE: Final = re.compile(r"```(.*?)```", re.DOTALL)
_CODE: Final = re.compile(r"`([^`\n]+)`")
_ANGLE: Final = re.compile(r"<([^<>\n]+)>")
_BARE_URL: Final = re.compile(r"https?://[^\s<>|]+[^\s<>|.,;:!?)\]}'\"*_~]")
_SHORTCODE: Final = re.compile(r":([a-z0-9_+-]+):")
# A zero byte stands in no message (it is taken out first), so nobody can write what looks like a held piece.
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
_BROADCASTS: Final = frozenset({"here", "channel", "everyone"})


def escape(text: str) -> str:
    """Message text as HTML text: Slack's own three entities first become characters again."""
    plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return html.escape(plain, quote=True)


def plain_html(text: str) -> str:
    """A ``plain_text`` object as HTML: escaped, with emoji."""
    return _with_emoji(escape(text))


def link_html(address: str, label: str) -> str:
    """A link, or its label as text when the address is not one to follow. ``label`` is HTML already."""
    target = address.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()
    if not target.lower().startswith(_LINKABLE):
        return label
    return f'<a href="{html.escape(target, quote=True)}" target="_blank" rel="noopener noreferrer">{label}</a>'


class _Holder:
    """Finished pieces of HTML, kept out of the way of the marks while the rest is worked on."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def hold(self, piece: str) -> str:
        self._pieces.append(piece)
        return f"\x00{len(self._pieces) - 1}\x00"

    def restore(self, text: str) -> str:
        # A held link may itself hold emoji or code in its label, never deeper than that.
        for _ in range(3):
            text = _HELD.sub(lambda found: self._pieces[int(found.group(1))], text)
        return text


def mrkdwn_html(text: str, names: Mapping[str, str]) -> str:
    """Mrkdwn as HTML. ``names`` gives the display names of member and channel ids."""
    text = text.replace("\x00", "")
    parts: list[str] = []
    position = 0
    for fence in _FENCE.finditer(text):
        parts.append(_flowing(text[position : fence.start()].removesuffix("\n"), names))
        parts.append(f"<pre><code>{escape(_without_links(fence.group(1).strip(chr(10))))}</code></pre>")
        position = fence.end()
        if text[position : position + 1] == "\n":
            position += 1
    parts.append(_flowing(text[position:], names))
    return "".join(parts)


def _without_links(code: str) -> str:
    """Slack shows a link inside code as its address."""
    return re.sub(r"<(https?://[^<>|\n]+)(?:\|[^<>\n]*)?>", r"\1", code)


def _flowing(text: str, names: Mapping[str, str]) -> str:
    """Text outside fences: quoted lines in a quote, the rest line by line."""
    if not text:
        return ""
    out: list[str] = []
    quoted: list[str] = []
    for line in text.split("\n"):
        if _QUOTE.match(line):
            quoted.append(_inline(_QUOTE.sub("", line, count=1), names))
            continue
        if quoted:
            out.append(f"<blockquote>{'<br>'.join(quoted)}</blockquote>")
            quoted = []
        out.append(_line(line, names))
    if quoted:
        out.append(f"<blockquote>{'<br>'.join(quoted)}</blockquote>")
    return "".join(out)


def _line(line: str, names: Mapping[str, str]) -> str:
    if not line.strip():
        return '<div class="gap"></div>'
    bullet = _BULLET.match(line)
    if not bullet:
        return f'<div class="line">{_inline(line, names)}</div>'
    depth = min(len(bullet.group(1)) // 2, 3)
    rest = _inline(line[bullet.end() :], names)
    sign = html.escape(bullet.group(2))
    return f'<div class="line item depth{depth}"><span class="sign">{sign} </span><span>{rest}</span></div>'


def _inline(text: str, names: Mapping[str, str]) -> str:
    held = _Holder()
    text = _CODE.sub(lambda code: held.hold(f"<code>{escape(_without_links(code.group(1)))}</code>"), text)
    text = _ANGLE.sub(lambda angle: held.hold(_angle(angle.group(1), names)), text)
    text = _BARE_URL.sub(lambda url: held.hold(link_html(url.group(), escape(url.group()))), text)
    text = _SHORTCODE.sub(lambda code: held.hold(EMOJI[code[1]]) if code[1] in EMOJI else code[0], text)
    return held.restore(_marked(escape(text)))


def _with_emoji(text: str) -> str:
    return _SHORTCODE.sub(lambda found: EMOJI.get(found.group(1), found.group()), text)


def _marked(text: str) -> str:
    """Bold, italic and strike: a mark opens after a space or punctuation and closes before one."""
    for pattern, replacement in _MARKS:
        text = pattern.sub(replacement, text)
    return text


def _angle(inside: str, names: Mapping[str, str]) -> str:
    """What stands between ``<`` and ``>``: a mention, a channel, a special word or a link."""
    target, _, label = inside.partition("|")
    if target.startswith(("@", "#")):
        shown = names.get(target[1:], label or target[1:])
        kind = "mention" if target[0] == "@" else "mention channel"
        return f'<span class="{kind}" data-id="{html.escape(target[1:])}">{target[0]}{escape(shown)}</span>'
    if target.startswith("!"):
        return _special(target[1:], label)
    if target.lower().startswith(_LINKABLE):
        shown = escape(label) if label else escape(target.removeprefix("mailto:"))
        return link_html(target, _with_emoji(shown))
    return escape(f"<{inside}>")


def _special(word: str, label: str) -> str:
    if word in _BROADCASTS:
        return f'<span class="mention broadcast">@{word}</span>'
    if word.startswith("subteam^"):
        return f'<span class="mention">{escape(label or "@group")}</span>'
    return escape(label or word)


def _render_text(renderer: RendererHTML, tokens: list[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG001 - the library's signature
    """Text of a markdown block: mentions show as names, as they do in Slack."""
    names: Mapping[str, str] = env.get("names", {})
    parts: list[str] = []
    position = 0
    content = tokens[index].content
    for found in re.finditer(r"<([@#!][^<>\n]+)>", content):
        parts.append(_with_emoji(html.escape(content[position : found.start()])))
        parts.append(_angle(found.group(1), names))
        position = found.end()
    parts.append(_with_emoji(html.escape(content[position:])))
    return "".join(parts)


def _render_image(renderer: RendererHTML, tokens: list[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG001 - the library's signature
    """Images of a markdown block show as links: nothing is loaded."""
    token = tokens[index]
    address = str(token.attrs.get("src", ""))
    return link_html(address, html.escape(token.content or address))


def _render_link_open(renderer: RendererHTML, tokens: list[Token], index: int, options: Any, env: Any) -> str:  # noqa: ARG001 - the library's signature
    address = str(tokens[index].attrs.get("href", ""))
    if not address.lower().startswith(_LINKABLE):
        return "<a>"
    return f'<a href="{html.escape(address, quote=True)}" target="_blank" rel="noopener noreferrer">'


def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.add_render_rule("text", _render_text)
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("link_open", _render_link_open)
    return parser


_PARSER: Final = _markdown()


def markdown_html(text: str, names: Mapping[str, str]) -> str:
    """Standard Markdown as HTML; raw HTML in it is shown as text."""
    return str(_PARSER.render(text, {"names": names}))
