"""The block pass: quotes, headings, rules, lists, tables, definitions and fences, with the inline pass for each.

The form rules report exactly what this pass changes. It does not look inside code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from verification.markup import links
from verification.markup.inline import Inline
from verification.markup.lines import column_alignments, draw_table, flatten_cell, is_delimiter, is_row, split_cells
from verification.markup.scanner import QUOTE, ZERO_WIDTH, Fence, MarkupPage, apply_edits, fences
from verification.text.language import load_table
from verification.types import Dialect

_COMPARISON = re.compile(r">=?\d|>=")
# CommonMark: at most three blanks before a heading, and six signs; "## Title ##" closes itself.
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}(?:[ \t]+|$)")
_HEADING_TAIL = re.compile(r"[ \t]+#+[ \t]*$")
_ITEM = re.compile(r"([ \t]*)(?:([-*+])|(•)|(\d{1,9})[.)])[ \t]+(?=\S)")
# GitHub's task lists, footnotes and alerts: models write them everywhere.
_TASK = re.compile(r"\[([ xX])\](?:[ \t]+|$)")
_NOTE = re.compile(r"[ \t]{0,3}\[(\^)(\w[\w.-]{0,40})\](:)")
_ALERT = re.compile(r"\[!([A-Za-z]+)\][ \t]*$")
_RULE = re.compile(r"([-*_])(?:[ \t]*\1){2,}")
_LANGUAGE = re.compile(r"([A-Za-z][\w+#.-]{0,30})(?:[ \t]*(?:\{.*\}|[\w-]+=.*))?$")
_LANGUAGES = frozenset(load_table(__file__)["languages"].split())


class Line(NamedTuple):
    """A line of prose. ``body`` is where its text starts after quote marks."""

    start: int
    end: int
    body: int


@lru_cache(maxsize=4)  # the repaired text is checked next, and is often the only chunk
def survey(text: str, dialect: Dialect) -> MarkupPage:
    """Collect all faults and edits of the text."""
    page = MarkupPage(text, dialect == "mrkdwn")
    Layout(page, text).survey()
    return page


@dataclass(slots=True)
class Layout:
    """One pass over one page."""

    page: MarkupPage
    text: str
    lines: list[Line] = field(default_factory=list)
    definitions: list[tuple[re.Match[str], str, str]] = field(default_factory=list)
    paragraph: tuple[int, int] | None = None
    indents: list[int] = field(default_factory=list)  # depth of the items around the current one
    has_bullets: bool = False  # True if the current list had Markdown bullets
    # For the last item at each depth, as shown and as written.
    numbers: dict[int, tuple[int, int]] = field(default_factory=dict)

    def survey(self) -> None:
        """Collect all faults and edits."""
        fenced = fences(self.text) if "```" in self.text or "~~~" in self.text else []
        ends = [0, *(fence.end for fence in fenced)]
        starts = [*(fence.start for fence in fenced), len(self.text)]
        stretches = [[*self._split(start, end)] for start, end in zip(ends, starts, strict=True)]
        for line in (line for stretch in stretches for line in stretch) if "]:" in self.text else ():
            self._define(line)  # definitions are valid in the whole text
        for stretch, fence in zip(stretches, [*fenced, None], strict=True):
            self.lines = stretch
            index = 0
            while index < len(stretch):
                index = self._block(index)
            self._flush()
            form = _repair_fence(self.text, fence, is_mrkdwn=self.page.is_mrkdwn) if fence else ""
            if fence and form != self.text[fence.start : fence.end]:
                if fence.quoted:
                    self.page.fault("quote", fence.start, fence.end)
                self.page.replace("fence", fence.start, fence.end, form)
        for match, name, url in self.definitions:  # those that are used go, and the others become plain lines
            self.page.fault("reference", match.start(), match.end())
            if name in self.page.used and self.page.references[name] == url:
                self.page.edit(match.start(), min(match.end() + 1, len(self.text)), "")
            else:
                self.page.edit(match.start(2), match.end(2), "")

    def _split(self, start: int, end: int) -> Iterator[Line]:
        while start < end:
            eol = self.text.find("\n", start, end)
            eol = end if eol < 0 else eol
            quote = QUOTE.match(self.text, start, eol) if self.text.find(">", start, eol) >= 0 else None
            yield Line(start, eol, quote.end() if quote else start)
            start = eol + 1

    def _define(self, line: Line) -> None:
        """Remember the link or the footnote that a line defines."""
        if match := links.DEFINITION.match(self.text, line.start, line.end):
            name, url = links.reference_key(match[1]), links.unescape_url(match[3].strip("<>"))
            # CommonMark: of two definitions the first one counts.
            self.page.references.setdefault(name, url)
            self.definitions.append((match, name, url))
        elif note := _NOTE.match(self.text, line.start, line.end):
            self.page.footnotes.add(note[2])
        elif not self.page.is_mrkdwn and (loose := links.LOOSE_DEFINITION.match(self.text, line.start)):
            self.page.edit(loose.start(1), loose.end(1), "")

    def _block(self, index: int) -> int:
        """Process one block from this line on. Return the index of the first line after it."""
        line = self.lines[index]
        stripped = self.text[line.body : line.end].strip()
        quoted = line.body > line.start
        if not stripped:
            self._flush()
            if quoted:
                self.page.replace("quote", line.start, line.end, "")
            return index + 1
        if "|" in stripped and self.page.is_mrkdwn and (after := self._table(index)):
            return after
        if self._rule(line) or self._item(line) or self._heading(line) or self._definition(line):
            return index + 1
        if quoted:
            self._quote(line)
            return index + 1
        return self._plain(index)

    def _flush(self) -> None:
        if self.paragraph:
            Inline(self.page, *self.paragraph).repair()
            self.paragraph = None

    def _plain(self, index: int) -> int:
        """Add a line of running text to the paragraph, or treat it as a heading underlined with ``===`` or ``---``."""
        line, last = self.lines[index], index + 1
        if self.page.is_mrkdwn and self._is_underline(last, "=" if self.paragraph else "=-"):
            self._flush()
            self.page.fault("heading", line.start, self.lines[last].end)
            self._bold_line(line.start, line.end)
            while self._is_underline(last + 1):
                last += 1
            self.page.edit(line.end, self.lines[last].end, "")
            return last + 1
        if not self.text[line.start].isspace():
            self.indents, self.has_bullets, self.numbers = [], False, {}
        self.paragraph = (self.paragraph[0] if self.paragraph else line.start, line.end)
        return index + 1

    def _is_underline(self, index: int, signs: str = "=-") -> bool:
        line = self.lines[index] if index < len(self.lines) else Line(0, 0, 0)
        drawn = self.text[line.start : line.end].strip()
        return len(drawn) > 2 and any(not drawn.strip(sign) for sign in signs)  # noqa: PLR2004 - a rule's least length

    def _bold_line(self, start: int, end: int) -> None:
        content = self.text[start:end].strip()
        start = self.text.find(content, start)
        end = start + len(content)
        if not content.strip("*_~ \t"):
            Inline(self.page, start, end).repair()
        elif not (content[0] == content[-1] == "*" and "*" not in content[1:-1] and not content[1].isspace()):
            self.page.edit(start, start, "*")
            Inline(self.page, start, end, bold=True).repair()
            self.page.edit(end, end, "*")

    def _rule(self, line: Line) -> bool:
        """Remove ``---``, ``***`` or ``___``: Slack has no rules, and an empty line also separates."""
        if not _RULE.fullmatch(self.text[line.body : line.end].strip()):
            return False
        self._flush()
        if self.page.is_mrkdwn or line.body > line.start:
            blank_before = line.start == 0 or self.text[max(0, line.start - 2) : line.start] in {"\n\n", "\n"}
            end = line.end
            while blank_before and end < len(self.text) and self.text[end] == "\n":
                end += 1
            self.page.fault("rule", line.start, line.end)
            self.page.edit(line.start, end, "")
        return True

    def _heading(self, line: Line) -> bool:
        """Convert ``## Title`` to a bold line."""
        match = _HEADING.match(self.text, line.body, line.end)
        if not match:
            return False
        self._flush()
        self._unquote(line)
        if not self.page.is_mrkdwn:
            Inline(self.page, match.end(), line.end).repair()
            return True
        self.indents, self.has_bullets, self.numbers = [], False, {}
        tail = _HEADING_TAIL.search(self.text, match.end(), line.end)
        end = tail.start() if tail else line.end
        self.page.fault("heading", line.body, line.end)
        self.page.edit(line.body, match.end(), "")
        self._bold_line(match.end(), end)
        self.page.edit(end, line.end, "")
        return True

    def _unquote(self, line: Line) -> None:
        if line.body > line.start:
            self.page.fault("quote", line.start, line.end)
            self.page.edit(line.start, line.body, "")

    def _item(self, line: Line) -> bool:
        """Repair a list item: bullets become ``•`` with real indentation, numbers stay."""
        match = _ITEM.match(self.text, line.body, line.end)
        if not match:
            return False
        self._flush()
        self._unquote(line)
        content = match.end()
        if self.page.is_mrkdwn:
            task = _TASK.match(self.text, content, line.end)
            self._marker(match, task)
            content = task.end() if task else content
            if heading := _HEADING.match(self.text, content, line.end):
                self.page.replace("heading", content, heading.end(), "")
                self._bold_line(heading.end(), line.end)
                return True
        Inline(self.page, content, line.end).repair()
        return True

    def _marker(self, match: re.Match[str], task: re.Match[str] | None) -> None:
        """Edit an item's indentation, bullet, and check box."""
        start, end = match.start(), match.end()
        depth = len(match[1].expandtabs(4))
        while self.indents and self.indents[-1] > depth:
            self.indents.pop()
        if not self.indents or depth > self.indents[-1] + 1:
            self.indents.append(depth)
        indent = "    " * (len(self.indents) - 1)
        if task:
            box = "☐ " if task[1] == " " else "☑ "
            bullet = bool(match[2] or match[3])
            self.page.fault("task", start, task.end())
            self.page.edit(start if bullet else end, task.end(), indent + box if bullet else box)
        if match[2]:
            self.has_bullets = True
            if not task:
                self.page.replace("list", start, end, f"{indent}• ")
        elif not match[3] and self.has_bullets and match[1] != indent:
            self.page.replace("list", match.start(1), match.end(1), indent)
        self._count(match, depth)

    def _count(self, match: re.Match[str], depth: int) -> None:
        """Count the items of a list written "1. 1. 1.", as Markdown does. Slack shows a number as it is written."""
        self.numbers = {at: numbers for at, numbers in self.numbers.items() if at <= depth}
        shown, written = self.numbers.pop(depth, (0, 0))
        if match[4]:
            number = int(match[4])
            counts = number == written == 1 or shown != written
            self.numbers[depth] = (shown + 1 if counts else number, number)
            if counts and shown + 1 != number:
                self.page.replace("list", *match.span(4), str(shown + 1))

    def _definition(self, line: Line) -> bool:
        """Process ``[id]: url`` (edited at the end) and ``[^1]: text``."""
        if note := _NOTE.match(self.text, line.body, line.end):
            self._flush()
            self._unquote(line)
            self.page.replace("footnote", note.start(1), note.end(1), "")
            self.page.edit(note.start(3), note.end(3), "")
            Inline(self.page, note.end(), line.end).repair()
            return True
        if links.DEFINITION.match(self.text, line.start, line.end):
            self._flush()
            return True
        return False

    def _quote(self, line: Line) -> None:
        """Convert a quoted line to a bullet. A comparison sign at the start of a line stays."""
        self._flush()
        quote_signs = self.text[line.start : line.body]
        bullet = "• " if self.page.is_mrkdwn else "- "
        self.page.fault("quote", line.start, line.end)
        start = line.start + quote_signs.index(">")
        if _COMPARISON.match(self.text, start, line.end):
            form = "&gt;" if self.page.is_mrkdwn else ZERO_WIDTH + ">"
            self.page.edit(line.start, start + 1, bullet + form)
            Inline(self.page, start + 1, line.end).repair()
            return
        self.page.edit(line.start, line.body, "    " * (quote_signs.count(">") - 1) + bullet)
        if self.page.is_mrkdwn and (alert := _ALERT.match(self.text, line.body, line.end)):
            self.page.edit(line.body, line.end, f"*{alert[1]}*")
        else:
            Inline(self.page, line.body, line.end).repair()

    def _table(self, index: int) -> int:
        """Draw a table as an aligned block. Return the index after it, or 0 without a table."""
        texts = (self.text[line.body : line.end] for line in islice(self.lines, index, None))
        rows, aligns = [next(texts)], None
        for row in texts:
            if len(rows) == 1 and aligns is None and is_delimiter(row):
                aligns = column_alignments(row)
            elif "|" not in row or (aligns is None and not is_row(row)):
                break
            else:
                rows.append(row)
        headed = aligns is not None
        if not headed and not is_row(rows[0]):
            return 0
        self._flush()
        first, last = self.lines[index], self.lines[index + len(rows) - 1 + headed]
        cells = [[self._cell(cell) for cell in split_cells(row)] for row in rows]
        drawn = draw_table(cells, aligns or "", headed=headed)
        if first.body > first.start:
            self.page.fault("quote", first.start, last.end)
        self.page.replace("table", first.start, last.end, f"```\n{drawn}\n```")
        return index + len(rows) + headed

    def _cell(self, text: str) -> str:
        if not text or (text.isalnum() and text.isascii()):
            return text
        page = MarkupPage(text, references=self.page.references, used=self.page.used)
        Inline(page, 0, len(text)).repair()
        return flatten_cell(apply_edits(text, page.edits))


