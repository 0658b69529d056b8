"""The block pass: quotes, headings, rules, lists, tables, definitions and fences of one text, then its inline passes.

What this pass changes is what the form rules report, and nothing else. It never looks inside code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from verification.markup import links, tables
from verification.markup.edits import ZERO_WIDTH, Findings, Page, applied
from verification.markup.fence import mended
from verification.markup.inline import mend
from verification.markup.scanner import Fence, fences
from verification.types import Dialect

_QUOTE = re.compile(r"[ \t]*(?=>)((?:>[ \t]?)+)")
_COMPARISON = re.compile(r">=?\d|>=")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}(?:[ \t]+|$)")
_HEADING_TAIL = re.compile(r"[ \t]+#+[ \t]*$")
_ITEM = re.compile(r"([ \t]*)(?:([-*+])|(•)|\d{1,9}[.)])[ \t]+(?=\S)")
_TASK = re.compile(r"\[([ xX])\](?:[ \t]+|$)")
_NOTE = re.compile(r"[ \t]{0,3}\[(\^)(\w[\w.-]{0,40})\](:)")
_ALERT = re.compile(r"\[!([A-Za-z]+)\][ \t]*$")
_STRUCTURAL = frozenset(">#-*+•_=[|0123456789")


class Line(NamedTuple):
    """A line of prose: where it starts and ends, and where its text starts behind quote marks."""

    start: int
    end: int
    body: int


class Layout:
    """One pass over one page."""

    __slots__ = ("dialect", "findings", "lines", "marked", "notes", "page", "paragraph", "stack", "text")

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.page = Page(text, dialect)
        self.text, self.dialect, self.findings = text, dialect, self.page.findings
        self.lines: list[Line] = []
        self.notes: list[re.Match[str]] = []
        self.paragraph: tuple[int, int] | None = None
        self.stack: list[int] = []
        self.marked = False

    def survey(self) -> Findings:
        """All faults and edits of the text."""
        found = fences(self.text) if "```" in self.text or "~~~" in self.text else []
        stretches, position = [], 0
        for fence in found:
            stretches.append((position, fence.start))
            position = fence.end
        stretches.append((position, len(self.text)))
        if "]:" in self.text:
            for start, end in stretches:
                self._define(start, end)
        for index, (start, end) in enumerate(stretches):
            self._prose(start, end)
            if index < len(found):
                self._fence(found[index])
        self._drop_definitions()
        return self.findings

    def _define(self, start: int, end: int) -> None:
        """Collect definitions of links and footnotes before anything refers to them."""
        position = start
        while (position := self.text.find("]:", position, end)) >= 0:
            line = self.text.rfind("\n", start, position) + 1 or start
            if match := links.DEFINITION.match(self.text, line, end):
                self.page.references.setdefault(links.key(match[1]), links.cleaned(match[3].strip("<>")))
                self.notes.append(match)
            elif note := _NOTE.match(self.text, line, end):
                self.page.footnotes.add(note[2])
            eol = self.text.find("\n", position, end)
            position = end if eol < 0 else eol

    def _drop_definitions(self) -> None:
        """A definition that was used goes (its URL stands where it was used); another one becomes a plain line."""
        for match in self.notes:
            self.findings.fault("reference", match.start(), match.end())
            name, url = links.key(match[1]), links.cleaned(match[3].strip("<>"))
            if name in self.page.used and self.page.references[name] == url:
                self.findings.edit(match.start(), min(match.end() + 1, len(self.text)), "")
            else:
                self.findings.edit(match.start(2), match.end(2), "")

    def _prose(self, start: int, end: int) -> None:
        """All lines of a stretch without fences."""
        self.lines = []
        position = start
        while position < end:
            eol = self.text.find("\n", position, end)
            eol = end if eol < 0 else eol
            quote = _QUOTE.match(self.text, position, eol) if self.text.find(">", position, eol) >= 0 else None
            self.lines.append(Line(position, eol, quote.end() if quote else position))
            position = eol + 1
        index = 0
        while index < len(self.lines):
            index = self._line(index)
        self._flush()

    def _line(self, index: int) -> int:
        """One block that starts at a line; returns the index of the first line behind it."""
        line = self.lines[index]
        stripped = self.text[line.body : line.end].strip()
        if not stripped:
            return self._blank(line, index)
        quoted = line.body > line.start
        if "|" in stripped and self.dialect == "mrkdwn" and (after := self._table(index)):
            return after
        if not quoted and stripped[0] not in _STRUCTURAL:
            return self._plain(index)
        for block in self._blocks.get(stripped[0], ()):
            if block(self, line, stripped):
                return index + 1
        if quoted:
            self._quote(line)
            return index + 1
        return self._plain(index)

    def _blank(self, line: Line, index: int) -> int:
        self._flush()
        if line.body > line.start:
            self.findings.replace("quote", line.start, line.end, "")
        return index + 1

    def _flush(self) -> None:
        """Mend the paragraph collected so far."""
        if self.paragraph:
            mend(self.page, *self.paragraph)
            self.paragraph = None

    def _plain(self, index: int) -> int:
        """A line of running text, perhaps a heading by what is under it."""
        line = self.lines[index]
        if self.dialect == "mrkdwn" and (after := self._underlined(index)):
            return after
        if not self.text[line.start].isspace():
            self.stack, self.marked = [], False
        self.paragraph = (self.paragraph[0] if self.paragraph else line.start, line.end)
        return index + 1

    def _underlined(self, index: int) -> int:
        """A heading with ``===`` or ``---`` under it: the index behind both lines, or 0."""
        if index + 1 >= len(self.lines):
            return 0
        line, under = self.lines[index], self.lines[index + 1]
        mark = self.text[under.start : under.end].strip()
        if len(mark) < 3 or mark.strip("=") and (mark.strip("-") or self.paragraph):  # noqa: PLR2004, RUF021 - a rule's least length
            return 0
        self._flush()
        self.findings.fault("heading", line.start, under.end)
        self._bold_line(line.start, line.end)
        last = index + 1
        while last + 1 < len(self.lines) and self._is_underline(last + 1):
            last += 1
        self.findings.edit(line.end, self.lines[last].end, "")
        return last + 1

    def _is_underline(self, index: int) -> bool:
        mark = self.text[self.lines[index].start : self.lines[index].end].strip()
        return len(mark) > 2 and not (mark.strip("=") and mark.strip("-"))  # noqa: PLR2004 - a rule's least length

    def _bold_line(self, start: int, end: int) -> None:
        """Make a line bold, with its inner bold removed."""
        while start < end and self.text[start].isspace():
            start += 1
        while end > start and self.text[end - 1].isspace():
            end -= 1
        content = self.text[start:end]
        if not content.strip("*_~ \t"):
            mend(self.page, start, end)
            return
        whole = content[0] == content[-1] == "*" and "*" not in content[1:-1] and not content[1].isspace()
        if whole:
            return
        self.findings.edit(start, start, "*")
        mend(self.page, start, end, bold=True)
        self.findings.edit(end, end, "*")

    def _rule(self, line: Line, stripped: str) -> bool:
        """``---``, ``***``, ``___``: Slack has no rules, an empty line parts as well."""
        marks = stripped.replace(" ", "").replace("\t", "")
        if len(marks) < 3 or marks[0] not in "-*_" or marks.strip(marks[0]):  # noqa: PLR2004 - a rule's least length
            return False
        self._flush()
        if self.dialect == "mrkdwn" or line.body > line.start:
            blank_before = line.start == 0 or self.text[max(0, line.start - 2) : line.start] in {"\n\n", "\n"}
            end = line.end
            while blank_before and end < len(self.text) and self.text[end] == "\n":
                end += 1
            self.findings.fault("rule", line.start, line.end)
            self.findings.edit(line.start, end, "")
        return True

    def _heading(self, line: Line, _stripped: str, prefix: str = "") -> bool:
        """``## Title``: a bold line."""
        match = _HEADING.match(self.text, line.body, line.end)
        if not match:
            return False
        self._flush()
        if self.dialect == "markdown":
            self._unquote(line, "")
            mend(self.page, match.end(), line.end)
            return True
        self.stack, self.marked = [], False
        tail = _HEADING_TAIL.search(self.text, match.end(), line.end)
        end = tail.start() if tail else line.end
        self._unquote(line, prefix)
        self.findings.fault("heading", line.body, line.end)
        self.findings.edit(line.body, match.end(), "")
        self._bold_line(match.end(), end)
        self.findings.edit(end, line.end, "")
        return True

    def _unquote(self, line: Line, form: str) -> None:
        """Put ``form`` in the place of the quote marks, if there are any."""
        if line.body > line.start:
            self.findings.fault("quote", line.start, line.end)
            self.findings.edit(line.start, line.body, form)

    def _item(self, line: Line, _stripped: str) -> bool:
        """An item of a list: bullets become ``•`` with real indentation, numbers stay."""
        match = _ITEM.match(self.text, line.body, line.end)
        if not match:
            return False
        self._flush()
        self._unquote(line, "")
        content = match.end()
        if self.dialect == "markdown":
            mend(self.page, content, line.end)
            return True
        level = self._level(len(match[1].expandtabs(4)))
        task = _TASK.match(self.text, content, line.end)
        self._marker(match, level, task)
        content = task.end() if task else content
        if heading := _HEADING.match(self.text, content, line.end):
            self.findings.replace("heading", content, heading.end(), "")
            self._bold_line(heading.end(), line.end)
        else:
            mend(self.page, content, line.end)
        return True

    def _level(self, indent: int) -> int:
        """How deep an item with this indentation lies."""
        while self.stack and self.stack[-1] > indent:
            self.stack.pop()
        if not self.stack or indent > self.stack[-1] + 1:
            self.stack.append(indent)
        return len(self.stack) - 1

    def _marker(self, match: re.Match[str], level: int, task: re.Match[str] | None) -> None:
        """The edit of an item's indentation, bullet and check box."""
        start, end = match.start(), match.end()
        indent = "    " * level
        if task:
            box = "☐ " if task[1] == " " else "☑ "
            bullet = bool(match[2] or match[3])
            self.findings.fault("task", start, task.end())
            self.findings.edit(start if bullet else end, task.end(), indent + box if bullet else box)
        if match[2]:
            self.marked = True
            if not task:
                self.findings.replace("list", start, end, f"{indent}• ")
        elif not match[3] and self.marked and match[1] != indent:
            self.findings.replace("list", match.start(1), match.end(1), indent)

    def _definition(self, line: Line, _stripped: str) -> bool:
        """``[id]: url`` (settled at the end) and ``[^1]: text``."""
        if note := _NOTE.match(self.text, line.body, line.end):
            self._flush()
            self._unquote(line, "")
            self.findings.replace("footnote", note.start(1), note.end(1), "")
            self.findings.edit(note.start(3), note.end(3), "")
            mend(self.page, note.end(), line.end)
            return True
        if links.DEFINITION.match(self.text, line.start, line.end):
            self._flush()
            return True
        return False

    def _quote(self, line: Line) -> None:
        """A quoted line becomes a bullet; a comparison at a line's start keeps its sign."""
        self._flush()
        marks = self.text[line.start : line.body]
        bullet = "• " if self.dialect == "mrkdwn" else "- "
        self.findings.fault("quote", line.start, line.end)
        start = line.start + marks.index(">")
        if _COMPARISON.match(self.text, start, line.end):
            form = "&gt;" if self.dialect == "mrkdwn" else ZERO_WIDTH + ">"
            self.findings.edit(line.start, start + 1, bullet + form)
            mend(self.page, start + 1, line.end)
            return
        self.findings.edit(line.start, line.body, "    " * (marks.count(">") - 1) + bullet)
        alert = _ALERT.match(self.text, line.body, line.end)
        if alert and self.dialect == "mrkdwn":
            self.findings.edit(line.body, line.end, f"*{alert[1]}*")
            return
        mend(self.page, line.body, line.end)

    def _table(self, index: int) -> int:
        """A table's rows become an aligned block: the index behind it, or 0."""
        rows = self._rows(index)
        if not rows:
            return 0
        self._flush()
        texts = [self.text[line.body : line.end] for line in rows]
        headed = len(texts) > 1 and tables.is_delimiter(texts[1])
        aligns = tables.aligns(texts[1]) if headed else ""
        body = [text for number, text in enumerate(texts) if not (headed and number == 1)]
        cells = [[self._cell(cell) for cell in tables.cells(row)] for row in body]
        drawn = tables.drawn(tables.Table(cells, aligns, headed))
        kind = "quote" if rows[0].body > rows[0].start else "table"
        if kind == "quote":
            self.findings.fault(kind, rows[0].start, rows[-1].end)
        self.findings.replace("table", rows[0].start, rows[-1].end, f"```\n{drawn}\n```")
        return index + len(rows)

    def _rows(self, index: int) -> list[Line]:
        """The lines of the table that starts here, if one does."""
        lines = self.lines
        first = self.text[lines[index].body : lines[index].end]
        headed = index + 1 < len(lines) and tables.is_delimiter(self.text[lines[index + 1].body : lines[index + 1].end])
        if not headed and not tables.is_row(first):
            return []
        last = index + (2 if headed else 1)
        while last < len(lines):
            row = self.text[lines[last].body : lines[last].end]
            if "|" not in row or not (headed or tables.is_row(row)):
                break
            last += 1
        return lines[index:last]

    def _cell(self, text: str) -> str:
        """A cell as plain text."""
        if not text or (text.isalnum() and text.isascii()):
            return text
        page = Page(text, "mrkdwn")
        page.references = self.page.references
        page.used = self.page.used
        mend(page, 0, len(text))
        return tables.flat(applied(text, page.findings.edits))

    def _fence(self, fence: Fence) -> None:
        """A fence in Slack's form."""
        form = mended(self.text, fence, self.dialect)
        if form != self.text[fence.start : fence.end]:
            if fence.quoted:
                self.findings.fault("quote", fence.start, fence.end)
            self.findings.replace("fence", fence.start, fence.end, form)

    _blocks: ClassVar[Mapping[str, tuple[Callable[[Layout, Line, str], bool], ...]]] = {
        **dict.fromkeys("-*", (_rule, _item)),
        **dict.fromkeys("+•0123456789", (_item,)),
        "_": (_rule,),
        "#": (_heading,),
        "[": (_definition,),
    }
    """What a line may be, by what it begins with."""
