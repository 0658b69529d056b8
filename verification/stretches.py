"""The few places of a long text that are worth a closer look, so that costly patterns need not run over all of it.

Promises: what is left out cannot hold what is looked for, so that a search of the stretches finds what a search of the
whole text would find. Must never decide what stands there. Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

_LETTERS: Final = re.compile(r"[^\W\d_]+")
_DIGITS: Final = re.compile(r"\d+")
_RUN: Final = re.compile(r"\d+|[^\W\d_]+")
_SPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_FEW: Final = 8
"""Words that are looked up one by one; more are found in one walk."""
_SHORT: Final = 500
"""Characters of a text, such as a sentence, of which every run is asked about; of longer ones each different run."""


def around(text: str, trigger: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The stretches between blanks or line ends that hold what ``trigger`` finds; with a back-tick, to a line end."""
    position = 0
    while match := trigger.search(text, position):
        at = match.start()
        start = max(text.rfind(" ", position, at) + 1, text.rfind("\n", position, at) + 1, position)
        line_end = _find(text, "\n", at)
        end = _find(text, " ", at, line_end)
        if text.find("`", start, end) >= 0:
            end = line_end
        yield start, end
        position = max(end, match.end())


def _find(text: str, mark: str, start: int, end: int | None = None) -> int:
    """Where the mark stands first, else the end."""
    last = len(text) if end is None else end
    at = text.find(mark, start, last)
    return last if at < 0 else at


def is_spaced(text: str) -> bool:
    """Whether words can be told by their letters alone: not so in Chinese and Japanese."""
    return text.isascii() or not _SPACED.search(text)


class Tokens:
    """The tokens of a text that may open something, one after another: runs of digits and wanted runs of letters.

    ``token`` must match runs of digits and runs of letters, the latter perhaps with others behind hyphens
    (``hyphenated``). ``wanted`` is asked once for each different run of letters. In Chinese and Japanese, where a run
    is no word, every token may open something.
    """

    __slots__ = ("_hyphenated", "_next", "_starts", "_text", "_token")

    def __init__(
        self, text: str, token: re.Pattern[str], wanted: Callable[[str], bool], *, hyphenated: bool = False
    ) -> None:
        self._text = text
        self._token = token
        self._hyphenated = hyphenated
        self._starts = _openings(text, wanted) if is_spaced(text) else None
        self._next = 0

    def after(self, position: int) -> re.Match[str] | None:
        """The first of them that does not begin before ``position``; positions must not go back."""
        starts = self._starts
        if starts is None or self._is_inside(position):
            return self._token.search(self._text, position)
        while self._next < len(starts) and (starts[self._next] < position or self._is_joined(position)):
            self._next += 1
        return self._token.match(self._text, starts[self._next]) if self._next < len(starts) else None

    def _is_inside(self, position: int) -> bool:
        """Whether a run goes on at ``position``: what is left of it is a token as well."""
        around_it = self._text[position - 1 : position + 1] if position else ""
        if len(around_it) < 2 or not around_it.isalnum():  # noqa: PLR2004 - a character on either side
            return False
        return around_it.isdecimal() or all(map(is_letter, around_it))

    def _is_joined(self, position: int) -> bool:
        """Whether letters come next that stand behind a hyphen and so inside a longer token."""
        start = self._starts[self._next] if self._starts else 0
        if not self._hyphenated or start - 2 < position or self._text[start - 1] != "-":
            return False
        return is_letter(self._text[start]) and is_letter(self._text[start - 2])


def _openings(text: str, wanted: Callable[[str], bool]) -> list[int]:
    """Where runs of digits and wanted runs of letters begin."""
    if len(text) <= _SHORT:
        return [start for start, run in _runs(text) if run[0].isdecimal() or wanted(run)]
    found = [match.start() for match in _DIGITS.finditer(text)]
    hot = {word for word in set(_LETTERS.findall(text)) if wanted(word)}
    if len(hot) > _FEW:
        found += [match.start() for match in _LETTERS.finditer(text) if match.group() in hot]
    else:
        for word in hot:
            found += _whole(text, word)
    return sorted(found)


@lru_cache(maxsize=2)
def _runs(text: str) -> list[tuple[int, str]]:
    """The runs of a short text with their places. Remembered: its dates and its numbers are asked for in turn."""
    return [(match.start(), match.group()) for match in _RUN.finditer(text)]


def _whole(text: str, word: str) -> Iterator[int]:
    """Where ``word`` stands as a run of letters of its own."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (at and is_letter(text[at - 1])) and not (end < len(text) and is_letter(text[end])):
            yield at
        at = text.find(word, end)


def is_letter(character: str) -> bool:
    """Whether it belongs to a run of letters: neither a digit nor a sign."""
    return character.isalnum() and not character.isdecimal()