def _repair_fence(text: str, fence: Fence, *, is_mrkdwn: bool) -> str:
    """Return a fence in the form that Slack shows: three ticks, no language, closed, on lines of its own.

    The code does not change, except for quote signs and the indentation of the fence.
    """
    if fence.inline and is_mrkdwn and fence.info.lower() not in _LANGUAGES:
        return text[fence.start : fence.end]
    body = text[fence.body : fence.body_end]
    if not fence.closed:
        body = body.rstrip("\n")
    if fence.quoted:
        body = "\n".join(QUOTE.sub("", line, count=1) for line in body.split("\n"))
    elif fence.indent:
        lines = body.split("\n")
        body = "\n".join(line[min(fence.indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines)
    ticks, info = fence.ticks, fence.info
    # If code can begin right after the ticks, only a known language name counts.
    is_language = info.lower() in _LANGUAGES if fence.inline else _LANGUAGE.fullmatch(info)
    if info and (is_mrkdwn or fence.inline) and not ((body or fence.closed) and is_language):
        body, info = info + ("\n" + body if body else ""), ""
    if is_mrkdwn:
        ticks, info = "```", ""
        body = body.replace("```", f"``{ZERO_WIDTH}`")  # three ticks inside would end the block in Slack
    form = f"{ticks}{info}\n{body}\n{ticks}" if body else f"{ticks}{info}\n{ticks}"
    before = text[fence.start - 1] if fence.start else "\n"
    after = text[fence.end] if fence.end < len(text) else "\n"
    return ("" if before == "\n" else "\n") + form + ("" if after == "\n" else "\n")
