"""Decide which runs of ``*``, ``_`` and ``~`` are emphasis, and which are powers, globs, dunders or arguments.

It is laxer than CommonMark if models need it (``**Note:**text``, ``これは**「重要」**です``), stricter if it would
change a meaning (``2**10 and 3**4``, ``__init__``, ``src/**/*.py``).
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from verification.markup.scanner import ZERO_WIDTH, MarkupPage
from verification.text.language import load_table

_DUNDERS = frozenset(load_table(__file__)["dunders"].split())
_DUNDER = re.compile(r"__([A-Za-z0-9]\w{0,40}?)__(?!\w)", re.ASCII)
_SPACE = re.compile(r"\s")
_LINE_END = re.compile(r"[ \t]*\n[ \t]*")
_MAX_OPEN_RUNS = 16  # runs that a closing mark looks back over: more open marks are noise, which must stay linear
_CJK_FROM = "\u2e80"
_OPENING = frozenset("「『（【《〈“‘\"'`[<")
_CLOSING = frozenset(":.!?;)」』）】》〉：。！？；、，”’\"'`]>")


@dataclass(slots=True)
class Run:
    """A run of marks. ``mark`` is the character, or ``b``, ``i``, ``s`` for an HTML tag (then ``size`` is the tag)."""

    start: int
    end: int
    mark: str
    weight: int
    opens: bool
    closes: bool
    intraword: bool = False


class Pair(NamedTuple):
    """An opening and a closing mark that belong together."""

    open_start: int
    open_end: int
    close_start: int
    close_end: int
    kind: str
    mark: str


def is_latin(char: str) -> bool:
    """Return True for a letter or digit of a script that puts spaces between words."""
    return char.isalnum() and char < _CJK_FROM


def dunder_end(text: str, start: int, end: int) -> int:
    """The end of ``__x__`` if it is a name in a program (``__init__``, ``pkg.__x__``, ``__x__()``), else 0."""
    match = _DUNDER.match(text, start, end)
    if not match:
        return 0
    before = text[start - 1] if start else " "
    after, beyond = text[match.end() : match.end() + 1], text[match.end() + 1 : match.end() + 2]
    named = match[1] in _DUNDERS or "_" in match[1] or before in "./\\"
    return match.end() if named or after == "(" or (after in {".", "/"} and beyond.isalnum()) else 0


def read_run(text: str, start: int, end: int, *, bounds: tuple[int, int]) -> Run:
    """Return the run ``[start, end)``, and whether its neighbours inside ``bounds`` let it open or close."""
    before = text[start - 1] if start > bounds[0] else " "
    after = text[end] if end < bounds[1] else " "
    mark, weight = text[start], end - start
    opens, closes = not after.isspace(), not before.isspace()
    if mark == "*":
        opens, closes = _star_flanks(before, after, weight)
    elif mark == "_":
        # CommonMark: an underscore inside a word is part of it, so snake_case stays.
        opens = opens and not (is_latin(before) or before == "_")
        closes = closes and not (is_latin(after) or after == "_")
    return Run(start, end, mark, weight, opens, closes, intraword=is_latin(before) and is_latin(after))


def _star_flanks(before: str, after: str, weight: int) -> tuple[bool, bool]:
    if _is_operator(before, after):
        return False, False
    odd_before, odd_after = not before.isalnum(), not after.isalnum()
    opens = not after.isspace() and (not odd_after or odd_before)
    closes = not before.isspace() and (not odd_before or odd_after)
    if weight > 1 and not opens and not after.isspace():
        opens = (before >= _CJK_FROM or after == "`") and after in _OPENING
    if weight > 1 and not closes and not before.isspace():
        closes = before in _CLOSING
    return opens, closes


def _is_operator(before: str, after: str) -> bool:
    """Recognise powers (``2**10``, ``(a+b)**2``) and path globs (``src/**/x``)."""
    if before == "/":
        return not after.isalnum() and after not in _OPENING
    if after == "/":
        return not (before.isspace() or before.isalnum() or before in _CLOSING)
    if before in ")]" and after.isdigit():
        return True
    return is_latin(before) and is_latin(after) and (before.isdigit() or after.isdigit())


def pair_runs(text: str, runs: list[Run]) -> list[Pair]:
    """Pair the runs that belong together, in order of their openings. Unpaired runs are plain characters."""
    result: list[Pair] = []
    stack: list[Run] = []
    for closer in runs:
        while closer.closes and closer.weight:
            near = range(len(stack) - 1, max(-1, len(stack) - 1 - _MAX_OPEN_RUNS), -1)
            place = next((at for at in near if _fits(text, stack[at], closer)), None)
            if place is None:
                break
            del stack[place + 1 :]  # runs above it are not emphasis
            result.append(_make_pair(stack[-1], closer))
            if not stack[-1].weight:
                stack.pop()
        if closer.opens and closer.weight and (closer.mark in "bis" or closer.end - closer.start == closer.weight):
            stack.append(closer)
    return sorted(result)


def _fits(text: str, opener: Run, closer: Run) -> bool:
    if opener.mark != closer.mark or closer.mark in "bis":
        return opener.mark == closer.mark
    if opener.weight != closer.weight and max(opener.weight, closer.weight) != 3:  # noqa: PLR2004 - *** is ** and *
        return False
    if opener.end >= closer.start or (opener.intraword and _SPACE.search(text, opener.end, closer.start)):
        return False
    return closer.mark != "~" or text.find("\n", opener.end, closer.start) < 0


def _make_pair(opener: Run, closer: Run) -> Pair:
    """Pair the inner marks of both runs. The rest of a run of three waits for its own partner."""
    if closer.mark in "bis":
        kind = {"b": "bold", "i": "italic", "s": "strike"}[closer.mark]
        opener.weight = closer.weight = 0
        return Pair(opener.start, opener.end, closer.start, closer.end, kind, closer.mark)
    use = min(opener.weight, closer.weight, 2)
    open_end = opener.start + opener.weight
    close_start = closer.end - closer.weight
    opener.weight -= use
    closer.weight -= use
    kind = "strike" if closer.mark == "~" else "bold" if use > 1 else "italic"
    return Pair(open_end - use, open_end, close_start, close_start + use, kind, closer.mark)


def convert_pairs(page: MarkupPage, pairs: list[Pair], *, bold: bool, bounds: tuple[int, int]) -> None:
    """Add edits that turn pairs into Slack's marks. ``bold``: the whole stretch becomes bold, without inner bold."""
    outer_of: dict[Pair, Pair | None] = {}
    stack: list[Pair] = []
    for pair in pairs:
        while stack and stack[-1].close_end <= pair.open_start:
            stack.pop()
        outer_of[pair] = stack[-1] if stack else None
        stack.append(pair)
    around_bold = {outer for pair, outer in outer_of.items() if pair.kind == "bold"}
    in_bold: dict[Pair | None, bool] = {None: bold}
    for pair, outer in outer_of.items():
        in_bold[pair] = in_bold[outer] or (outer is not None and outer.kind == "bold")
        if pair.kind == "italic" and pair.mark in "*_":
            if pair.mark == "*" and (in_bold[pair] or pair in around_bold):
                _put_marks(page, pair, "_", bounds)
            continue
        page.fault("html" if pair.mark in "bis" else pair.kind, pair.open_start, pair.close_end)
        loose = page.text[pair.open_end].isspace() or page.text[pair.close_start - 1].isspace()
        if (in_bold[pair] and pair.kind == "bold") or pair.open_end == pair.close_start or loose:
            page.edit(pair.open_start, pair.open_end, "")
            page.edit(pair.close_start, pair.close_end, "")
        else:
            _put_marks(page, pair, {"bold": "*", "italic": "_", "strike": "~"}[pair.kind], bounds)


def _put_marks(page: MarkupPage, pair: Pair, mark: str, bounds: tuple[int, int]) -> None:
    """Put Slack's marks in place, with a zero-width space next to a word: Slack needs a word boundary."""
    before = page.text[pair.open_start - 1] if pair.open_start > bounds[0] else " "
    after = page.text[pair.close_end] if pair.close_end < bounds[1] else " "
    page.edit(pair.open_start, pair.open_end, (ZERO_WIDTH if _touches(before) else "") + mark)
    page.edit(pair.close_start, pair.close_end, mark + (ZERO_WIDTH if _touches(after) else ""))
    if pair.kind == "bold":  # bold ends with its line
        for line in _LINE_END.finditer(page.text, pair.open_end, pair.close_start):
            page.edit(line.start(), line.end(), f"{mark}\n{mark}")


def _touches(char: str) -> bool:
    return char.isalnum() or (char > "\x7f" and not char.isspace() and char != ZERO_WIDTH)
