"""The inline pass over a paragraph, an item, a heading or a cell. It skips code, mentions and URLs."""

import re
import string
from collections.abc import Callable, Sequence
from html import unescape
from html.entities import html5

from verification.markup import emphasis, links
from verification.markup.links import Brackets, Place
from verification.markup.scanner import ANY_SCHEME, ESCAPES, TOKEN, ZERO_WIDTH, MarkupPage, code_spans
from verification.text.language import load_table

_SPECIAL = re.compile(r"[`<&\\\]\[]|>+|\*+|__+|~~+|://")
_TICKS = re.compile(r"`+")
_URL_REST = re.compile(r"://[^\s<>`*\[\]\\|\"]*")
_URL_BEFORE = re.compile(r"://\S*\Z")
_MAX_URL = 300  # maximum characters between the scheme and a star
_MAIL = re.compile(r"<([\w.+-]+@[\w-]+(?:\.[\w-]+)+)>")  # CommonMark's autolinks
_AUTOLINK = re.compile(rf"<{ANY_SCHEME}:[^<>\s]*>", re.IGNORECASE)
_CODE_TAG = re.compile(r"<(code|kbd|tt|samp)(?:\s[^<>]*)?>([^`\n]{1,400}?)</\1>", re.IGNORECASE)
_LITERAL_BRACKETS = re.compile(r"\\\[([^\[\]\n\\]{0,300})\\\]")
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\\S*$")
_UNSAFE_IN_LABEL = re.compile(r"[<>|\[\]\n]")
_MARKUP = frozenset("*_~`#[]|\\-+")
_GRAVE = "\uff40"  # looks like a tick; three real ones would open a code block in Slack

