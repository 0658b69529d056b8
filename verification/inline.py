"""The inline pass: one stretch of text (a paragraph, an item, a heading, a cell) from left to right.

Promises: one visit to each character; code, tokens and URLs are stepped over whole; every change is an edit with the
fault it mends. Must never touch code, a mention, a URL, or a ``[n]`` citation.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from verification import emphasis, links, tags
from verification.answer import Dialect
from verification.edits import ZERO_WIDTH, Findings
from verification.scanner import TOKEN, CodeSpans

_SPECIAL = re.compile(r"[`<>&\\\]\[]|\*+|__+|~~+|://")
_TICKS = re.compile(r"`+")
_URL_REST = re.compile(r"://[^\s<>`*\[\]\\|\"]*")
_COMMENT = re.compile(r"<!--(?:(?!-->).){0,4000}-->", re.DOTALL)
_MAIL = re.compile(r"<([\w.+-]+@[\w-]+(?:\.[\w-]+)+)>")
_CODE_TAG = re.compile(r"<(code|kbd|tt|samp)(?:\s[^<>]*)?>([^`\n]{1,400}?)</\1>", re.IGNORECASE)
_LITERAL_BRACKETS = re.compile(r"\\\[([^\[\]\n\\]{0,300})\\\]")
_REFERENCE = re.compile(r"\[([^\]\[\n]{0,200})\]")
_CITED = re.compile(r"\d{1,3}(?:\s*,\s*\d{1,3})*")
_LABEL_LIMIT = 2000
_GRAVE = "\uff40"
_PIPE = "\u2223"


class Place(NamedTuple):
    """An open bracket (or ``<a>``): where it starts, where its label starts, and how many runs stood before it."""

    start: int
    label: int
    runs: int
    image: bool = False
    url: str = ""


class Page:
    """What a pass over one text shares: the text, the dialect, the definitions and the findings."""

    __slots__ = ("dialect", "findings", "footnotes", "references", "text", "used")

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect = dialect
        self.findings = Findings()
        self.references: dict[str, str] = {}
        self.footnotes: set[str] = set()
        self.used: set[str] = set()


class Inline:
    """One stretch ``[start, end)`` of a page."""

    __slots__ = (
        "anchors",
        "bold",
        "brackets",
        "codes",
        "end",
        "findings",
        "last_token",
        "page",
        "runs",
        "spans",
        "start",
        "text",
    )

    def __init__(self, page: Page, start: int, end: int, *, bold: bool = False) -> None:
        self.page, self.text, self.start, self.end, self.bold = page, page.text, start, end, bold
        self.findings = page.findings
        self.spans: CodeSpans | None = None
        self.runs: list[emphasis.Run] = []
        self.brackets: deque[Place] = deque(maxlen=64)
        self.anchors: list[Place] = []
        self.codes: list[tuple[int, int]] = []
        self.last_token = -1

    def mend(self) -> None:
        """Collect the faults and edits of the stretch."""
        position, search, text, end = self.start, _SPECIAL.search, self.text, self.end
        while match := search(text, position, end):
            position = _HANDLERS[text[match.start()]](self, match)
        self._settle(0)

    def mend_label(self) -> None:
        """The same for the label of a token, where only marks and ``&`` are Slack's business."""
        position, text = self.start, self.text
        while match := _SPECIAL.search(text, position, self.end):
            char = text[match.start()]
            position = _HANDLERS[char](self, match) if char in "`&*_~" else match.end()
        self._settle(0)

    def _settle(self, first: int) -> None:
        """Pair the runs from ``first`` on: they are all there will be at this depth."""
        runs = self.runs[first:]
        del self.runs[first:]
        if len(runs) < 2 or self.page.dialect == "markdown":  # noqa: PLR2004 - a pair needs two
            return
        found = emphasis.pairs(self.text, runs)
        if found:
            emphasis.mend(self.text, found, self.findings, bold=self.bold, bounds=(self.start, self.end))

    def code(self, match: re.Match[str]) -> int:
        """Step over inline code; unmatched runs of three would open a block in Slack."""
        ticks = _TICKS.match(self.text, match.start(), self.end)
        start, end = match.start(), ticks.end() if ticks else match.end()
        if self.spans is None:
            self.spans = CodeSpans(self.text, self.start, self.end)
        close, size = self.spans.end_of(start, end - start), end - start
        if close >= 0:
            self.codes.append((start, close))
            body = self.text[end : close - size]
            if size == 2 and "`" not in body and body.strip() and self.page.dialect == "mrkdwn":  # noqa: PLR2004 - ``x``
                self.findings.fault("code", start, close)
                self.findings.edit(start, end, "`")
                self.findings.edit(close - size, close, "`")
            return close
        if size >= 3 and self.page.dialect == "mrkdwn":  # noqa: PLR2004 - three ticks are a fence
            self.findings.replace("fence", start, end, _GRAVE * size)
        return end

    def angle(self, match: re.Match[str]) -> int:
        """A token, a leaked tag, HTML, a mail address, or a bare ``<``."""
        start = match.start()
        if token := TOKEN.match(self.text, start, self.end):
            return self._token(token)
        if leak := tags.LEAKED.match(self.text, start, self.end):
            return leak.end()
        if comment := _COMMENT.match(self.text, start, min(self.end, start + 4007)):
            self.findings.replace("html", start, comment.end(), "")
            return comment.end()
        if mail := _MAIL.match(self.text, start, self.end):
            return self._mail(mail)
        tag = tags.TAG.match(self.text, start, self.end)
        if tag and (tag[2] or tag[5]).lower() in tags.HTML:
            return self._tag(tag)
        if self.page.dialect == "mrkdwn":
            self.findings.replace("bare", start, start + 1, "&lt;")
        elif tag:
            self.findings.replace("bare", start, start + 1, "\\<")
        return start + 1

    def _mail(self, match: re.Match[str]) -> int:
        if self.page.dialect == "mrkdwn":
            self.findings.replace("link", match.start(), match.end(), f"<mailto:{match[1]}|{match[1]}>")
        self.last_token = match.start()
        return match.end()

    def _token(self, match: re.Match[str]) -> int:
        """Slack's own token stays; its label follows the rules of text."""
        self.last_token = match.start()
        pipe = self.text.find("|", match.start(), match.end())
        if pipe < 0 or self.text[match.start() + 1] in "@#!":
            return match.end()
        if self.page.dialect == "mrkdwn":
            Inline(self.page, pipe + 1, match.end() - 1, bold=self.bold).mend_label()
            return match.end()
        self.findings.fault("link", match.start(), match.end())
        label = self.text[pipe + 1 : match.end() - 1]
        label = "".join("\\" + char if char in "[]" else char for char in label)
        self.findings.edit(match.start(), match.end(), f"[{label}]({self.text[match.start() + 1 : pipe]})")
        return match.end()

    def _tag(self, match: re.Match[str]) -> int:
        """Turn one HTML tag into Slack's form."""
        start, end = match.span()
        name, closing = (match[2] or match[5]).lower(), bool(match[1] or match[4])
        if name in tags.EMPHASIS and self.page.dialect == "mrkdwn":
            return self._emphasis_tag(match, tags.EMPHASIS[name], closing=closing)
        if name in tags.CODE and (span := _CODE_TAG.match(self.text, start, self.end)):
            self.findings.replace("html", start, span.end(), f"`{links.cleaned(span[2])}`")
            return span.end()
        if name == "a":
            return self._anchor(match, closing=closing)
        if name == "img":
            return self._picture(match)
        self.findings.replace("html", start, end, self._plain_form(name, closing=closing))
        return end

    def _plain_form(self, name: str, *, closing: bool) -> str:
        if name in tags.EMPHASIS:
            return {"b": "**", "i": "*", "s": "~~"}[tags.EMPHASIS[name]]
        form = tags.plain_form(name, closing=closing)
        return " " if self.bold and form else form

    def _emphasis_tag(self, match: re.Match[str], mark: str, *, closing: bool) -> int:
        """Matched tags become marks; a tag without a partner goes."""
        start, end = match.span()
        self.runs.append(emphasis.Run(start, end, mark, 1, opens=not closing, closes=closing))
        if not self._has_partner(match, closing=closing):
            self.runs.pop()
            self.findings.replace("html", start, end, "")
        return end

    def _has_partner(self, match: re.Match[str], *, closing: bool) -> bool:
        """Whether the other half of an emphasis tag is near: looked for in a bounded window."""
        name = match[2] or match[5]
        if closing:
            mark = self.runs[-1].mark
            return any(run.mark == mark and run.opens for run in self.runs[-9:-1])
        window = self.text[match.end() : min(self.end, match.end() + 600)].lower()
        return f"</{name.lower()}>" in window

    def _anchor(self, match: re.Match[str], *, closing: bool) -> int:
        start, end = match.span()
        if not closing:
            url = links.cleaned(tags.attributes(match[3] or "").get("href", ""))
            self.anchors.append(Place(start, end, len(self.runs), url=url))
        elif self.anchors:
            place = self.anchors.pop()
            self._link(place, (start, end), place.url)
        if not closing and "</a" not in self.text[end : min(self.end, end + _LABEL_LIMIT)].lower():
            place = self.anchors.pop()
            form = f"<{links.safe(place.url)}>" if links.is_absolute(place.url) else ""
            self.findings.replace("html", start, end, form)
        elif closing and (not self.findings.edits or self.findings.edits[-1].end != end):
            self.findings.replace("html", start, end, "")
        return end

    def _picture(self, match: re.Match[str]) -> int:
        found = tags.attributes(match[3] or "")
        url, label = links.cleaned(found.get("src", "")), found.get("alt", "")
        label = re.sub(r"[<>|\[\]\n]", " ", links.cleaned(label)).replace("&", "&amp;").strip()
        if not links.is_absolute(url):
            form = f"{label} (`{url}`)" if url and "`" not in url else label
        elif self.page.dialect == "mrkdwn":
            form = f"<{links.safe(url)}|{label}>" if label else f"<{links.safe(url)}>"
        else:
            form = f"[{label}]({links.safe(url)})" if label else f"<{links.safe(url)}>"
        self.last_token = match.start()
        self.findings.replace("image", match.start(), match.end(), form)
        return match.end()

    def close_angle(self, match: re.Match[str]) -> int:
        """A bare ``>``."""
        if self.page.dialect == "mrkdwn":
            self.findings.replace("bare", match.start(), match.end(), "&gt;")
        return match.end()

    def ampersand(self, match: re.Match[str]) -> int:
        """An entity is what it stands for; a bare ``&`` is escaped."""
        start = match.start()
        if self.page.dialect == "markdown":
            return start + 1
        if escaped := tags.ESCAPED.match(self.text, start, self.end):
            return escaped.end()
        entity = tags.ENTITY.match(self.text, start, self.end)
        char = tags.character(entity) if entity else ""
        if entity and char:
            form = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(char, char)
            guard = ZERO_WIDTH if char in "*_~`#[]|\\-+" else ""
            self.findings.replace("entity", start, entity.end(), guard + form + guard)
            return entity.end()
        self.findings.replace("bare", start, start + 1, "&amp;")
        return start + 1

    def backslash(self, match: re.Match[str]) -> int:
        """Slack has no backslash escapes: the character stays, guarded where it would become markup."""
        start = match.start()
        char = self.text[start + 1 : min(start + 2, self.end)]
        if self.page.dialect == "markdown" or char in {"", "\\"}:
            return min(start + 2, self.end)
        if char in "<>&":
            form = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}[char]
            self.findings.replace("backslash", start, start + 2, form)
            return start + 2
        if char in "*_~`":
            return self._literal_mark(start, char)
        if char == "[" and (pair := _LITERAL_BRACKETS.match(self.text, start, self.end)):
            return self._literal_brackets(pair)
        if char in "#+-" and not self.text[self.start : start].strip():
            self.findings.replace("backslash", start, start + 1, ZERO_WIDTH)
        elif char in "\n#" or (char == "." and start > self.start and self.text[start - 1].isdigit()):
            self.findings.replace("backslash", start, start + 1, "")
        return start + (1 if char == "\n" else 2)

    def _literal_mark(self, start: int, char: str) -> int:
        before = self.text[start - 1] if start > self.start else " "
        after = self.text[start + 2] if start + 2 < self.end else " "
        joins = char == "_" and before.isalnum() and after.isalnum()
        self.findings.replace("backslash", start, start + 1, "" if joins else ZERO_WIDTH)
        if after == char:
            self.findings.edit(start + 2, start + 2, ZERO_WIDTH)
        return start + 2

    def _literal_brackets(self, match: re.Match[str]) -> int:
        end = match.end()
        self.findings.fault("backslash", match.start(), end)
        self.findings.edit(match.start(), match.start() + 1, "")
        follows = self.text[end : end + 1] if end < self.end else ""
        self.findings.edit(end - 2, end, "]" + (ZERO_WIDTH if follows and follows in "([:" else ""))
        return end

    def mark(self, match: re.Match[str]) -> int:
        """A run of ``*``, ``_`` or ``~`` that may be emphasis."""
        size = match.end() - match.start()
        char = self.text[match.start()]
        if size <= 3 and (char != "~" or size == 2):  # noqa: PLR2004 - longer runs are drawing, not emphasis
            self.runs.append(emphasis.run(self.text, match.start(), match.end(), bounds=(self.start, self.end)))
        return match.end()

    def url(self, match: re.Match[str]) -> int:
        """Step over a bare URL; marks at its end are not part of it."""
        rest = _URL_REST.match(self.text, match.start(), self.end)
        tail = rest[0].rstrip("_~.,;:!?)'") if rest else "://"
        return match.start() + max(3, len(tail))

    def open_bracket(self, match: re.Match[str]) -> int:
        """Remember where a label may start."""
        start = match.start()
        note = links.FOOTNOTE.match(self.text, start, self.end)
        if note and (note[2].isdigit() or note[2] in self.page.footnotes):
            self.findings.replace("footnote", note.start(1), note.end(1), "")
            return note.end(2) + 1
        image = start > self.start and self.text[start - 1] == "!"
        self.brackets.append(Place(start - image, start + 1, len(self.runs), image))
        return match.end()

    def close_bracket(self, match: re.Match[str]) -> int:
        """Perhaps the end of a link's label."""
        if not self.brackets:
            return match.end()
        place, end = self.brackets.pop(), match.end()
        if match.start() - place.label > _LABEL_LIMIT:
            return end
        follows = self.text[end] if end < self.end else ""
        if follows == "(" and (found := links.destination(self.text, end, self.end)):
            return self._destination(place, match.start(), found)
        return self._reference(place, match.start()) if self.page.references else end

    def _destination(self, place: Place, close: int, found: links.Destination) -> int:
        """``[label](…)``: a link, an image, or words after a bracket."""
        url, words = found.url, found.words
        before = self.text[place.start - 1] if place.start > self.start else " "
        indexed = (before.isalnum() or before in "_)]") and not place.image and not re.search(r"[:/.#]", url)
        if indexed:
            return close + 1
        if words:
            return self._words(place, close)
        if self.page.dialect == "markdown" and not place.image and self.last_token < place.start:
            self.last_token = place.start
            return found.end
        self._link(place, (close, found.end), url)
        return found.end

    def _words(self, place: Place, close: int) -> int:
        """``[label](some words)`` is no link, but looks like one: the brackets go, the words stay."""
        if self.page.dialect == "markdown":
            return close + 1
        label = self.text[place.label : close]
        self.findings.fault("link", place.start, close + 1)
        keep = bool(_CITED.fullmatch(label))
        self.findings.edit(place.start, place.label, "[" if keep else "")
        self.findings.edit(close, close + 1, "] " if keep else " ")
        return close + 1

    def _reference(self, place: Place, close: int) -> int:
        """``[label][id]``, ``[label][]`` and ``[label]`` where a definition has the name."""
        label = self.text[place.label : close]
        name, end = links.key(label), close + 1
        if _CITED.fullmatch(label):
            return end
        if second := _REFERENCE.match(self.text, end, self.end):
            name = links.key(second[1]) or name
            end = second.end()
        url = self.page.references.get(name)
        if url is None:
            return close + 1
        self.page.used.add(name)
        self._link(place, (close, end), url)
        return end

    def _link(self, place: Place, tail: tuple[int, int], url: str) -> None:
        """Turn a label and its destination into Slack's token."""
        self._settle(place.runs)
        nested = self.last_token >= place.label
        self.last_token = place.start
        self.findings.fault("image" if place.image else "link", place.start, tail[1])
        if links.is_address(url):
            url = f"mailto:{url}"
        label = self.text[place.label : tail[0]]
        head, foot = self._shape(label, url, nested=nested)
        self.findings.edit(place.start, place.label, head)
        self.findings.edit(tail[0], tail[1], foot)
        if foot.endswith(">") and not nested and self.page.dialect == "mrkdwn":
            self._clean_label(place.label, tail[0])

    def _shape(self, label: str, url: str, *, nested: bool) -> tuple[str, str]:
        """What stands before and after the label."""
        if not links.is_absolute(url):
            show = "" if not url or url.startswith("#") or "`" in url else f" (`{url}`)"
            return "", show
        url = links.safe(url)
        if nested or not label.strip():
            return "", (" " if nested else "") + f"<{url}>"
        if self.page.dialect == "markdown":
            return "[", f"]({url})"
        return (f"<{url}|[", "]>") if _CITED.fullmatch(label) else (f"<{url}|", ">")

    def _clean_label(self, start: int, end: int) -> None:
        """Inside a token a label has no line ends, no second pipe and no raw angle brackets, even in code."""
        for match in re.finditer(r"[ \t]*\n[ \t]*|\|", self.text[start:end]):
            form = _PIPE if match[0] == "|" else " "
            self.findings.edit(start + match.start(), start + match.end(), form)
        while self.codes and self.codes[-1][0] >= start:
            code_start, code_end = self.codes.pop()
            for match in re.finditer(r"[<>]|&(?!(?:amp|lt|gt);)", self.text[code_start:code_end]):
                form = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}[match[0]]
                self.findings.edit(code_start + match.start(), code_start + match.end(), form)


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
    "[": Inline.open_bracket,
    "]": Inline.close_bracket,
}