# Formatting tags, tags that are plain words, and leaked prompt tags, which are never repaired.
_VALUE = r"(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>=]+)"
_TAG = re.compile(rf"<(/?)([A-Za-z][A-Za-z0-9]*)((?:\s+(?:[\w:-]+\s*=\s*{_VALUE}|open|checked|disabled))*)\s*(/?)>")
_TAGS = load_table(__file__)
LEAKED_TAGS: tuple[str, ...] = tuple(_TAGS["leaked"].split())
LEAKED_NAME = (
    rf"{'|'.join(LEAKED_TAGS)}|[\w:-]{{0,40}}(?:think|thought|reasoning|reflection|monologue|scratchpad)[\w:-]{{0,40}}"
)
LEAKED_TAG = re.compile(
    rf"</?(?:{LEAKED_NAME})(?:\s[^<>\n]*)?>|<\|/?[A-Za-z_]{{3,40}}\|?>|</?[A-Za-z_]{{3,40}}\|>|</?antml:[^<>\n]*>"
    r"|(?:(?<![^\n])\[|\[/)think(?:ing)?\](?!\()|◁/?think\w{0,40}▷",
    re.IGNORECASE,
)
_NO_MARKUP = frozenset(string.ascii_letters + string.digits + ":/.@'\",;%?")
# The longest name of an entity in HTML 5 has 31 letters.
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ESCAPED = re.compile(r"&(?:amp|lt|gt);")
_ATTRIBUTE = re.compile(r"\b(href|src|alt)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_EMPHASIS: dict[str, str] = _TAGS["emphasis"]
_CODE, _ALONE, _BLOCKS, _HEADINGS, _SILENT = (
    frozenset(_TAGS[kind].split()) for kind in ("code", "alone", "blocks", "headings", "silent")
)
_BREAKS: dict[str, str] = {**_TAGS["breaks"], **dict.fromkeys(_HEADINGS, "\n# ")}
HTML_TAGS = _CODE | _BLOCKS | _SILENT | {*_EMPHASIS, *_BREAKS, "a", "img"}


class Inline:
    """One stretch ``[start, end)`` of a page."""

    def __init__(self, page: MarkupPage, start: int, end: int, *, bold: bool = False) -> None:
        self.page, self.text, self.start, self.end, self.bold = page, page.text, start, end, bold
        self.mrkdwn = page.is_mrkdwn
        self.codes: dict[int, int] | None = None
        self.runs: list[emphasis.Run] = []
        self.anchors: list[Place] = []
        self.brackets = Brackets(page, page.text, start, end, self._pair_emphasis)

    def repair(self, signs: str = "`<>&\\*_~:[]") -> None:
        """Collect the faults and edits of the stretch. In a token's label Slack interprets only some characters."""
        position, search, text, end = self.start, _SPECIAL.search, self.text, self.end
        while match := search(text, position, end):
            char = text[match.start()]
            position = _HANDLERS[char](self, match) if char in signs else match.end()
        self._pair_emphasis(0)
        for place in self.anchors:
            form = f"<{links.quote_url(place.url)}>" if links.is_absolute(place.url) else ""
            self.page.replace("html", place.start, place.label, form)

    def _pair_emphasis(self, first: int) -> None:
        """Pair the runs from ``first`` on, because this depth is complete. Remove tags without a partner."""
        runs = self.runs[first:]
        del self.runs[first:]
        if not runs:
            return
        pairs = emphasis.pair_runs(self.text, runs)
        if not self.mrkdwn:
            self._escape_stars(runs, pairs)
            return
        emphasis.convert_pairs(self.page, pairs, bold=self.bold, bounds=(self.start, self.end))
        paired = {start for pair in pairs for start in (pair.open_start, pair.close_start)}
        for run in runs:
            if run.mark in "bis" and run.start not in paired:
                self.page.replace("html", run.start, run.end, "")

    def _escape_stars(self, runs: Sequence[emphasis.Run], pairs: Sequence[emphasis.Pair]) -> None:
        """Escape stars that are no emphasis here but would be in standard Markdown: "2**10 and 3**4".

        In a bare URL a backslash would lead elsewhere.
        """
        paired = {at for pair in pairs for span in (pair[:2], pair[2:4]) for at in range(*span)}
        for run in runs:
            touches = self.text[max(self.start, run.start - 1) : min(self.end, run.end + 1)].strip(" \t\n*")
            in_url = _URL_BEFORE.search(self.text, max(self.start, run.start - _MAX_URL), run.start)
            if run.mark == "*" and touches and not in_url and paired.isdisjoint(range(run.start, run.end)):
                self.page.edit(run.start, run.end, "\\*" * (run.end - run.start))

    def code(self, match: re.Match[str]) -> int:
        """Skip inline code. Slack knows one tick or three: doubled ticks become single if the code has none."""
        ticks = _TICKS.match(self.text, match.start(), self.end)
        start, end = match.start(), ticks.end() if ticks else match.end()
        if self.codes is None:
            self.codes = code_spans(self.text, self.start, self.end)
        size = end - start
        close = self.codes.get(start, -1)
        if close < 0:
            if size >= len("```") and self.mrkdwn:  # Slack would open a block
                self.page.replace("fence", start, end, _GRAVE * size)
            return end
        self.brackets.codes.append((start, close))
        body = self.text[end : close - size]
        if size == 2 and self.mrkdwn and "`" not in body and body.strip():  # noqa: PLR2004 - ``x``
            self.page.replace("code", start, close, f"`{body}`")
        return close

    def angle(self, match: re.Match[str]) -> int:
        """Process a token, a leaked tag, HTML, a mail address, or a bare ``<``."""
        start = match.start()
        follows = self.text[start + 1 : start + 2]
        if follows.isalnum() or follows in "@#!/|":
            if token := TOKEN.match(self.text, start, self.end):
                return self._token(token)
            if leak := LEAKED_TAG.match(self.text, start, self.end):
                return leak.end()
            if after := self._markup(start):
                return after
        if self.mrkdwn:
            self.page.replace("bare", start, start + 1, "&lt;")
        elif follows in {"@", "#", "!"} or any(each.match(self.text, start, self.end) for each in (_TAG, _AUTOLINK)):
            self.page.replace("bare", start, start + 1, "\\<")
        return start + 1

    def _markup(self, start: int) -> int:
        """Process a comment, a mail address or an HTML tag. Return the position after it, or 0 for anything else."""
        if self.text.startswith("<!--", start):
            # A limited look-ahead keeps a thousand unclosed comments linear.
            close = self.text.find("-->", start + 4, min(self.end, start + 4000))
            if close >= 0:
                self.page.replace("html", start, close + 3, "")
            return close + 3 if close >= 0 else 0
        if mail := _MAIL.match(self.text, start, self.end):
            if self.mrkdwn:
                self.page.replace("link", start, mail.end(), f"<mailto:{mail[1]}|{mail[1]}>")
            self.brackets.last_token = start
            return mail.end()
        tag = _TAG.match(self.text, start, self.end)
        name = tag[2].lower() if tag else ""
        # ``cp <source> <dest>`` and ``a<b and b>c`` have no partner on the page.
        has_partner = tag is not None and (name in _ALONE or bool(tag[4]) or (not tag[1], name) in self.page.tags)
        return self._tag(tag) if tag and name in HTML_TAGS and has_partner else 0

    def _token(self, match: re.Match[str]) -> int:
        start, end = match.span()
        self.brackets.last_token = start
        pipe = self.text.find("|", start, end)
        if pipe < 0 or self.text[start + 1] in "@#!":
            return end
        if self.mrkdwn:
            Inline(self.page, pipe + 1, end - 1, bold=self.bold).repair("`&*_~")
            return end
        label = "".join("\\" + char if char in "[]" else char for char in self.text[pipe + 1 : end - 1])
        self.page.replace("link", start, end, f"[{label}]({self.text[start + 1 : pipe]})")
        return end

    def _tag(self, match: re.Match[str]) -> int:
        start, end = match.span()
        name, closing = match[2].lower(), bool(match[1])
        if name in _EMPHASIS and self.mrkdwn:
            self.runs.append(emphasis.Run(start, end, _EMPHASIS[name], 1, opens=not closing, closes=closing))
            return end
        if name in _CODE and (span := _CODE_TAG.match(self.text, start, self.end)):
            self.page.replace("html", start, span.end(), f"`{links.unescape_url(span[2])}`")
            return span.end()
        if name == "a":
            return self._anchor(match, closing=closing)
        if name == "img":
            return self._picture(match)
        self.page.replace("html", start, end, self._plain_form(name, match, closing=closing))
        return end

    def _plain_form(self, name: str, match: re.Match[str], *, closing: bool) -> str:
        """Return the replacement of a tag. A line ending is added only if it is missing."""
        if name in _EMPHASIS:
            return {"b": "**", "i": "*", "s": "~~"}[_EMPHASIS[name]]
        parts = name in _BLOCKS or (closing and name in _HEADINGS)
        lone = "" if closing else _BREAKS.get(name, "")
        form = "\n" if parts else lone
        if form == "\n" and name != "br":
            around = {self.text[match.start() - 1 : match.start()], self.text[match.end() : match.end() + 1]}
            form = form if around.isdisjoint({"", "\n"}) else ""
        return " " if self.bold and form else form

    def _anchor(self, match: re.Match[str], *, closing: bool) -> int:
        """Remember ``<a href>`` until its end. Remove an end without a start."""
        start, end = match.span()
        if not closing:
            url = links.unescape_url(_attributes(match[3] or "").get("href", ""))
            self.anchors.append(Place(start, end, len(self.runs), url=url))
        elif self.anchors:
            place = self.anchors.pop()
            self.brackets.link(place, (start, end), place.url)
        else:
            self.page.replace("html", start, end, "")
        return end

    def _picture(self, match: re.Match[str]) -> int:
        """Convert ``<img>`` to a link."""
        attributes = _attributes(match[3] or "")
        url = links.unescape_url(attributes.get("src", ""))
        label = _UNSAFE_IN_LABEL.sub(" ", links.unescape_url(attributes.get("alt", ""))).replace("&", "&amp;").strip()
        if not links.is_absolute(url):
            form = f"{label} (`{url}`)" if url and "`" not in url else label
        elif not label:
            form = f"<{links.quote_url(url)}>"
        else:
            form = f"<{links.quote_url(url)}|{label}>" if self.mrkdwn else f"[{label}]({links.quote_url(url)})"
        self.brackets.last_token = match.start()
        self.page.replace("image", match.start(), match.end(), form)
        return match.end()

    def close_angle(self, match: re.Match[str]) -> int:
        """Escape one or more bare ``>``."""
        if self.mrkdwn:
            self.page.replace("bare", match.start(), match.end(), "&gt;" * (match.end() - match.start()))
        return match.end()

    def ampersand(self, match: re.Match[str]) -> int:
        """Decode an entity, or escape a bare ``&``."""
        start = match.start()
        if escaped := _ESCAPED.match(self.text, start, self.end):
            return escaped.end()
        entity = _ENTITY.match(self.text, start, self.end)
        known = entity and (entity[0][1] == "#" or entity[0][1:] in html5)
        char = unescape(entity[0]) if entity and known else ""
        char = " " if char.isspace() else char
        if entity and char and self.mrkdwn:
            guard = ZERO_WIDTH if char in _MARKUP else ""
            self.page.replace("entity", start, entity.end(), guard + ESCAPES.get(char, char) + guard)
            return entity.end()
        if self.mrkdwn:
            self.page.replace("bare", start, start + 1, "&amp;")
        elif entity and (char in _NO_MARKUP or not char.isascii()):  # the rules must see addresses and words
            self.page.edit(start, entity.end(), char)
            return entity.end()
        return start + 1

    def backslash(self, match: re.Match[str]) -> int:
        """Remove a backslash escape, which Slack does not have. Protect the character if it would become markup."""
        start = match.start()
        char = self.text[start + 1 : min(start + 2, self.end)]
        if not self.mrkdwn or char in {"", "\\"}:
            return min(start + 2, self.end)
        if char in ESCAPES:
            self.page.replace("backslash", start, start + 2, ESCAPES[char])
            return start + 2
        if char in "*_~`":
            return self._literal_mark(start, char)
        if char == "[" and (pair := _LITERAL_BRACKETS.match(self.text, start, self.end)):
            # Plain brackets, separated from anything that would make them a link.
            self.page.fault("backslash", start, pair.end())
            self.page.edit(start, start + 1, "")
            guard = ZERO_WIDTH if pair.end() < self.end and self.text[pair.end()] in "([:" else ""
            self.page.edit(pair.end() - 2, pair.end(), "]" + guard)
            return pair.end()
        if char in "#+-" and not self.text[max(self.start, start - 9) : start].rpartition("\n")[2].strip():
            self.page.replace("backslash", start, start + 1, ZERO_WIDTH)
        elif char in "\n#" or self._is_escape_in_prose(start, char):
            self.page.replace("backslash", start, start + 1, "")
        return start + (1 if char == "\n" else 2)

    def _is_escape_in_prose(self, start: int, char: str) -> bool:
        r"""Recognise ``3\.``, ``6\-8`` and ``a \- b``, as Google Docs exports them, outside of Windows paths."""
        before = self.text[max(self.start, start - 80) : start]
        if char == ".":
            return before[-1:].isdigit()
        after_word = before.rstrip(" ")[-1:].isalnum() or (before[-1:] == char == "+")
        return char in "-+" and after_word and not _WINDOWS_PATH.search(before)

    def _literal_mark(self, start: int, char: str) -> int:
        r"""Process ``\*`` and similar. In a Windows path the backslash stays."""
        before = self.text[start - 1] if start > self.start else " "
        after = self.text[start + 2] if start + 2 < self.end else " "
        if not before.isspace() and _WINDOWS_PATH.search(self.text[max(self.start, start - 80) : start + 1]):
            return start + 2
        joins = char == "_" and before.isalnum() and after.isalnum()
        self.page.replace("backslash", start, start + 1, "" if joins else ZERO_WIDTH)
        if after == char:
            self.page.edit(start + 2, start + 2, ZERO_WIDTH)
        return start + 2

    def mark(self, match: re.Match[str]) -> int:
        """Record a run of ``*``, ``_`` or ``~`` that may be emphasis."""
        start, end = match.span()
        char, size = self.text[start], end - start
        if char == "_" and (name := emphasis.dunder_end(self.text, start, self.end)):
            for at in () if self.mrkdwn else (start, name - 2):
                self.page.edit(at, at + 2, r"\_\_")
            return name
        if size <= 3 and (char != "~" or size == 2):  # noqa: PLR2004 - longer runs are drawing, not emphasis
            self.runs.append(emphasis.read_run(self.text, start, end, bounds=(self.start, self.end)))
        return end

    def url(self, match: re.Match[str]) -> int:
        """Skip a bare URL. Marks at its end are not part of it."""
        rest = _URL_REST.match(self.text, match.start(), self.end)
        tail = rest[0].rstrip("_~.,;:!?)'") if rest else "://"
        return match.start() + max(3, len(tail))


def _attributes(text: str) -> dict[str, str]:
    return {match[1].lower(): match[2] or match[3] or match[4] or "" for match in _ATTRIBUTE.finditer(text)}


_HANDLERS: dict[str, Callable[[Inline, re.Match[str]], int]] = {
    "`": Inline.code,
    "<": Inline.angle,
    ">": Inline.close_angle,
    "&": Inline.ampersand,
    "\\": Inline.backslash,
    "*": Inline.mark,
    "_": Inline.mark,
    "~": Inline.mark,
    ":": Inline.url,
    "[": lambda inline, match: inline.brackets.open(match.start(), len(inline.runs)),
    "]": lambda inline, match: inline.brackets.close(match.start()),
}
